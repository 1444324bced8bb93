package inventory

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	toolscache "k8s.io/client-go/tools/cache"

	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	clusterv1beta2 "open-cluster-management.io/api/cluster/v1beta2"

	"open-cluster-management.io/cluster-inventory-addon/internal/apitest"
	"open-cluster-management.io/cluster-inventory-addon/internal/apitest/ocmtest"
	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/metrics"
	"open-cluster-management.io/cluster-inventory-addon/pkg/kube"
)

// shows checks the series of one of the metrics that are not zero.
func shows(t *testing.T, when string, counts *metrics.Metrics, name string, want map[string]float64) {
	t.Helper()
	if diff := cmp.Diff(want, apitest.Shown(t, counts, "cluster_inventory_"+name)); diff != "" {
		t.Errorf("%s, %s (-want +got):\n%s", when, name, diff)
	}
}

// TestRejectedClaimsAreCountedOncePerCluster: as clusters are created, changed and deleted,
// even if their deletion was missed.
func TestRejectedClaimsAreCountedOncePerCluster(t *testing.T) {
	counts := metrics.New(metrics.Options{})
	counter := kube.OnEvent(func(before, after *clusterv1.ManagedCluster, _ bool) { countRejected(counts, before, after) })
	cluster := func(claims ...clusterv1.ManagedClusterClaim) *clusterv1.ManagedCluster {
		return asCached(&clusterv1.ManagedCluster{Status: clusterv1.ManagedClusterStatus{ClusterClaims: claims}})
	}
	first, second := cluster(ocmtest.Claim("a", ""), ocmtest.Claim("b", "")), cluster(ocmtest.Claim("c", ""), ocmtest.Claim("d", "\xff"))
	counter.OnAdd(first, true)
	counter.OnAdd(second, false)
	shows(t, "two clusters", counts, "properties_rejected", map[string]float64{"Empty": 3, "NotText": 1})
	fixed := cluster(ocmtest.Claim("a", ""), ocmtest.Claim("b", "1"))
	counter.OnUpdate(first, fixed)
	shows(t, "one claim was fixed", counts, "properties_rejected", map[string]float64{"Empty": 2, "NotText": 1})
	counter.OnDelete(toolscache.DeletedFinalStateUnknown{Key: "first", Obj: fixed})
	counter.OnDelete(second)
	shows(t, "both are gone", counts, "properties_rejected", map[string]float64{})
}

// TestWhyAPairIsWithheldIsCounted steps a pair through every reason for a No of the rule.
func TestWhyAPairIsWithheldIsCounted(t *testing.T) {
	tests := map[string]struct {
		prepare func(*stepper)
		want    string
	}{
		"unbound": {withdraw, "NotBound"},
		"not exclusive": {func(s *stepper) {
			s.rule.ExclusiveSetsOnly = true
			apitest.Edit(s, s.members, func(set *clusterv1beta2.ManagedClusterSet) {
				set.Spec.ClusterSelector = clusterv1beta2.ManagedClusterSelector{
					SelectorType:  clusterv1beta2.LabelSelector,
					LabelSelector: &metav1.LabelSelector{MatchLabels: ocmtest.InSet(set.Name)},
				}
			})
		}, "NotExclusive"},
		"without addon":  {func(s *stepper) { s.MustDelete(ocmtest.Addon(s.c.Name)) }, "AddonMissing"},
		"not accepted":   {func(s *stepper) { apitest.Edit(s, s.c, unaccept) }, "ClusterNotAccepted"},
		"not chosen":     {func(s *stepper) { s.Placement(s.ns, "view", "another") }, "NotPlaced"},
		"no Placement":   {requirePlacement, "PlacementMissing"},
		"being detached": {func(s *stepper) { holdCluster(s); s.MustDelete(s.c) }, "ClusterDetaching"},
		"addon removed": {func(s *stepper) {
			addon := ocmtest.Addon(s.c.Name)
			apitest.Edit(s, addon, func(a *addonv1beta1.ManagedClusterAddOn) { a.Finalizers = []string{"example.com/hold"} })
			s.MustDelete(addon)
			s.T.Cleanup(func() {
				apitest.Edit(s, addon, func(a *addonv1beta1.ManagedClusterAddOn) { a.Finalizers = nil })
			})
		}, "AddonRemoving"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			s := newStepper(t, mapHub)
			counts := metrics.New(metrics.Options{})
			s.r.opts.Metrics, s.r.outcomes.Metrics = counts, counts
			s.mustStep(post, patchStatus)
			shows(t, "published", counts, "profiles", map[string]float64{"Synced": 1})
			s.later(time.Hour)
			test.prepare(s)
			for range 2 { // an absence must last for a second
				if _, err := s.step(); err != nil {
					t.Fatal(err)
				}
				s.later(2 * time.Second)
			}
			shows(t, "withheld", counts, "profiles", map[string]float64{})
			shows(t, "withheld", counts, "withheld", map[string]float64{test.want: 1})
		})
	}
}

func unaccept(c *clusterv1.ManagedCluster) { c.Spec.HubAcceptsClient = false }

func requirePlacement(s *stepper) {
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: s.ns}}
	apitest.Edit(s, namespace, func(n *corev1.Namespace) {
		n.Annotations = map[string]string{"inventory.open-cluster-management.io/require-placement": "true"}
	})
}

func holdCluster(s *stepper) {
	apitest.Edit(s, s.c, func(c *clusterv1.ManagedCluster) { c.Finalizers = []string{"example.com/hold"} })
	s.T.Cleanup(func() {
		apitest.Edit(s, s.c, func(c *clusterv1.ManagedCluster) { c.Finalizers = nil })
	})
}

// TestMetricsFollowTheHub runs the inventory in a manager: counts and delays follow events,
// and no metric costs a write.
func TestMetricsFollowTheHub(t *testing.T) {
	w := newWorld(t, wiredHub.Config(t))
	t.Cleanup(func() { clearHub(w) })
	counts := metrics.New(metrics.Options{ByNamespace: true})
	set := w.ExclusiveSet("set")
	ns := w.Namespace("team", nil)
	w.Bind(ns, set.Name)
	cluster := w.Cluster("c", ocmtest.InSet(set.Name), ocmtest.Claim("a", "1"), ocmtest.Claim("empty", ""))
	wire := &apitest.Wire{}
	startManager(t, wire.Tap(asManager(t, wiredHub, w)), Options{Guard: allowed, Metrics: counts})
	w.whole(ns, cluster.Name)
	eventually := func(name string, want map[string]float64) {
		t.Helper()
		w.Eventually("the metric "+name, func() string {
			return cmp.Diff(want, apitest.Shown(t, counts, "cluster_inventory_"+name))
		})
	}
	eventually("profiles", map[string]float64{ns + " Synced": 1})
	eventually("properties_rejected", map[string]float64{"Empty": 1})
	if delay := apitest.Shown(t, counts, "cluster_inventory_profile_delay_seconds"); delay["count"] != 0 {
		t.Errorf("a birth counts as a change: %v", delay)
	}

	wire.Reset()
	apitest.EditStatus(w, cluster, func(c *clusterv1.ManagedCluster) {
		c.Status.ClusterClaims = []clusterv1.ManagedClusterClaim{ocmtest.Claim("a", "2")}
	})
	w.Eventually("the change is measured", func() string {
		delay := apitest.Shown(t, counts, "cluster_inventory_profile_delay_seconds")
		return cmp.Diff(1., delay["count"])
	})
	eventually("properties_rejected", map[string]float64{})
	if diff := cmp.Diff([]string{patchStatus}, wire.Sent("clusterprofiles", "clusterprofiles/status")); diff != "" {
		t.Errorf("writes (-want +got):\n%s", diff)
	}

	w.MustDelete(w.Profile(ns, cluster.Name)) // it is recreated, which is no change of the cluster
	w.Eventually("the profile is back", func() string {
		if profile := w.Profile(ns, cluster.Name); profile == nil || len(profile.Status.Properties) == 0 {
			return "it is not whole yet"
		}
		return ""
	})
	apitest.Edit(w, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: ns}}, func(n *corev1.Namespace) {
		n.Annotations = map[string]string{"inventory.open-cluster-management.io/require-placement": "true"}
	})
	eventually("withheld", map[string]float64{ns + " PlacementMissing": 1})
	eventually("profiles", map[string]float64{})
	if delay := apitest.Shown(t, counts, "cluster_inventory_profile_delay_seconds"); delay["count"] != 1 {
		t.Errorf("delays were measured without a change: %v", delay)
	}
}
