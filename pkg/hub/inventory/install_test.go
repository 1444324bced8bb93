package inventory

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr/funcr"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"

	"open-cluster-management.io/cluster-inventory-addon/internal/apitest"
	"open-cluster-management.io/cluster-inventory-addon/internal/apitest/ocmtest"
	"open-cluster-management.io/cluster-inventory-addon/pkg/kube"
	"open-cluster-management.io/cluster-inventory-addon/pkg/kube/watch"
)

// kept is how long a profile must stay whose cluster lost its addon for a moment.
const kept = time.Second

// installedBy returns the addon's definition, whose install strategy is a Placement.
func installedBy(namespace, placement string) *addonv1beta1.ClusterManagementAddOn {
	definition := &addonv1beta1.ClusterManagementAddOn{ObjectMeta: metav1.ObjectMeta{Name: "cluster-inventory"}}
	definition.Spec.InstallStrategy = addonv1beta1.InstallStrategy{
		Type: "Placements",
		Placements: []addonv1beta1.PlacementStrategy{{
			PlacementRef: addonv1beta1.PlacementRef{Namespace: namespace, Name: placement},
		}},
	}
	return definition
}

// TestEventsAboutTheInstallPlacement: its administrators learn which clusters' profiles were
// removed although it names them, and that it has groups.
func TestEventsAboutTheInstallPlacement(t *testing.T) {
	s := newStepper(t, mapHub)
	install := s.Namespace("install", nil)
	placement, _ := s.Placement(install, "chosen", s.c.Name)
	definition := installedBy(install, placement.Name)
	s.CleanUp(definition)
	s.MustCreate(definition)
	emit := s.reporter(0)
	reports := func(want ...string) {
		t.Helper()
		s.wire.Reset()
		emit(types.NamespacedName{Namespace: install})
		if diff := cmp.Diff(want, s.wire.Sent(), cmpopts.EquateEmpty()); diff != "" {
			t.Fatalf("writes (-want +got):\n%s", diff)
		}
	}
	s.mustStep(post, patchStatus)
	reports()

	s.MustDelete(ocmtest.Addon(s.c.Name))
	s.mustStep()
	reports()
	s.later(2 * time.Minute)
	s.mustStep(del)
	reports("POST events")
	apitest.Edit(s, placement, func(p *clusterv1beta1.Placement) {
		p.Spec.DecisionStrategy.GroupStrategy.ClustersPerDecisionGroup = intstr.FromInt32(1)
	})
	reports("POST events")
	reports()

	list := &eventsv1.EventList{}
	s.MustList(list, client.InNamespace(install))
	got := map[string]string{}
	for _, event := range list.Items {
		got[event.Reason] = strings.Join([]string{event.Type, event.Regarding.Kind, event.Regarding.Name, event.Note}, " ")
	}
	for reason, text := range map[string]string{
		"DecisionsInconclusive":   "have lacked the addon cluster-inventory for two minutes",
		"AddonInstallationAtRisk": "installs the addon cluster-inventory and has decision groups",
	} {
		if !strings.HasPrefix(got[reason], "Warning Placement chosen ") || !strings.Contains(got[reason], text) {
			t.Errorf("%s: %q, want a text with %q", reason, got[reason], text)
		}
	}
	if !strings.Contains(got["DecisionsInconclusive"], s.c.Name) || len(got) != 2 {
		t.Errorf("events: %v", got)
	}
}

// TestWaitingPairsAreAskedOnceForManySlices: an install Placement that is emptied has a slice
// for every hundred of the clusters that wait.
func TestWaitingPairsAreAskedOnceForManySlices(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began, changed := time.Now(), make(chan struct{}, 1)
		var asked []string
		go atIntervals(t.Context(), changed, func() { asked = append(asked, time.Since(began).String()) })
		change := func(times int) {
			for range times {
				select {
				case changed <- struct{}{}:
				default:
				}
				<-time.After(5 * time.Millisecond)
			}
		}
		change(10) // slices that are written together
		<-time.After(time.Minute)
		change(400) // until two seconds later
		<-time.After(time.Minute)
		change(1)
		<-time.After(time.Minute)
		synctest.Wait()
		if diff := cmp.Diff([]string{"100ms", "1m0.15s", "1m1.15s", "1m2.15s", "2m2.15s"}, asked); diff != "" {
			t.Errorf("asked at (-want +got):\n%s", diff)
		}
	})
}

// TestPairsFollowTheInstallStrategy: pairs that wait because the addon may be created again are
// decided when it is certain that it is not, long before the wait ends.
func TestPairsFollowTheInstallStrategy(t *testing.T) {
	w := newWorld(t, wiredHub.Config(t))
	t.Cleanup(func() { clearHub(w) })
	team, install := w.Namespace("team", nil), w.Namespace("install", nil)
	set := w.ExclusiveSet("set")
	w.Bind(team, set.Name)
	user := asManager(t, wiredHub, w)
	type strategy struct {
		definition *addonv1beta1.ClusterManagementAddOn
		placement  *clusterv1beta1.Placement
		decision   *clusterv1beta1.PlacementDecision
	}
	for name, test := range map[string]struct {
		cluster string
		change  func(strategy)
	}{
		"it no longer names the cluster": {"c", func(s strategy) {
			// One full slice, which is read live, and reaches over the name.
			clusters := make([]string, 100)
			for i := range clusters {
				clusters[i] = fmt.Sprintf("a%02d", i)
			}
			clusters[99] = "z"
			w.Decide(s.placement, s.decision, clusters...)
		}},
		"it becomes Manual": {"d", func(s strategy) {
			w.MustMerge(s.definition, `{"spec":{"installStrategy":{"type":"Manual","placements":null}}}`)
		}},
		"its definition is deleted after the addons": {"e", func(s strategy) {
			foreground := client.PropagationPolicy(metav1.DeletePropagationForeground)
			apitest.Must(t, w.Delete(t.Context(), s.definition, foreground))
		}},
	} {
		t.Run(name, func(t *testing.T) {
			w := w.in(t)
			cluster := w.Cluster(test.cluster, ocmtest.InSet(set.Name))
			placement, decision := w.Placement(install, "chosen-"+test.cluster, cluster.Name)
			definition := installedBy(install, placement.Name)
			w.CleanUp(definition)
			w.MustCreate(definition)
			startManager(t, user, Options{Guard: allowed})
			w.exists(team, cluster.Name, true)
			w.MustDelete(ocmtest.Addon(cluster.Name))
			w.Stays(kept, "the profile is kept", func() string {
				if w.Profile(team, cluster.Name) == nil {
					return "it is gone"
				}
				return ""
			})
			test.change(strategy{definition, placement, decision})
			w.exists(team, cluster.Name, false)
		})
	}
}

// TestAnUnknownProfileAPIIsLoggedOnce: the start waits until it is known whether the hub serves
// ClusterProfiles, and asks every second.
func TestAnUnknownProfileAPIIsLoggedOnce(t *testing.T) {
	failing := ocmtest.NewManager(t, mapHub.Config(t), nil) // its cache is not started
	working := ocmtest.NewManager(t, mapHub.Config(t), nil)
	apitest.RunCache(t, working.GetCache(), kube.Partial(kube.CRDKind))
	var lines []string
	logger := funcr.New(func(_, args string) { lines = append(lines, args) }, funcr.Options{})
	i := &inventory{ctx: log.IntoContext(t.Context(), logger), opts: Options{Clock: clock.RealClock{}}}
	var err error
	i.discovery, err = watch.NewDiscovery(working.GetConfig(), working.GetHTTPClient())
	apitest.Must(t, err)
	for _, step := range []struct {
		mgr   manager.Manager
		known bool
		lines int
	}{{failing, false, 1}, {working, true, 0}, {failing, false, 1}} {
		i.reader, lines = step.mgr.GetCache(), nil
		for range 3 {
			if i.knowsProfileAPI() != step.known {
				t.Errorf("known is %t", !step.known)
			}
		}
		if len(lines) != step.lines || step.lines > 0 && !strings.Contains(lines[0], "error") {
			t.Errorf("logged %q, want %d lines", lines, step.lines)
		}
	}
}
