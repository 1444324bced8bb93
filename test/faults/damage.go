package faults

import (
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	inventoryv1alpha1 "sigs.k8s.io/cluster-inventory-api/apis/v1alpha1"

	"open-cluster-management.io/cluster-inventory-addon/internal/apitest"
)

// targetRights is the RoleBinding for the copies in a team's namespace, and sourceRights that for the
// tokens in a cluster's.
const (
	targetRights = "open-cluster-management:cluster-inventory:token-target"
	sourceRights = "open-cluster-management:cluster-inventory:token-source"
)

// losesProfile deletes a profile.
func (w *world) losesProfile(namespace, cluster string) {
	w.T.Helper()
	w.MustDelete(&inventoryv1alpha1.ClusterProfile{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: cluster}})
}

// losesCopy deletes a copy of a token.
func (w *world) losesCopy(namespace, name string) {
	w.T.Helper()
	w.MustDelete(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}})
}

// losesLabels takes what marks a copy as one, and waits until it has it again.
func (w *world) losesLabels(namespace, name string) {
	w.T.Helper()
	w.damages(namespace, name, "its labels", func(s *corev1.Secret) { s.Labels, s.Annotations = nil, nil },
		func(s *corev1.Secret) bool { return len(s.Labels) > 0 && len(s.Annotations) > 0 })
}

// getsData adds to what a copy holds, and waits until that is gone.
func (w *world) getsData(namespace, name string) {
	w.T.Helper()
	w.damages(namespace, name, "only its own data", func(s *corev1.Secret) { s.Data["more"] = []byte("more") },
		func(s *corev1.Secret) bool { return s.Data["more"] == nil })
}

// freezes makes a copy immutable, and waits until it can be changed again.
func (w *world) freezes(namespace, name string) {
	w.T.Helper()
	w.damages(namespace, name, "no immutable data", func(s *corev1.Secret) { s.Immutable = ptr.To(true) },
		func(s *corev1.Secret) bool { return s.Immutable == nil })
}

func (w *world) damages(
	namespace, name, effect string, damage func(*corev1.Secret), isRight func(*corev1.Secret) bool,
) {
	w.T.Helper()
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	if !w.Find(secret) {
		return // a step before has missed it
	}
	apitest.Edit(w, secret, damage)
	w.step("copy "+namespace+"/"+name+" has "+effect, func() bool {
		now := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
		return w.Find(now) && isRight(now)
	})
}

// losesRights deletes the RoleBinding for the copies in a namespace.
func (w *world) losesRights(namespace string) {
	w.T.Helper()
	if len(w.missed) > 0 {
		return // without a copy there may be none
	}
	w.MustDelete(rights(namespace, targetRights))
	w.step("RoleBinding in "+namespace+" is there", func() bool { return w.Find(rights(namespace, targetRights)) })
}

// rights is the manager's RoleBinding of a name in a namespace.
func rights(namespace, name string) *rbacv1.RoleBinding {
	return &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
}

// hold puts a finalizer of the team on a copy.
func (w *world) hold(namespace, name string) {
	w.T.Helper()
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	apitest.Edit(w, secret, func(s *corev1.Secret) { s.Finalizers = []string{"example.com/hold"} })
}
