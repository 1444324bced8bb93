// Package bearer has the token of an account, which package source reads and package target
// writes, and keeps it out of logs, events and conditions.
package bearer

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"regexp"
	"strings"
	"time"
)

// Token is the part of an account's Secret that may be copied. It is never kept.
type Token struct {
	Token   []byte
	CA      []byte
	Expires time.Time
}

// Digest identifies a Token without revealing it.
type Digest = [sha256.Size]byte

// Digest returns the token's digest.
func (t Token) Digest() Digest {
	var all bytes.Buffer
	for _, part := range [][]byte{t.Token, t.CA, []byte(t.Expires.UTC().Format(time.RFC3339))} {
		_ = binary.Write(&all, binary.BigEndian, uint64(len(part)))
		all.Write(part)
	}
	return sha256.Sum256(all.Bytes())
}

// windowBytes is how many bytes of a token identify it.
const windowBytes = 12

// Censor returns text, or a substitute if it quotes part of the token: an admission webhook
// may quote what it refuses.
func (t Token) Censor(text string) string {
	encoded := base64.StdEncoding.EncodeToString(t.Token)
	for i := 0; i+windowBytes <= len(text); i++ {
		window := text[i : i+windowBytes]
		if strings.Contains(string(t.Token), window) || strings.Contains(encoded, window) {
			return "the API server's message is left out: it quotes the token"
		}
	}
	return text
}

// encoded matches text that is long enough, in the letters of base64, to be part
// of a token.
var encoded = regexp.MustCompile(`[A-Za-z0-9+/=_.-]{40,}`)

// WithoutTokens removes from a text all that may be part of any token, for errors about a
// token that is not at hand, as when a copy is deleted. Names of objects have no capitals and
// stay.
func WithoutTokens(text string) string {
	return encoded.ReplaceAllStringFunc(text, func(found string) string {
		if found == strings.ToLower(found) {
			return found
		}
		return "(left out)"
	})
}
