package credentials

import (
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	authv1beta1 "open-cluster-management.io/managed-serviceaccount/apis/authentication/v1beta1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"open-cluster-management.io/cluster-inventory-addon/internal/apitest"
	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/upstream"
)

func TestTheConditionIsThereFromTheFirstAccountOn(t *testing.T) {
	s := newScene(t)
	without := s.world.cluster(s.Name("d"))
	s.settled()
	s.MustDelete(s.account)
	s.says(s.cluster, "True", "NoAccounts", "No ManagedServiceAccount of the cluster is labelled authentication.open-cluster-management.io/sync-to-clusterprofile=true.")
	s.account = s.world.account(s.cluster, "reader", s.team)
	s.settled()
	// Somebody takes it away.
	addon := &addonv1beta1.ManagedClusterAddOn{ObjectMeta: metav1.ObjectMeta{Namespace: s.cluster, Name: "cluster-inventory"}}
	apitest.EditStatus(s.world, addon, func(a *addonv1beta1.ManagedClusterAddOn) {
		a.Status.Conditions = []metav1.Condition{{Type: "Available", Status: "True", Reason: "R", LastTransitionTime: metav1.Now()}}
	})
	s.settled()
	if got := s.condition(without); got.Type != "" {
		t.Errorf("a cluster without accounts says %+v", got)
	}
	if err := s.Get(t.Context(), client.ObjectKeyFromObject(addon), addon); err != nil || len(addon.Status.Conditions) != 2 {
		t.Errorf("others' conditions: %+v, %v", addon.Status.Conditions, err)
	}
}

func TestUpstreamsSyncerIsLeftToItself(t *testing.T) {
	s := newScene(t)
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "open-cluster-management:managed-serviceaccount:addon-manager-clusterprofile"}}
	s.MustCreate(role)
	t.Cleanup(func() { _ = client.IgnoreNotFound(s.Delete(t.Context(), role.DeepCopy())) })
	s.mentions(s.cluster, "UpstreamSyncerOn", role.Name, "credentials.upstreamSyncer=off")
	s.settle()
	s.wire.Reset()
	old := s.token
	s.token = s.Rotate(s.account)
	s.wire.Quiet(s.T, quietly, "while upstream's syncer copies")
	if string(s.world.copied(s.team, s.cluster, "reader").Data["token"]) != old {
		t.Error("the copy was changed")
	}
	// Copies that must go are deleted all the same.
	second := s.world.team()
	s.publish(second, s.cluster)
	s.syncer = upstream.OverrideOff
	s.start()
	s.copied()
	s.syncer = upstream.OverrideNone
	s.start()
	s.mentions(s.cluster, "UpstreamSyncerOn")
	apitest.Edit(s.world, s.account, func(a *authv1beta1.ManagedServiceAccount) { delete(a.Labels, syncLabel) })
	s.lacks(s.team, s.cluster, "reader")
	apitest.Edit(s.world, s.account, func(a *authv1beta1.ManagedServiceAccount) { a.Labels = map[string]string{syncLabel: "true"} })
	s.mentions(s.cluster, "UpstreamSyncerOn")
	s.MustDelete(role)
	s.copied()
	s.settled()
}
