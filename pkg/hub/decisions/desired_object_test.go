package decisions

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	inventoryv1alpha1 "sigs.k8s.io/cluster-inventory-api/apis/v1alpha1"

	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/selection"
)

func TestNamesAndKeys(t *testing.T) {
	long := strings.Repeat("a", 51) + "." + strings.Repeat("b", 12) // 64 bytes, cut at the dot
	longest := strings.Repeat("c", 253)
	tests := map[string]struct{ placement, name, key string }{
		"short":                   {"p", "p-profiles-3", "p"},
		"with a name like ours":   {"p-profiles-3", "p-profiles-3-profiles-3", "p-profiles-3"},
		"as long as a key may be": {long[1:], long[1:] + "-profiles-3", long[1:]},
		"too long for a key":      {long, long + "-profiles-3", strings.Repeat("a", 51) + "-abae5ca9dd"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := nameOf(baseOf(test.placement), 3); got != test.name {
				t.Errorf("name %q, want %q", got, test.name)
			}
			if got := parseName(test.name); got != test.placement {
				t.Errorf("base %q, want %q", got, test.placement)
			}
			if got := keyOf(test.placement); got != test.key {
				t.Errorf("key %q, want %q", got, test.key)
			}
		})
	}
	for _, placement := range []string{long, longest, longest[1:]} {
		if problems := validation.IsValidLabelValue(keyOf(placement)); len(problems) > 0 {
			t.Errorf("key of %q: %v", placement, problems)
		}
		name := nameOf(baseOf(placement), 999999)
		if problems := validation.IsDNS1123Subdomain(name); len(problems) > 0 {
			t.Errorf("name of %q: %v", placement, problems)
		}
		if base := parseName(name); base != baseOf(placement) || baseOf(base) != base {
			t.Errorf("base of %q is %q", placement, base)
		}
	}
	if keyOf(longest) == keyOf(longest[1:]) || baseOf(longest) == baseOf(longest[1:]) {
		t.Error("two Placements have one key or base")
	}
}

func TestNamesTakenByOthers(t *testing.T) {
	for _, name := range []string{
		"", "p", "p-decision-1", "-profiles-1", "p-profiles-", "p-profiles-x", "p-profiles--1", "p-profiles-01", "p-profiles-1-decision-1",
	} {
		if base := parseName(name); base != "" {
			t.Errorf("%q has the base %q", name, base)
		}
	}
}

func TestObservedSliceEqualsTheWrittenOne(t *testing.T) {
	want := &inventoryv1alpha1.PlacementDecision{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "p-profiles-2", Labels: map[string]string{
			"app.kubernetes.io/managed-by":                              "cluster-inventory-addon",
			"multicluster.x-k8s.io/decision-key":                        "p",
			"multicluster.x-k8s.io/decision-index":                      "1",
			"inventory.open-cluster-management.io/decision-group-index": "4",
			"inventory.open-cluster-management.io/decision-group-name":  "canary",
		}},
		Decisions: []inventoryv1alpha1.ClusterDecision{
			{ClusterProfileRef: inventoryv1alpha1.ClusterProfileReference{Name: "c1"}},
			{ClusterProfileRef: inventoryv1alpha1.ClusterProfileReference{Name: "c2"}},
		},
		SchedulerName: "cluster-inventory-addon",
	}
	s := slice{
		name: "p-profiles-2", index: 1, clusters: []string{"c1", "c2"}, group: selection.Group{Index: 4, Name: "canary"},
	}
	if diff := cmp.Diff(want, desiredDecision("ns", "p", s)); diff != "" {
		t.Errorf("object (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(s, observedSlice(want, "p"), cmp.AllowUnexported(slice{})); diff != "" {
		t.Errorf("slice (-want +got):\n%s", diff)
	}
	if changes := desiredChanges(want, "p", s); len(changes) > 0 {
		t.Errorf("changes %v", changes)
	}
}

func TestAlterations(t *testing.T) {
	type object = inventoryv1alpha1.PlacementDecision
	tests := map[string]struct {
		alter   func(*object)
		altered bool
		want    map[string]any // what is repaired
	}{
		"a foreign label and an annotation": {alter: func(o *object) {
			o.Labels["team"], o.Annotations = "theirs", map[string]string{"a": "b"}
		}},
		"the writer's name": {
			alter: func(o *object) { o.SchedulerName = "" }, altered: true,
			want: map[string]any{"schedulerName": "cluster-inventory-addon"},
		},
		"the key": {
			alter: func(o *object) { delete(o.Labels, "multicluster.x-k8s.io/decision-key") }, altered: true,
			want: map[string]any{"metadata": map[string]any{"labels": map[string]any{"multicluster.x-k8s.io/decision-key": "p"}}},
		},
		"an index that is none": {
			alter: func(o *object) { o.Labels["multicluster.x-k8s.io/decision-index"] = "00" }, altered: true,
			want: map[string]any{"metadata": map[string]any{"labels": map[string]any{"multicluster.x-k8s.io/decision-index": "0"}}},
		},
		"a group's name": {
			alter: func(o *object) { o.Labels["inventory.open-cluster-management.io/decision-group-name"] = "x" },
			want: map[string]any{"metadata": map[string]any{"labels": map[string]any{
				"inventory.open-cluster-management.io/decision-group-name": nil,
			}}},
		},
		"a reason": {
			alter: func(o *object) { o.Decisions[0].Reason = "because" }, altered: true,
			want: map[string]any{"decisions": references([]string{"c"})},
		},
		"a reference elsewhere": {
			alter: func(o *object) { o.Decisions[0].ClusterProfileRef.Namespace = "other" }, altered: true,
			want: map[string]any{"decisions": references([]string{"c"})},
		},
		"the namespace, spelled out": {
			alter: func(o *object) { o.Decisions[0].ClusterProfileRef.Namespace = "ns" }, altered: true,
			want: map[string]any{"decisions": references([]string{"c"})},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			s := slice{name: "p-profiles-0", clusters: []string{"c"}}
			current := desiredDecision("ns", "p", s)
			test.alter(current)
			trimmed := trimDecision(current.DeepCopy())
			if got := observedSlice(trimmed, "p").altered; got != test.altered {
				t.Errorf("altered: %t", got)
			}
			got := desiredChanges(trimmed, "p", s)
			if len(got) == 0 {
				got = nil
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("changes (-want +got):\n%s", diff)
			}
		})
	}
}

func TestOwnerOfADecision(t *testing.T) {
	controller := true
	upstreams := &inventoryv1alpha1.PlacementDecision{ObjectMeta: metav1.ObjectMeta{
		Name: "p-decision-1", Labels: map[string]string{"multicluster.x-k8s.io/decision-key": "p", "x": "y"},
		OwnerReferences: []metav1.OwnerReference{{
			APIVersion: "cluster.open-cluster-management.io/v1beta1", Kind: "PlacementDecision", Name: "p-decision-1", Controller: &controller,
		}},
	}, Decisions: references([]string{"c"})}
	for range 2 { // an informer may trim an object twice
		upstreams = trimDecision(upstreams)
	}
	if isOurs(upstreams) || !isUpstreams(upstreams) || len(upstreams.Decisions) > 0 || upstreams.Labels["x"] != "" {
		t.Errorf("upstream's is cached as %+v", upstreams)
	}
	marked := map[string]string{"app.kubernetes.io/managed-by": "cluster-inventory-addon"}
	theirs := &inventoryv1alpha1.PlacementDecision{ObjectMeta: metav1.ObjectMeta{Name: "mine", Labels: marked}}
	if isOurs(theirs) {
		t.Error("one with the mark and another name is ours")
	}
	notice, _ := foreignNotice("p", []*inventoryv1alpha1.PlacementDecision{upstreams, theirs})
	const want = "This addon did not create, and leaves alone, PlacementDecisions with the label " +
		"multicluster.x-k8s.io/decision-key=p or the name of one of its own: mine. " +
		"Open Cluster Management (feature gate SIGPlacementDecision) publishes PlacementDecisions with the same label " +
		"multicluster.x-k8s.io/decision-key: p-decision-1. " +
		"Select this addon's by the label app.kubernetes.io/managed-by=cluster-inventory-addon."
	if notice.Text != want {
		t.Errorf("the notice is %q", notice.Text)
	}
	if _, ok := foreignNotice("p", nil); ok {
		t.Error("there is a notice about nothing")
	}
}
