package credentials

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"open-cluster-management.io/cluster-inventory-addon/internal/apitest"
	"open-cluster-management.io/cluster-inventory-addon/test/e2e/journeys"
)

const (
	syncLabel   = "authentication.open-cluster-management.io/sync-to-clusterprofile"
	toNamespace = "inventory.open-cluster-management.io/sync-to-namespaces"
	conditionCS = "CredentialsSynced"
)

// account makes a ManagedServiceAccount whose token may be copied to the
// namespaces, and waits for its token.
func account(t *testing.T, cluster, name string, namespaces ...string) *unstructured.Unstructured {
	t.Helper()
	journeys.WithAccess(t)
	object := newAccount(cluster, name)
	object.SetLabels(map[string]string{syncLabel: "true"})
	if len(namespaces) > 0 {
		object.SetAnnotations(map[string]string{toNamespace: strings.Join(namespaces, ",")})
	}
	journeys.Create(t, journeys.Hub(t), object)
	token(t, cluster, name)
	return object
}

// copiedTo is a namespace that has cluster1's profile, and the token of an account
// of the given name.
func copiedTo(t *testing.T, name string) (namespace string, copied *corev1.Secret) {
	t.Helper()
	journeys.Installed(t)
	journeys.Enabled(t, journeys.Cluster1)
	namespace = journeys.Sandbox(t, name, journeys.Cluster1)
	journeys.HasProfile(t, namespace, journeys.Cluster1)
	account(t, journeys.Cluster1, name, namespace)
	return namespace, hasCopy(t, namespace, journeys.Cluster1, name)
}

func newAccount(cluster, name string) *unstructured.Unstructured {
	object := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{
		"rotation": map[string]any{"enabled": true, "validity": "24h"},
	}}}
	object.SetAPIVersion("authentication.open-cluster-management.io/v1beta1")
	object.SetKind("ManagedServiceAccount")
	object.SetNamespace(cluster)
	object.SetName(name)
	return object
}

// token waits for the account's token that its status reports.
func token(t *testing.T, cluster, name string) string {
	t.Helper()
	var got string
	apitest.Within(t, journeys.Eventually, "a token of "+cluster+"/"+name, func(ctx context.Context) error {
		object := newAccount(cluster, name)
		if err := journeys.Hub(t).Get(ctx, client.ObjectKeyFromObject(object), object); err != nil {
			return err
		}
		if _, found, _ := unstructured.NestedMap(object.Object, "status", "tokenSecretRef"); !found {
			return errors.New("its status tells of none")
		}
		source, err := secretOf(ctx, t, cluster, name)
		if err != nil {
			return err
		}
		got = string(source.Data["token"])
		return nil
	})
	journeys.Tokens.For(got)
	return got
}

// rotated makes the account's agent issue a new token, as it does when the old one's Secret
// is gone.
func rotated(t *testing.T, cluster, name string) string {
	t.Helper()
	before, err := secretOf(t.Context(), t, cluster, name)
	apitest.Must(t, err)
	// The time by which an account's status distinguishes tokens has a resolution of a
	// second.
	journeys.Stays(t, 1100*time.Millisecond, "the account", func(context.Context) error { return nil })
	apitest.Must(t, journeys.Hub(t).Delete(t.Context(), before))
	var now string
	apitest.Within(t, journeys.Eventually, "another token of "+cluster+"/"+name, func(context.Context) error {
		if now = token(t, cluster, name); now == string(before.Data["token"]) {
			return errors.New("it is still the old one")
		}
		return nil
	})
	return now
}

func secretOf(ctx context.Context, t *testing.T, namespace, name string) (*corev1.Secret, error) {
	t.Helper()
	secret := &corev1.Secret{}
	return secret, journeys.Hub(t).Get(ctx, types.NamespacedName{Namespace: namespace, Name: name}, secret)
}

// hasCopy waits until the namespace has the account's token as it is now, and
// returns its Secret. The agent may make a second token right after the first.
func hasCopy(t *testing.T, namespace, cluster, name string) *corev1.Secret {
	t.Helper()
	var secret *corev1.Secret
	apitest.Within(t, journeys.Soon, "copy of "+cluster+"/"+name+" in "+namespace, func(ctx context.Context) (err error) {
		source, err := secretOf(ctx, t, cluster, name)
		if err != nil {
			return err
		}
		journeys.Tokens.For(string(source.Data["token"]))
		if secret, err = secretOf(ctx, t, namespace, cluster+"-"+name); err != nil {
			return err
		}
		if !bytes.Equal(secret.Data["token"], source.Data["token"]) {
			return errors.New("it holds another token")
		}
		return nil
	})
	return secret
}

func aCopy(namespace, cluster, name string) *corev1.Secret {
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: cluster + "-" + name}}
}

func hasNoCopy(t *testing.T, namespace, cluster, name string) {
	t.Helper()
	apitest.Within(t, journeys.Soon, "no copy of "+cluster+"/"+name+" in "+namespace, func(ctx context.Context) error {
		return journeys.Gone(ctx, journeys.Hub(t), aCopy(namespace, cluster, name))
	})
}

func noCopyComes(t *testing.T, namespace, cluster, name string) {
	t.Helper()
	journeys.Stays(t, journeys.Quiet, "no copy of "+cluster+"/"+name+" in "+namespace, func(ctx context.Context) error {
		return journeys.Gone(ctx, journeys.Hub(t), aCopy(namespace, cluster, name))
	})
}

// edited patches an account's labels and annotations; a nil value removes one.
func edited(t *testing.T, object *unstructured.Unstructured, field, key string, value *string) {
	t.Helper()
	text := "null"
	if value != nil {
		text = fmt.Sprintf("%q", *value)
	}
	patch := fmt.Appendf(nil, `{"metadata":{%q:{%q:%s}}}`, field, key, text)
	apitest.Must(t, journeys.Hub(t).Patch(t.Context(), object, client.RawPatch(types.MergePatchType, patch)))
}
