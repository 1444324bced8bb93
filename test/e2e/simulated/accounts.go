package simulated

import (
	"context"
	"encoding/base64"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	accountName = "bench"
	syncLabel   = "authentication.open-cluster-management.io/sync-to-clusterprofile"
	targetsKey  = "inventory.open-cluster-management.io/sync-to-namespaces"
)

// Account is the ManagedServiceAccount of a cluster. Only the owner of this value writes
// its tokens, which no cluster accepts.
type Account struct {
	hub     client.Client
	cluster string
	ca      []byte
	uid     types.UID
	serial  int
}

// NewAccount returns the account of a cluster, which does not exist yet. ca is the
// certificate beside its tokens, in PEM.
func NewAccount(hub client.Client, cluster string, ca []byte) *Account {
	return &Account{hub: hub, cluster: cluster, ca: ca}
}

func (a *Account) object() *unstructured.Unstructured {
	object := &unstructured.Unstructured{
		Object: map[string]any{"spec": map[string]any{"rotation": map[string]any{"enabled": true}}},
	}
	object.SetAPIVersion("authentication.open-cluster-management.io/v1beta1")
	object.SetKind("ManagedServiceAccount")
	object.SetNamespace(a.cluster)
	object.SetName(accountName)
	return object
}

// Create creates the account with a first token, not to be copied yet.
func (a *Account) Create(ctx context.Context) error {
	account := a.object()
	if err := a.hub.Create(ctx, account); err != nil {
		return err
	}
	a.uid = account.GetUID()
	return a.Rotate(ctx)
}

// Rotate does what the account's agent does: it writes the Secret, then the status. The
// time in the status advances by seconds, because it only has to differ.
func (a *Account) Rotate(ctx context.Context) error {
	a.serial++
	secret := a.secret()
	var err error
	if a.serial == 1 {
		err = a.hub.Create(ctx, secret)
	} else {
		err = a.hub.Update(ctx, secret)
	}
	if err != nil {
		return err
	}
	refreshed := time.Now().Add(time.Duration(a.serial) * time.Second)
	patch := fmt.Appendf(nil,
		`{"status":{"expirationTimestamp":%q,"tokenSecretRef":{"name":%q,"lastRefreshTimestamp":%q}}}`,
		expiry().UTC().Format(time.RFC3339), accountName, refreshed.UTC().Format(time.RFC3339))
	return a.hub.Status().Patch(ctx, a.object(), client.RawPatch(types.MergePatchType, patch))
}

func expiry() time.Time { return time.Now().Add(24 * time.Hour) }

func (a *Account) secret() *corev1.Secret {
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: a.cluster, Name: accountName,
			Labels: map[string]string{"authentication.open-cluster-management.io/is-managed-serviceaccount": "true"},
			OwnerReferences: []metav1.OwnerReference{{
				APIVersion: "authentication.open-cluster-management.io/v1beta1", Kind: "ManagedServiceAccount",
				Name: accountName, UID: a.uid,
			}},
		},
		Data: map[string][]byte{"token": []byte(NewToken(a.serial, expiry())), "ca.crt": a.ca},
	}
}

// Serial counts the account's tokens; it is the ID of the present one.
func (a *Account) Serial() int { return a.serial }

// Share opens the account for copying to namespaces, separated by commas.
func (a *Account) Share(ctx context.Context, namespaces string) error {
	return a.patch(ctx, fmt.Sprintf(
		`{"metadata":{"labels":{%q:"true"},"annotations":{%q:%q}}}`, syncLabel, targetsKey, namespaces))
}

// Revoke ends that.
func (a *Account) Revoke(ctx context.Context) error {
	return a.patch(ctx, fmt.Sprintf(`{"metadata":{"labels":{%q:null}}}`, syncLabel))
}

func (a *Account) patch(ctx context.Context, patch string) error {
	return a.hub.Patch(ctx, a.object(), client.RawPatch(types.MergePatchType, []byte(patch)))
}

// Copied returns the copy that a raw writer makes in a namespace.
func (a *Account) Copied(namespace string) *corev1.Secret {
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: CopyName(a.cluster)}, Data: a.secret().Data,
	}
}

// CopyName is the name of the copies of a cluster's account.
func CopyName(cluster string) string { return cluster + "-" + accountName }

// NewToken returns a token in the form of an API server's, with a serial as its ID.
func NewToken(serial int, expires time.Time) string {
	part := base64.RawURLEncoding.EncodeToString
	claims := fmt.Appendf(nil, `{"exp":%d,"jti":"%d","sub":"system:serviceaccount:bench:bench"}`, expires.Unix(), serial)
	return part([]byte(`{"alg":"none"}`)) + "." + part(claims) + "." + part(make([]byte, 256))
}
