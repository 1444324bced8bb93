package bearer

import (
	"encoding/base64"
	"fmt"
	"slices"
	"testing"
)

func jwt(payload string) string {
	return "h." + base64.RawURLEncoding.EncodeToString([]byte(payload)) + ".s"
}

func TestIssuedToTheSame(t *testing.T) {
	said := func(issuer, subject, uid, id string) []byte {
		return []byte(jwt(fmt.Sprintf(`{"iss":%q,"sub":%q,"jti":%q,"kubernetes.io":{"serviceaccount":{"uid":%q}}}`, issuer, subject, id, uid)))
	}
	own := said("https://spoke", "system:serviceaccount:agents:a", "u1", "2")
	for name, test := range map[string]struct {
		own, other []byte
		want       bool
	}{
		"the very token":                     {own, own, true},
		"an earlier one":                     {own, said("https://spoke", "system:serviceaccount:agents:a", "u1", "1"), true},
		"another account's":                  {own, said("https://spoke", "system:serviceaccount:agents:b", "u2", "1"), false},
		"that of an account since recreated": {own, said("https://spoke", "system:serviceaccount:agents:a", "u0", "1"), false},
		"another cluster's":                  {own, said("https://other", "system:serviceaccount:agents:a", "u1", "1"), false},
		"something else":                     {own, []byte("x"), false},
		"nothing":                            {own, nil, false},
		"enormous":                           {own, append(slices.Clone(own), make([]byte, 16<<10)...), false},
		"tokens that do not say":             {[]byte(jwt(`{"jti":"2"}`)), []byte(jwt(`{"jti":"1"}`)), false},
		"the same token that does not say":   {[]byte(jwt(`{"jti":"2"}`)), []byte(jwt(`{"jti":"2"}`)), true},
	} {
		t.Run(name, func(t *testing.T) {
			if got := (Token{Token: test.own}).IssuedToTheSame(test.other); got != test.want {
				t.Errorf("got %t", got)
			}
		})
	}
}
