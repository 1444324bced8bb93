package credentials

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	authv1beta1 "open-cluster-management.io/managed-serviceaccount/apis/authentication/v1beta1"

	"open-cluster-management.io/cluster-inventory-addon/internal/apitest"
	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/conditions"
	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/selection"
	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/upstream"
	"open-cluster-management.io/cluster-inventory-addon/pkg/kube"
)

func TestTheConditionIsTrueWithoutAccounts(t *testing.T) {
	s := newScene(t)
	s.settled()
	without := s.world.cluster(s.Name("d"))
	s.synced(without)
	// The namespaces of the copies make no difference: nothing is written.
	healthy := s.condition(s.cluster)
	s.copiedAlso(s.world.team())
	s.settle()
	if diff := cmp.Diff(healthy, s.condition(s.cluster)); diff != "" {
		t.Errorf("condition (-one copy +two):\n%s", diff)
	}
	s.MustDelete(s.account)
	s.hasNoCopy(s.team, s.cluster, "reader")
	s.synced(s.cluster)
}

func TestTheConditionIsTrueOnAHubWithoutAccounts(t *testing.T) {
	w := newWorldOn(t, hubWithoutAccounts)
	c := w.cluster(w.Name("c"))
	w.start()
	w.synced(c)
}

func TestDisabledCredentialsHaveNoCondition(t *testing.T) {
	w := newWorldOn(t, hubWithoutAccounts)
	w.opts.Mode = ModeDisabled
	w.start()
	if diff := cmp.Diff(conditions.Desired{Absent: true}, w.condition(w.Name("c"))); diff != "" {
		t.Errorf("condition (-want +got):\n%s", diff)
	}
}

// TestConditionIsTrueOnlyWithFullKnowledge: after a start, some accounts have been
// reconciled and others have not.
func TestConditionIsTrueOnlyWithFullKnowledge(t *testing.T) {
	s := newStepper(t)
	v := s.still(s.Name("c"))
	if diff := cmp.Diff(conditions.Desired{}, v.condition(v.cluster)); diff != "" {
		t.Errorf("before the account was looked at (-want +got):\n%s", diff)
	}
	v.converge(v.there)
	v.synced(v.cluster)
}

func TestUpstreamsSyncerIsLeftAlone(t *testing.T) {
	s := newScene(t)
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "open-cluster-management:managed-serviceaccount:addon-manager-clusterprofile"}}
	s.MustCreate(role)
	s.CleanUp(role)
	s.mentions(s.cluster, "UpstreamSyncerOn", role.Name, "credentials.upstreamSyncer=off")
	s.settle()
	s.wire.Reset()
	old := s.token
	s.token = s.Rotate(s.account)
	s.wire.Quiet(s.T, quietly, "while upstream's syncer copies")
	if string(s.world.copied(s.team, s.cluster, "reader").Data["token"]) != old {
		t.Error("the copy was changed")
	}
	// Copies that must not exist are deleted nevertheless.
	second := s.world.team()
	s.publish(second, s.cluster)
	s.syncer = upstream.OverrideOff
	s.start()
	s.copied()
	s.syncer = upstream.OverrideNone
	s.start()
	s.mentions(s.cluster, "UpstreamSyncerOn")
	apitest.Edit(s.world, s.account, func(a *authv1beta1.ManagedServiceAccount) { delete(a.Labels, syncLabel) })
	s.withdrawn()
	apitest.Edit(s.world, s.account,
		func(a *authv1beta1.ManagedServiceAccount) { a.Labels = map[string]string{syncLabel: "true"} })
	s.mentions(s.cluster, "UpstreamSyncerOn")
	// A role that is replaced within a moment changes nothing.
	s.settle()
	s.wire.Reset()
	s.MustDelete(role)
	s.wire.Quiet(s.T, quietly, "while the syncer's role is replaced")
	s.MustCreate(&rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: role.Name}})
	s.wire.Quiet(s.T, quietly, "after the syncer's role was replaced")
	s.MustDelete(role)
	s.Eventually("the syncer's role is gone for long enough", func() string {
		// Stepped repeatedly, since its deletion may not have been seen yet.
		s.syncerTime.Step(time.Second)
		if s.world.copied(s.team, s.cluster, "reader") == nil {
			return "there is no copy"
		}
		return ""
	})
	s.copied()
	s.settled()
}

// unknownSyncer is a syncer whose state is unknown.
type unknownSyncer struct{ UpstreamSyncer }

func (unknownSyncer) On() bool { return false }
func (unknownSyncer) Unknown() string {
	return "may not be read by the manager: its rights are missing"
}

// TestUnknownSyncerStateKeepsNoToken: the manager writes nothing, since it might contend with
// upstream's syncer, but withdraws a token that must not be used any more.
func TestUnknownSyncerStateKeepsNoToken(t *testing.T) {
	s := newStepper(t)
	v := s.still(s.Name("c"))
	v.converge(v.there)
	v.watched()
	s.creds.opts.UpstreamSyncer = unknownSyncer{}
	steps := func(want ...string) {
		t.Helper()
		s.wire.Reset()
		result, err := v.step()
		if err != nil || result.RequeueAfter != kube.LastingAfter {
			t.Errorf("step: %+v, %v; want to look again when people are told", result, err)
		}
		if diff := cmp.Diff(want, s.wire.Sent(), cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("writes (-want +got):\n%s", diff)
		}
		v.caughtUp()
	}
	s.Rotate(v.account)
	v.caughtUp()
	steps()
	v.synced(v.cluster) // as long as that may pass by itself
	s.time.Set(30 * time.Second)
	steps()
	v.mentions(v.cluster, "UpstreamSyncerOn", "ClusterRole open-cluster-management:managed-serviceaccount:addon-manager-clusterprofile "+
		"may not be read by the manager: its rights are missing", "credentials.upstreamSyncer=off")
	s.rule.say(v.team, v.cluster, selection.Result{Answer: selection.No, Why: "is out"})
	steps("DELETE secrets")
	if s.copied(v.team, v.cluster, "reader") != nil {
		t.Error("the copy is still there")
	}
	steps()
}
