package report

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	inventoryv1alpha1 "sigs.k8s.io/cluster-inventory-api/apis/v1alpha1"

	clusterv1 "open-cluster-management.io/api/cluster/v1"

	"open-cluster-management.io/cluster-inventory-addon/internal/apitest/ocmtest"
	"open-cluster-management.io/cluster-inventory-addon/pkg/contract"
	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/conditions"
	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/inventory/profiles"
	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/notices"
	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/selection"
)

// situation returns a pair of a namespace and a cluster of the inventory, changed as given.
func situation(changes ...func(*profiles.Observed)) profiles.Observed {
	o := profiles.Observed{Observation: selection.Observation{
		Namespace: &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: "ns"}},
		Cluster: &clusterv1.ManagedCluster{
			ObjectMeta: metav1.ObjectMeta{Name: "c"},
			Spec:       clusterv1.ManagedClusterSpec{HubAcceptsClient: true},
		},
		Addon: ocmtest.Addon("c"),
	}}
	for _, change := range changes {
		change(&o)
	}
	return o
}

func TestOutcomeOf(t *testing.T) {
	now := metav1.Now()
	s := []string{"s"}
	have := func(manager string, marked bool) func(*profiles.Observed) {
		return func(o *profiles.Observed) {
			o.Profile = &inventoryv1alpha1.ClusterProfile{}
			o.Profile.Spec.ClusterManager.Name = manager
			if marked {
				o.Profile.Labels = map[string]string{"app.kubernetes.io/managed-by": "cluster-inventory-addon"}
			}
		}
	}
	noWay := func(o *profiles.Observed) { o.Access.Problems = []string{"No way in."} }
	const ours = "open-cluster-management"
	manyNames := strings.Split(strings.Repeat("p", 2000), "")
	tests := map[string]struct {
		o    profiles.Observed
		s    selection.Result
		want Outcome
	}{
		"published": {
			o: situation(have(ours, true)), s: selection.Result{Answer: selection.Yes, Bindings: s},
			want: Outcome{Kind: InPlace, Properties: []string{"p"}},
		},
		"published, without the way in it should have": {
			o: situation(have(ours, true), noWay), s: selection.Result{Answer: selection.Yes, Bindings: s},
			want: Outcome{Kind: InPlace, Properties: []string{"p"}, Access: []string{"No way in."}, Bindings: s},
		},
		"withheld: a way in is not missed": {
			o: situation(noWay), s: selection.Result{Answer: selection.No, Why: "w", Bindings: s},
			want: Outcome{Kind: Withheld, Why: "w", Reason: "NotBound", Bindings: s},
		},
		"withheld": {
			o: situation(), s: selection.Result{Answer: selection.No, Why: "w", Bindings: s},
			want: Outcome{Kind: Withheld, Why: "w", Reason: "NotBound", Bindings: s},
		},
		"unknown": {
			o: situation(have(ours, true)), s: selection.Result{Answer: selection.Unknown, Why: "w", Bindings: s, Undecided: []string{"p"}},
			want: Outcome{Kind: Undecided, Why: "w", Bindings: s, Placements: []string{"p"}, Properties: []string{"p"}},
		},
		"unknown because of thousands of Placements": {
			o: situation(), s: selection.Result{Why: "w", Bindings: s, Member: true, Undecided: manyNames},
			want: Outcome{
				Kind: Undecided, Why: "w", Bindings: s, Placements: manyNames[:profiles.MaxNames], Properties: []string{"p"},
			},
		},
		"unknown, a member without a profile": {
			o: situation(), s: selection.Result{Answer: selection.Unknown, Why: "w", Bindings: s, Member: true},
			want: Outcome{Kind: Undecided, Why: "w", Bindings: s, Properties: []string{"p"}},
		},
		"unknown, and nothing says that it is a member": {
			o: situation(), s: selection.Result{Answer: selection.Unknown, Why: "w", Bindings: s},
			want: Outcome{Kind: Doubtful, Why: "w", Bindings: s},
		},
		"wanted, but another manager's is there": {
			o: situation(have("gke", false)), s: selection.Result{Answer: selection.Yes, Bindings: s},
			want: Outcome{Kind: Foreign, Why: `has a ClusterProfile of cluster manager "gke" in its place`, Bindings: s},
		},
		"perhaps wanted, and another manager's is there": {
			o: situation(have("gke", false)), s: selection.Result{Answer: selection.Unknown, Why: "w", Bindings: s},
			want: Outcome{Kind: Foreign, Why: `has a ClusterProfile of cluster manager "gke" in its place`, Bindings: s},
		},
		"not wanted, and another manager's is there: no matter": {
			o: situation(have("gke", false)), s: selection.Result{Answer: selection.No, Why: "w"},
			want: Outcome{Kind: Withheld, Why: "w"},
		},
		"not wanted, but another client created one in our manager's name": {
			o: situation(have(ours, false)), s: selection.Result{Answer: selection.No, Why: "is not chosen"},
			want: Outcome{Kind: LeftAlone, Why: "has a ClusterProfile that this addon did not create and leaves alone, although the cluster is not chosen"},
		},
		"wanted, but the namespace is going": {
			o: situation(func(o *profiles.Observed) { o.Namespace.DeletionTimestamp = &now }), s: selection.Result{Answer: selection.Yes, Bindings: s},
			want: Outcome{Kind: Failed, Going: true, Why: "cannot be published: the Namespace is being deleted", Bindings: s},
		},
		"wanted, but being deleted and held by a finalizer": {
			o: situation(have(ours, true), func(o *profiles.Observed) {
				o.Profile.DeletionTimestamp, o.Profile.Finalizers = &now, []string{"a", "b"}
			}),
			s:    selection.Result{Answer: selection.Yes, Bindings: s},
			want: Outcome{Kind: Failed, Why: "cannot be published: its ClusterProfile is being deleted and held by finalizers a, b", Bindings: s},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, Of(test.o, test.s, []string{"p"}), cmp.AllowUnexported(Outcome{})); diff != "" {
				t.Errorf("outcome (-want +got):\n%s", diff)
			}
		})
	}
}

func TestProfilesSynced(t *testing.T) {
	good := Outcome{Kind: InPlace}
	long := map[string]Outcome{}
	for i := range 12 {
		long[fmt.Sprintf("n%02d", i)] = Outcome{Kind: Failed, Why: fmt.Sprintf("cannot be published: %02d %s", i, strings.Repeat("x", 300))}
	}
	tests := map[string]struct {
		outcomes                map[string]Outcome
		isIncomplete            bool
		status, reason, message string // none: it is not known
		holdBack                time.Duration
	}{
		"no namespace concerns the cluster": {
			status: "True", reason: "Synced", message: "Every ClusterProfile that this cluster should have is up to date.",
		},
		"another client interferes in one namespace": {
			outcomes: map[string]Outcome{"a": good, "b": {Kind: Contested, Why: "has a profile that another client keeps changing"}},
			status:   "False", reason: "Contested", message: "In b: the cluster has a profile that another client keeps changing.",
		},
		"a namespace goes: held back": {
			outcomes: map[string]Outcome{"a": good, "b": {Kind: Failed, Going: true, Why: "is going"}},
			status:   "False", reason: "WriteFailed", message: "In b: the cluster is going.", holdBack: 30 * time.Second,
		},
		"a namespace goes, and a write fails elsewhere": {
			outcomes: map[string]Outcome{"a": {Kind: Failed, Why: "is refused"}, "b": {Kind: Failed, Going: true, Why: "is going"}},
			status:   "False", reason: "WriteFailed", message: "In a: the cluster is refused. In b: the cluster is going.",
		},
		"withheld everywhere": {
			outcomes: map[string]Outcome{"b": {Why: "is no x"}, "a": {Why: "is no x"}, "c": {Why: "is y"}},
			status:   "True", reason: "Synced", message: "Every ClusterProfile that this cluster should have is up to date.",
		},
		"in place": {
			outcomes: map[string]Outcome{"b": good, "a": good, "c": {Why: "is withheld"}},
			status:   "True", reason: "Synced", message: "Every ClusterProfile that this cluster should have is up to date.",
		},
		"in place where it is known: not known": {
			outcomes: map[string]Outcome{"b": good}, isIncomplete: true,
		},
		"wrong somewhere and not known elsewhere: held back": {
			outcomes: map[string]Outcome{"b": {Kind: Foreign, Why: "has theirs"}}, isIncomplete: true,
			status: "False", reason: "ForeignProfile", message: "In b: the cluster has theirs.", holdBack: 30 * time.Second,
		},
		"claims left out, the same everywhere: named once": {
			outcomes: map[string]Outcome{"b": {Kind: InPlace, Properties: []string{`"x" has no value`}}, "a": {Kind: InPlace, Properties: []string{`"x" has no value`}}},
			status:   "False", reason: "InvalidProperties", message: `Left out: "x" has no value.`,
		},
		"a provider is missing, the same everywhere: said once, and not for a moment": {
			outcomes: map[string]Outcome{"b": {Kind: InPlace, Access: []string{"No way in."}}, "a": {Kind: InPlace, Access: []string{"No way in."}}},
			status:   "False", reason: "AccessUnavailable", message: "No way in.", holdBack: 5 * time.Second,
		},
		"claims left out and a provider missing": {
			outcomes: map[string]Outcome{"a": {Kind: InPlace, Properties: []string{"p"}, Access: []string{"No way in."}}},
			status:   "False", reason: "InvalidProperties", message: "Left out: p. No way in.",
		},
		"undecided": {
			outcomes: map[string]Outcome{"a": good, "b": {Kind: Undecided, Why: "is not decided for"}},
			status:   "Unknown", reason: "SelectionUnknown", message: "In b: the cluster is not decided for.", holdBack: 30 * time.Second,
		},
		"undecided because of a Placement": {
			outcomes: map[string]Outcome{"b": {Kind: Undecided, Why: "awaits a decision", Placements: []string{"p"}}},
			status:   "Unknown", reason: "SelectionUnknown", message: "In b: the cluster awaits a decision.", holdBack: 30 * time.Second,
		},
		"the same, and a refused write": {
			outcomes: map[string]Outcome{
				"a": {Kind: Failed, Why: "was refused"}, "b": {Kind: Undecided, Why: "awaits a decision", Placements: []string{"p"}},
			},
			status: "False", reason: "WriteFailed", message: "In a: the cluster was refused. In b: the cluster awaits a decision.",
		},
		"doubtful somewhere: not said of the cluster": {
			outcomes: map[string]Outcome{"a": good, "b": {Kind: Doubtful, Why: "cannot be selected"}},
			status:   "True", reason: "Synced", message: "Every ClusterProfile that this cluster should have is up to date.",
		},
		"a foreign profile": {
			outcomes: map[string]Outcome{"a": good, "b": {Kind: Foreign, Why: "has theirs"}},
			status:   "False", reason: "ForeignProfile", message: "In b: the cluster has theirs.",
		},
		"everything at once: the worst first": {
			outcomes: map[string]Outcome{
				"a": {Kind: InPlace, Properties: []string{"p"}}, "b": {Kind: Foreign, Why: "has theirs"},
				"c": {Kind: Failed, Why: "was refused."}, "d": {Kind: Undecided, Why: "is unknown"}, "e": {Why: "is withheld"},
			},
			status: "False", reason: "WriteFailed",
			message: "In c: the cluster was refused. In b: the cluster has theirs. In d: the cluster is unknown. Left out: p.",
		},
		"left alone is no problem": {
			outcomes: map[string]Outcome{"a": good, "b": {Kind: LeftAlone, Why: "has another"}},
			status:   "True", reason: "Synced", message: "Every ClusterProfile that this cluster should have is up to date.",
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			var want *conditions.Desired
			if test.status != "" {
				want = &conditions.Desired{
					Status: metav1.ConditionStatus(test.status), Reason: test.reason, Message: test.message, HoldBack: test.holdBack,
				}
			}
			if diff := cmp.Diff(want, ProfilesSynced(test.outcomes, !test.isIncomplete)); diff != "" {
				t.Errorf("condition (-want +got):\n%s", diff)
			}
		})
	}
	t.Run("a message too long is cut", func(t *testing.T) {
		got := ProfilesSynced(long, true).Message
		if len(got) != 1024 || !strings.HasPrefix(got, "In n00: ") || !strings.HasSuffix(got, "...") {
			t.Errorf("message of %d bytes: %s", len(got), got)
		}
	})
}

func TestNotes(t *testing.T) {
	b := []string{"b"}
	many, contentions := map[string]Outcome{}, map[string]Outcome{}
	for i := range 12 {
		many[fmt.Sprintf("c%02d", i)] = Outcome{Why: "is out", Bindings: b}
		contentions[fmt.Sprintf("c%02d", i)] = Outcome{Kind: Contested, Why: "is contested", Bindings: b}
	}
	const names = "c00, c01, c02, c03, c04, c05, c06, c07, c08, c09 and 2 more"
	on := func(kind notices.Kind, name, reason, eventType, text string) notices.Notice {
		return notices.Notice{Subject: notices.Subject{Kind: kind, Name: name}, Reason: reason, Type: eventType, Text: text}
	}
	tests := map[string]struct {
		outcomes map[string]Outcome
		want     []notices.Notice
	}{
		"in place: no word":          {outcomes: map[string]Outcome{"c": {Kind: InPlace, Bindings: b}}},
		"withheld and not asked for": {outcomes: map[string]Outcome{"c": {Why: "is out"}}},
		"withheld, as was asked for: normal, by reason": {
			outcomes: map[string]Outcome{"c2": {Why: "is out", Bindings: b}, "c1": {Why: "is out", Bindings: b}, "c3": {Why: "is new", Bindings: b}},
			want:     []notices.Notice{on(notices.Binding, "b", "ProfilesWithheld", "Normal", "c3 is new; c1, c2 is out")},
		},
		"many: some named": {
			outcomes: many,
			want:     []notices.Notice{on(notices.Binding, "b", "ProfilesWithheld", "Normal", names+" is out")},
		},
		"undecided: a warning, on the Placement too": {
			outcomes: map[string]Outcome{"c": {Kind: Undecided, Why: "is unknown", Bindings: b, Placements: []string{"p"}}},
			want: []notices.Notice{
				on(notices.Binding, "b", "ProfilesWithheld", "Warning", "c is unknown"),
				on(notices.Placement, "p", "ProfilesWithheld", "Warning", "c is unknown"),
			},
		},
		"doubtful: a warning": {
			outcomes: map[string]Outcome{"c": {Kind: Doubtful, Why: "cannot be selected", Bindings: b}},
			want:     []notices.Notice{on(notices.Binding, "b", "ProfilesWithheld", "Warning", "c cannot be selected")},
		},
		"foreign and failed: a warning": {
			outcomes: map[string]Outcome{"c": {Kind: Foreign, Why: "has theirs", Bindings: b}, "d": {Kind: Failed, Why: "was refused", Bindings: []string{"e"}}},
			want: []notices.Notice{
				on(notices.Binding, "b", "ProfilesWithheld", "Warning", "c has theirs"),
				on(notices.Binding, "e", "ProfilesWithheld", "Warning", "d was refused"),
			},
		},
		"left alone: on the profile itself": {
			outcomes: map[string]Outcome{"c": {Kind: LeftAlone, Why: "has another", Bindings: b}},
			want:     []notices.Notice{on(notices.Profile, "c", "ProfilesWithheld", "Warning", "c has another")},
		},
		"many contested: on the binding": {
			outcomes: contentions,
			want:     []notices.Notice{on(notices.Binding, "b", "ProfilesWithheld", "Warning", names+" is contested")},
		},
		"in place without an access provider: on the profile, apart from what is withheld": {
			outcomes: map[string]Outcome{
				"d": {Kind: InPlace, Access: []string{"No proxy.", "No direct way."}, Bindings: b},
				"e": {Why: "is out", Bindings: b},
			},
			want: []notices.Notice{
				on(notices.Binding, "b", "ProfilesWithheld", "Normal", "e is out"),
				on(notices.Profile, "d", "AccessUnavailable", "Warning", "No proxy. No direct way."),
			},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			inOrder := cmpopts.SortSlices(func(a, b notices.Notice) bool {
				return a.Subject.Kind < b.Subject.Kind ||
					a.Subject.Kind == b.Subject.Kind && a.Subject.Name < b.Subject.Name
			})
			if diff := cmp.Diff(test.want, desiredNotices(test.outcomes), inOrder); diff != "" {
				t.Errorf("notices (-want +got):\n%s", diff)
			}
		})
	}
}

// A ClusterManagementAddOn that is recreated must not cause writes of the status of every addon.
func TestAVerdictIsHeldBack(t *testing.T) {
	for _, wait := range []time.Duration{0, 30 * time.Second} {
		got := Blocked(profiles.Verdict{Reason: contract.ReasonProfilesKept, Message: "m", HoldBack: wait})
		diff := cmp.Diff(&conditions.Desired{Status: "False", Reason: "ProfilesKept", Message: "m", HoldBack: wait}, got)
		if diff != "" {
			t.Errorf("held back for %s (-want +got):\n%s", wait, diff)
		}
	}
}
