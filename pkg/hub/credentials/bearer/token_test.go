package bearer

import (
	"encoding/base64"
	"strings"
	"testing"
	"time"

	"open-cluster-management.io/cluster-inventory-addon/internal/apitest/ocmtest"
)

var noon = time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC)

func TestDigestDistinguishesContents(t *testing.T) {
	seen := map[Digest]Token{}
	for _, c := range []Token{
		{}, {Token: []byte("ab")}, {CA: []byte("ab")}, {Token: []byte("a"), CA: []byte("b")}, {Token: []byte("ab"), Expires: noon},
	} {
		if before, ok := seen[c.Digest()]; ok {
			t.Errorf("%+v and %+v have one digest", before, c)
		}
		seen[c.Digest()] = c
	}
}

func TestCensored(t *testing.T) {
	c := Token{Token: []byte(ocmtest.Token(noon))}
	for name, test := range map[string]struct {
		text string
		kept bool
	}{
		"nothing of it":     {"exceeded quota: secrets, requested: count/secrets=1, used: 5, limited: 5", true},
		"all of it":         {"no: " + string(c.Token), false},
		"a part of it":      {"no: " + string(c.Token[100:112]), false},
		"a part, in base64": {"no: " + base64.StdEncoding.EncodeToString(c.Token)[200:212], false},
		"short":             {"no", true},
	} {
		t.Run(name, func(t *testing.T) {
			if got := c.Censor(test.text); (got == test.text) != test.kept {
				t.Errorf("got %q", got)
			}
		})
	}
}

func TestWithoutTokens(t *testing.T) {
	token := ocmtest.Token(noon)
	uid := "deleting Secret cluster1-reader: Precondition failed: UID in precondition: 5f4dcc3b-5aa7-65d6-1d83-27deb882cf99, UID in object meta: "
	name := strings.Repeat("a-long-name.", 20) + "x"
	for text, want := range map[string]string{
		"no: " + token + " in it":                                 "no: (left out) in it",
		"no: " + base64.StdEncoding.EncodeToString([]byte(token)): "no: (left out)",
		uid:                       uid,
		"deleting Secret " + name: "deleting Secret " + name,
		"ValidatingAdmissionPolicy 'x' with binding 'y' denied request: no": "ValidatingAdmissionPolicy 'x' with binding 'y' denied request: no",
	} {
		if got := WithoutTokens(text); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
