package credentials

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"regexp"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	authv1beta1 "open-cluster-management.io/managed-serviceaccount/apis/authentication/v1beta1"

	"open-cluster-management.io/cluster-inventory-addon/pkg/contract"
)

const (
	// labelIsToken is on every Secret that managed-serviceaccount's agent writes
	// (managed-serviceaccount pkg/common).
	labelIsToken = "authentication.open-cluster-management.io/is-managed-serviceaccount"

	// A token is a few hundred bytes to a few kilobytes, a bundle of certificate
	// authorities rarely more than some tens of kilobytes.
	maxTokenBytes = 16 << 10
	maxCABytes    = 256 << 10
)

// reference is what an account's status says of its token. Another one means
// that the token is another. Its time has a resolution of one second.
type reference struct {
	name      string
	refreshed time.Time
	expires   time.Time // zero when the status does not say
	account   string    // the account's UID
}

func referenceOf(account *authv1beta1.ManagedServiceAccount) reference {
	ref := reference{account: string(account.UID)}
	if account.Status.TokenSecretRef != nil {
		ref.name = account.Status.TokenSecretRef.Name
		ref.refreshed = account.Status.TokenSecretRef.LastRefreshTimestamp.UTC()
	}
	if account.Status.ExpirationTimestamp != nil {
		ref.expires = account.Status.ExpirationTimestamp.UTC()
	}
	return ref
}

// problem says what is wrong with a reference by itself, or "". The spoke's agent
// writes the status: a name other than the account's would make a copy of any
// Secret of the cluster's namespace.
func (r reference) problem(account string, now time.Time) string {
	switch {
	case r.name == "":
		return "its status names no Secret (status.tokenSecretRef): the agent of managed-serviceaccount has not reported a token, or has taken it back"
	case r.name != account:
		return "its status names a Secret that is not its own: an account's token is in the Secret of the account's name"
	case !r.expires.IsZero() && !now.Before(r.expires):
		return "its token has expired at " + r.expires.Format(time.RFC3339) + "; see why the agent of managed-serviceaccount does not refresh it"
	default:
		return ""
	}
}

// content is what is copied. It is never kept.
type content struct {
	token   []byte
	ca      []byte
	expires time.Time
}

func (c content) data() map[string][]byte {
	return map[string][]byte{contract.CredentialTokenKey: c.token, contract.CredentialCAKey: c.ca}
}

// digest tells one content from another without holding it.
type digest [sha256.Size]byte

func (c content) digest() digest {
	var all bytes.Buffer
	for _, part := range [][]byte{c.token, c.ca, []byte(c.expires.UTC().Format(time.RFC3339))} {
		_ = binary.Write(&all, binary.BigEndian, uint64(len(part)))
		all.Write(part)
	}
	return sha256.Sum256(all.Bytes())
}

// windowBytes is how many bytes of a token count as the token.
const windowBytes = 12

// censored returns text, or a substitute when there is part of the token in it: an
// admission webhook may quote what it refuses.
func (c content) censored(text string) string {
	encoded := base64.StdEncoding.EncodeToString(c.token)
	for i := 0; i+windowBytes <= len(text); i++ {
		window := text[i : i+windowBytes]
		if strings.Contains(string(c.token), window) || strings.Contains(encoded, window) {
			return "the API server's message is left out: it quotes the token"
		}
	}
	return text
}

// encoded is text so long, in the letters of base64, that it may be of a token.
var encoded = regexp.MustCompile(`[A-Za-z0-9+/=_.-]{40,}`)

// withoutTokens leaves out of a text whatever may be part of some token: what is
// refused may be about one that is not at hand, as when a copy is deleted. Names of
// objects, which have no capitals, stay.
func withoutTokens(text string) string {
	return encoded.ReplaceAllStringFunc(text, func(found string) string {
		if found == strings.ToLower(found) {
			return found
		}
		return "(left out)"
	})
}

// contentOf takes out of an account's own Secret what is to be copied, or says
// why it cannot be. The Secret is written by the spoke's agent, or by anybody
// with rights in the cluster's namespace.
func contentOf(account *authv1beta1.ManagedServiceAccount, secret *corev1.Secret, now time.Time) (c content, problem string) {
	switch {
	case secret.Labels[labelIsToken] != "true":
		return content{}, "its Secret was not made by managed-serviceaccount: it is not labelled " + labelIsToken + "=true"
	case !ownedBy(secret, account):
		return content{}, "its Secret was not made for it: no owner reference has its UID"
	case secret.Type != corev1.SecretTypeOpaque:
		return content{}, fmt.Sprintf("its Secret is of type %.60q instead of %s", secret.Type, corev1.SecretTypeOpaque)
	}
	c = content{token: secret.Data[contract.CredentialTokenKey], ca: secret.Data[contract.CredentialCAKey]}
	switch {
	case len(c.token) == 0:
		return content{}, "its Secret holds no " + contract.CredentialTokenKey
	case len(c.token) > maxTokenBytes:
		return content{}, fmt.Sprintf("its Secret's %s has %d bytes, and %d are allowed", contract.CredentialTokenKey, len(c.token), maxTokenBytes)
	case len(c.ca) == 0:
		return content{}, "its Secret holds no " + contract.CredentialCAKey
	case len(c.ca) > maxCABytes:
		return content{}, fmt.Sprintf("its Secret's %s has %d bytes, and %d are allowed", contract.CredentialCAKey, len(c.ca), maxCABytes)
	case !isCertificates(c.ca):
		return content{}, "its Secret's " + contract.CredentialCAKey + " is not a list of PEM certificates and nothing else"
	}
	expires, ok := tokenExpiry(c.token)
	if !ok {
		return content{}, "its Secret's " + contract.CredentialTokenKey + " is not a JSON web token with an expiry"
	}
	c.expires = expires
	if status := account.Status.ExpirationTimestamp; status != nil && status.Time.Before(expires) {
		c.expires = status.UTC()
	}
	if !now.Before(c.expires) {
		return content{}, "its token has expired at " + c.expires.UTC().Format(time.RFC3339) + "; see why the agent of managed-serviceaccount does not refresh it"
	}
	return c, ""
}

func ownedBy(secret *corev1.Secret, account *authv1beta1.ManagedServiceAccount) bool {
	for _, owner := range secret.OwnerReferences {
		if owner.UID == account.UID && owner.Kind == "ManagedServiceAccount" && strings.HasPrefix(owner.APIVersion, authv1beta1.GroupVersion.Group+"/") {
			return true
		}
	}
	return false
}

// tokenExpiry reads when a token expires. The signature is the spoke's business.
func tokenExpiry(token []byte) (time.Time, bool) {
	parts := strings.Split(string(token), ".")
	if len(parts) != 3 || parts[0] == "" || parts[2] == "" {
		return time.Time{}, false
	}
	payload, err := base64.RawURLEncoding.DecodeString(parts[1])
	if err != nil {
		return time.Time{}, false
	}
	var claims struct {
		Expires *float64 `json:"exp"`
	}
	// The largest number is the last second of the year 9999, after which RFC 3339
	// has no words.
	if err := json.Unmarshal(payload, &claims); err != nil || claims.Expires == nil || *claims.Expires < 0 || *claims.Expires > 253402300799 {
		return time.Time{}, false
	}
	return time.Unix(int64(*claims.Expires), 0).UTC(), true
}

// isCertificates tells whether something is PEM certificates only: a private key
// among them must not be handed on.
func isCertificates(data []byte) bool {
	found := false
	for rest := data; ; {
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil {
			return found && !bytes.Contains(rest, []byte("PRIVATE KEY"))
		}
		if block.Type != "CERTIFICATE" {
			return false
		}
		found = true
	}
}

// expiresIn is how long until a time, at least an instant.
func expiresIn(at time.Time, now time.Time) time.Duration {
	return max(at.Sub(now), time.Millisecond)
}

// trimAccount keeps of an account what is read.
func trimAccount(in any) (any, error) {
	account, ok := in.(*authv1beta1.ManagedServiceAccount)
	if !ok {
		return in, nil
	}
	trimmed := &authv1beta1.ManagedServiceAccount{
		TypeMeta: account.TypeMeta,
		ObjectMeta: metav1.ObjectMeta{
			Namespace:         account.Namespace,
			Name:              account.Name,
			UID:               account.UID,
			ResourceVersion:   account.ResourceVersion,
			DeletionTimestamp: account.DeletionTimestamp,
			Labels:            map[string]string{contract.LabelSyncToProfile: account.Labels[contract.LabelSyncToProfile]},
		},
		Status: authv1beta1.ManagedServiceAccountStatus{
			ExpirationTimestamp: account.Status.ExpirationTimestamp,
			TokenSecretRef:      account.Status.TokenSecretRef,
		},
	}
	if targets, ok := account.Annotations[contract.AnnotationSyncToNamespaces]; ok {
		trimmed.Annotations = map[string]string{contract.AnnotationSyncToNamespaces: targets}
	}
	return trimmed, nil
}
