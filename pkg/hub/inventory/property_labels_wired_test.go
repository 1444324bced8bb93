package inventory

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	clusterv1 "open-cluster-management.io/api/cluster/v1"
	inventoryv1alpha1 "sigs.k8s.io/cluster-inventory-api/apis/v1alpha1"

	"open-cluster-management.io/cluster-inventory-addon/internal/apitest"
	"open-cluster-management.io/cluster-inventory-addon/internal/apitest/ocmtest"
	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/selection"
	"open-cluster-management.io/cluster-inventory-addon/pkg/kube"
)

func TestWhichPropertiesMayBecomeLabels(t *testing.T) {
	for name, want := range map[string]string{
		"region.example.com": "", "region": "", "example.com/region": "", "myk8s.io": "", "k8s.io.example.com": "",
		"k8s.io": "reserved", "id.k8s.io": "reserved", "k8s.io/x": "reserved", "topology.kubernetes.io/region": "reserved",
		"cluster.clusterset.k8s.io": "reserved", "multicluster.x-k8s.io/inventory-member-id": "reserved",
		"inventory.open-cluster-management.io/profile": "reserved", "open-cluster-management.io/cluster-name": "reserved",
		"app.kubernetes.io/managed-by": "reserved", "platform.open-cluster-management.io": "reserved",
		"": "not a label key", "a b": "not a label key", "a/b/c": "not a label key", "-a": "not a label key",
		strings.Repeat("a", 64): "not a label key", "/a": "not a label key",
	} {
		if got := LabelProblem(name); (got == "") != (want == "") || !strings.Contains(got, want) {
			t.Errorf("%q: %q, want %q", name, got, want)
		}
	}
}

func TestPropertiesAsLabels(t *testing.T) {
	const listed = "inventory.open-cluster-management.io/copied-labels"
	const spoofed = "inventory.open-cluster-management.io/property-labels"
	unfit := func(name string) []string {
		return []string{fmt.Sprintf("the label %q, because the property's value is not a label value", name)}
	}
	for name, test := range map[string]struct {
		claims  []clusterv1.ManagedClusterClaim
		labels  map[string]string // of the ManagedCluster
		profile map[string]string // labels of the profile
		before  string            // those among them that are ours
		want    map[string]string
		leftOut []string
	}{
		"a property that is named": {
			claims: []clusterv1.ManagedClusterClaim{claim("region.example.com", "eu-1"), claim("zone", "a")},
			want:   map[string]string{"region.example.com": "eu-1"},
		},
		"a value that is no label value": {
			claims:  []clusterv1.ManagedClusterClaim{claim("region.example.com", "eu 1"), claim("tier", "1")},
			want:    map[string]string{"tier": "1"},
			leftOut: unfit("region.example.com"),
		},
		"a value that is too long for a label, where a shorter one was": {
			claims:  []clusterv1.ManagedClusterClaim{claim("tier", strings.Repeat("a", 64))},
			profile: map[string]string{"tier": "1"}, before: "tier",
			leftOut: unfit("tier"),
		},
		"a property that is gone": {profile: map[string]string{"tier": "1"}, before: "tier"},
		"a new value": {
			claims:  []clusterv1.ManagedClusterClaim{claim("tier", "2")},
			profile: map[string]string{"tier": "1"}, before: "tier",
			want: map[string]string{"tier": "2"},
		},
		"somebody else's label of that name": {
			claims:  []clusterv1.ManagedClusterClaim{claim("tier", "2")},
			profile: map[string]string{"tier": "theirs"},
			want:    map[string]string{"tier": "theirs"},
		},
		"a label of the ManagedCluster and a property": {
			claims: []clusterv1.ManagedClusterClaim{claim("tier", "property")},
			labels: map[string]string{"tier": "label", "zone": "b"},
			want:   map[string]string{"tier": "property"},
		},
		"a label of the ManagedCluster whose name is allowed for properties only": {
			labels: map[string]string{"region.example.com": "label"},
		},
		"a cluster that says itself which of its claims become labels": {
			claims: []clusterv1.ManagedClusterClaim{claim("zone", "a"), claim("tier", "2")},
			want:   map[string]string{"tier": "2"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			limits := limits
			limits.PropertyLabels = []string{"region.example.com", "tier"}
			cluster := &clusterv1.ManagedCluster{Status: clusterv1.ManagedClusterStatus{ClusterClaims: test.claims}}
			cluster.Name, cluster.Labels = "c", test.labels
			cluster.Annotations = map[string]string{spoofed: "zone"}
			profile := ocmtest.OurProfile("team", "c")
			ours := len(profile.Labels)
			for key, value := range test.profile {
				profile.Labels[key] = value
			}
			if test.before != "" {
				profile.Annotations = map[string]string{listed: test.before}
			}
			trimmed, _ := limits.Trim(cluster)
			again, leftOut := limits.Trim(trimmed)
			if diff := cmp.Diff(trimmed, again); diff != "" {
				t.Errorf("trimmed twice (-want +got):\n%s", diff)
			}
			got, _ := desiredProfile(
				observed{Observation: selection.Observation{Cluster: trimmed, Profile: profile}}, []string{"tier"}, early)
			others := map[string]string{}
			for key, value := range got.Labels {
				if _, had := ocmtest.OurProfile("team", "c").Labels[key]; !had && !isReserved(key) {
					others[key] = value
				}
			}
			if diff := cmp.Diff(test.want, others, cmpopts.EquateEmpty()); diff != "" || ours == 0 {
				t.Errorf("labels (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(test.leftOut, leftOut, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("left out (-want +got):\n%s", diff)
			}
		})
	}
}

// A property comes, toggles within the profile's budget, stops being a label value and goes,
// also while no manager runs. Somebody else's label stays all the while.
func TestLabelsFollowProperties(t *testing.T) {
	w := newWorld(t, wiredHub.Config(t))
	t.Cleanup(func() { clearHub(w) })
	set, ns := w.ExclusiveSet("s"), w.Namespace("team", nil)
	w.Bind(ns, set.Name)
	c := w.Cluster("c", ocmtest.InSet(set.Name), claim("region.example.com", "eu"))
	wire, shown := &apitest.Wire{}, limits
	shown.PropertyLabels = []string{"region.example.com", "tier"}
	cfg := wire.Tap(asManager(t, wiredHub, w))
	opts := Options{Guard: &switchGuard{}, WriteEvery: time.Second}
	start := func() func() { return startLimited(t, cfg, shown, opts) }
	stop := start()
	shows := func(region, tier string) {
		t.Helper()
		w.Eventually("the labels arrive", func() string {
			profile := w.Profile(ns, c.Name)
			if profile == nil {
				return "no profile"
			}
			got := []string{profile.Labels["region.example.com"], profile.Labels["tier"]}
			return cmp.Diff([]string{region, tier}, got)
		})
	}
	says := func(claims ...clusterv1.ManagedClusterClaim) {
		t.Helper()
		apitest.EditStatus(w, c, func(c *clusterv1.ManagedCluster) { c.Status.ClusterClaims = claims })
	}
	shows("eu", "")
	apitest.Edit(w, w.Profile(ns, c.Name), func(p *inventoryv1alpha1.ClusterProfile) { p.Labels["tier"] = "theirs" })
	says(claim("region.example.com", "us"), claim("tier", "ours"))
	shows("us", "theirs")

	wire.Reset()
	began := time.Now()
	for n := range 60 {
		says(claim("region.example.com", fmt.Sprint("toggle-", n)))
	}
	shows("toggle-59", "theirs")
	most := kube.WritesAtOnce + int(time.Since(began)/time.Second) + 2
	if writes := wire.Writes("clusterprofiles", "clusterprofiles/status"); len(writes) > most {
		t.Errorf("60 values took %d writes, want at most %d", len(writes), most)
	}

	says(claim("region.example.com", "no label value"))
	shows("", "theirs")
	w.EventuallyAddonCondition(c.Name, "ProfilesSynced", "False", "InvalidProperties",
		`Left out: the label "region.example.com", because the property's value is not a label value.`)
	says(claim("region.example.com", "eu"))
	shows("eu", "theirs")
	stop()
	says()
	start()
	shows("", "theirs")
}
