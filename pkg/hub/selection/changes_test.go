package selection

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	inventoryv1alpha1 "sigs.k8s.io/cluster-inventory-api/apis/v1alpha1"

	"open-cluster-management.io/cluster-inventory-addon/internal/apitest/ocmtest"
	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/selection/rule"
)

func TestChangeTracker(t *testing.T) {
	profile := func(changes ...func(*inventoryv1alpha1.ClusterProfile)) *inventoryv1alpha1.ClusterProfile {
		p := ocmtest.ForeignProfile("ns", "c")
		p.UID = "1"
		p.Spec.ClusterManager.Name = "open-cluster-management"
		p.Labels = map[string]string{"app.kubernetes.io/managed-by": "cluster-inventory-addon"}
		for _, change := range changes {
			change(p)
		}
		return p
	}
	now := metav1.Now()
	pair := types.NamespacedName{Namespace: "ns", Name: "c"}
	tracker := &changeTracker{}

	tracker.track(pair, rule.Yes, profile())
	if tracker.pairs.Len() != 0 {
		t.Error("without subscribers nothing is remembered")
	}

	notified := map[string]int{}
	tracker.changed.Subscribe(func(pair types.NamespacedName) { notified["first "+pair.String()]++ })
	tracker.changed.Subscribe(func(pair types.NamespacedName) { notified["second "+pair.String()]++ })
	steps := []struct {
		what     string
		answer   rule.Answer
		profile  *inventoryv1alpha1.ClusterProfile
		notified bool
	}{
		{what: "unseen, unselected, without a profile", answer: rule.No},
		{what: "selected", answer: rule.Yes, notified: true},
		{what: "the same again", answer: rule.Yes},
		{what: "its profile came", answer: rule.Yes, profile: profile(), notified: true},
		{what: "its profile's content changed", answer: rule.Yes, profile: profile(func(p *inventoryv1alpha1.ClusterProfile) {
			p.Labels["other"], p.Status.Version.Kubernetes = "x", "v2"
		})},
		{what: "its profile lost the mark", answer: rule.Yes, notified: true, profile: profile(func(p *inventoryv1alpha1.ClusterProfile) {
			p.Labels = nil
		})},
		{what: "its profile got the mark back", answer: rule.Yes, profile: profile(), notified: true},
		{what: "its profile is another one", answer: rule.Yes, notified: true, profile: profile(func(p *inventoryv1alpha1.ClusterProfile) {
			p.UID = "2"
		})},
		{what: "its profile is being deleted", answer: rule.Yes, notified: true, profile: profile(func(p *inventoryv1alpha1.ClusterProfile) {
			p.UID, p.DeletionTimestamp = "2", &now
		})},
		{what: "its profile is gone", answer: rule.Yes, notified: true},
		{what: "unknown", answer: rule.Unknown, notified: true},
		{what: "unselected", answer: rule.No, notified: true},
		{what: "still unselected", answer: rule.No},
	}
	for _, step := range steps {
		clear(notified)
		tracker.track(pair, step.answer, step.profile)
		want := map[string]int{}
		if step.notified {
			want = map[string]int{"first ns/c": 1, "second ns/c": 1}
		}
		if diff := cmp.Diff(want, notified); diff != "" {
			t.Errorf("%s: notified (-want +got):\n%s", step.what, diff)
		}
	}
	clear(notified)
	tracker.doubt(pair, true)
	tracker.track(pair, rule.No, nil)
	if len(notified) != 2 {
		t.Errorf("a subscriber that read Unknown of an unselected pair without a profile is notified %v of the next answer", notified)
	}
	if tracker.doubt(pair, false) || tracker.pairs.Len() != 0 {
		t.Error("a No of a pair that is not tracked is remembered")
	}
	if tracker.pairs.Len() != 0 {
		t.Error("a pair that is not selected and has no profile must leave no memory")
	}
}

func TestTrackerForgetsReferencesWithTheProfile(t *testing.T) {
	profile := ocmtest.OurProfile("ns", "c")
	profile.UID = "1"
	another := profile.DeepCopy()
	another.UID = "2"
	unmarked, going := another.DeepCopy(), another.DeepCopy()
	unmarked.Labels = nil
	going.DeletionTimestamp = &metav1.Time{}
	pair := types.NamespacedName{Namespace: "ns", Name: "c"}
	r := &Rule{changes: &changeTracker{}}
	r.AllowReferences(pair, rule.Yes)
	if r.Referable(pair) != rule.Unknown || r.changes.pairs.Len() != 0 {
		t.Error("without subscribers nothing is remembered")
	}
	notified, changed := 0, 0
	r.SubscribeReferences(func(types.NamespacedName) { notified++ })
	r.Subscribe(func(types.NamespacedName) { changed++ })
	for _, step := range []struct {
		what    string
		profile *inventoryv1alpha1.ClusterProfile
		allow   rule.Answer // after it; if it is Unknown, nothing is said
		tracked rule.Answer // before that
		changed bool
	}{
		{what: "selected, and created", allow: rule.Yes, changed: true},
		{what: "the cache does not show it yet", tracked: rule.Yes},
		{what: "the cache shows it", profile: profile, tracked: rule.Yes, changed: true},
		{what: "it stays", profile: profile, tracked: rule.Yes},
		{what: "it was replaced", profile: another, allow: rule.Yes, changed: true},
		{what: "it lost the mark", profile: unmarked, allow: rule.No, changed: true},
		{what: "it stays without the mark", profile: unmarked, tracked: rule.No},
		{what: "it is being deleted", profile: going, allow: rule.Yes, changed: true},
		{what: "it has vanished", changed: true},
	} {
		notified, changed = 0, 0
		r.Track(pair, rule.Yes, step.profile)
		if got := r.Referable(pair); got != step.tracked || r.AnyReferable() != (got == rule.Yes) || notified != 0 {
			t.Errorf("%s: %d, any: %t, notified %d; want %d", step.what, got, r.AnyReferable(), notified, step.tracked)
		}
		if step.allow != rule.Unknown {
			r.AllowReferences(pair, step.allow)
			r.AllowReferences(pair, step.allow)
		}
		if wants := step.allow != rule.Unknown; (notified == 1) != wants || (changed == 1) != step.changed {
			t.Errorf("%s: notified %d, changed %d", step.what, notified, changed)
		}
	}
	r.Track(pair, rule.No, nil)
	if r.changes.pairs.Len() != 0 {
		t.Error("a pair that is not selected and has no profile must leave no memory")
	}
}
