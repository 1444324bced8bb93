package source

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	authv1beta1 "open-cluster-management.io/managed-serviceaccount/apis/authentication/v1beta1"

	"open-cluster-management.io/cluster-inventory-addon/internal/apitest/ocmtest"
)

// Whatever a spoke hands over as a token, what is copied of it is bounded, ends, and contains no
// private key; and what is said about the rest does not quote it.
func FuzzWhatIsHandedOver(f *testing.F) {
	good := jwt(fmt.Sprintf(`{"exp":%d}`, noon.Add(time.Hour).Unix()))
	f.Add(good, ocmtest.CA())
	f.Add(good, ocmtest.CA()+strings.ReplaceAll(ocmtest.CA(), "CERTIFICATE", "PRIVATE KEY"))
	f.Add(good, "-----BEGIN PRIVATE KEY-----\nhalf of one\n"+ocmtest.CA())
	f.Add(jwt(`{"exp":1e300}`), "")
	f.Add("a.b.c", "-----BEGIN CERTIFICATE-----")
	account := &authv1beta1.ManagedServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "c1", Name: "a", UID: "uid"}}
	f.Fuzz(func(t *testing.T, text, ca string) {
		got, problem := validate(account, ocmtest.TokenSecret(account, text, ca), noon)
		if problem != "" {
			if got.Token != nil || got.CA != nil {
				t.Errorf("something is copied in spite of %q", problem)
			}
			if len(problem) > 500 || len(text) >= 40 && strings.Contains(problem, text) {
				t.Errorf("problem %q", problem)
			}
			return
		}
		if len(got.Token) > 16<<10 || len(got.CA) > 256<<10 || !got.Expires.After(noon) || got.Expires.Year() > 9999 {
			t.Errorf("%d bytes of token, %d of authorities, until %s", len(got.Token), len(got.CA), got.Expires)
		}
		if bytes.Contains(got.CA, []byte("PRIVATE KEY")) {
			t.Error("a private key is copied")
		}
		if censored := got.Censor("refused: " + text); len(text) >= 12 && strings.Contains(censored, text) {
			t.Errorf("the text still quotes the token: %q", censored)
		}
	})
}

// Whatever an annotation says, the namespaces that count are bounded, and those listed first.
func FuzzNamedNamespaces(f *testing.F) {
	f.Add("a,b, a ,,c", "")
	f.Add(strings.Repeat("x", 300)+",\xff\n", "7")
	f.Add(strings.Repeat("n,", 3000)+"last", "-1")
	f.Fuzz(func(t *testing.T, list, more string) {
		account := &authv1beta1.ManagedServiceAccount{ObjectMeta: metav1.ObjectMeta{
			Annotations: map[string]string{targetAnnotation: list, annotationMore: more},
		}}
		named := NamedNamespaces(account)
		if !named.Is || len(named.Namespaces) > 500 || !slices.IsSorted(named.Namespaces) {
			t.Errorf("%+v", named)
		}
		for i, namespace := range named.Namespaces {
			if len(namespace) > 100 || namespace == "" || i > 0 && namespace == named.Namespaces[i-1] {
				t.Errorf("namespace %q", namespace)
			}
		}
	})
}
