package profiles

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
func situation(changes ...func(*Observed)) Observed {
	o := Observed{Observation: selection.Observation{
		ProfileAPI: true,
		Namespace:  &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: "ns"}},
		Cluster: &clusterv1.ManagedCluster{
			ObjectMeta: metav1.ObjectMeta{Name: "c", Labels: ocmtest.InSet("s")},
			Spec:       clusterv1.ManagedClusterSpec{HubAcceptsClient: true},
		},
		Addon: ocmtest.Addon("c"),
	}, Pair: types.NamespacedName{Namespace: "ns", Name: "c"}}
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
	have := func(p *inventoryv1alpha1.ClusterProfile) func(*Observed) { return func(o *Observed) { o.Profile = p } }
	going := func(o *Observed) { o.Profile.DeletionTimestamp = &now }
	terminating := func(o *Observed) { o.Namespace.DeletionTimestamp = &now }
	noAddon := func(o *Observed) { o.Addon = nil }

	tests := map[string]struct {
		o                 Observed
		onYes, onNo, onUn Step
	}{
		"no profile":                         {o: situation(), onYes: Create, onNo: Leave, onUn: Leave},
		"no profile, the namespace is going": {o: situation(terminating), onYes: Leave, onNo: Leave, onUn: Leave},
		"our profile": {o: situation(have(profile(ours, true))),
			onYes: Update, onNo: Remove, onUn: Update},
		"our profile, the cluster left": {o: situation(have(profile(ours, true)), noAddon),
			onYes: Update, onNo: Remove, onUn: Leave},
		"our profile, being deleted": {o: situation(have(profile(ours, true)), going),
			onYes: Leave, onNo: Leave, onUn: Leave},
		"our profile, the namespace is going": {o: situation(have(profile(ours, true)), terminating),
			onYes: Leave, onNo: Leave, onUn: Leave},
		"a profile of our manager's without mark": {o: situation(have(profile(ours, false))),
			onYes: Update, onNo: Leave, onUn: Leave},
		"another manager's profile": {o: situation(have(profile("gke", false))),
			onYes: Leave, onNo: Leave, onUn: Leave},
		"another manager's profile with our mark": {o: situation(have(profile("gke", true))),
			onYes: Leave, onNo: Leave, onUn: Leave},
		"a profile that names no manager at all": {o: situation(have(profile("", true))),
			onYes: Leave, onNo: Leave, onUn: Leave},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			want := []Step{test.onYes, test.onNo, test.onUn, test.onUn, Leave}
			got := []Step{
				NextStep(test.o, selection.Result{Answer: selection.Yes, Member: true}),
				NextStep(test.o, selection.Result{Answer: selection.No, Member: true}),
				NextStep(test.o, selection.Result{Member: true}), NextStep(test.o, selection.Result{Untrusted: true}),
				NextStep(test.o, selection.Result{}),
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("steps on yes, no, unknown, untrusted, and if no bound set is known to select it (-want +got):\n%s", diff)
			}
		})
	}
}

func TestPriorityOf(t *testing.T) {
	for name, test := range map[string]struct {
		next               Step
		exists, wasInPlace bool
		want               int
	}{
		"a profile that must go":                {next: Remove, exists: true, wasInPlace: true, want: 100},
		"a profile that must go after a start":  {next: Remove, exists: true, want: 100},
		"an edit":                               {next: Update, exists: true, wasInPlace: true, want: 0},
		"an edit after a start":                 {next: Update, exists: true, want: 0},
		"another manager's profile":             {next: Leave, exists: true, want: 0},
		"a profile that vanished":               {next: Create, wasInPlace: true, want: 0},
		"a first write":                         {next: Create, want: -100},
		"no profile, and none that is expected": {next: Leave, want: -100},
	} {
		t.Run(name, func(t *testing.T) {
			if got := PriorityOf(test.next, test.exists, test.wasInPlace); got != test.want {
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
			if diff := cmp.Diff(test.want, TrustedAccess(test.says, test.restoring)); diff != "" {
				t.Errorf("access (-want +got):\n%s", diff)
			}
		})
	}
}

func TestNextAllowed(t *testing.T) {
	ours := ocmtest.OurProfile("ns", "c")
	all, access := Verdict{Allowed: true}, Verdict{Access: true}
	for name, test := range map[string]struct {
		verdict  Verdict
		unserved bool
		profile  *inventoryv1alpha1.ClusterProfile
		answer   selection.Answer
		want     Step
	}{
		"profiles are this addon's":   {verdict: all, profile: ours, answer: selection.Yes, want: Update},
		"they are another client's":   {profile: ours, answer: selection.No, want: Refrain},
		"but their access is not":     {verdict: access, profile: ours, answer: selection.Yes, want: UpdateAccess},
		"one that does not exist":     {verdict: access, answer: selection.Yes, want: Refrain},
		"one that may have to go":     {verdict: access, profile: ours, want: Refrain},
		"the hub does not serve them": {verdict: all, unserved: true, answer: selection.Yes, want: Refrain},
	} {
		t.Run(name, func(t *testing.T) {
			o := situation(func(o *Observed) {
				o.Profile, o.ProfileAPI, o.Verdict, o.Selected.Answer = test.profile, !test.unserved, test.verdict, test.answer
			})
			if got := NextAllowed(o); got != test.want {
				t.Errorf("step %d, want %d", got, test.want)
			}
		})
	}
}
