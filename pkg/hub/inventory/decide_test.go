package inventory

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	clusterv1 "open-cluster-management.io/api/cluster/v1"
	inventoryv1alpha1 "sigs.k8s.io/cluster-inventory-api/apis/v1alpha1"

	"open-cluster-management.io/cluster-inventory-addon/internal/apitest/ocmtest"
	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/access"
	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/selection"
)

// situation returns a pair of a namespace and a cluster of the inventory, changed as
// given.
func situation(changes ...func(*observed)) observed {
	o := observed{Observation: selection.Observation{
		ProfileAPI: true,
		Namespace:  &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: "ns"}},
		Cluster: &clusterv1.ManagedCluster{
			ObjectMeta: metav1.ObjectMeta{Name: "c", Labels: ocmtest.InSet("s")},
			Spec:       clusterv1.ManagedClusterSpec{HubAcceptsClient: true},
		},
		Addon: ocmtest.Addon("c"),
	}, pair: types.NamespacedName{Namespace: "ns", Name: "c"}}
	for _, change := range changes {
		change(&o)
	}
	return o
}

func TestNextStep(t *testing.T) {
	now := metav1.Now()
	profile := func(manager string, marked bool) *inventoryv1alpha1.ClusterProfile {
		p := &inventoryv1alpha1.ClusterProfile{}
		p.Spec.ClusterManager.Name = manager
		if marked {
			p.Labels = map[string]string{"app.kubernetes.io/managed-by": "cluster-inventory-addon"}
		}
		return p
	}
	const ours = "open-cluster-management"
	have := func(p *inventoryv1alpha1.ClusterProfile) func(*observed) { return func(o *observed) { o.Profile = p } }
	going := func(o *observed) { o.Profile.DeletionTimestamp = &now }
	terminating := func(o *observed) { o.Namespace.DeletionTimestamp = &now }
	noAddon := func(o *observed) { o.Addon = nil }
	referenced := func(o *observed) { o.referenced = true }

	tests := map[string]struct {
		o                 observed
		onYes, onNo, onUn step
	}{
		"no profile":                         {o: situation(), onYes: create, onNo: leave, onUn: leave},
		"no profile, the namespace is going": {o: situation(terminating), onYes: leave, onNo: leave, onUn: leave},
		"no profile, but references":         {o: situation(referenced), onYes: create, onNo: release, onUn: leave},
		"being deleted, and references": {o: situation(have(profile(ours, true)), going, referenced),
			onYes: release, onNo: release, onUn: release},
		"another manager's, and references": {o: situation(have(profile("another", false)), referenced),
			onYes: release, onNo: release, onUn: release},
		"references in a namespace that is going": {o: situation(terminating, referenced),
			onYes: leave, onNo: leave, onUn: leave},
		"our profile": {o: situation(have(profile(ours, true))),
			onYes: update, onNo: remove, onUn: update},
		"our profile, the cluster left": {o: situation(have(profile(ours, true)), noAddon),
			onYes: update, onNo: remove, onUn: leave},
		"our profile, being deleted": {o: situation(have(profile(ours, true)), going),
			onYes: leave, onNo: leave, onUn: leave},
		"our profile, the namespace is going": {o: situation(have(profile(ours, true)), terminating),
			onYes: leave, onNo: leave, onUn: leave},
		"a profile of our manager's without mark": {o: situation(have(profile(ours, false))),
			onYes: update, onNo: leave, onUn: leave},
		"another manager's profile": {o: situation(have(profile("gke", false))),
			onYes: leave, onNo: leave, onUn: leave},
		"another manager's profile with our mark": {o: situation(have(profile("gke", true))),
			onYes: leave, onNo: leave, onUn: leave},
		"a profile that names no manager at all": {o: situation(have(profile("", true))),
			onYes: leave, onNo: leave, onUn: leave},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			want := []step{test.onYes, test.onNo, test.onUn}
			got := []step{nextStep(test.o, selection.Yes), nextStep(test.o, selection.No), nextStep(test.o, selection.Unknown)}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("steps on yes, no, unknown (-want +got):\n%s", diff)
			}
		})
	}
}

func TestPriorityOf(t *testing.T) {
	for name, test := range map[string]struct {
		next               step
		exists, wasInPlace bool
		want               int
	}{
		"a profile that must go":                {next: remove, exists: true, wasInPlace: true, want: 100},
		"a profile that must go after a start":  {next: remove, exists: true, want: 100},
		"an edit":                               {next: update, exists: true, wasInPlace: true, want: 0},
		"an edit after a start":                 {next: update, exists: true, want: 0},
		"another manager's profile":             {next: leave, exists: true, want: 0},
		"a profile that vanished":               {next: create, wasInPlace: true, want: 0},
		"a first write":                         {next: create, want: -100},
		"no profile, and none that is expected": {next: leave, want: -100},
	} {
		t.Run(name, func(t *testing.T) {
			if got := priorityOf(test.next, test.exists, test.wasInPlace); got != test.want {
				t.Errorf("priority = %d, want %d", got, test.want)
			}
		})
	}
}

func TestTrustedAccess(t *testing.T) {
	provider := &inventoryv1alpha1.AccessProvider{Name: "p"}
	present, absent := access.ProviderState{Known: true, Provider: provider}, access.ProviderState{Known: true}
	for name, test := range map[string]struct {
		says      access.Decision
		restoring bool
		want      access.Decision
	}{
		"what is missing is missing": {says: access.Decision{Proxy: absent, Direct: absent},
			want: access.Decision{Proxy: absent, Direct: absent}},
		"what is missing may be about to be there": {says: access.Decision{Proxy: absent, Direct: absent},
			restoring: true, want: access.Decision{}},
		"what is there counts": {says: access.Decision{Proxy: present, Direct: absent},
			restoring: true, want: access.Decision{Proxy: present}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, trustedAccess(test.says, test.restoring)); diff != "" {
				t.Errorf("access (-want +got):\n%s", diff)
			}
		})
	}
}

func TestNextAllowed(t *testing.T) {
	ours := ocmtest.OurProfile("ns", "c")
	all, access := GuardVerdict{Allowed: true}, GuardVerdict{Access: true}
	for name, test := range map[string]struct {
		verdict  GuardVerdict
		unserved bool
		profile  *inventoryv1alpha1.ClusterProfile
		answer   selection.Answer
		want     step
	}{
		"profiles are this addon's":   {verdict: all, profile: ours, answer: selection.Yes, want: update},
		"they are somebody else's":    {profile: ours, answer: selection.No, want: refrain},
		"but their access is not":     {verdict: access, profile: ours, answer: selection.Yes, want: updateAccess},
		"one that does not exist":     {verdict: access, answer: selection.Yes, want: refrain},
		"one that may have to go":     {verdict: access, profile: ours, want: refrain},
		"the hub does not serve them": {verdict: all, unserved: true, answer: selection.Yes, want: refrain},
	} {
		t.Run(name, func(t *testing.T) {
			o := situation(func(o *observed) {
				o.Profile, o.ProfileAPI, o.verdict = test.profile, !test.unserved, test.verdict
			})
			if got := nextAllowed(o, test.answer); got != test.want {
				t.Errorf("step %d, want %d", got, test.want)
			}
		})
	}
}
