package credentials

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	authv1beta1 "open-cluster-management.io/managed-serviceaccount/apis/authentication/v1beta1"

	"open-cluster-management.io/cluster-inventory-addon/internal/apitest"
	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/credentials/grants"
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
			binding := leftBinding(team, targetRole)
			change(binding)
			w.MustCreate(binding)
			w.start()
			w.bound(team, binding.Name, false)
		})
	}
}

// A RoleBinding that a finalizer holds still grants its rights.
func TestAHeldGrantKeepsNoWithdrawalWaiting(t *testing.T) {
	s := newScene(t)
	s.settled()
	held := &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Namespace: s.team, Name: targetRole}}
	apitest.Edit(s.world, held, func(b *rbacv1.RoleBinding) { b.Finalizers = []string{"example.com/hold"} })
	s.MustDelete(held)
	label := func(value string) {
		apitest.Edit(s.world, s.account, func(a *authv1beta1.ManagedServiceAccount) { a.Labels[syncLabel] = value })
	}
	label("false")
	s.hasNoCopy(s.team, s.cluster, "reader")
	s.bound(s.cluster, sourceRole, false)
	s.settle() // it does not try again and again to delete what is held
	label("true")
	s.copied()
	label("false")
	s.hasNoCopy(s.team, s.cluster, "reader")
	s.MustGet(held)
	apitest.Edit(s.world, held, func(b *rbacv1.RoleBinding) { b.Finalizers = nil })
	s.withdrawn()
}

// Where another client replaced the manager's right with another one, nothing can be
// withdrawn; everywhere else it is.
func TestASquattedGrantKeepsNoOtherWithdrawalWaiting(t *testing.T) {
	s := newScene(t)
	other, elsewhere := s.world.team(), s.world.team()
	s.publish(other, s.cluster)
	apitest.Edit(s.world, s.account, func(a *authv1beta1.ManagedServiceAccount) {
		a.Annotations[targetAnnotation] = s.team + "," + other
	})
	c := s.world.cluster(s.Name("d"))
	s.publish(elsewhere, c)
	neighbour := s.world.account(c, "neighbour", elsewhere)
	s.Eventually("the neighbour's copy is made", func() string {
		if s.world.copied(elsewhere, c, "neighbour") == nil {
			return "it is not"
		}
		return ""
	})
	s.holds(other, s.cluster, "reader", s.token)
	s.followed(s.team, other)
	s.settled()

	squatter := &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.team, Name: targetRole},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "view"},
	}
	s.wire.Fail(func(call apitest.Call) apitest.Fault { // until the squatter's is there
		if call.Method == http.MethodPost && call.Resource == "rolebindings" && call.Mentions(s.team) {
			return apitest.Fault{Status: 500, Reason: "InternalError"}
		}
		return apitest.Fault{}
	})
	s.MustDelete(&rbacv1.RoleBinding{ObjectMeta: squatter.ObjectMeta})
	s.MustCreate(squatter)
	s.wire.Fail(nil)
	s.refusesTheManager()

	apitest.Edit(s.world, s.account, func(a *authv1beta1.ManagedServiceAccount) { a.Labels[syncLabel] = "false" })
	apitest.Edit(s.world, neighbour, func(a *authv1beta1.ManagedServiceAccount) { a.Labels[syncLabel] = "false" })
	s.hasNoCopy(other, s.cluster, "reader")
	s.hasNoCopy(elsewhere, c, "neighbour")
	s.mentions(s.cluster, "CopyFailed", "is not this addon's", s.team)
	if s.world.copied(s.team, s.cluster, "reader") == nil {
		t.Error("the copy is gone: the squatter's RoleBinding was no hindrance, so this shows nothing")
	}
	s.MustDelete(squatter)
	s.withdrawn()
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

// The right to edit RoleBindings must not allow keeping a copy. Where no policy keeps their
// labels, the manager does without.
func TestARoleBindingWithoutLabelsKeepsNoCopy(t *testing.T) {
	for name, away := range map[string]bool{"while the manager runs": false, "while it is away": true} {
		t.Run(name, func(t *testing.T) {
			s := newScene(t)
			s.settled()
			if away {
				s.stop()
			}
			for _, at := range []types.NamespacedName{{Namespace: s.team, Name: targetRole},
				{Namespace: s.cluster, Name: sourceRole}} {
				binding := &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Namespace: at.Namespace, Name: at.Name}}
				apitest.Edit(s.world, binding, func(b *rbacv1.RoleBinding) { b.Labels = nil })
			}
			s.rule.say(s.team, s.cluster, selection.Result{Answer: selection.No, Why: "is out"})
			if away {
				disabled := s.opts
				disabled.Mode = ModeDisabled
				if _, err := Add(t.Context(), s.mgr, disabled); err == nil || !strings.Contains(err.Error(), s.team) {
					t.Errorf("disabled with a copy about: %v", err)
				}
				s.start()
			}
			s.withdrawn()
		})
	}
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
	w.account(c, "reader", team)
	w.start()
	w.mentions(c, "CopyFailed", "is not this addon's", "delete RoleBinding "+targetRole)
	w.MustDelete(theirs)
	w.synced(c)
}

// followed records which namespaces are followed.
type followed struct {
	grants.Copies
	calls []string
}

func (f *followed) Follow(namespace string, restart bool) {
	f.calls = append(f.calls, fmt.Sprint(namespace, " ", restart))
}

func TestAGrantThatTheCacheLacksIsRepaired(t *testing.T) {
	w := newWorld(t)
	grant := grants.Target(w.team())
	binding := &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: grant.Namespace, Name: targetRole},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: targetRole},
		Subjects:   []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: "elsewhere", Name: managerName}},
	}
	w.MustCreate(binding)
	want := rbacv1.Subject{Kind: "ServiceAccount", Namespace: managerNamespace, Name: managerName}
	g, followed := grants.New(apitest.EmptyCache, w, w, want, &apitest.Clock{}, "test"), &followed{}
	g.Copies = followed
	if err := g.Ensure(t.Context(), grant); err != nil {
		t.Error(err)
	}
	if diff := cmp.Diff([]string{grant.Namespace + " false"}, followed.calls); diff != "" {
		t.Errorf("followed, and whether its rights are new (-want +got):\n%s", diff)
	}
	w.MustGet(binding)
	if diff := cmp.Diff([]rbacv1.Subject{want}, binding.Subjects); diff != "" {
		t.Errorf("subjects (-want +got):\n%s", diff)
	}
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

// TestACopyThatCannotBeReachedIsForgotten takes the manager's right in a namespace away, which the
// admission policy refuses to restore because no set is bound there any more. Once the profile is
// gone, Kubernetes deletes the copy, and there is nothing left to report.
func TestACopyThatCannotBeReachedIsForgotten(t *testing.T) {
	s := newScene(t)
	s.settled()
	s.wire.Fail(func(call apitest.Call) apitest.Fault {
		if call.Method == http.MethodPost && call.Resource == "rolebindings" && call.Mentions(s.team) {
			return apitest.Fault{Status: http.StatusForbidden, Reason: "Forbidden"}
		}
		return apitest.Fault{}
	})
	s.MustDelete(&rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Namespace: s.team, Name: targetRole}})
	s.refusesTheManager()
	s.rule.say(s.team, s.cluster, selection.Result{Answer: selection.No, Why: "is not bound there"})
	s.mentions(s.cluster, "TargetNotEntitled", "could not be copied or withdrawn in "+s.team)
	s.MustDelete(s.profile)
	s.says(s.cluster, "False", "TargetNotEntitled",
		"Account reader is not copied in "+s.team+": the cluster is not bound there.")
	s.bound(s.cluster, sourceRole, false)
}
