package credentials

import (
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"open-cluster-management.io/cluster-inventory-addon/internal/apitest"
	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/credentials/target"
	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/selection"
)

// TestRightsGoWhereNoAccountsAreServed: managed-serviceaccount was uninstalled
// while no manager ran. Nothing of this addon's may wait for it to come back.
func TestRightsGoWhereNoAccountsAreServed(t *testing.T) {
	w := newWorldOn(t, apitest.Start(t, apitest.Hub(), apitest.ClusterProfile()))
	c, team := w.cluster(w.name("c")), w.team()
	profile := w.publish(team, c)
	at := func(namespace, role string) *rbacv1.RoleBinding {
		return &rbacv1.RoleBinding{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: role, Labels: target.Labels()},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
			Subjects:   []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: managerNamespace, Name: managerName}},
		}
	}
	left := leftover(c, team, profile)
	w.create(left, at(team, targetRole), at(c, sourceRole))
	w.start()
	w.bound(c, sourceRole, false)
	w.stays(func() string {
		if w.copied(team, c, "reader") == nil {
			return "the copy was taken back"
		}
		return ""
	})
	w.rule.say(team, c, selection.Result{Answer: selection.No, Why: "is out"})
	w.lacks(team, c, "reader")
	w.bound(team, targetRole, false)
}
