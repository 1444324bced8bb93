package selection

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"

	"open-cluster-management.io/cluster-inventory-addon/internal/apitest"
	"open-cluster-management.io/cluster-inventory-addon/internal/apitest/ocmtest"
	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/selection/rule"
	"open-cluster-management.io/cluster-inventory-addon/pkg/kube"
)

const placementsType = "Placements"

// goingAddon is the addon of a cluster that is being deleted, without the time.
func goingAddon(cluster string) *addonv1beta1.ManagedClusterAddOn {
	addon := ocmtest.Addon(cluster)
	addon.UID = "uid"
	return addon
}

// goingStrategy is one whose ClusterManagementAddOn is deleted after the addons that it owns.
func goingStrategy() *addonv1beta1.ClusterManagementAddOn {
	definition := strategy(placementsType, "p")
	definition.Finalizers = []string{"foregroundDeletion"}
	definition.DeletionTimestamp = ptr.To(metav1.Now())
	return definition
}

// selecting returns the install Placement p, which says how many clusters it selects,
// regardless of its slices. The slices have the given names of clusters.
func selecting(selected int32, clusters ...[]string) []client.Object {
	placement := installing("p")[0].(*clusterv1beta1.Placement)
	placement.Status.NumberOfSelectedClusters = selected
	objs := []client.Object{placement}
	for i, names := range clusters {
		decision := ocmtest.Slice(fmt.Sprintf("p-decision-%d", i+1), "p", names...)
		decision.Namespace = placement.Namespace
		objs = append(objs, decision)
	}
	return objs
}

// The caches of addons and of the install strategy have separate watches: an addon may be seen
// deleted before the strategy is seen to be Manual.
func TestReinstallsReadsTheStrategyLive(t *testing.T) {
	for name, test := range map[string]struct {
		live []client.Object
		want rule.Answer
	}{
		"as cached":              {live: []client.Object{strategy(placementsType, "p")}, want: rule.Yes},
		"Manual":                 {live: []client.Object{strategy("Manual", "p")}, want: rule.No},
		"with another Placement": {live: append(installing("q", "a"), strategy(placementsType, "q")), want: rule.No},
		"being deleted":          {live: []client.Object{goingStrategy()}, want: rule.No},
		"deleted":                {want: rule.No},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScene(t, append(installing("p", "c"), strategy(placementsType, "p"))...)
			s.Rule.live.reader = newFakeCache(append(installing("p", "c"), test.live...)...)
			if got, err := s.Reinstalls(t.Context(), goingAddon("c")); err != nil || got != test.want {
				t.Errorf("got %d, %v, want %d", got, err, test.want)
			}
		})
	}
	t.Run("for profiles, too", func(t *testing.T) {
		s := newScene(t, append(installing("p", around(50, 100)...), strategy(placementsType, "p"))...)
		s.Rule.live.reader = newFakeCache(append(installing("p", "c"), strategy("Manual", "p"))...)
		apitest.Must(t, s.cache.Delete(t.Context(), ocmtest.Addon("c")))
		s.settlesAs(rule.No)
		s.copies(rule.No)
	})
}

// One read of each kind a second serves all addons that are deleted together.
func TestReinstallsSharesItsReads(t *testing.T) {
	s := newScene(t, append(installing("p", around(50, 100)...), strategy(placementsType, "p"))...)
	reads := counter{s.live, map[string]int{}}
	s.Rule.live.reader = reads
	const seconds, everySecond = 3, 50
	for i := range seconds * everySecond {
		for _, cluster := range []string{fmt.Sprint("b", i), fmt.Sprint("b", i/2)} {
			if _, err := s.Reinstalls(t.Context(), goingAddon(cluster)); err != nil {
				t.Fatal(err)
			}
		}
		s.later(time.Second / everySecond)
	}
	if len(reads.lists) != 3 {
		t.Errorf("lists: %v", reads.lists)
	}
	for kind, n := range reads.lists {
		if n > seconds {
			t.Errorf("%d lists of %s in %d seconds", n, kind, seconds)
		}
	}
}

// A manager that starts again and again waits no longer than one that keeps running, but reads
// at least once.
func TestReinstallsCountsFromTheDeletion(t *testing.T) {
	for name, test := range map[string]struct {
		objs []client.Object
		ago  time.Duration
		want rule.Answer
	}{
		"two minutes ago, between two slices": {installing("p", around(100, 50)...), 2 * time.Minute, rule.No},
		"a minute ago, between two slices":    {installing("p", around(100, 50)...), time.Minute, rule.Unknown},
		"in the future, between two slices":   {installing("p", around(100, 50)...), -time.Hour, rule.Unknown},
		"two minutes ago, but named":          {installing("p", "c"), 2 * time.Minute, rule.Yes},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScene(t, append(test.objs, strategy(placementsType, "p"))...)
			addon := goingAddon("c")
			addon.DeletionTimestamp = ptr.To(metav1.NewTime(s.time.Now().Add(-test.ago)))
			s.prepared.Store(false)
			if got, err := s.Reinstalls(t.Context(), addon); err != nil || got != rule.Unknown {
				t.Errorf("before it has read anything: %d, %v", got, err)
			}
			s.prepared.Store(true)
			if got, err := s.Reinstalls(t.Context(), addon); err != nil || got != test.want {
				t.Errorf("got %d, %v, want %d", got, err, test.want)
			}
			s.later(2 * time.Minute)
			if got, err := s.Reinstalls(t.Context(), addon); err != nil || got == rule.Unknown {
				t.Errorf("two minutes later: %d, %v", got, err)
			}
		})
	}
}

// What install Placements may look like when OCM deletes the addon of a cluster.
func TestUnusualInstallPlacements(t *testing.T) {
	two := []client.Object{strategy(placementsType, "p", "q")}
	one := []client.Object{strategy(placementsType, "p")}
	for name, test := range map[string]struct {
		objs  []client.Object
		keeps bool
		named bool // so that copies are kept as long as profiles

		// inconclusive are the Placements that an event is about after two minutes.
		inconclusive []string
	}{
		"two that both name the cluster": {
			objs:  slices.Concat(installing("p", "c"), installing("q", "c"), two),
			keeps: true, named: true, inconclusive: []string{"p", "q"},
		},
		"two, of which neither names it any more": {
			objs: slices.Concat(installing("p", "a"), installing("q", "a"), two),
		},
		"two, of which one may be moving it": {
			objs:  slices.Concat(installing("p", "a"), installing("q", around(100, 50)...), two),
			keeps: true, inconclusive: []string{"q"},
		},
		"two, of which one does not exist": {
			objs:  slices.Concat(installing("q", around(100, 50)...), two),
			keeps: true, inconclusive: []string{"q"},
		},
		"one without slices that chooses none": {objs: slices.Concat(selecting(0), one)},
		"one without slices that chooses some": {
			objs: slices.Concat(selecting(3), one), keeps: true, inconclusive: []string{"p"},
		},
		"one of 5000 clusters, of which one slice reaches over the name": {
			objs: slices.Concat(installing("p", around(2550, 2450)...), one),
		},
		"one of 5000 clusters, and the name between two slices": {
			objs: slices.Concat(installing("p", around(2500, 2500)...), one), keeps: true, inconclusive: []string{"p"},
		},
		"one of 5000 clusters that names it": {
			objs:  slices.Concat(installing("p", append(around(2500, 2499), "c")...), one),
			keeps: true, named: true, inconclusive: []string{"p"},
		},
		"another client's slices, not in order": {
			objs: slices.Concat(selecting(2, []string{"d", "a"}), one), keeps: true, inconclusive: []string{"p"},
		},
		"another client's slices, with one name twice": {
			objs:  slices.Concat(selecting(2, around(0, 2), around(0, 2)), one),
			keeps: true, inconclusive: []string{"p"},
		},
		"another client's slices, too large": {
			objs: slices.Concat(selecting(101, around(50, 51)), one), keeps: true, inconclusive: []string{"p"},
		},
		"another client's slices, the first not full": {
			objs:  slices.Concat(selecting(4, around(2, 0), around(0, 2)), one),
			keeps: true, inconclusive: []string{"p"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScene(t, test.objs...)
			s.settlesAs(rule.Yes)
			apitest.Must(t, s.cache.Delete(t.Context(), ocmtest.Addon("c")))
			if test.keeps {
				s.settlesAs(rule.Unknown)
				s.copies(rule.Unknown)
				s.later(10 * time.Second)
				s.settlesAs(rule.Unknown)
				if test.named {
					s.copies(rule.Unknown)
				} else {
					s.copies(rule.No)
				}
				s.later(2*time.Minute - 10*time.Second)
			}
			s.settlesAs(rule.No)
			s.copies(rule.No)
			o, result, err := s.Observe(t.Context(), s.pair)
			apitest.Must(t, err)
			result, _, err = s.Settle(t.Context(), s.pair, o, result, true)
			apitest.Must(t, err)
			var inconclusive []string
			for _, key := range result.Inconclusive {
				inconclusive = append(inconclusive, key.Name)
			}
			if !slices.Equal(inconclusive, test.inconclusive) || !result.ByAddon {
				t.Errorf("inconclusive: %v, want %v; by addon: %t", inconclusive, test.inconclusive, result.ByAddon)
			}
		})
	}
	t.Run("a ClusterManagementAddOn that is being deleted", func(t *testing.T) {
		s := newScene(t, append(installing("p", "c"), goingStrategy())...)
		apitest.Must(t, s.cache.Delete(t.Context(), ocmtest.Addon("c")))
		s.settlesAs(rule.No)
		s.copies(rule.No)
	})
}

// The work for a slice of an install Placement does not grow with the pairs that wait: these are
// enqueued, and early subscribers notified, once for many slices.
func TestAnInstallSliceLeadsToNoPair(t *testing.T) {
	objs := installing("p", around(2500, 2500)...)
	s := newScene(t, append(objs, strategy(placementsType, "p"))...)
	apitest.Must(t, s.cache.Delete(t.Context(), ocmtest.Addon("c")))
	s.settlesAs(rule.Unknown)
	var notified []string
	s.SubscribeEarly(func(pair types.NamespacedName) { notified = append(notified, "early "+pair.String()) })
	changes := map[string]int{}
	s.SubscribeInstall(func(namespace string) { changes[namespace]++ })
	for _, obj := range objs {
		route := s.Routes(nothing{}).PairsForDecision
		if _, ok := obj.(*clusterv1beta1.Placement); ok {
			route = s.Routes(nothing{}).PairsAwaiting
		}
		if got := foundBy(route(t.Context(), obj)); len(got) > 0 {
			t.Errorf("%s leads to %v", obj.GetName(), got)
		}
	}
	if diff := cmp.Diff(map[string]int{"install": len(objs)}, changes); diff != "" || len(notified) > 0 {
		t.Errorf("changes (-want +got):\n%snotified early: %v", diff, notified)
	}
	s.AskAgain(func(pair types.NamespacedName) { notified = append(notified, pair.String()) })
	if diff := cmp.Diff([]string{"early ns/c", "ns/c"}, notified); diff != "" {
		t.Errorf("notified (-want +got):\n%s", diff)
	}
}

// While the hub does not serve ClusterProfiles, copies follow the install strategy, too, and do
// not wait for two minutes.
func TestCopiesFollowTheInstallStrategyWithoutProfiles(t *testing.T) {
	s := newScene(t, append(installing("p", "c"), strategy(placementsType, "p"))...)
	*s.cache.missingCRD = rule.ProfileCRD
	apitest.Must(t, s.cache.Delete(t.Context(), ocmtest.Addon("c")))
	s.copies(rule.Unknown)
	var notified []types.NamespacedName
	s.SubscribeEarly(func(pair types.NamespacedName) { notified = append(notified, pair) })
	s.SubscribeInstall(func(string) { s.AskAgain(func(types.NamespacedName) {}) })
	manual := strategy("Manual")
	manual.Generation = 1
	s.replace(manual)
	kube.OnEvent(s.onInstallStrategy).OnUpdate(strategy(placementsType, "p"), manual)
	if diff := cmp.Diff([]types.NamespacedName{s.pair}, notified); diff != "" {
		t.Errorf("notified early (-want +got):\n%s", diff)
	}
	s.copies(rule.No)
}

func TestChangesOfTheInstallStrategyNotifySubscribers(t *testing.T) {
	s := newScene(t)
	var notified []string
	s.SubscribeInstall(func(namespace string) { notified = append(notified, namespace) })
	handler := kube.OnEvent(s.onInstallStrategy)
	by, manual := strategy(placementsType, "p"), strategy("Manual")
	manual.Generation = 1
	for name, test := range map[string]struct {
		change func()
		want   []string
	}{
		"created":         {func() { handler.OnAdd(by, false) }, []string{"install"}},
		"made Manual":     {func() { handler.OnUpdate(by, manual) }, []string{"install"}},
		"unchanged":       {func() { handler.OnUpdate(by, by) }, nil},
		"deleted":         {func() { handler.OnDelete(by) }, []string{"install"}},
		"seen to be gone": {func() { handler.OnDelete(toolscache.DeletedFinalStateUnknown{Obj: by}) }, []string{"install"}},
	} {
		t.Run(name, func(t *testing.T) {
			notified = nil
			test.change()
			if diff := cmp.Diff(test.want, notified); diff != "" {
				t.Errorf("notified of namespaces (-want +got):\n%s", diff)
			}
		})
	}
}

func TestInstallRisks(t *testing.T) {
	grouped := installing("grouped", "a")
	grouped[0].(*clusterv1beta1.Placement).Spec.DecisionStrategy.GroupStrategy.DecisionGroups =
		[]clusterv1beta1.DecisionGroup{{GroupName: "canary"}}
	objs := slices.Concat(grouped, installing("large", around(100, 1)...), installing("small", around(50, 50)...),
		installing("unused", around(100, 1)...))
	for name, test := range map[string]struct {
		strategy  *addonv1beta1.ClusterManagementAddOn
		namespace string
		want      []PlacementRisk
	}{
		"of the strategy": {
			strategy(placementsType, "grouped", "large", "small", "missing"), "install",
			[]PlacementRisk{{Name: "grouped", Grouped: true}, {Name: "large"}},
		},
		"of another namespace": {strategy(placementsType, "large"), "ns", nil},
		"while it is Manual":   {strategy("Manual", "large"), "install", nil},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScene(t, append(objs, test.strategy)...)
			got, err := s.InstallRisks(t.Context(), test.namespace)
			if diff := cmp.Diff(test.want, got); diff != "" || err != nil {
				t.Errorf("risks (-want +got):\n%s%v", diff, err)
			}
		})
	}
}
