package inventory

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	inventoryv1alpha1 "sigs.k8s.io/cluster-inventory-api/apis/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	clusterv1 "open-cluster-management.io/api/cluster/v1"

	"open-cluster-management.io/cluster-inventory-addon/internal/apitest"
	"open-cluster-management.io/cluster-inventory-addon/internal/apitest/ocmtest"
	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/access"
	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/inventory/profiles"
	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/inventory/report"
	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/metrics"
	"open-cluster-management.io/cluster-inventory-addon/pkg/kube"
)

// flap changes a claim and a label of a cluster every 50 ms, as a klusterlet may, for a time and
// until enough has been written, and returns the last value and how often it did.
func (w *world) flap(
	cluster *clusterv1.ManagedCluster, duration time.Duration, enough func() bool,
) (last string, times int) {
	w.T.Helper()
	ticks := time.NewTicker(50 * time.Millisecond)
	defer ticks.Stop()
	for began := time.Now(); time.Since(began) < duration || !enough() && time.Since(began) < apitest.Patience; times++ {
		last = fmt.Sprint("v", times)
		claims := fmt.Appendf(nil, `{"status":{"clusterClaims":[{"name":"x","value":%q}]}}`, last)
		patched := &clusterv1.ManagedCluster{}
		patched.Name = cluster.Name
		apitest.Must(w.T, w.Status().Patch(w.T.Context(), patched, client.RawPatch(types.MergePatchType, claims)))
		w.MustMerge(patched, fmt.Sprintf(`{"metadata":{"labels":{"env":%q}}}`, last))
		<-ticks.C
	}
	return last, times
}

// Each write is an event for every watcher of the profile, for which Kueue's MultiKueue starts
// its watches of the cluster again, and multicluster-runtime its cache.
func TestAFlappingClusterIsWrittenWithinItsBudget(t *testing.T) {
	const flapping = 5 * time.Second
	for name, every := range map[string]time.Duration{"without a budget": 0, "a write in a second": time.Second} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, wiredHub.Config(t))
			t.Cleanup(func() { clearHub(w) })
			set := w.ExclusiveSet("set")
			namespaces := []string{w.Namespace("one", nil), w.Namespace("two", nil)}
			c, quiet := w.Cluster("c", ocmtest.InSet(set.Name)), w.Cluster("quiet", ocmtest.InSet(set.Name))
			for _, namespace := range namespaces {
				w.Bind(namespace, set.Name)
			}
			wire := &apitest.Wire{}
			startManager(t, wire.Tap(asManager(t, wiredHub, w)), Options{
				Guard: allowed, LabelAllow: []string{"env"}, WriteEvery: every,
			})
			w.synced(c.Name)
			w.synced(quiet.Name)
			wire.Reset()

			began := time.Now()
			last, changes := w.flap(c, flapping, func() bool {
				written := len(wire.Writes("clusterprofiles", "clusterprofiles/status"))
				return written > len(namespaces)*(2*kube.WritesAtOnce+1)
			})
			// The budget is each profile's own: that of another cluster is written at once.
			apitest.EditStatus(w, quiet, func(c *clusterv1.ManagedCluster) {
				c.Status.ClusterClaims = []clusterv1.ManagedClusterClaim{ocmtest.Claim("x", "1")}
			})
			for _, namespace := range namespaces {
				w.Eventually("the last value arrives in "+namespace, func() string {
					profile, other := w.Profile(namespace, c.Name), w.Profile(namespace, quiet.Name)
					if got := profile.Labels["env"]; got != last || profile.Status.Properties[0].Value != last {
						return fmt.Sprintf("label %q and properties %+v, want %q", got, profile.Status.Properties, last)
					}
					if len(other.Status.Properties) != 1 {
						return "the other cluster's profile has no property yet"
					}
					return ""
				})
			}
			took := time.Since(began)
			writes := map[string]int{}
			for _, call := range wire.Writes("clusterprofiles", "clusterprofiles/status") {
				for _, namespace := range namespaces {
					if call.Mentions(namespace+"/") && !call.Mentions(quiet.Name) {
						writes[namespace]++
					}
				}
			}
			for _, namespace := range namespaces {
				got := writes[namespace]
				t.Logf("%d changes in %s: %d writes in %s, %.1f a second, %.0f restarts a minute",
					2*changes, took.Round(time.Second/10), got, namespace,
					float64(got)/took.Seconds(), float64(got)/took.Minutes())
				if every == 0 {
					if got < 2*kube.WritesAtOnce {
						t.Errorf("%d writes in %s: the cluster did not flap", got, namespace)
					}
					continue
				}
				// The last change may owe a write, and the first is counted as a repair.
				if most := kube.WritesAtOnce + int(took/every) + 2; got < kube.WritesAtOnce || got > most {
					t.Errorf("%d writes in %s, want from %d to %d", got, namespace, kube.WritesAtOnce, most)
				}
			}
			for _, call := range wire.Writes("managedclusteraddons/status") {
				t.Errorf("a held back change wrote %s: %s", call.Path, call.Body)
			}
		})
	}
}

// exhaust uses up the budget of the pair's profile, and returns how long the next change waits.
func (s *stepper) exhaust(every time.Duration) time.Duration {
	s.T.Helper()
	s.r.brake.Every = every
	s.mustStep(post, patchStatus)
	for n := range kube.WritesAtOnce - 2 {
		s.claims(ocmtest.Claim("x", fmt.Sprint(n)))
		s.mustStep(patchStatus)
	}
	s.settled()
	s.claims(ocmtest.Claim("x", "held"))
	result := s.mustStep()
	if result.RequeueAfter <= 0 || result.RequeueAfter > 2*every {
		s.T.Fatalf("a change that is held back is looked at again after %s", result.RequeueAfter)
	}
	return result.RequeueAfter
}

// exhausted makes the next change wait, as after many writes.
func (s *stepper) exhausted(every time.Duration) {
	for range kube.WritesAtOnce {
		s.r.brake.Wrote(s.pair, kube.Rewrite, profiles.OwnPart(profiles.Trim(s.mine())), profiles.OwnPart(profiles.Trim(s.mine())), s.time.Now())
	}
	if err := s.r.brake.CheckBudget(s.pair, profiles.OwnPart(profiles.Trim(s.mine())), s.time.Now()); err == nil {
		s.T.Fatalf("a change does not wait for %s", every)
	}
}

func available(c *clusterv1.ManagedCluster) *metav1.Condition {
	return meta.FindStatusCondition(c.Status.Conditions, clusterv1.ManagedClusterConditionAvailable)
}

func (s *stepper) shows(value, env string) {
	s.T.Helper()
	profile := s.mine()
	if got := profile.Status.Properties[0].Value; got != value || profile.Labels["env"] != env {
		s.T.Errorf("the profile has property %q and label %q, want %q and %q", got, profile.Labels["env"], value, env)
	}
}

func TestTheBudgetDelaysOnlyUpdates(t *testing.T) {
	const every = 30 * time.Second
	t.Run("changes of claims and labels wait, and the last value arrives", func(t *testing.T) {
		s := newStepper(t, mapHub)
		wait := s.exhaust(every)
		s.later(wait / 2)
		s.claims(ocmtest.Claim("x", "last"))
		apitest.Edit(s, s.c, func(c *clusterv1.ManagedCluster) { c.Labels["env"] = "last" })
		if result := s.mustStep(); result.RequeueAfter != wait-wait/2 {
			t.Errorf("looked at again after %s, want %s", result.RequeueAfter, wait-wait/2)
		}
		s.came(report.InPlace, "")
		s.shows("7", "prod")
		s.later(wait - wait/2)
		result := s.mustStep(patchMain, patchStatus)
		s.shows("last", "last")
		s.later(result.RequeueAfter)
		s.settled()
	})
	t.Run("health does not wait, and properties and labels do", func(t *testing.T) {
		s := newStepper(t, mapHub)
		s.exhaust(every)
		shown := s.mine().Status.Properties[0].Value
		var last time.Duration
		for n := range 2 * kube.WritesAtOnce {
			status := []string{"False", "Unknown"}[n%2]
			apitest.Edit(s, s.c, func(c *clusterv1.ManagedCluster) { c.Labels["env"] = fmt.Sprint(n) })
			apitest.EditStatus(s, s.c, func(c *clusterv1.ManagedCluster) {
				available(c).Status = metav1.ConditionStatus(status)
				c.Status.ClusterClaims[0].Value = status
			})
			result := s.mustStep(patchStatus)
			if result.RequeueAfter <= 0 {
				t.Error("the label is forgotten")
			}
			s.shows(shown, "prod")
			last = result.RequeueAfter
		}
		s.later(last)
		s.mustStep(patchMain, patchStatus)
		s.shows("Unknown", fmt.Sprint(2*kube.WritesAtOnce-1))
	})
	t.Run("what waits does not become another client's meanwhile", func(t *testing.T) {
		s := newStepper(t, atomicHub)
		s.exhaust(every)
		apitest.EditStatus(s, s.mine(), func(p *inventoryv1alpha1.ClusterProfile) {
			p.Status.Properties = append(p.Status.Properties, inventoryv1alpha1.Property{Name: "other", Value: "1"})
		})
		turn := func() {
			t.Helper()
			for range 5 {
				if _, err := s.step(); err != nil {
					t.Fatal(err)
				}
				s.later(every)
			}
		}
		turn()
		for n := range 3 {
			s.exhausted(every)
			s.claims(ocmtest.Claim("x", "held"), ocmtest.Claim(fmt.Sprint("new-", n), "1"))
			apitest.EditStatus(s, s.c, func(c *clusterv1.ManagedCluster) {
				available(c).Status = []metav1.ConditionStatus{"False", "Unknown"}[n%2]
			})
			if _, err := s.step(); err != nil {
				t.Fatal(err)
			}
			s.claims(ocmtest.Claim("x", "held"))
		}
		turn()
		var names []string
		for _, property := range s.mine().Status.Properties {
			names = append(names, property.Name)
		}
		if slices.Sort(names); !slices.Equal(names, []string{"other", "x"}) {
			t.Errorf("the profile has the properties %q", names)
		}
	})
	t.Run("a message is not health", func(t *testing.T) {
		s := newStepper(t, mapHub)
		s.exhaust(every)
		apitest.EditStatus(s, s.c, func(c *clusterv1.ManagedCluster) { available(c).Message = "new" })
		if result := s.mustStep(); result.RequeueAfter <= 0 {
			t.Error("the message is forgotten")
		}
	})
	t.Run("access providers do not wait", func(t *testing.T) {
		s := newStepper(t, mapHub)
		s.exhaust(every)
		shown := s.mine().Status.Properties[0].Value
		proxy := throughProxy([]byte("CA"), s.c.Name)
		s.r.opts.Access = &givenAccess{access.Decision{Proxy: access.ProviderState{Known: true, Provider: &proxy}}}
		s.mustStep(patchStatus)
		s.shows(shown, "prod")
	})
	t.Run("removal does not wait, and creation again does", func(t *testing.T) {
		s := newStepper(t, mapHub)
		wait := s.exhaust(every)
		withdraw(s)
		s.mustStep(del)
		s.bindingSays(ocmtest.Condition("Bound", "True", "R", ""))
		if result := s.mustStep(); result.RequeueAfter != wait {
			t.Errorf("looked at again after %s, want %s", result.RequeueAfter, wait)
		}
		s.later(wait)
		s.mustStep(post, patchStatus)
		s.shows("held", "prod")
	})
	t.Run("a repair does not wait", func(t *testing.T) {
		s := newStepper(t, mapHub)
		s.exhaust(every)
		s.MustMerge(s.mine(), everyLabel(1))
		s.mustStep(patchMain, patchStatus)
		s.came(report.InPlace, "")
	})
	t.Run("another manager starts with a full budget", func(t *testing.T) {
		s := newStepper(t, mapHub)
		s.exhaust(every)
		s.r.brake = kube.Brake[types.NamespacedName]{Every: every}
		s.mustStep(patchStatus)
		s.shows("held", "prod")
	})
}

// After a minute, an event on the ManagedCluster and a metric say so, and no condition.
func TestEventsOfAClusterThatChangesTooOften(t *testing.T) {
	s := newStepper(t, mapHub)
	counts := metrics.New(metrics.Options{})
	s.r.outcomes.Metrics = counts
	const every = 10 * time.Second
	emit := s.reporter(every)
	notes := func() (notes []string) {
		t.Helper()
		emit(types.NamespacedName{Name: s.c.Name})
		list := &eventsv1.EventList{}
		s.MustList(list, client.InNamespace("default"))
		for _, event := range list.Items {
			if event.Regarding.Kind == "ManagedCluster" && event.Regarding.UID == s.c.UID {
				notes = append(notes, event.Type+" "+event.Reason+" "+event.Note)
			}
		}
		return notes
	}
	s.exhaust(every)
	change := func(n int) {
		s.later(4 * time.Second)
		s.claims(ocmtest.Claim("x", fmt.Sprint("change ", n)))
		_, err := s.step()
		apitest.Must(t, err)
	}
	for n := range 14 {
		change(n)
	}
	if got := notes(); len(got) > 0 {
		t.Errorf("too early: %q", got)
	}
	shows(t, "after less than a minute", counts, "profiles_held_back", map[string]float64{})
	for n := range 3 {
		change(n)
	}
	want := "Warning ProfileWritesHeldBack This cluster changes so often that its ClusterProfiles are written only " +
		"every 10s (profiles.writeInterval), in " + s.ns + "."
	if got := notes(); len(got) != 1 || !strings.HasPrefix(got[0], want) {
		t.Errorf("events: %q", got)
	}
	shows(t, "after more than a minute", counts, "profiles_held_back", map[string]float64{"": 1})
	s.came(report.InPlace, "")
	out, _ := s.r.outcomes.Get(s.pair)
	if condition := report.ProfilesSynced(map[string]report.Outcome{s.ns: out}, true); condition.Reason != "Synced" {
		t.Errorf("the condition says %+v", condition)
	}
	for result := (reconcile.Result{RequeueAfter: 1}); result.RequeueAfter > 0; {
		s.later(result.RequeueAfter)
		var err error
		result, err = s.step()
		apitest.Must(t, err)
	}
	s.shows("change 2", "prod")
	shows(t, "afterwards", counts, "profiles_held_back", map[string]float64{})
}
