package ocmtest

import (
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	authv1beta1 "open-cluster-management.io/managed-serviceaccount/apis/authentication/v1beta1"
	inventoryv1alpha1 "sigs.k8s.io/cluster-inventory-api/apis/v1alpha1"

	"open-cluster-management.io/cluster-inventory-addon/internal/apitest"
)

// Account creates a ManagedServiceAccount without a token, which names the namespaces to
// copy its token to.
func (h *Hub) Account(cluster, name string, targets ...string) *authv1beta1.ManagedServiceAccount {
	h.T.Helper()
	account := NewAccount(cluster, name, targets...)
	h.MustCreate(account)
	return account
}

// NewAccount is that account, not yet created.
func NewAccount(cluster, name string, targets ...string) *authv1beta1.ManagedServiceAccount {
	return &authv1beta1.ManagedServiceAccount{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: cluster,
			Name:      name,
			Labels:    map[string]string{"authentication.open-cluster-management.io/sync-to-clusterprofile": "true"},
			Annotations: map[string]string{
				"inventory.open-cluster-management.io/sync-to-namespaces": strings.Join(targets, ","),
			},
		},
		Spec: authv1beta1.ManagedServiceAccountSpec{
			Rotation: authv1beta1.ManagedServiceAccountRotation{Enabled: true, Validity: metav1.Duration{Duration: time.Hour}},
		},
	}
}

// Rotate does what managed-serviceaccount's agent does: it writes a new token to
// the account's Secret, then the account's status. It returns the token.
func (h *Hub) Rotate(account *authv1beta1.ManagedServiceAccount) string {
	h.T.Helper()
	expires := time.Now().Add(time.Hour)
	token := TokenOf(account.Namespace, account.Name, expires)
	h.StoreToken(account, token, CA())
	h.ReportToken(account, account.Name, expires)
	return token
}

// StoreToken writes the account's Secret.
func (h *Hub) StoreToken(account *authv1beta1.ManagedServiceAccount, token, ca string) *corev1.Secret {
	h.T.Helper()
	secret := TokenSecret(account, token, ca)
	err := h.Create(h.T.Context(), secret.DeepCopy())
	if apierrors.IsAlreadyExists(err) {
		err = h.Update(h.T.Context(), secret)
	}
	apitest.Must(h.T, err)
	return secret
}

// TokenSecret is the account's Secret, not yet created.
func TokenSecret(account *authv1beta1.ManagedServiceAccount, token, ca string) *corev1.Secret {
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: account.Namespace, Name: account.Name,
			Labels: map[string]string{"authentication.open-cluster-management.io/is-managed-serviceaccount": "true"},
			OwnerReferences: []metav1.OwnerReference{{
				APIVersion: "authentication.open-cluster-management.io/v1beta1", Kind: "ManagedServiceAccount",
				Name: account.Name, UID: account.UID,
			}},
		},
		Type: corev1.SecretTypeOpaque,
		Data: map[string][]byte{"token": []byte(token), "ca.crt": []byte(ca)},
	}
}

// ReportToken writes the account's status. Each report has a later second than the one
// before, so that it is a change.
func (h *Hub) ReportToken(account *authv1beta1.ManagedServiceAccount, secret string, expires time.Time) {
	h.T.Helper()
	apitest.EditStatus(h, account, func(a *authv1beta1.ManagedServiceAccount) {
		refreshed := time.Now().Truncate(time.Second)
		if last := a.Status.TokenSecretRef; last != nil && !refreshed.After(last.LastRefreshTimestamp.Time) {
			refreshed = last.LastRefreshTimestamp.Add(time.Second)
		}
		a.Status.TokenSecretRef = &authv1beta1.SecretRef{Name: secret, LastRefreshTimestamp: metav1.NewTime(refreshed)}
		a.Status.ExpirationTimestamp = ptr.To(metav1.NewTime(expires.Truncate(time.Second)))
	})
}

// Token returns a unique token in the form of an API server's. No server accepts it.
func Token(expires time.Time) string { return TokenOf("c", "a", expires) }

// TokenOf is a Token that says which cluster's account it was issued to.
func TokenOf(cluster, account string, expires time.Time) string {
	payload, err := json.Marshal(map[string]any{
		"exp": expires.Unix(),
		"iss": "https://" + cluster + ".example.com",
		"sub": "system:serviceaccount:agents:" + account,
		"kubernetes.io": map[string]any{
			"namespace":      "agents",
			"serviceaccount": map[string]any{"name": account, "uid": "uid-of-" + account},
		},
	})
	if err != nil {
		panic(err) // impossible for a map of numbers and strings
	}
	signature := make([]byte, 256)
	_, _ = rand.Read(signature) // never fails
	encode := base64.RawURLEncoding.EncodeToString
	return "eyJhbGciOiJSUzI1NiJ9." + encode(payload) + "." + encode(signature)
}

// UpstreamCopy returns the copy that managed-serviceaccount's own syncer would make in the
// namespace of a cluster's profile (managed-serviceaccount v0.10.0), not yet created.
func UpstreamCopy(profile *inventoryv1alpha1.ClusterProfile, account, token string) *corev1.Secret {
	name := profile.Name + "-" + account
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: profile.Namespace, Name: name,
			Labels: map[string]string{"authentication.open-cluster-management.io/synced-from": name},
			OwnerReferences: []metav1.OwnerReference{{
				APIVersion: "multicluster.x-k8s.io/v1alpha1", Kind: "ClusterProfile",
				Name: profile.Name, UID: profile.UID, Controller: ptr.To(true),
			}},
		},
		Type: corev1.SecretTypeOpaque,
		Data: map[string][]byte{"token": []byte(token), "ca.crt": []byte(CA())},
	}
}

// CA returns a certificate for the Secrets of tokens, which nothing parses.
func CA() string {
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: []byte("never parsed")}))
}
