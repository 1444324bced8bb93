package credentials

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestATokenIsCopiedToWhereItIsNamedAndSelected(t *testing.T) {
	w := newWorld(t)
	c := w.cluster(w.name("c"))
	a, b := w.team(), w.team()
	profile := w.publish(a, c)
	w.publish(b, c)
	w.start()
	account := w.account(c, "reader", a)
	token := w.rotate(account)

	got := w.holds(a, c, "reader", token)
	want := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: a, Name: c + "-reader",
			Labels: map[string]string{"app.kubernetes.io/managed-by": "cluster-inventory-addon", "inventory.open-cluster-management.io/credential": "true"},
			Annotations: map[string]string{
				"inventory.open-cluster-management.io/source-cluster": c,
				"inventory.open-cluster-management.io/source-account": "reader",
				"inventory.open-cluster-management.io/expires":        account.Status.ExpirationTimestamp.UTC().Format(time.RFC3339),
			},
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "multicluster.x-k8s.io/v1alpha1", Kind: "ClusterProfile", Name: c, UID: profile.UID}},
		},
		Type: "Opaque",
		Data: map[string][]byte{"token": []byte(token), "ca.crt": []byte(certificate())},
	}
	got.UID, got.ResourceVersion, got.CreationTimestamp, got.ManagedFields = "", "", metav1.Time{}, nil
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("copy (-want +got):\n%s", diff)
	}
	w.says(c, "True", "Copied", "Copied: reader to "+a+".")
	if w.copied(b, c, "reader") != nil {
		t.Error("copied to where it is not named")
	}
	w.bound(b, targetRole, false)
}
