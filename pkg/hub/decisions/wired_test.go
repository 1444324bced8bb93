package decisions

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
	clusterv1beta2 "open-cluster-management.io/api/cluster/v1beta2"
	inventoryv1alpha1 "sigs.k8s.io/cluster-inventory-api/apis/v1alpha1"

	"open-cluster-management.io/cluster-inventory-addon/internal/apitest"
	"open-cluster-management.io/cluster-inventory-addon/internal/apitest/ocmtest"
	"open-cluster-management.io/cluster-inventory-addon/pkg/kube"
)

func repeat(n int, what string) []string { return slices.Repeat([]string{what}, n) }

// TestWrites counts the writes of each change, with 0, 1, 100, 101 and 1000
// clusters.
func TestWrites(t *testing.T) {
	for clusters, count := range map[int]int{0: 1, 1: 1, 100: 1, 101: 2, 1000: 10} {
		t.Run(fmt.Sprint(clusters, " clusters"), func(t *testing.T) {
			w := newWorld(t, hub)
			t.Cleanup(w.clearHub)
			w.start()
			all := some(clusters)
			w.admit(append(all, "another", "a-new-one")...)
			w.choose("p", all)
			w.Eventually("all clusters are referred to", func() string {
				if got := len(w.slices("p")); got != count {
					return fmt.Sprintf("%d slices, want %d", got, count)
				}
				return cmp.Diff(strings.Join(all, " "), strings.ReplaceAll(w.shown("p"), "|", " "))
			})
			w.follows()
			w.wrote("birth", repeat(count, "POST")...)

			w.wire.Reset()
			w.choose("p", append([]string{"a-new-one"}, all...))
			w.Eventually("one more", func() string {
				if !strings.Contains(w.shown("p"), "a-new-one") {
					return w.shown("p")
				}
				return ""
			})
			w.follows()
			if clusters > 0 && clusters%100 == 0 {
				w.wrote("one more, without room", "POST")
			} else {
				w.wrote("one more", "PATCH")
			}

			w.stop()
			w.wire.Reset()
			w.start()
			w.follows()
			w.wrote("a restart")

			w.choose("p", all)
			w.Eventually("one less", func() string {
				if strings.Contains(w.shown("p"), "a-new-one") {
					return w.shown("p")
				}
				return ""
			})
			w.follows()
			if clusters > 0 && clusters%100 == 0 {
				w.wrote("one less, the last of its slice", "DELETE")
			} else {
				w.wrote("one less", "PATCH")
			}

			w.wire.Reset()
			w.MustDelete(&clusterv1beta1.Placement{ObjectMeta: metav1.ObjectMeta{Namespace: w.ns, Name: "p"}})
			w.shows("p", none)
			w.wrote("the Placement is deleted", repeat(count, "DELETE")...)
		})
	}
}

func TestSliceHasTheFormReadersExpect(t *testing.T) {
	w := newWorld(t, hub)
	t.Cleanup(w.clearHub)
	w.start()
	w.admit("b", "a", "c")
	w.choose("p", []string{"b", "a"}, []string{"c"})
	w.shows("p", "a b|c")
	got := w.slices("p")[1]
	want := inventoryv1alpha1.PlacementDecision{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.ns, Name: "p-profiles-1", Labels: map[string]string{
			"app.kubernetes.io/managed-by":                              "cluster-inventory-addon",
			"multicluster.x-k8s.io/decision-key":                        "p",
			"multicluster.x-k8s.io/decision-index":                      "1",
			"inventory.open-cluster-management.io/decision-group-index": "1",
		}},
		Decisions:     []inventoryv1alpha1.ClusterDecision{{ClusterProfileRef: inventoryv1alpha1.ClusterProfileReference{Name: "c"}}},
		SchedulerName: "cluster-inventory-addon",
	}
	got.ObjectMeta = metav1.ObjectMeta{Namespace: got.Namespace, Name: got.Name, Labels: got.Labels, OwnerReferences: got.OwnerReferences}
	got.TypeMeta = metav1.TypeMeta{}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("slice (-want +got):\n%s", diff)
	}
}

func TestSlicesFollowTheChoice(t *testing.T) {
	whole := newWorld(t, hub)
	t.Cleanup(whole.clearHub)
	whole.start()
	whole.admit("a", "b", "c")
	whole.choose("p", []string{"a", "b"})
	whole.shows("p", "a b")
	placement := func() *clusterv1beta1.Placement {
		return &clusterv1beta1.Placement{ObjectMeta: metav1.ObjectMeta{Namespace: whole.ns, Name: "p"}}
	}
	run := func(name string, test func(w *world)) {
		t.Run(name, func(t *testing.T) {
			w := whole.in(t)
			w.follows()
			w.wire.Reset()
			test(w)
		})
	}

	run("a cluster without a whole profile comes with it", func(w *world) {
		w.choose("p", []string{"a", "b", "late"})
		w.follows()
		w.wrote("not whole")
		w.admit("late")
		w.shows("p", "a b late")
		w.wrote("whole", "PATCH")
	})
	run("a cluster that is gone for a moment only stays", func(w *world) {
		defer w.time.Hold()() // a moment on a busy machine, too
		w.choose("p", []string{"a", "late"})
		w.choose("p", []string{"a", "b", "late"})
		w.choose("p", []string{"a", "b"})
		w.choose("p", []string{"a", "b", "late"})
		w.follows()
		w.wrote("flapping")
	})
	run("a withdrawn profile is not referred to, and its writer hears of it", func(w *world) {
		if w.withdraw("late") {
			t.Error("nothing refers to it, it is said at once")
		}
		w.Eventually("the writer of profiles hears of it", func() string {
			if w.looked.count(w.pair("late")) == 0 {
				return "not yet"
			}
			return cmp.Diff("a b", w.shown("p"))
		})
		if !w.withdraw("late") {
			t.Error("something still refers to it")
		}
		w.wrote("withdrawal", "PATCH")
	})
	run("what was withdrawn comes back", func(w *world) {
		w.admit("late")
		w.shows("p", "a b late")
		w.choose("p", []string{"a", "b"})
		w.shows("p", "a b")
	})
	run("a Placement that is undecided changes nothing", func(w *world) {
		w.choose("q", []string{"a"})
		w.shows("q", "a")
		q := &clusterv1beta1.Placement{ObjectMeta: metav1.ObjectMeta{Namespace: w.ns, Name: "q"}}
		w.wire.Reset()
		apitest.EditStatus(w, q, func(p *clusterv1beta1.Placement) { p.Status = clusterv1beta1.PlacementStatus{} })
		w.follows() // the decision is seen after that
		w.decision("q", 1, 0, []string{"b"})
		w.follows()
		w.follows() // the first may have come before an absence could count
		w.wrote("undecided")
		if !w.withdraw("a") {
			w.shows("q", "")
		}
		w.admit("a")
		w.choose("q", []string{"a"})
		w.shows("q", "a")
	})
	run("nothing chosen is one empty slice", func(w *world) {
		w.choose("p")
		w.shows("p", "")
		w.wrote("emptied", "PATCH")
		w.choose("p", []string{"a", "b"})
		w.shows("p", "a b")
	})
	run("a Placement that is replaced keeps its slices", func(w *world) {
		defer w.time.Hold()()
		w.MustDelete(placement())
		w.MustDelete(&clusterv1beta1.PlacementDecision{ // OCM deletes it with its Placement
			ObjectMeta: metav1.ObjectMeta{Namespace: w.ns, Name: decisionName("p", 1)},
		})
		w.follows()
		w.choose("p", []string{"a", "b"})
		w.follows()
		w.wrote("replaced")
		w.shows("p", "a b")
	})
	run("without the label there is none", func(w *world) {
		p := placement()
		apitest.Edit(w, p, func(p *clusterv1beta1.Placement) { p.Labels = nil })
		w.shows("p", none)
		apitest.Edit(w, p, func(p *clusterv1beta1.Placement) {
			p.Labels = map[string]string{"inventory.open-cluster-management.io/publish": "true"}
		})
		w.shows("p", "a b")
	})
	run("without a bound set there is none", func(w *world) {
		binding := &clusterv1beta2.ManagedClusterSetBinding{ObjectMeta: metav1.ObjectMeta{Namespace: w.ns, Name: w.set}}
		bound := func(status string) {
			apitest.EditStatus(w, binding, func(b *clusterv1beta2.ManagedClusterSetBinding) {
				b.Status.Conditions = []metav1.Condition{ocmtest.Condition("Bound", status, "R", "")}
			})
		}
		bound("Unknown")
		w.admit("c")
		w.choose("p", []string{"a", "c"})
		w.Eventually("the unbound namespace is looked at", func() string { return cmp.Diff("a b", w.shown("p")) })
		w.wrote("not evaluated")
		bound("False")
		w.shows("p", none)
		bound("True")
		w.shows("p", "a c")
		w.choose("p", []string{"a", "b"})
		w.shows("p", "a b")
	})
}

// A conflict means that the cache is old. Until it shows more, or that is overdue, another attempt is refused, too.
func TestAConflictIsNotRepeatedFromTheSameCache(t *testing.T) {
	w := newWorld(t, hub)
	t.Cleanup(w.clearHub)
	w.start()
	w.admit("a", "b")
	w.choose("p", []string{"a"})
	w.shows("p", "a")
	w.follows()
	var refused atomic.Int32
	w.wire.Fail(func(call apitest.Call) apitest.Fault {
		if call.Method != http.MethodPatch || call.Resource != "placementdecisions" || refused.Add(1) > 3 {
			return apitest.Fault{}
		}
		return apitest.Fault{Status: http.StatusConflict, Reason: "Conflict", Message: "the object has been modified"}
	})
	w.choose("p", []string{"a", "b"})
	w.Eventually("the write is refused", func() string { return cmp.Diff(true, refused.Load() > 0) })
	w.Stays(kube.StaleAfter/2, "no attempt follows", func() string { return cmp.Diff(int32(1), refused.Load()) })
	w.shows("p", "a b")
}

func TestOthersChangesToSlices(t *testing.T) {
	whole := newWorld(t, hub)
	t.Cleanup(whole.clearHub)
	whole.start()
	whole.admit("a", "b")
	whole.choose("p", []string{"a", "b"})
	whole.shows("p", "a b")
	ours := func(w *world) *inventoryv1alpha1.PlacementDecision {
		return &inventoryv1alpha1.PlacementDecision{ObjectMeta: metav1.ObjectMeta{Namespace: w.ns, Name: "p-profiles-0"}}
	}
	tests := map[string]struct {
		do    func(w *world)
		wrote []string
	}{
		"a deleted slice is recreated": {func(w *world) { w.MustDelete(ours(w)) }, []string{"POST"}},
		"a removed reference is repaired": {func(w *world) {
			w.MustMerge(ours(w), `{"decisions":[{"clusterProfileRef":{"name":"a"}}]}`)
		}, []string{"PATCH"}},
		"a changed index is repaired": {func(w *world) {
			w.MustMerge(ours(w), `{"metadata":{"labels":{"multicluster.x-k8s.io/decision-index":"8"}}}`)
		}, []string{"PATCH"}},
		"a removed key is repaired": {func(w *world) {
			w.MustMerge(ours(w), `{"metadata":{"labels":{"multicluster.x-k8s.io/decision-key":null}}}`)
		}, []string{"PATCH"}},
		"labels of others stay": {func(w *world) {
			w.MustMerge(ours(w), `{"metadata":{"labels":{"team":"theirs"},"annotations":{"team":"theirs"}},"schedulerName":"x"}`)
		}, []string{"PATCH"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			w := whole.in(t)
			w.follows()
			w.wire.Reset()
			test.do(w)
			w.Eventually("repaired", func() string { return cmp.Diff(len(test.wrote), len(w.written())) })
			w.shows("p", "a b")
			w.follows()
			w.wrote(name, test.wrote...)
			if decision := ours(w); strings.HasPrefix(name, "labels") {
				w.MustGet(decision)
				if decision.Labels["team"] != "theirs" || decision.Annotations["team"] != "theirs" {
					t.Errorf("metadata %v", decision.ObjectMeta)
				}
			}
		})
	}
	t.Run("a client that keeps changing a slice causes few writes", func(t *testing.T) {
		w := whole.in(t)
		w.follows()
		w.wire.Reset()
		began := time.Now()
		changes := apitest.Hostile(t, func(n int) error {
			return w.Patch(t.Context(), ours(w), client.RawPatch(types.MergePatchType,
				fmt.Appendf(nil, `{"schedulerName":"somebody-%d","decisions":[]}`, n)))
		}, nil)
		w.Eventually("repaired at last", func() string {
			decision := ours(w)
			w.MustGet(decision)
			return cmp.Diff("cluster-inventory-addon", decision.SchedulerName)
		})
		w.shows("p", "a b")
		// Repairs are gathered for a second.
		most := min(kube.RepairsAtOnce+int(time.Since(began)/kube.RepairEvery), int(time.Since(began)/gatherTime)) + 1
		writes, refused := len(w.written()), w.wire.Conflicts("placementdecisions")
		t.Logf("%d hostile rounds, %d own writes, of which %d were refused as conflicts", changes, writes, refused)
		// Those change nothing; how many there are depends on how fast the other client is.
		if writes-refused > most {
			t.Errorf("%d writes, want at most %d", writes-refused, most)
		}
	})
}

// TestDecisionsOfOthers: a foreign object with the name of a slice, or with the Placement's
// key, stays, and an event on the Placement says so.
func TestDecisionsOfOthers(t *testing.T) {
	w := newWorld(t, hub)
	t.Cleanup(w.clearHub)
	controller := true
	theirs := func(name string, change func(*inventoryv1alpha1.PlacementDecision)) *inventoryv1alpha1.PlacementDecision {
		d := &inventoryv1alpha1.PlacementDecision{
			ObjectMeta: metav1.ObjectMeta{Namespace: w.ns, Name: name},
			Decisions:  []inventoryv1alpha1.ClusterDecision{{ClusterProfileRef: inventoryv1alpha1.ClusterProfileReference{Name: "x"}}},
		}
		change(d)
		w.MustCreate(d)
		return d
	}
	keyed := func(d *inventoryv1alpha1.PlacementDecision) {
		d.Labels = map[string]string{"multicluster.x-k8s.io/decision-key": "p", "multicluster.x-k8s.io/decision-index": "0"}
	}
	foreign := []*inventoryv1alpha1.PlacementDecision{
		theirs("p-profiles-0", func(*inventoryv1alpha1.PlacementDecision) {}),
		theirs("mine", keyed),
		theirs("p-decision-1", func(d *inventoryv1alpha1.PlacementDecision) {
			keyed(d)
			d.OwnerReferences = []metav1.OwnerReference{{
				APIVersion: "cluster.open-cluster-management.io/v1beta1", Kind: "PlacementDecision",
				Name: d.Name, UID: types.UID("u"), Controller: &controller,
			}}
		}),
		theirs("unrelated", func(*inventoryv1alpha1.PlacementDecision) {}),
	}
	w.start()
	w.admit("a")
	w.choose("p", []string{"a"})
	w.shows("p", "a")
	if got := w.slices("p")[0].Name; got != "p-profiles-1" {
		t.Errorf("the slice is %s", got)
	}
	w.Eventually("an event on the Placement", func() string {
		list := &eventsv1.EventList{}
		w.MustList(list, client.InNamespace(w.ns))
		for _, event := range list.Items {
			if event.Regarding.Kind == "Placement" && event.Regarding.Name == "p" && event.Reason == "ForeignPlacementDecision" &&
				strings.Contains(event.Note, "mine, p-profiles-0") && strings.Contains(event.Note, "p-decision-1") {
				return ""
			}
		}
		return fmt.Sprintf("%d events", len(list.Items))
	})
	w.MustDelete(foreign[0]) // they may come and go as they like: as OCM's do with its feature gate
	w.MustDelete(foreign[2])
	w.follows()
	w.wrote("beside others", "POST")
	for _, d := range []*inventoryv1alpha1.PlacementDecision{foreign[1], foreign[3]} {
		before := d.ResourceVersion
		if w.MustGet(d); d.ResourceVersion != before {
			t.Errorf("%s was written", d.Name)
		}
	}
}

// A Placement with a name that fits into no label can choose nothing in OCM.
func TestALongName(t *testing.T) {
	w := newWorld(t, hub)
	t.Cleanup(w.clearHub)
	w.start()
	w.admit("a")
	placement := strings.Repeat("p", 70)
	w.choose(placement)
	key := strings.Repeat("p", 52) + "-d79ad4b575"
	w.shows(key, "")
	if got := w.slices(key)[0].Name; got != placement+"-profiles-0" {
		t.Errorf("the slice is %s", got)
	}
	w.MustDelete(&clusterv1beta1.Placement{ObjectMeta: metav1.ObjectMeta{Namespace: w.ns, Name: placement}})
	w.shows(key, none)
}

// A slice that cannot be written prevents neither another Placement's publication nor the
// withdrawal from other slices.
func TestARefusedWrite(t *testing.T) {
	w := newWorld(t, hub)
	t.Cleanup(w.clearHub)
	w.start()
	w.admit(some(150)...)
	w.choose("p", some(150))
	w.Eventually("born", func() string { return cmp.Diff(2, len(w.slices("p"))) })
	w.wire.Fail(func(c apitest.Call) apitest.Fault {
		if c.IsWrite() && strings.HasSuffix(c.Path, "/p-profiles-0") {
			return apitest.Fault{Status: http.StatusForbidden, Reason: "Forbidden", Message: "a webhook says no"}
		}
		return apitest.Fault{}
	})
	w.withdraw(name(0))
	w.withdraw(name(149))
	w.Eventually("the other slice is written", func() string {
		if strings.Contains(w.shown("p"), name(149)) {
			return "not yet"
		}
		return ""
	})
	if !strings.Contains(w.shown("p"), name(0)) {
		t.Error("the refused write was carried out")
	}
	w.Eventually("an event on the Placement", func() string {
		list := &eventsv1.EventList{}
		w.MustList(list, client.InNamespace(w.ns))
		for _, event := range list.Items {
			if event.Reason == "PlacementDecisionRefused" && strings.Contains(event.Note, "a webhook says no") {
				return ""
			}
		}
		return fmt.Sprintf("%d events", len(list.Items))
	})
	w.wire.Fail(nil)
	w.Eventually("it is retried", func() string {
		if strings.Contains(w.shown("p"), name(0)) {
			return "not yet"
		}
		return ""
	})
}

// An absence from decisions counts after a second, which no event announces. A slice that has been refused
// for long, and is retried less and less often, does not delay that.
func TestARefusedWriteDelaysNoWithdrawal(t *testing.T) {
	w := newWorld(t, hub)
	t.Cleanup(w.clearHub)
	const pause = 9 * time.Second // there is none between 5.1 and 10.2 seconds
	var refused atomic.Int64
	w.wire.Fail(func(c apitest.Call) apitest.Fault {
		if !c.IsWrite() || !c.Mentions("p-profiles-1") {
			return apitest.Fault{}
		}
		refused.Store(time.Now().UnixNano())
		return apitest.Fault{Status: http.StatusForbidden, Reason: "Forbidden", Message: "a webhook says no"}
	})
	w.start()
	w.admit(some(150)...)
	w.choose("p", some(150))
	w.Eventually("the first slice", func() string { return cmp.Diff(1, len(w.slices("p"))) })
	w.Eventually("the other slice is retried less and less often", func() string {
		if last := time.Unix(0, refused.Load()); time.Since(last) < pause {
			return fmt.Sprintf("last at %s", last)
		}
		return ""
	})
	w.choose("p", slices.DeleteFunc(some(150), func(cluster string) bool { return cluster == name(40) }))
	began := time.Now()
	w.Eventually("a cluster that has left is not referred to", func() string {
		if strings.Contains(w.shown("p"), name(40)) {
			return "not yet"
		}
		return ""
	})
	if waited := time.Since(began); waited > pause {
		t.Errorf("the reference stayed for %s", waited)
	}
}

// Each write of a slice takes long, and a cluster leaves during the first. The plan is made again before the
// slice of that cluster is written.
func TestASlowPlanIsMadeAgain(t *testing.T) {
	w := newWorld(t, hub)
	t.Cleanup(w.clearHub)
	w.wire.Fail(func(c apitest.Call) apitest.Fault {
		if !c.IsWrite() || !strings.Contains(c.Path, "/placementdecisions") {
			return apitest.Fault{}
		}
		late := make(chan struct{})
		time.AfterFunc(applyFor*3/5, func() { close(late) })
		return apitest.Fault{Until: late}
	})
	w.start()
	clusters := some(6)
	w.admit(clusters...)
	var groups [][]string
	for _, cluster := range clusters {
		groups = append(groups, []string{cluster})
	}
	w.choose("p", groups...)
	slices := func(want int) func() string {
		return func() string { return cmp.Diff(want, len(w.slices("p"))) }
	}
	w.Eventually("the first slice is written", slices(1))
	w.withdraw(clusters[5])
	w.Eventually("those of the other clusters are", slices(5))
	w.Stays(2*applyFor, "there is none of the cluster that has left", slices(5))
}

// TestCRDIsCreatedDeletedAndRecreated covers the slices' CRD and those they are derived
// from.
func TestCRDIsCreatedDeletedAndRecreated(t *testing.T) {
	server := apitest.Start(t, apitest.Hub(), apitest.ClusterProfile())
	w := newWorld(t, server)
	w.start()
	w.Eventually("the manager knows that there is no CRD", func() string {
		if !w.withdraw("a") {
			return "it waits for references to go"
		}
		return ""
	})
	w.admit("a", "b")
	w.choose("p", []string{"a", "b"})

	server.Install(t, apitest.PlacementDecision())
	w.shows("p", "a b")
	first := w.slices("p")[0].UID

	server.Reinstall(w.World, "placementdecisions.multicluster.x-k8s.io", apitest.PlacementDecision())
	w.shows("p", "a b")
	if got := w.slices("p")[0].UID; got == first {
		t.Error("the slice has outlived its CRD")
	}
	w.follows()

	for crd, list := range map[string]client.ObjectList{
		"placements.cluster.open-cluster-management.io":                &clusterv1beta1.PlacementList{},
		"placementdecisions.cluster.open-cluster-management.io":        &clusterv1beta1.PlacementDecisionList{},
		"managedclustersetbindings.cluster.open-cluster-management.io": &clusterv1beta2.ManagedClusterSetBindingList{},
	} {
		t.Run(crd, func(t *testing.T) {
			w := w.in(t)
			before := w.slices("p")[0]
			w.wire.Reset()
			restore := w.Backup(list)
			server.Reinstall(w.World, crd, apitest.Hub())
			restore()
			w.follows()
			w.wrote("a CRD was recreated")
			if after := w.slices("p"); len(after) != 1 || after[0].ResourceVersion != before.ResourceVersion {
				t.Errorf("slices %v", after)
			}
		})
	}
}
