package target

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/credentials/bearer"
)

// With any content that a tenant writes into a Secret with a copy's name, only a copy of
// upstream's syncer that holds a token of the account is taken over, and the reason fits into
// an event.
func FuzzForeignSecret(f *testing.F) {
	const name = "c1-a"
	f.Add(name, "", "multicluster.x-k8s.io/v1alpha1", "ClusterProfile", "uid", "token", []byte("own"), "")
	f.Add(name, "cluster-inventory-addon", "multicluster.x-k8s.io/v1alpha1", "ClusterProfile", "uid", "token", []byte("own"), "c1")
	f.Add("other", "Helm", "v1", "ConfigMap", "", "password", []byte("x"), "")
	f.Fuzz(func(t *testing.T, synced, managedBy, version, kind, owner, key string, value []byte, cluster string) {
		want := Want{
			Account: types.NamespacedName{Namespace: "c1", Name: "a"}, Namespace: "team", Create: true,
			Owner: Owner{UID: "uid", Name: "c1"}, Token: bearer.Token{Token: []byte("own")},
		}
		have := &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{
				Namespace: "team", Name: name, Labels: map[string]string{
					"authentication.open-cluster-management.io/synced-from": synced, "app.kubernetes.io/managed-by": managedBy,
					"inventory.open-cluster-management.io/credential": "true",
				},
				Annotations: map[string]string{
					"inventory.open-cluster-management.io/source-cluster": cluster,
					"inventory.open-cluster-management.io/source-account": "a",
				},
				OwnerReferences: []metav1.OwnerReference{{APIVersion: version, Kind: kind, Name: "c1", UID: types.UID(owner)}},
			},
			Type: corev1.SecretTypeOpaque,
			Data: map[string][]byte{key: value, "ca.crt": []byte("ca")},
		}
		account, isCopy := SourceOf(have)
		if isCopy && (account != want.Account || managedBy != "cluster-inventory-addon") {
			t.Errorf("it counts as the copy of %s", account)
		}
		isUpstreams := synced == name && owner == "uid" && kind == "ClusterProfile" &&
			strings.HasPrefix(version+"/", "multicluster.x-k8s.io/") && key == "token" && string(value) == "own" &&
			(managedBy == "" || managedBy == "cluster-inventory-addon")
		if step := nextStep(have, isCopy, want); !isCopy && (step == leaveForeign) == isUpstreams {
			t.Errorf("step %d", step)
		}
		if why := validateUpstreams(have, want); len(why) > 300 {
			t.Errorf("reason %q", why)
		}
	})
}
