package apitest

import (
	"strings"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

func configMap(namespace string, finalizers ...string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "x", Finalizers: finalizers}}
}

func TestWorldEditsObjectsThatOthersEdit(t *testing.T) {
	w := hub.World(t, scheme.Scheme)
	cm := configMap(w.Namespace("team", nil))
	w.MustCreate(cm)
	w.MustMerge(cm.DeepCopy(), `{"data":{"theirs":"1"}}`)
	Edit(w, cm, func(cm *corev1.ConfigMap) { cm.Labels = map[string]string{"ours": "2"} })
	w.MustGet(cm)
	if cm.Data["theirs"] != "1" || cm.Labels["ours"] != "2" {
		t.Errorf("data %v, labels %v", cm.Data, cm.Labels)
	}
	w.MustDelete(cm)
	w.EventuallyGone(cm)

	// The same for a world that embeds this one, and for the status.
	embedding := struct{ *World }{w}
	pvc := &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Namespace: cm.Namespace, Name: "x"},
		Spec: corev1.PersistentVolumeClaimSpec{
			AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			Resources: corev1.VolumeResourceRequirements{
				Requests: corev1.ResourceList{"storage": resource.MustParse("1Gi")},
			},
		},
	}
	w.MustCreate(pvc)
	EditStatus(embedding, pvc, func(pvc *corev1.PersistentVolumeClaim) { pvc.Status.Phase = corev1.ClaimBound })
	w.MustGet(pvc)
	if pvc.Status.Phase != corev1.ClaimBound {
		t.Errorf("phase %q", pvc.Status.Phase)
	}
}

func TestWorldFailsWithTheObjectsName(t *testing.T) {
	w := hub.World(t, scheme.Scheme)
	ns := w.Namespace("team", nil)
	for name, test := range map[string]func(*World){
		"create": func(w *World) { w.MustCreate(configMap("nowhere")) },
		"get":    func(w *World) { w.MustGet(configMap(ns)) },
		"delete": func(w *World) { w.MustDelete(configMap(ns)) },
		"edit":   func(w *World) { Edit(w, configMap(ns), func(*corev1.ConfigMap) {}) },
		"merge":  func(w *World) { w.MustMerge(configMap(ns), `{}`) },
		"exists": func(w *World) { w.EventuallyExists(configMap(ns)) },
	} {
		reason := run(t, func(tb testing.TB) {
			failing := w.In(tb)
			failing.Patience = short
			test(failing)
		})
		if !strings.Contains(reason, "ConfigMap "+ns+"/x") && !strings.Contains(reason, "ConfigMap nowhere/x") {
			t.Errorf("%s: %q", name, reason)
		}
	}
}

func TestWorldsHaveUniqueNames(t *testing.T) {
	a, b := hub.World(t, scheme.Scheme), hub.World(t, scheme.Scheme)
	if a.Name("x") == b.Name("x") || a.Name("x") != a.In(t).Name("x") {
		t.Errorf("names %s, %s, %s", a.Name("x"), b.Name("x"), a.In(t).Name("x"))
	}
}

func TestCleanUpAndClearIgnoreFinalizers(t *testing.T) {
	w := hub.World(t, scheme.Scheme)
	first := configMap(w.Namespace("team", nil), "example.com/hold")
	second := configMap(w.Namespace("team", nil), "example.com/hold")
	gone := configMap(first.Namespace)
	gone.Name = "gone"
	t.Run("test", func(t *testing.T) {
		sub := w.In(t)
		sub.MustCreate(first, second)
		sub.CleanUp(first, gone)
	})
	w.EventuallyGone(first)
	if !w.Find(second) {
		t.Error("what is not cleaned up went too")
	}
	w.Clear(&corev1.ConfigMapList{}, client.InNamespace(second.Namespace))
	w.EventuallyGone(second)
}

func TestEventuallyAllowed(t *testing.T) {
	w := hub.World(t, scheme.Scheme)
	name := w.Name("reader")
	user := hub.User(t, name)
	read := authorizationv1.ResourceAttributes{Verb: "list", Resource: "configmaps"}
	w.EventuallyAllowed(user, false, read)
	w.MustCreate(
		&rbacv1.ClusterRole{
			ObjectMeta: metav1.ObjectMeta{Name: name},
			Rules: []rbacv1.PolicyRule{
				{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"list"}},
			},
		},
		&rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: name},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: name},
			Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: name}},
		},
	)
	w.EventuallyAllowed(user, true, read)
}
