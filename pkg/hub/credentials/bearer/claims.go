package bearer

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"strings"
	"time"
)

// MaxBytes bounds the length of a token, which has a few hundred bytes to a few kilobytes.
const MaxBytes = 16 << 10

// Ends returns when the token itself says that it expires. Verifying its signature is up to the spoke.
func (t Token) Ends() (time.Time, bool) {
	var claims struct {
		Expires *float64 `json:"exp"`
	}
	// RFC 3339 cannot express times after the last second of the year 9999.
	const lastSecond = 253402300799
	if !readClaims(t.Token, &claims) || claims.Expires == nil {
		return time.Time{}, false
	}
	if *claims.Expires < 0 || *claims.Expires > lastSecond {
		return time.Time{}, false
	}
	return time.Unix(int64(*claims.Expires), 0).UTC(), true
}

// isForeign reports whether a character cannot be part of a JSON web token in its compact form (RFC 7515).
func isForeign(r rune) bool {
	const special = ".-_"
	return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && !strings.ContainsRune(special, r)
}

// readClaims decodes the claims of a token without verifying its signature.
func readClaims(token []byte, claims any) bool {
	parts := strings.Split(string(token), ".")
	if len(parts) != 3 || parts[0] == "" || parts[2] == "" || strings.ContainsFunc(string(token), isForeign) {
		return false
	}
	payload, err := base64.RawURLEncoding.DecodeString(parts[1])
	return err == nil && json.Unmarshal(payload, claims) == nil
}

// holder identifies the account to which a token was issued.
type holder struct {
	Issuer     string `json:"iss"`
	Subject    string `json:"sub"`
	Kubernetes struct {
		ServiceAccount struct {
			UID string `json:"uid"`
		} `json:"serviceaccount"`
	} `json:"kubernetes.io"`
}

// IssuedToTheSame reports whether another token is this one, or was issued by the same
// cluster to the same ServiceAccount, like one that was rotated since. The manager cannot
// verify the other token's signature: the result only decides whether it may be replaced by
// this one.
func (t Token) IssuedToTheSame(other []byte) bool {
	if bytes.Equal(t.Token, other) {
		return true
	}
	var a, b holder
	return len(other) <= MaxBytes && readClaims(t.Token, &a) && readClaims(other, &b) && a == b &&
		a.Issuer != "" && a.Subject != "" && a.Kubernetes.ServiceAccount.UID != ""
}
