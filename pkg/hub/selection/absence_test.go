package selection

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"

	"open-cluster-management.io/cluster-inventory-addon/internal/apitest"
	"open-cluster-management.io/cluster-inventory-addon/internal/apitest/ocmtest"
	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/selection/rule"
	"open-cluster-management.io/cluster-inventory-addon/pkg/kube/watch"
)

// choosing returns a publishing Placement that chooses clusters, as OCM leaves it.
func choosing(name string, clusters ...string) []client.Object {
	objs := []client.Object{ocmtest.Publishing(name, len(clusters))}
	decisions := ocmtest.Slices(name, clusters...)
	for i := range decisions {
		objs = append(objs, &decisions[i])
	}
	return objs
}

// around returns names that sort before and behind "c".
func around(before, behind int) []string {
	var names []string
	for i := range before {
		names = append(names, fmt.Sprintf("a%04d", i))
	}
	for i := range behind {
		names = append(names, fmt.Sprintf("d%04d", i))
	}
	return names
}

// copies compares what the rule says about a copy of a token.
func (s *scene) copies(want rule.Answer) {
	s.t.Helper()
	got, err := s.Selected(s.t.Context(), s.pair, true)
	if err != nil || got.Answer != want {
		s.t.Errorf("selected: %+v, %v; want answer %d", got, err, want)
	}
}

// absent lets a cluster be absent for as long as any absence must last.
func (s *scene) absent() {
	s.t.Helper()
	s.settles(true, settleTime)
	s.later(settleTime)
}

func (s *scene) replace(objs ...client.Object) {
	s.t.Helper()
	for _, obj := range objs {
		apitest.Must(s.t, client.IgnoreNotFound(s.cache.Delete(s.t.Context(), obj)))
		obj.SetResourceVersion("")
		apitest.Must(s.t, s.cache.Create(s.t.Context(), obj))
		if decision, ok := obj.(*clusterv1beta1.PlacementDecision); ok {
			s.update(decision)
		}
	}
}

func TestAClusterBetweenTwoSlicesIsKept(t *testing.T) {
	t.Run("for two minutes, its copies for ten seconds", func(t *testing.T) {
		s := newScene(t, choosing("p", around(100, 50)...)...)
		s.absent()
		s.settlesAs(rule.Unknown)
		s.copies(rule.Unknown)
		s.later(9 * time.Second)
		s.settlesAs(rule.Unknown)
		s.copies(rule.No)
		s.later(2*time.Minute - 11*time.Second)
		s.settlesAs(rule.Unknown)
		s.later(time.Second)
		s.settlesAs(rule.No)
		o, result, err := s.Observe(t.Context(), s.pair)
		apitest.Must(t, err)
		result, _, err = s.Settle(t.Context(), s.pair, o, result, true)
		apitest.Must(t, err)
		if !slices.Equal(result.Inconclusive, []types.NamespacedName{{Namespace: "ns", Name: "p"}}) {
			t.Errorf("inconclusive: %v", result.Inconclusive)
		}
	})
	t.Run("for longer if the hub names it in a slice that the cache does not show", func(t *testing.T) {
		s := newScene(t, choosing("p", around(100, 50)...)...)
		s.absent()
		s.live.Client = newFakeCache(choosing("p", append(around(100, 50), "c")...)...).Client
		s.Rule.live.reader = s.live
		s.later(9 * time.Second)
		s.copies(rule.Unknown)
		s.later(2 * time.Minute)
		s.settlesAs(rule.Unknown)
		s.live.Client = newFakeCache(choosing("p", around(100, 50)...)...).Client
		s.Rule.live.reader = s.live
		s.later(2 * time.Second)
		s.copies(rule.No)
		s.settlesAs(rule.No)
	})
	t.Run("also while the hub does not serve ClusterProfiles", func(t *testing.T) {
		s := newScene(t, choosing("p", around(100, 50)...)...)
		*s.cache.missingCRD = rule.ProfileCRD
		s.absent()
		got, err := s.Selected(t.Context(), s.pair, true)
		if err != nil || got.Answer != rule.Unknown || got.Again != 9*time.Second {
			t.Errorf("%+v, %v: no retry in time", got, err)
		}
		s.later(9 * time.Second)
		s.copies(rule.No)
	})
	t.Run("until it turns up", func(t *testing.T) {
		s := newScene(t, choosing("p", around(100, 50)...)...)
		s.absent()
		s.settlesAs(rule.Unknown)
		s.later(5 * time.Second)
		second := ocmtest.Slice("p-decision-2", "p", append([]string{"c"}, around(0, 50)...)...)
		s.replace(second)
		s.Routes(nothing{}).PairsForDecision(t.Context(), second)
		if o, result, err := s.Observe(t.Context(), s.pair); err != nil || result.Answer != rule.Yes {
			t.Errorf("%+v, %v, %v", o.Placements, result, err)
		}
		if s.settling.absent.Len() > 0 {
			t.Errorf("remembered: %v", s.settling.absent.Keys())
		}
	})
	t.Run("not if one slice reaches over it", func(t *testing.T) {
		s := newScene(t, choosing("p", around(50, 100)...)...)
		s.absent()
		s.settlesAs(rule.No)
		s.copies(rule.No)
	})
	t.Run("not beyond that because a write of another slice was forgotten", func(t *testing.T) {
		for _, selected := range []int{149, 151} {
			objs := choosing("p", around(50, 100)...)
			objs[0].(*clusterv1beta1.Placement).Status.NumberOfSelectedClusters = int32(selected)
			s := newScene(t, objs...)
			s.absent()
			s.settlesAs(rule.Unknown)
			s.copies(rule.Unknown)
			s.later(9 * time.Second)
			s.copies(rule.No)
			s.settlesAs(rule.Unknown)
			s.later(2*time.Minute - 10*time.Second)
			s.settlesAs(rule.No)
		}
	})
	t.Run("nor because slices list clusters that are no longer selected", func(t *testing.T) {
		objs := choosing("p", around(100, 50)...)
		objs[0].(*clusterv1beta1.Placement).Status.NumberOfSelectedClusters--
		s := newScene(t, objs...)
		s.absent()
		s.settlesAs(rule.Unknown)
		s.later(9 * time.Second)
		s.copies(rule.No)
		s.later(2*time.Minute - 10*time.Second)
		s.settlesAs(rule.No)
	})
	t.Run("but while slices lack clusters that are selected", func(t *testing.T) {
		objs := choosing("p", around(100, 50)...)
		objs[0].(*clusterv1beta1.Placement).Status.NumberOfSelectedClusters++
		s := newScene(t, objs...)
		s.settles(true, settleTime)
		s.later(time.Hour)
		s.settlesAs(rule.Unknown)
		s.copies(rule.Unknown)
	})
	t.Run("with decision groups, wherever it was", func(t *testing.T) {
		objs := choosing("p", around(10, 10)...)
		objs[0].(*clusterv1beta1.Placement).Spec.DecisionStrategy.GroupStrategy.DecisionGroups =
			[]clusterv1beta1.DecisionGroup{{GroupName: "canary"}}
		s := newScene(t, objs...)
		s.absent()
		s.settlesAs(rule.Unknown)
		s.later(2 * time.Minute)
		s.settlesAs(rule.No)
	})
}

// counter counts lists and returns other objects than the cache.
type counter struct {
	client.Reader
	lists map[string]int
}

func (c counter) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	c.lists[fmt.Sprintf("%T", list)]++
	return c.Reader.List(ctx, list, opts...)
}

func TestSlicesAreReadLive(t *testing.T) {
	t.Run("and what they name counts", func(t *testing.T) {
		s := newScene(t, choosing("p", around(50, 100)...)...)
		s.live.Client = newFakeCache(choosing("p", append(around(50, 100), "c")...)...).Client
		s.Rule.live.reader = s.live
		s.absent()
		s.settlesAs(rule.Unknown)
	})
	t.Run("and what does not add up counts", func(t *testing.T) {
		s := newScene(t, choosing("p", around(50, 100)...)...)
		objs := choosing("p", around(50, 100)...)
		objs[0].(*clusterv1beta1.Placement).Status.NumberOfSelectedClusters++
		s.live.Client = newFakeCache(objs...).Client
		s.Rule.live.reader = s.live
		s.absent()
		s.settlesAs(rule.Unknown)
	})
	t.Run("once for all that leave together", func(t *testing.T) {
		s := newScene(t, choosing("p", around(50, 100)...)...)
		reads := counter{s.live, map[string]int{}}
		s.Rule.live.reader = reads
		pair := s.pair
		for i := range 30 {
			cluster := ocmtest.ClusterWith(fmt.Sprintf("b%d", i), ocmtest.InSet("s"))
			cluster.Spec.HubAcceptsClient = true
			s.replace(cluster, ocmtest.Addon(cluster.Name))
			s.pair.Name = cluster.Name
			s.settles(true, settleTime)
		}
		s.later(settleTime)
		for i := range 30 {
			s.pair.Name = fmt.Sprintf("b%d", i)
			s.settlesAs(rule.No)
			s.copies(rule.No)
		}
		s.pair = pair
		for kind, n := range reads.lists {
			if n != 1 {
				t.Errorf("%d lists of %s", n, kind)
			}
		}
	})
	t.Run("but not those of a Placement of one slice", func(t *testing.T) {
		s := newScene(t, choosing("p", around(50, 49)...)...)
		reads := counter{s.live, map[string]int{}}
		s.Rule.live.reader = reads
		s.absent()
		s.settlesAs(rule.No)
		if len(reads.lists) > 0 {
			t.Errorf("lists: %v", reads.lists)
		}
	})
}

// An absence continues while the decisions do not add up for a moment.
func TestLeavingWhileSlicesDoNotAddUp(t *testing.T) {
	s := newScene(t, choosing("p", around(100, 50)...)...)
	p := types.NamespacedName{Namespace: "ns", Name: "p"}
	leaving := func(selected int) []string {
		t.Helper()
		placement := ocmtest.Publishing("p", selected)
		s.replace(placement)
		choice, err := s.Choice(t.Context(), p)
		apitest.Must(t, err)
		left, _, err := s.Leaving(t.Context(), p, choice, []string{"c"})
		apitest.Must(t, err)
		return left
	}
	leaving(150)
	s.later(time.Minute)
	leaving(151)
	s.later(time.Minute)
	if left := leaving(150); !slices.Equal(left, []string{"c"}) {
		t.Errorf("left after two minutes: %v", left)
	}
}

func TestLeavingBetweenSlices(t *testing.T) {
	s := newScene(t, choosing("p", around(100, 50)...)...)
	s.leaves("c", "", time.Second)
	s.later(time.Second)
	s.leaves("c", "", 2*time.Minute-time.Second)
	s.leaves("cz", "", time.Second)
	s.later(time.Second)
	s.leaves("cz", "z", 2*time.Minute-2*time.Second) // z sorts behind them all
	s.later(2 * time.Minute)
	s.leaves("c", "c", 0)
}

// strategy returns a ClusterManagementAddOn that installs by Placements of the namespace
// install.
func strategy(kind string, placements ...string) *addonv1beta1.ClusterManagementAddOn {
	definition := &addonv1beta1.ClusterManagementAddOn{ObjectMeta: metav1.ObjectMeta{Name: "cluster-inventory"}}
	definition.Spec.InstallStrategy.Type = kind
	for _, name := range placements {
		definition.Spec.InstallStrategy.Placements = append(definition.Spec.InstallStrategy.Placements,
			addonv1beta1.PlacementStrategy{PlacementRef: addonv1beta1.PlacementRef{Namespace: "install", Name: name}})
	}
	return definition
}

// installing returns an install Placement that chooses clusters.
func installing(name string, clusters ...string) []client.Object {
	objs := choosing(name, clusters...)
	for _, obj := range objs {
		obj.SetNamespace("install")
		if name != "" && obj.GetLabels()["inventory.open-cluster-management.io/publish"] != "" {
			obj.SetLabels(nil)
		}
	}
	return objs
}

func TestAnAddonThatOCMDeletes(t *testing.T) {
	const placements = "Placements"
	for name, test := range map[string]struct {
		objs   []client.Object
		change func(s *scene)
		keeps  bool
		named  bool // so that copies are kept as long as profiles
	}{
		"is kept if a slice names the cluster": {
			objs: append(installing("p", append(around(1, 1), "c")...), strategy(placements, "p")), keeps: true, named: true,
		},
		"is kept if one of two Placements names the cluster": {
			objs: append(append(installing("p", "a"), installing("q", "c")...), strategy(placements, "p", "q")), keeps: true,
			named: true,
		},
		"is kept between two slices": {
			objs: append(installing("p", around(100, 50)...), strategy(placements, "p")), keeps: true,
		},
		"is kept while decisions do not add up": {
			objs: append(installing("p", "a"), strategy(placements, "p")), keeps: true,
			change: func(s *scene) {
				p := installing("p")[0].(*clusterv1beta1.Placement)
				p.Status.NumberOfSelectedClusters = 2
				s.replace(p)
			},
		},
		"is followed if the cluster left a Placement of one slice": {
			objs: append(installing("p", around(10, 10)...), strategy(placements, "p")),
		},
		"is followed if one slice of several reaches over the cluster": {
			objs: append(installing("p", around(50, 100)...), strategy(placements, "p")),
		},
		"is followed if the install Placement has an empty slice": {
			objs: append(installing("p"), strategy(placements, "p")),
		},
		"is followed without an install strategy": {
			objs: append(installing("p", "c"), strategy("Manual", "p")),
		},
		"is followed if nothing defines the addon": {objs: installing("p", "c")},
		"is followed if the cluster is not accepted": {
			objs: append(installing("p", "c"), strategy(placements, "p")),
			change: func(s *scene) {
				cluster := ocmtest.ClusterWith("c", ocmtest.InSet("s"))
				s.replace(cluster)
			},
		},
		"is followed if the set is not bound": {
			objs: append(installing("p", "c"), strategy(placements, "p")),
			change: func(s *scene) {
				apitest.Must(s.t, s.cache.Delete(s.t.Context(), ocmtest.Binding("ns", "s")))
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScene(t, test.objs...)
			s.settlesAs(rule.Yes)
			apitest.Must(t, s.cache.Delete(t.Context(), ocmtest.Addon("c")))
			if test.change != nil {
				test.change(s)
			}
			if !test.keeps {
				s.settlesAs(rule.No)
				s.copies(rule.No)
				return
			}
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
			s.settlesAs(rule.No)
			s.copies(rule.No)
		})
	}
	t.Run("and whose install Placement is replaced is kept for ten seconds", func(t *testing.T) {
		s := newScene(t, strategy(placements, "p"))
		apitest.Must(t, s.cache.Delete(t.Context(), ocmtest.Addon("c")))
		s.settlesAs(rule.Unknown)
		s.later(10 * time.Second)
		s.settlesAs(rule.No)
	})
}

func TestReinstalls(t *testing.T) {
	for name, test := range map[string]struct {
		objs       []client.Object
		want, last rule.Answer
	}{
		"named":                   {append(installing("p", "c"), strategy("Placements", "p")), rule.Yes, rule.Yes},
		"between two slices":      {append(installing("p", around(100, 50)...), strategy("Placements", "p")), rule.Unknown, rule.No},
		"removed from one slice":  {append(installing("p", "a"), strategy("Placements", "p")), rule.No, rule.No},
		"removed from two slices": {append(installing("p", around(50, 100)...), strategy("Placements", "p")), rule.No, rule.No},
		"no install strategy":     {append(installing("p", "c"), strategy("Manual", "p")), rule.No, rule.No},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScene(t, test.objs...)
			answers := func(when string, want rule.Answer) {
				t.Helper()
				if got, err := s.Reinstalls(t.Context(), goingAddon("c")); err != nil || got != want {
					t.Errorf("%s: %d, %v, want %d", when, got, err, want)
				}
			}
			answers("at once", test.want)
			s.later(2*time.Minute - 1)
			answers("almost two minutes later", test.want)
			s.later(1)
			answers("two minutes later", test.last)
			s.AskAgain(func(pair types.NamespacedName) { t.Errorf("asks for %s, which is no pair", pair) })
		})
	}
}

func TestAReplacedPlacementWidensNothing(t *testing.T) {
	vanish := func(s *scene) *clusterv1beta1.Placement {
		p := ocmtest.Publishing("p", 1)
		apitest.Must(s.t, s.cache.Delete(s.t.Context(), p))
		apitest.Must(s.t, s.cache.Delete(s.t.Context(), ocmtest.Slice("p-decision-1", "p")))
		s.Routes(nothing{}).PairsForPlacement(s.t.Context(), p)
		return p
	}
	t.Run("nor narrows it", func(t *testing.T) {
		s := newScene(t, append(choosing("p", "c"), choosing("q", "d")...)...)
		s.settlesAs(rule.Yes)
		vanish(s)
		s.absent()
		s.settlesAs(rule.Unknown)
		s.copies(rule.Unknown)
		s.later(9 * time.Second)
		s.settlesAs(rule.No)
		s.copies(rule.No)
	})
	t.Run("nor where a Placement is required", func(t *testing.T) {
		s := newScene(t, choosing("p", "c")...)
		s.annotate(requiring)
		s.settlesAs(rule.Yes)
		vanish(s)
		s.absent()
		s.settlesAs(rule.Unknown)
		s.later(9 * time.Second)
		s.settlesAs(rule.No)
	})
	t.Run("nor while it is being recreated", func(t *testing.T) {
		s := newScene(t, choosing("p", "d")...)
		s.absent()
		s.settlesAs(rule.No)
		p := vanish(s)
		o, result, err := s.Observe(t.Context(), s.pair)
		apitest.Must(t, err)
		s.replace(p) // between the observation and what is done about it
		if result, _, err = s.Settle(t.Context(), s.pair, o, result, true); err != nil || result.Answer != rule.Unknown {
			t.Errorf("%+v, %v", result, err)
		}
	})
	t.Run("also if the manager starts meanwhile", func(t *testing.T) {
		for name, test := range map[string]struct {
			annotations map[string]string
			objs        []client.Object
			then        rule.Answer
		}{
			"where others have profiles": {nil, []client.Object{ocmtest.ForeignProfile("ns", "other")}, rule.Yes},
			"where a profile stands":     {requiring, nil, rule.No},
		} {
			t.Run(name, func(t *testing.T) {
				s := newScene(t, test.objs...)
				if test.annotations != nil {
					s.annotate(test.annotations)
				}
				s.prepared.Store(false)
				apitest.Must(t, s.Prepare(t.Context()))
				s.settlesAs(rule.Unknown)
				key := types.NamespacedName{Namespace: "ns", Name: "p"}
				if c, err := s.Choice(t.Context(), key); err != nil || c.Answer != rule.Unknown {
					t.Errorf("its decisions: %+v, %v", c.Result, err)
				}
				s.later(10 * time.Second)
				s.settlesAs(test.then)
			})
		}
	})
	t.Run("also if the manager starts meanwhile, and another publishes", func(t *testing.T) {
		s := newScene(t, choosing("q", "d")...)
		s.prepared.Store(false)
		apitest.Must(t, s.Prepare(t.Context()))
		s.absent()
		s.settlesAs(rule.Unknown)
		s.copies(rule.Unknown)
		s.later(9 * time.Second)
		s.settlesAs(rule.No)
	})
	t.Run("also if it vanishes before any pair is decided", func(t *testing.T) {
		s := newScene(t, choosing("p", "d")...)
		s.prepared.Store(false)
		apitest.Must(t, s.Prepare(t.Context()))
		s.later(15 * time.Second)
		vanish(s)
		s.settlesAs(rule.Unknown)
	})
	t.Run("which delays no profile of a new namespace", func(t *testing.T) {
		s := newScene(t)
		s.prepared.Store(false)
		apitest.Must(t, s.Prepare(t.Context()))
		s.settlesAs(rule.Yes)
	})
	t.Run("and its successor counts when it has decided", func(t *testing.T) {
		s := newScene(t, choosing("p", "d")...)
		s.settles(true, settleTime)
		s.later(settleTime)
		s.settlesAs(rule.No)
		p := vanish(s)
		s.settlesAs(rule.Unknown)
		s.copies(rule.Unknown)
		s.later(5 * time.Second)
		successor := p.DeepCopy()
		successor.UID, successor.Status = "successor", clusterv1beta1.PlacementStatus{}
		s.replace(successor)
		s.later(10 * time.Second)
		s.copies(rule.Unknown) // not scheduled
		s.replace(choosing("p", "d")...)
		s.settles(true, settleTime)
		s.later(settleTime)
		s.settlesAs(rule.No)
	})
	t.Run("but a label that was taken off counts at once", func(t *testing.T) {
		s := newScene(t, choosing("p", "d")...)
		s.settles(true, settleTime)
		p := ocmtest.Publishing("p", 1)
		p.Labels = nil
		s.replace(p)
		s.Routes(nothing{}).PairsForPlacement(t.Context(), p)
		s.settlesAs(rule.Yes)
	})
}

// requiring are the annotations of a Namespace that requires a Placement.
var requiring = map[string]string{"inventory.open-cluster-management.io/require-placement": "true"}

func (s *scene) annotate(annotations map[string]string) {
	s.t.Helper()
	namespace := &metav1.PartialObjectMetadata{}
	namespace.SetGroupVersionKind(metav1.SchemeGroupVersion.WithKind("Namespace"))
	namespace.APIVersion = "v1"
	apitest.Must(s.t, s.cache.Client.Get(s.t.Context(), types.NamespacedName{Name: "ns"}, namespace))
	before := namespace.DeepCopy()
	namespace.Annotations = annotations
	apitest.Must(s.t, s.cache.Patch(s.t.Context(), namespace, client.MergeFrom(before)))
}

// A slow write of a slice, or one that OCM forgets, takes nothing from clusters that are
// chosen before and after, whichever write it is.
func TestSlowWritesOfSlices(t *testing.T) {
	fleet := ocmtest.Numbered(1, 250)
	for name, change := range map[string]struct{ before, after []string }{
		"a cluster joins in front":         {fleet, append([]string{"a"}, fleet...)},
		"a cluster leaves in front":        {append([]string{"a"}, fleet...), fleet},
		"many join in front":               {fleet, append(around(120, 0), fleet...)},
		"one joins, the last leaves":       {fleet, append([]string{"a"}, fleet[:249]...)},
		"one joins last, the first leaves": {append([]string{"a"}, fleet[:249]...), fleet},
	} {
		old, now := ocmtest.Slices("p", change.before...), ocmtest.Slices("p", change.after...)
		for _, gap := range []time.Duration{1500 * time.Millisecond, 5 * time.Second, 2*time.Minute - 1} {
			for written := 1; written < max(len(old), len(now)); written++ {
				t.Run(fmt.Sprintf("%s, %d written, %s", name, written, gap), func(t *testing.T) {
					mixture := slices.Clone(now[:min(written, len(now))])
					mixture = append(mixture, old[min(written, len(old)):]...)
					selected := len(rule.ChosenClusters(mixture)) // as the status may happen to say
					objs := []client.Object{ocmtest.Publishing("p", selected)}
					for i := range mixture {
						objs = append(objs, mixture[i].DeepCopy())
					}
					s := newScene(t, objs...)
					s.absentAre(rule.ChosenClusters(mixture), change.before, change.after, gap)
				})
			}
		}
	}
}

// absentAre checks that clusters which are in no slice, but chosen before and after, lose
// nothing for as long as a write takes.
func (s *scene) absentAre(present map[string]rule.Group, before, after []string, gap time.Duration) {
	s.t.Helper()
	var moving []string
	for _, cluster := range after {
		if _, ok := present[cluster]; !ok && slices.Contains(before, cluster) {
			moving = append(moving, cluster)
			object := ocmtest.ClusterWith(cluster, ocmtest.InSet("s"))
			object.Spec.HubAcceptsClient = true
			s.replace(object, ocmtest.Addon(cluster))
			s.pair.Name = cluster
			s.settles(true, settleTime)
		}
	}
	s.later(gap)
	for _, cluster := range moving {
		s.pair.Name = cluster
		s.settlesAs(rule.Unknown)
		if gap < longestMoveOfCopies {
			s.copies(rule.Unknown)
		}
	}
	if gap < rule.LongestMove-1 {
		return
	}
	s.later(1)
	for _, cluster := range moving { // OCM has forgotten the write
		s.pair.Name = cluster
		s.settlesAs(rule.No)
	}
}

// While the CRD of Placements is restored, OCM deletes addons. This must not begin the time for which a Placement
// may be missing, because afterward consumers need that time.
func TestAnAddonThatGoesMakesNoPlacementCountAsDeleted(t *testing.T) {
	other := ocmtest.ClusterWith("d", ocmtest.InSet("s"))
	other.Spec.HubAcceptsClient = true
	s := newScene(t, append(choosing("p", "c"), other, ocmtest.Addon("d"))...)
	s.settlesAs(rule.Yes)
	*s.cache.anewCRD, *s.live.anewCRD = rule.PlacementCRD, rule.PlacementCRD
	for _, object := range []client.Object{
		ocmtest.Publishing("p", 1), ocmtest.Slice("p-decision-1", "p"), ocmtest.Addon("c"),
	} {
		apitest.Must(t, s.cache.Delete(t.Context(), object))
	}
	_, _, err := s.definitions.Refresh(t.Context(), s.cache, rule.PlacementCRD)
	apitest.Must(t, err)
	s.settlesAs(rule.No) // nothing installs the addon
	s.later(watch.RestoreTime + time.Second)
	s.pair.Name = "d"
	s.settlesAs(rule.Unknown)
	s.later(10 * time.Second)
	s.settlesAs(rule.Yes)
}
