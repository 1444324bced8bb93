package apitest

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/scheme"
)

func TestRestoredServerForgetsWhatCameAfterTheSnapshot(t *testing.T) {
	server := Start(t)
	w := server.World(t, scheme.Scheme)
	ns := w.Namespace("test", nil)
	before := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "before"}}
	w.MustCreate(before)
	data := server.Snapshot(t)
	after := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "after"}}
	w.MustCreate(after)

	down := false
	server.Restore(t, data, func() {
		down = w.List(t.Context(), &corev1.ConfigMapList{}) != nil
	})
	if !down {
		t.Error("the server answers while it is being restored")
	}
	if !w.Find(before.DeepCopy()) || w.Find(after.DeepCopy()) {
		t.Error("the server has other objects than the snapshot")
	}
	list := &corev1.ConfigMapList{}
	w.MustList(list)
	t.Logf("versions: before %s, after %s, restored %s", before.ResourceVersion, after.ResourceVersion, list.ResourceVersion)
}
