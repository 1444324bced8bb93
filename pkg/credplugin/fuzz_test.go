package credplugin

import (
	"errors"
	"strings"
	"testing"
	"time"
	"unicode"

	"k8s.io/apimachinery/pkg/util/validation"
)

// Whatever a client passes, one Secret of a valid name is read, or one printable line says what is
// wrong.
func FuzzExecInfo(f *testing.F) {
	f.Add(request(`{"clusterName":"c1"}`), "reader")
	f.Add(request(`{"clusterName":"../secrets"}`), "reader")
	f.Add(request(`{"clusterName":{"a":[1]}}`), "")
	f.Add(`{"kind":"ExecCredential\u001b[2J","apiVersion":"x"}`, "reader")
	f.Add("", "a")
	f.Fuzz(func(t *testing.T, given, account string) {
		wanted, err := wantedAccount(given, account)
		if err != nil {
			checkFailure(t, err)
			return
		}
		if problems := validation.IsDNS1123Subdomain(wanted.secret()); len(problems) > 0 {
			t.Errorf("reads Secret %q: %v", wanted.secret(), problems)
		}
	})
}

// Any Secret results in a token that fits a header, or in a line that does not quote the token.
func FuzzSecret(f *testing.F) {
	f.Add(jwt(`{"sub":"system:serviceaccount:a:c","exp":1795266000}`), "a-b", "c", "")
	f.Add("not-a-token\r\nX-Other: 1", "", "", "2026-01-01T00:00:00Z")
	f.Add(jwt(`{"exp":1e300,"sub":"\u001b[2J"}`), "a-b", "c\x00", "never")
	f.Fuzz(func(t *testing.T, token, cluster, name, expires string) {
		annotations := source(cluster, name)
		annotations["inventory.open-cluster-management.io/expires"] = expires
		got, err := credentialFrom(copyOf(token, annotations), account{cluster: "a-b", name: "c"}, now, time.Minute)
		if err != nil {
			checkFailure(t, err)
			if len(token) >= 20 && strings.Contains(err.Error(), token) {
				t.Errorf("the token is quoted: %q", err)
			}
			return
		}
		if got.token == "" || len(got.token) > maxTokenBytes || strings.ContainsFunc(got.token, func(r rune) bool {
			return r <= ' ' || r > '~'
		}) {
			t.Errorf("token %q", got.token)
		}
	})
}

func checkFailure(t *testing.T, err error) {
	t.Helper()
	var failure *Failure
	if !errors.As(err, &failure) || failure.Code == ExitOK {
		t.Errorf("no failure with a code: %v", err)
	}
	if len(err.Error()) > 2000 || strings.ContainsFunc(err.Error(), func(r rune) bool { return !unicode.IsPrint(r) }) {
		t.Errorf("what is printed: %q", err)
	}
}
