package credentials

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"open-cluster-management.io/cluster-inventory-addon/internal/apitest"
	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/credentials/target"
	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/selection"
)

func TestUnneededRoleBindingsAreRemoved(t *testing.T) {
	for name, change := range map[string]func(*rbacv1.RoleBinding){
		"one of the manager's":         func(*rbacv1.RoleBinding) {},
		"one that is for another":      func(b *rbacv1.RoleBinding) { b.Subjects[0].Namespace = "elsewhere" },
		"one forged, to another role":  func(b *rbacv1.RoleBinding) { b.RoleRef.Name = "view" },
		"one forged, to read a source": func(b *rbacv1.RoleBinding) { b.Name, b.RoleRef.Name = sourceRole, "view" },
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			team := w.team()
			binding := &rbacv1.RoleBinding{
				ObjectMeta: metav1.ObjectMeta{Namespace: team, Name: targetRole, Labels: target.Labels()},
				RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: targetRole},
				Subjects:   []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: managerNamespace, Name: managerName}},
			}
			change(binding)
			w.MustCreate(binding)
			w.start()
			w.bound(team, binding.Name, false)
		})
	}
}

func TestRightsAreRestored(t *testing.T) {
	s := newScene(t)
	for _, at := range []types.NamespacedName{{Namespace: s.team, Name: targetRole},
		{Namespace: s.cluster, Name: sourceRole}} {
		binding := &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Namespace: at.Namespace, Name: at.Name}}
		s.MustDelete(binding)
		s.bound(at.Namespace, at.Name, true)
		apitest.Edit(s.world, binding, func(b *rbacv1.RoleBinding) { b.Subjects = nil })
		s.Eventually("the RoleBinding is repaired", func() string {
			if err := s.Get(t.Context(), at, binding); err != nil {
				return err.Error()
			}
			if len(binding.Subjects) != 1 {
				return "the subject is not back"
			}
			return ""
		})
	}
	s.token = s.Rotate(s.account)
	s.copied()
	apitest.Edit(s.world, s.copied(), func(c *corev1.Secret) { c.Data["token"] = []byte("x") })
	s.copied()
}

// The right to edit RoleBindings must not allow keeping a copy.
func TestRoleBindingNoLongerOursKeepsNoCopy(t *testing.T) {
	s := newScene(t)
	s.settled()
	binding := &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Namespace: s.team, Name: targetRole}}
	apitest.Edit(s.world, binding, func(b *rbacv1.RoleBinding) { b.Labels = nil })
	s.Eventually("the manager loses sight of the RoleBinding", func() string {
		err := s.mgr.GetCache().Get(t.Context(), client.ObjectKeyFromObject(binding), &rbacv1.RoleBinding{})
		if !apierrors.IsNotFound(err) {
			return fmt.Sprintf("the manager still takes it for its own: %v", err)
		}
		return ""
	})
	s.rule.say(s.team, s.cluster, selection.Result{Answer: selection.No, Why: "is out"})
	s.lacks(s.team, s.cluster, "reader")
	s.says(s.cluster, "False", "TargetNotEntitled", "Account reader is not copied in "+s.team+": the cluster is out.")
	s.MustDelete(binding)
}

func TestAnothersRoleBindingIsReported(t *testing.T) {
	w := newWorld(t)
	c, team := w.cluster(w.Name("c")), w.team()
	w.publish(team, c)
	theirs := &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: team, Name: targetRole},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "view"},
	}
	w.MustCreate(theirs)
	w.start()
	w.account(c, "reader", team)
	w.mentions(c, "CopyFailed", "is not this addon's", "delete RoleBinding "+targetRole)
	w.MustDelete(theirs)
	w.synced(c)
}

func TestAMissingClusterRoleIsReported(t *testing.T) {
	w := newWorld(t)
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: targetRole}}
	w.MustDelete(role)
	t.Cleanup(func() {
		if !w.Find(role) { // the other tests on this hub need it
			w.MustCreate(managerRights()[1])
		}
	})
	c, team := w.cluster(w.Name("c")), w.team()
	w.publish(team, c)
	w.start()
	account := w.account(c, "reader", team)
	w.mentions(c, "CopyFailed", "Account reader could not be copied or withdrawn in "+team, "forbidden")
	w.MustCreate(managerRights()[1])
	w.holds(team, c, "reader", w.Rotate(account))
	w.synced(c)
}
