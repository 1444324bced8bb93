package inventory

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	inventoryv1alpha1 "sigs.k8s.io/cluster-inventory-api/apis/v1alpha1"

	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/conditions"
	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/notices"
	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/selection"
)

func TestOutcomeOf(t *testing.T) {
	now := metav1.Now()
	s := []string{"s"}
	have := func(manager string, marked bool) func(*observed) {
		return func(o *observed) {
			o.Profile = &inventoryv1alpha1.ClusterProfile{}
			o.Profile.Spec.ClusterManager.Name = manager
			if marked {
				o.Profile.Labels = map[string]string{"app.kubernetes.io/managed-by": "cluster-inventory-addon"}
			}
		}
	}
	noWay := func(o *observed) { o.access.Problems = []string{"No way in."} }
	const ours = "open-cluster-management"
	manyNames := strings.Split(strings.Repeat("p", 2000), "")
	tests := map[string]struct {
		o    observed
		s    selection.Result
		want outcome
	}{
		"published": {
			o: situation(have(ours, true)), s: selection.Result{Answer: selection.Yes, Bindings: s},
			want: outcome{kind: inPlace, properties: []string{"p"}},
		},
		"published, without the way in it should have": {
			o: situation(have(ours, true), noWay), s: selection.Result{Answer: selection.Yes, Bindings: s},
			want: outcome{kind: inPlace, properties: []string{"p"}, access: []string{"No way in."}, bindings: s},
		},
		"withheld: a way in is not missed": {
			o: situation(noWay), s: selection.Result{Answer: selection.No, Why: "w", Bindings: s},
			want: outcome{kind: withheld, why: "w", reason: "NotBound", bindings: s},
		},
		"withheld": {
			o: situation(), s: selection.Result{Answer: selection.No, Why: "w", Bindings: s},
			want: outcome{kind: withheld, why: "w", reason: "NotBound", bindings: s},
		},
		"unknown": {
			o: situation(have(ours, true)), s: selection.Result{Answer: selection.Unknown, Why: "w", Bindings: s, Undecided: []string{"p"}},
			want: outcome{kind: undecided, why: "w", bindings: s, placements: []string{"p"}, properties: []string{"p"}},
		},
		"unknown because of thousands of Placements": {
			o: situation(), s: selection.Result{Why: "w", Bindings: s, Member: true, Undecided: manyNames},
			want: outcome{
				kind: undecided, why: "w", bindings: s, placements: manyNames[:maxNames], properties: []string{"p"},
			},
		},
		"unknown, a member without a profile": {
			o: situation(), s: selection.Result{Answer: selection.Unknown, Why: "w", Bindings: s, Member: true},
			want: outcome{kind: undecided, why: "w", bindings: s, properties: []string{"p"}},
		},
		"unknown, and nothing says that it is a member": {
			o: situation(), s: selection.Result{Answer: selection.Unknown, Why: "w", Bindings: s},
			want: outcome{kind: doubtful, why: "w", bindings: s},
		},
		"wanted, but another manager's is there": {
			o: situation(have("gke", false)), s: selection.Result{Answer: selection.Yes, Bindings: s},
			want: outcome{kind: foreign, why: `has a ClusterProfile of cluster manager "gke" in its place`, bindings: s},
		},
		"perhaps wanted, and another manager's is there": {
			o: situation(have("gke", false)), s: selection.Result{Answer: selection.Unknown, Why: "w", Bindings: s},
			want: outcome{kind: foreign, why: `has a ClusterProfile of cluster manager "gke" in its place`, bindings: s},
		},
		"not wanted, and another manager's is there: no matter": {
			o: situation(have("gke", false)), s: selection.Result{Answer: selection.No, Why: "w"},
			want: outcome{kind: withheld, why: "w"},
		},
		"not wanted, but somebody made one in our manager's name": {
			o: situation(have(ours, false)), s: selection.Result{Answer: selection.No, Why: "is not chosen"},
			want: outcome{kind: leftAlone, why: "has a ClusterProfile that this addon did not create and leaves alone, although the cluster is not chosen"},
		},
		"wanted, but the namespace is going": {
			o: situation(func(o *observed) { o.Namespace.DeletionTimestamp = &now }), s: selection.Result{Answer: selection.Yes, Bindings: s},
			want: outcome{kind: failed, why: "cannot be published: the Namespace is being deleted", bindings: s},
		},
		"wanted, but somebody deletes it and somebody holds it": {
			o: situation(have(ours, true), func(o *observed) {
				o.Profile.DeletionTimestamp, o.Profile.Finalizers = &now, []string{"a", "b"}
			}),
			s:    selection.Result{Answer: selection.Yes, Bindings: s},
			want: outcome{kind: failed, why: "cannot be published: its ClusterProfile is being deleted and held by finalizers a, b", bindings: s},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, outcomeOf(test.o, test.s, []string{"p"}), cmp.AllowUnexported(outcome{})); diff != "" {
				t.Errorf("outcome (-want +got):\n%s", diff)
			}
		})
	}
}

func TestProfilesSynced(t *testing.T) {
	good := outcome{kind: inPlace}
	long := map[string]outcome{}
	for i := range 12 {
		long[fmt.Sprintf("n%02d", i)] = outcome{kind: failed, why: fmt.Sprintf("cannot be published: %02d %s", i, strings.Repeat("x", 300))}
	}
	tests := map[string]struct {
		outcomes                map[string]outcome
		isIncomplete            bool
		status, reason, message string // none: it is not known
		holdBack                time.Duration
	}{
		"no namespace concerns the cluster": {
			status: "True", reason: "Synced", message: syncedText,
		},
		"somebody interferes in one namespace": {
			outcomes: map[string]outcome{"a": good, "b": {kind: contested, why: "has a profile that another client keeps changing"}},
			status:   "False", reason: "Contested", message: "In b: the cluster has a profile that another client keeps changing.",
		},
		"withheld everywhere": {
			outcomes: map[string]outcome{"b": {why: "is no x"}, "a": {why: "is no x"}, "c": {why: "is y"}},
			status:   "True", reason: "Synced", message: syncedText,
		},
		"in place": {
			outcomes: map[string]outcome{"b": good, "a": good, "c": {why: "is withheld"}},
			status:   "True", reason: "Synced", message: syncedText,
		},
		"in place where it is known: not known": {
			outcomes: map[string]outcome{"b": good}, isIncomplete: true,
		},
		"wrong somewhere and not known elsewhere: held back": {
			outcomes: map[string]outcome{"b": {kind: foreign, why: "has theirs"}}, isIncomplete: true,
			status: "False", reason: "ForeignProfile", message: "In b: the cluster has theirs.", holdBack: 30 * time.Second,
		},
		"claims left out, the same everywhere: named once": {
			outcomes: map[string]outcome{"b": {kind: inPlace, properties: []string{`"x" has no value`}}, "a": {kind: inPlace, properties: []string{`"x" has no value`}}},
			status:   "False", reason: "InvalidProperties", message: `Left out: "x" has no value.`,
		},
		"a provider is missing, the same everywhere: said once": {
			outcomes: map[string]outcome{"b": {kind: inPlace, access: []string{"No way in."}}, "a": {kind: inPlace, access: []string{"No way in."}}},
			status:   "False", reason: "AccessUnavailable", message: "No way in.",
		},
		"claims left out and a provider missing": {
			outcomes: map[string]outcome{"a": {kind: inPlace, properties: []string{"p"}, access: []string{"No way in."}}},
			status:   "False", reason: "InvalidProperties", message: "Left out: p. No way in.",
		},
		"undecided": {
			outcomes: map[string]outcome{"a": good, "b": {kind: undecided, why: "is not decided for"}},
			status:   "Unknown", reason: "SelectionUnknown", message: "In b: the cluster is not decided for.", holdBack: 5 * time.Second,
		},
		"doubtful somewhere: not said of the cluster": {
			outcomes: map[string]outcome{"a": good, "b": {kind: doubtful, why: "cannot be selected"}},
			status:   "True", reason: "Synced", message: syncedText,
		},
		"a foreign profile": {
			outcomes: map[string]outcome{"a": good, "b": {kind: foreign, why: "has theirs"}},
			status:   "False", reason: "ForeignProfile", message: "In b: the cluster has theirs.",
		},
		"everything at once: the worst first": {
			outcomes: map[string]outcome{
				"a": {kind: inPlace, properties: []string{"p"}}, "b": {kind: foreign, why: "has theirs"},
				"c": {kind: failed, why: "was refused."}, "d": {kind: undecided, why: "is unknown"}, "e": {why: "is withheld"},
			},
			status: "False", reason: "WriteFailed",
			message: "In c: the cluster was refused. In b: the cluster has theirs. In d: the cluster is unknown. Left out: p.",
		},
		"left alone is nobody's fault": {
			outcomes: map[string]outcome{"a": good, "b": {kind: leftAlone, why: "has another"}},
			status:   "True", reason: "Synced", message: syncedText,
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
			if diff := cmp.Diff(want, profilesSynced(test.outcomes, !test.isIncomplete)); diff != "" {
				t.Errorf("condition (-want +got):\n%s", diff)
			}
		})
	}
	t.Run("a message too long is cut", func(t *testing.T) {
		got := profilesSynced(long, true).Message
		if len(got) != 1024 || !strings.HasPrefix(got, "In n00: ") || !strings.HasSuffix(got, "...") {
			t.Errorf("message of %d bytes: %s", len(got), got)
		}
	})
}

func TestNotes(t *testing.T) {
	b := []string{"b"}
	many, fights := map[string]outcome{}, map[string]outcome{}
	for i := range 12 {
		many[fmt.Sprintf("c%02d", i)] = outcome{why: "is out", bindings: b}
		fights[fmt.Sprintf("c%02d", i)] = outcome{kind: contested, why: "is contested", bindings: b}
	}
	const names = "c00, c01, c02, c03, c04, c05, c06, c07, c08, c09 and 2 more"
	on := func(kind notices.Kind, name, reason, eventType, text string) notices.Notice {
		return notices.Notice{Subject: notices.Subject{Kind: kind, Name: name}, Reason: reason, Type: eventType, Text: text}
	}
	tests := map[string]struct {
		outcomes map[string]outcome
		want     []notices.Notice
	}{
		"in place: no word":           {outcomes: map[string]outcome{"c": {kind: inPlace, bindings: b}}},
		"withheld and nobody's asked": {outcomes: map[string]outcome{"c": {why: "is out"}}},
		"withheld, as was asked for: normal, by reason": {
			outcomes: map[string]outcome{"c2": {why: "is out", bindings: b}, "c1": {why: "is out", bindings: b}, "c3": {why: "is new", bindings: b}},
			want:     []notices.Notice{on(notices.Binding, "b", "ProfilesWithheld", "Normal", "c3 is new; c1, c2 is out")},
		},
		"many: some named": {
			outcomes: many,
			want:     []notices.Notice{on(notices.Binding, "b", "ProfilesWithheld", "Normal", names+" is out")},
		},
		"undecided: a warning, on the Placement too": {
			outcomes: map[string]outcome{"c": {kind: undecided, why: "is unknown", bindings: b, placements: []string{"p"}}},
			want: []notices.Notice{
				on(notices.Binding, "b", "ProfilesWithheld", "Warning", "c is unknown"),
				on(notices.Placement, "p", "ProfilesWithheld", "Warning", "c is unknown"),
			},
		},
		"doubtful: a warning": {
			outcomes: map[string]outcome{"c": {kind: doubtful, why: "cannot be selected", bindings: b}},
			want:     []notices.Notice{on(notices.Binding, "b", "ProfilesWithheld", "Warning", "c cannot be selected")},
		},
		"foreign and failed: a warning": {
			outcomes: map[string]outcome{"c": {kind: foreign, why: "has theirs", bindings: b}, "d": {kind: failed, why: "was refused", bindings: []string{"e"}}},
			want: []notices.Notice{
				on(notices.Binding, "b", "ProfilesWithheld", "Warning", "c has theirs"),
				on(notices.Binding, "e", "ProfilesWithheld", "Warning", "d was refused"),
			},
		},
		"left alone: on the profile itself": {
			outcomes: map[string]outcome{"c": {kind: leftAlone, why: "has another", bindings: b}},
			want:     []notices.Notice{on(notices.Profile, "c", "ProfilesWithheld", "Warning", "c has another")},
		},
		"many contested: on the binding": {
			outcomes: fights,
			want:     []notices.Notice{on(notices.Binding, "b", "ProfilesWithheld", "Warning", names+" is contested")},
		},
		"in place without an access provider: on the profile, apart from what is withheld": {
			outcomes: map[string]outcome{
				"d": {kind: inPlace, access: []string{"No proxy.", "No direct way."}, bindings: b},
				"e": {why: "is out", bindings: b},
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
