package source

import (
	"bytes"
	"encoding/pem"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	authv1beta1 "open-cluster-management.io/managed-serviceaccount/apis/authentication/v1beta1"

	"open-cluster-management.io/cluster-inventory-addon/pkg/contract"
	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/credentials/bearer"
	"open-cluster-management.io/cluster-inventory-addon/pkg/kube"
)

const (
	// labelIsToken is on every Secret that managed-serviceaccount's agent writes
	// (managed-serviceaccount pkg/common).
	labelIsToken = "authentication.open-cluster-management.io/is-managed-serviceaccount"

	// maxCABytes is for a bundle of certificate authorities, rarely more than some tens of kilobytes.
	maxCABytes = 256 << 10
)

// IsLabelled reports whether an account may be copied at all.
func IsLabelled(account *authv1beta1.ManagedServiceAccount) bool {
	return account.Labels[contract.LabelSyncToProfile] == "true"
}

// Named is the content of an account's annotation with target namespaces.
type Named struct {
	// Namespaces are the first that it names, sorted, at most contract.MaxTargets. They may
	// be invalid names.
	Namespaces []string

	// More is how many others it names, which are ignored.
	More int

	// Is is false if the account has no such annotation.
	Is bool
}

// NamedNamespaces returns the namespaces that an account's annotation lists. Those listed
// first are used, so that appending one does not take another away.
func NamedNamespaces(account *authv1beta1.ManagedServiceAccount) Named {
	list, is := account.Annotations[contract.AnnotationSyncToNamespaces]
	named := Named{Is: is}
	if is {
		// Only a trimmed account has it.
		named.More, _ = strconv.Atoi(account.Annotations[annotationMore])
	}
	counted := map[string]struct{}{}
	for namespace := range strings.SplitSeq(list, ",") {
		namespace = kube.Shorten(strings.TrimSpace(namespace), maxNamespaceBytes)
		if _, twice := counted[namespace]; twice || namespace == "" {
			continue
		}
		if len(counted) == contract.MaxTargets {
			named.More++
			continue
		}
		counted[namespace] = struct{}{}
	}
	named.Namespaces = slices.Sorted(maps.Keys(counted))
	return named
}

// annotationMore on an account in the cache is how many of the namespaces in its annotation
// are ignored.
const annotationMore = contract.KeyPrefix + "more-namespaces"

// maxNamespaceBytes exceeds the length of a namespace's name, so that a shortened name is
// still invalid.
const maxNamespaceBytes = 80

// Reference is what an account's status says about its token. A different reference means a
// different token. Its time has a resolution of one second.
type Reference struct {
	name      string
	refreshed time.Time
	expires   time.Time // zero if the status does not say
	account   string    // the account's UID
}

// ReferenceOf returns what an account's status says about its token.
func ReferenceOf(account *authv1beta1.ManagedServiceAccount) Reference {
	ref := Reference{account: string(account.UID)}
	if account.Status.TokenSecretRef != nil {
		ref.name = account.Status.TokenSecretRef.Name
		ref.refreshed = account.Status.TokenSecretRef.LastRefreshTimestamp.UTC()
	}
	if account.Status.ExpirationTimestamp != nil {
		ref.expires = account.Status.ExpirationTimestamp.UTC()
	}
	return ref
}

// Refusal returns a finding that says why the token of a reference must not be used,
// regardless of its Secret; a finding without a problem is no refusal. The spoke's agent
// writes the status: a name other than the account's would copy any Secret in the cluster's
// namespace.
func (r Reference) Refusal(account string, now time.Time) Finding {
	switch {
	case r.name == "":
		return Finding{Problem: "its status names no Secret (status.tokenSecretRef): " +
			"the agent of managed-serviceaccount has not reported a token, or has withdrawn it"}
	case r.name != account:
		return Finding{Problem: "its status names a Secret that is not its own: " +
			"an account's token is in the Secret of the account's name"}
	case !r.expires.IsZero() && !now.Before(r.expires):
		// No event announces that this clock was wrong.
		return Finding{
			Problem: hasExpired(r.expires) + "; see why the agent of managed-serviceaccount does not refresh it",
			Next:    now.Add(problemEvery),
		}
	default:
		return Finding{}
	}
}

func hasExpired(at time.Time) string {
	return "its token has expired at " + at.UTC().Format(time.RFC3339)
}

// validate returns the part of an account's own Secret that may be copied, or says why none may.
// The Secret is written by the spoke's agent, or by any user with rights in the cluster's
// namespace. The token's own claim says when it expires, as it does for the spoke: the status may
// be of an earlier token, because the agent writes it after the Secret and a cache may lag.
func validate(
	account *authv1beta1.ManagedServiceAccount, secret *corev1.Secret, now time.Time,
) (token bearer.Token, problem string) {
	switch {
	case secret.Labels[labelIsToken] != "true":
		return bearer.Token{}, "its Secret was not created by managed-serviceaccount: it is not labeled " +
			labelIsToken + "=true"
	case !isOwnedBy(secret, account):
		return bearer.Token{}, "its Secret was not created for it: no owner reference has its UID"
	case secret.Type != corev1.SecretTypeOpaque:
		return bearer.Token{}, fmt.Sprintf("its Secret is of type %.60q instead of %s", secret.Type, corev1.SecretTypeOpaque)
	}
	token = bearer.Token{Token: secret.Data[contract.CredentialTokenKey], CA: secret.Data[contract.CredentialCAKey]}
	switch {
	case len(token.Token) == 0:
		return bearer.Token{}, "its Secret holds no " + contract.CredentialTokenKey
	case len(token.Token) > bearer.MaxBytes:
		return bearer.Token{}, tooLong(contract.CredentialTokenKey, len(token.Token), bearer.MaxBytes)
	case len(token.CA) == 0:
		return bearer.Token{}, "its Secret holds no " + contract.CredentialCAKey
	case len(token.CA) > maxCABytes:
		return bearer.Token{}, tooLong(contract.CredentialCAKey, len(token.CA), maxCABytes)
	}
	certificates, ok := certificatesIn(token.CA)
	if !ok {
		return bearer.Token{}, "its Secret's " + contract.CredentialCAKey +
			" is not a list of PEM certificates and nothing else"
	}
	expires, ok := token.Ends()
	if !ok {
		return bearer.Token{}, "its Secret's " + contract.CredentialTokenKey + " is not a JSON web token with an expiry"
	}
	token.CA, token.Expires = certificates, expires
	if !now.Before(token.Expires) {
		return bearer.Token{}, hasExpired(token.Expires) + "; see why the agent of managed-serviceaccount does not refresh it"
	}
	return token, ""
}

func tooLong(key string, bytes, limit int) string {
	return fmt.Sprintf("its Secret's %s has %d bytes, and %d are allowed", key, bytes, limit)
}

func isOwnedBy(secret *corev1.Secret, account *authv1beta1.ManagedServiceAccount) bool {
	for _, owner := range secret.OwnerReferences {
		isAccount := owner.Kind == "ManagedServiceAccount" &&
			strings.HasPrefix(owner.APIVersion, authv1beta1.GroupVersion.Group+"/")
		if isAccount && owner.UID == account.UID {
			return true
		}
	}
	return false
}

// certificatesIn returns the certificates in PEM text without what is between them: consumers may make other
// texts of it. It fails if there are none, or anything else, too: a private key among them must not be
// handed on, nor what is left of one, which Decode skips.
func certificatesIn(data []byte) (certificates []byte, ok bool) {
	for rest := data; ; {
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil {
			return certificates, len(certificates) > 0 && !bytes.Contains(data, []byte("PRIVATE KEY"))
		}
		if block.Type != "CERTIFICATE" {
			return nil, false
		}
		certificates = append(certificates, pem.EncodeToMemory(&pem.Block{Type: block.Type, Bytes: block.Bytes})...)
	}
}
