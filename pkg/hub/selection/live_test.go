package selection

import (
	"context"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"open-cluster-management.io/cluster-inventory-addon/internal/apitest"
	"open-cluster-management.io/cluster-inventory-addon/internal/apitest/ocmtest"
	"open-cluster-management.io/cluster-inventory-addon/pkg/contract"
	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/selection/rule"
)

// A manager may start on an API server that is cut off from etcd and lists what it had
// before: what is missing there may exist.
func TestACacheThatLagsRemovesNothingThatExists(t *testing.T) {
	placements := choosing("p", "c", "d")
	for name, missing := range map[string]client.Object{
		"cluster":   ocmtest.ClusterWith("c", ocmtest.InSet("s")),
		"addon":     ocmtest.Addon("c"),
		"binding":   ocmtest.Binding("ns", "s"),
		"decisions": ocmtest.Slice("p-decision-1", "p"),
	} {
		t.Run(name, func(t *testing.T) {
			var objs []client.Object
			if name == "decisions" {
				objs = choosing("p", "c", "d")
			}
			s := newScene(t, objs...)
			*s.cache.version = "5" // the API server has come to 7
			whole := newScene(t, objs...)
			s.Rule.live.reader = whole.cache
			apitest.Must(t, s.cache.Delete(t.Context(), missing))
			if name == "decisions" { // an earlier state
				p := ocmtest.Publishing("p", 1)
				s.replace(p, &ocmtest.Slices("p", "d")[0])
				s.absent()
			}
			s.settlesAs(rule.Unknown)
			s.copies(rule.Unknown)
			if got, err := s.Selected(t.Context(), s.pair, true); err != nil || !got.Untrusted {
				t.Errorf("a rotated token may be written: %+v, %v", got, err)
			}

			// It was deleted before the manager started: live reads say so, too.
			apitest.Must(t, whole.cache.Delete(t.Context(), missing))
			if name == "decisions" {
				whole.replace(ocmtest.Publishing("p", 1), &ocmtest.Slices("p", "d")[0])
			}
			s.later(2 * time.Second)
			s.settlesAs(rule.No)
			s.copies(rule.No)
		})
	}
	t.Run("and catches up after it was read", func(t *testing.T) {
		s := newScene(t)
		*s.cache.version = "5"
		s.Rule.live.reader = newScene(t).cache
		apitest.Must(t, s.cache.Delete(t.Context(), ocmtest.ClusterWith("c", ocmtest.InSet("s"))))
		o, result, err := s.Observe(t.Context(), s.pair)
		*s.cache.version = "8"
		if err != nil || result.Answer != rule.No {
			t.Fatalf("%+v, %v", result, err)
		}
		settled, wait, err := s.Settle(t.Context(), s.pair, o, result, true)
		if err != nil || wait > 0 || settled.Answer != rule.Unknown || settled.Again == 0 {
			t.Errorf("%+v after %s, %v; want to look again", settled, wait, err)
		}
	})
	for name, remove := range map[string]func(s *scene){
		"a Placement": func(s *scene) {
			apitest.Must(t, s.cache.Delete(t.Context(), ocmtest.Publishing("p", 2)))
		},
		"a Placement's label": func(s *scene) {
			unlabeled := ocmtest.Publishing("p", 2)
			unlabeled.Labels = nil
			s.replace(unlabeled)
		},
		"a Placement's binding": func(s *scene) {
			apitest.Must(t, s.cache.Delete(t.Context(), ocmtest.Binding("ns", "s")))
		},
	} {
		t.Run(name, func(t *testing.T) {
			s, whole := newScene(t, choosing("p", "c")...), newScene(t, choosing("p", "c")...)
			*s.cache.version = "5"
			s.Rule.live.reader = whole.cache
			chosen := func(want rule.Answer) {
				t.Helper()
				choice, err := s.Choice(t.Context(), client.ObjectKeyFromObject(placements[0]))
				if err != nil || choice.Answer != want || want == rule.Unknown && choice.Again == 0 {
					t.Errorf("%+v, %v; want %d", choice.Result, err, want)
				}
			}
			remove(s)
			chosen(rule.Unknown)
			s.later(time.Minute)
			chosen(rule.Unknown)
			remove(whole)
			s.later(time.Minute)
			chosen(rule.No)
		})
	}
	t.Run("a Placement with a name that no label can have", func(t *testing.T) {
		s := newScene(t)
		*s.cache.version = "5"
		s.later(time.Minute)
		choice, err := s.Choice(t.Context(), types.NamespacedName{Namespace: "ns", Name: strings.Repeat("p", 70)})
		if err != nil || choice.Answer != rule.No {
			t.Errorf("%+v, %v", choice.Result, err)
		}

		choosesNone := ocmtest.Publishing(strings.Repeat("p", 70), 0)
		s = newScene(t, choosesNone)
		*s.cache.version = "5"
		s.Rule.live.reader = strict{newScene(t, choosesNone.DeepCopy()).cache}
		s.absent()
		s.settlesAs(rule.No)
	})
	t.Run("until it has caught up", func(t *testing.T) {
		s := newScene(t)
		*s.cache.version = "5"
		reads := counter{newScene(t).cache, map[string]int{}}
		s.Rule.live.reader = reads
		apitest.Must(t, s.cache.Delete(t.Context(), ocmtest.ClusterWith("c", nil)))
		s.settlesAs(rule.Unknown)
		*s.cache.version = "7"
		clear(reads.lists)
		s.settlesAs(rule.No)
		*s.cache.version = "5" // never asked again
		s.settlesAs(rule.No)
		if len(reads.lists) > 0 {
			t.Errorf("lists: %v", reads.lists)
		}
	})
}

// strict refuses labels that cannot exist, as an API server does.
type strict struct{ client.Reader }

func (s strict) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	if selector := (&client.ListOptions{}).ApplyOptions(opts).LabelSelector; selector != nil {
		if _, err := labels.Parse(selector.String()); err != nil {
			return err
		}
	}
	return s.Reader.List(ctx, list, opts...)
}

// TestAnAddonThatWasCreatedAgainIsReadLive deletes an addon, which the install strategy creates again
// before the strategy ends, and shows the addon's creation last.
func TestAnAddonThatWasCreatedAgainIsReadLive(t *testing.T) {
	s, whole := newScene(t), newScene(t)
	s.Rule.live.reader = whole.cache
	for _, hub := range []*scene{s, whole} {
		apitest.Must(t, hub.cache.Delete(t.Context(), ocmtest.Addon("c")))
	}
	apitest.Must(t, whole.cache.Create(t.Context(), ocmtest.Addon("c")))
	s.settlesAs(rule.Unknown)
	s.copies(rule.Unknown)

	apitest.Must(t, whole.cache.Delete(t.Context(), ocmtest.Addon("c")))
	s.later(time.Second)
	s.settlesAs(rule.No)
	s.copies(rule.No)
}

// TestCachesOfDifferentAges moves a cluster to a set that was bound before, and shows the move
// first: bindings and clusters have separate watches.
func TestCachesOfDifferentAges(t *testing.T) {
	s := newScene(t, ocmtest.ExclusiveSet("t"))
	whole := newScene(t, ocmtest.ExclusiveSet("t"))
	s.Rule.live.reader, s.granting.reader = whole.cache, whole.cache
	moved := ocmtest.ClusterWith("c", ocmtest.InSet("t"))
	moved.Spec.HubAcceptsClient = true
	apitest.Must(t, whole.cache.Create(t.Context(), ocmtest.Binding("ns", "t")))
	for _, hub := range []*scene{s, whole} {
		hub.replace(moved.DeepCopy())
	}
	s.settlesAs(rule.Unknown)
	s.copies(rule.Unknown)

	s.later(time.Second)
	apitest.Must(t, s.cache.Create(t.Context(), ocmtest.Binding("ns", "t")))
	s.settlesAs(rule.Yes)

	// It was unbound again.
	for _, hub := range []*scene{s, whole} {
		apitest.Must(t, hub.cache.Delete(t.Context(), ocmtest.Binding("ns", "t")))
	}
	s.later(time.Second)
	s.settlesAs(rule.No)
	s.copies(rule.No)
}

// TestNothingIsGrantedByCachesOfDifferentAges moves a cluster to a set that was unbound before, and
// shows the move first.
func TestNothingIsGrantedByCachesOfDifferentAges(t *testing.T) {
	s := newScene(t, ocmtest.ExclusiveSet("t"), ocmtest.Binding("ns", "t"))
	whole := newScene(t, ocmtest.ExclusiveSet("t"))
	s.granting.reader = whole.cache
	pair := types.NamespacedName{Namespace: "ns", Name: "c"}
	moved := ocmtest.ClusterWith("c", ocmtest.InSet("t"))
	moved.Spec.HubAcceptsClient = true
	for _, hub := range []*scene{s, whole} {
		hub.replace(moved.DeepCopy())
	}
	grants := func(want rule.Answer) {
		t.Helper()
		got, err := s.ConfirmYes(t.Context(), pair)
		apitest.Must(t, err)
		if got.Answer != want {
			t.Errorf("granted: %v (%s), want %v", got.Answer, got.Why, want)
		}
	}
	s.settlesAs(rule.Unknown)
	grants(rule.Unknown)

	s.later(time.Second)
	apitest.Must(t, whole.cache.Create(t.Context(), ocmtest.Binding("ns", "t")))
	s.settlesAs(rule.Yes)
	grants(rule.Yes)

	s.later(time.Second)
	apitest.Must(t, whole.cache.Delete(t.Context(), ocmtest.ClusterWith("c", nil)))
	grants(rule.Unknown)
}

// TestNothingIsCreatedFromAnOlderRegistration shows what is left of a cluster that had the name before,
// or a namespace before it required a Placement.
func TestNothingIsCreatedFromAnOlderRegistration(t *testing.T) {
	registered := time.Date(2026, 3, 3, 3, 3, 3, 0, time.UTC)
	for name, test := range map[string]struct {
		change func(s, whole *scene)
		want   rule.Answer
	}{
		"the same": {func(_, _ *scene) {}, rule.Yes},
		"the cluster was registered again": {func(_, whole *scene) {
			again := ocmtest.ClusterWith("c", ocmtest.InSet("s"))
			again.Spec.HubAcceptsClient, again.UID = true, "again"
			whole.replace(again)
		}, rule.Unknown},
		"its addon is gone": {func(_, whole *scene) {
			apitest.Must(whole.t, whole.cache.Delete(whole.t.Context(), ocmtest.Addon("c")))
		}, rule.Unknown},
		"its addon was created again": {func(_, whole *scene) {
			addon := ocmtest.Addon("c")
			addon.UID = "again"
			whole.replace(addon)
		}, rule.Unknown},
		"its addon is younger, and not read": {func(s, whole *scene) {
			addon := ocmtest.Addon("c")
			addon.CreationTimestamp = metav1.NewTime(registered)
			s.replace(addon)
			apitest.Must(whole.t, whole.cache.Delete(whole.t.Context(), ocmtest.Addon("c")))
		}, rule.Yes},
		"a Placement publishes": {func(_, whole *scene) {
			whole.replace(choosing("p", "another")...)
		}, rule.Unknown},
		"the namespace requires a Placement": {func(_, whole *scene) {
			whole.annotate(map[string]string{contract.AnnotationRequirePlacement: "true"})
		}, rule.Unknown},
	} {
		t.Run(name, func(t *testing.T) {
			s, whole := newScene(t), newScene(t)
			s.granting.reader = whole.cache
			test.change(s, whole)
			s.settlesAs(test.want)
		})
	}
}

// TestARequiredPlacementIsReadLive requires a Placement in a namespace that has one, which the
// cache does not show yet.
func TestARequiredPlacementIsReadLive(t *testing.T) {
	s, whole := newScene(t), newScene(t, choosing("p", "c")...)
	s.Rule.live.reader = whole.cache
	s.annotate(map[string]string{contract.AnnotationRequirePlacement: "true"})
	s.settlesAs(rule.Unknown)
	s.copies(rule.Unknown)
	s.Rule.live.reader = newScene(t).cache
	s.later(2 * time.Second)
	s.settlesAs(rule.No)
	s.copies(rule.No)
}
