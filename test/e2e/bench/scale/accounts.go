package scale

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"open-cluster-management.io/cluster-inventory-addon/test/e2e/bench/scale/observe"
)

const (
	accountName = "bench"
	syncLabel   = "authentication.open-cluster-management.io/sync-to-clusterprofile"
	targetsKey  = "inventory.open-cluster-management.io/sync-to-namespaces"
)

// accounts are one ManagedServiceAccount of each cluster. Only the benchmark writes their
// tokens, which no cluster accepts.
type accounts struct {
	hub      client.Client
	clusters *population
	ca       []byte
	uids     []types.UID
	serials  []int
}

func newAccounts(hub client.Client, clusters *population, ca []byte) *accounts {
	n := clusters.size()
	return &accounts{hub: hub, clusters: clusters, ca: ca, uids: make([]types.UID, n), serials: make([]int, n)}
}

func (a *accounts) account(i int) *unstructured.Unstructured {
	object := &unstructured.Unstructured{
		Object: map[string]any{"spec": map[string]any{"rotation": map[string]any{"enabled": true}}},
	}
	object.SetAPIVersion("authentication.open-cluster-management.io/v1beta1")
	object.SetKind("ManagedServiceAccount")
	object.SetNamespace(a.clusters.names[i])
	object.SetName(accountName)
	return object
}

// create creates the accounts with a first token, not to be copied yet.
func (a *accounts) create(ctx context.Context) error {
	return each(ctx, a.clusters.size(), func(ctx context.Context, i int) error {
		account := a.account(i)
		if err := a.hub.Create(ctx, account); err != nil {
			return err
		}
		a.uids[i] = account.GetUID()
		return a.rotate(ctx, i)
	})
}

// rotate does what the account's agent does: it writes the Secret, then the status. The
// time in the status advances by seconds, because it only has to differ.
func (a *accounts) rotate(ctx context.Context, i int) error {
	a.serials[i]++
	secret := a.secret(i)
	var err error
	if a.serials[i] == 1 {
		err = a.hub.Create(ctx, secret)
	} else {
		err = a.hub.Update(ctx, secret)
	}
	if err != nil {
		return err
	}
	refreshed := time.Now().Add(time.Duration(a.serials[i]) * time.Second)
	patch := fmt.Appendf(nil,
		`{"status":{"expirationTimestamp":%q,"tokenSecretRef":{"name":%q,"lastRefreshTimestamp":%q}}}`,
		expiry().UTC().Format(time.RFC3339), accountName, refreshed.UTC().Format(time.RFC3339))
	return a.hub.Status().Patch(ctx, a.account(i), client.RawPatch(types.MergePatchType, patch))
}

func expiry() time.Time { return time.Now().Add(24 * time.Hour) }

func (a *accounts) secret(i int) *corev1.Secret {
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: a.clusters.names[i], Name: accountName,
			Labels: map[string]string{"authentication.open-cluster-management.io/is-managed-serviceaccount": "true"},
			OwnerReferences: []metav1.OwnerReference{{
				APIVersion: "authentication.open-cluster-management.io/v1beta1", Kind: "ManagedServiceAccount",
				Name: accountName, UID: a.uids[i],
			}},
		},
		Data: map[string][]byte{"token": []byte(newToken(a.serials[i], expiry())), "ca.crt": a.ca},
	}
}

// share opens an account for copying to a namespace.
func (a *accounts) share(ctx context.Context, i int, namespace string) error {
	return a.patch(ctx, i, fmt.Sprintf(
		`{"metadata":{"labels":{%q:"true"},"annotations":{%q:%q}}}`, syncLabel, targetsKey, namespace))
}

// revoke ends that.
func (a *accounts) revoke(ctx context.Context, i int) error {
	return a.patch(ctx, i, fmt.Sprintf(`{"metadata":{"labels":{%q:null}}}`, syncLabel))
}

func (a *accounts) patch(ctx context.Context, i int, patch string) error {
	return a.hub.Patch(ctx, a.account(i), client.RawPatch(types.MergePatchType, []byte(patch)))
}

// copied returns the copy that a raw writer makes.
func (a *accounts) copied(namespace string, i int) *corev1.Secret {
	source := a.secret(i)
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: a.copyName(i)}, Data: source.Data,
	}
}

func (a *accounts) copyName(i int) string { return a.clusters.names[i] + "-" + accountName }

// newToken returns a token in the form of an API server's, with a serial as its ID.
func newToken(serial int, expires time.Time) string {
	part := base64.RawURLEncoding.EncodeToString
	claims := fmt.Appendf(nil, `{"exp":%d,"jti":"%d","sub":"system:serviceaccount:bench:bench"}`, expires.Unix(), serial)
	return part([]byte(`{"alg":"none"}`)) + "." + part(claims) + "." + part(make([]byte, 256))
}

// serialOf returns the ID of such a token.
func serialOf(token string) int {
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		return observe.Incomplete
	}
	content, err := base64.RawURLEncoding.DecodeString(parts[1])
	if err != nil {
		return observe.Incomplete
	}
	var claims struct {
		ID string `json:"jti"`
	}
	if json.Unmarshal(content, &claims) != nil {
		return observe.Incomplete
	}
	serial, err := strconv.Atoi(claims.ID)
	if err != nil {
		return observe.Incomplete
	}
	return serial
}

// readSecret reads a copy.
func readSecret(object any) (observe.Key, int, bool) {
	secret, ok := object.(*corev1.Secret)
	if !ok {
		return observe.Key{}, 0, false
	}
	return observe.Key{Namespace: secret.Namespace, Name: secret.Name}, serialOf(string(secret.Data["token"])), true
}
