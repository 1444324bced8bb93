package profiles

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	clusterv1 "open-cluster-management.io/api/cluster/v1"

	"open-cluster-management.io/cluster-inventory-addon/internal/apitest/ocmtest"
	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/selection"
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
			claims: []clusterv1.ManagedClusterClaim{ocmtest.Claim("region.example.com", "eu-1"), ocmtest.Claim("zone", "a")},
			want:   map[string]string{"region.example.com": "eu-1"},
		},
		"a value that is no label value": {
			claims:  []clusterv1.ManagedClusterClaim{ocmtest.Claim("region.example.com", "eu 1"), ocmtest.Claim("tier", "1")},
			want:    map[string]string{"tier": "1"},
			leftOut: unfit("region.example.com"),
		},
		"a value that is too long for a label, where a shorter one was": {
			claims:  []clusterv1.ManagedClusterClaim{ocmtest.Claim("tier", strings.Repeat("a", 64))},
			profile: map[string]string{"tier": "1"}, before: "tier",
			leftOut: unfit("tier"),
		},
		"a property that is gone": {profile: map[string]string{"tier": "1"}, before: "tier"},
		"a new value": {
			claims:  []clusterv1.ManagedClusterClaim{ocmtest.Claim("tier", "2")},
			profile: map[string]string{"tier": "1"}, before: "tier",
			want: map[string]string{"tier": "2"},
		},
		"another client's label of that name": {
			claims:  []clusterv1.ManagedClusterClaim{ocmtest.Claim("tier", "2")},
			profile: map[string]string{"tier": "theirs"},
			want:    map[string]string{"tier": "theirs"},
		},
		"a label of the ManagedCluster and a property": {
			claims: []clusterv1.ManagedClusterClaim{ocmtest.Claim("tier", "property")},
			labels: map[string]string{"tier": "label", "zone": "b"},
			want:   map[string]string{"tier": "property"},
		},
		"a label of the ManagedCluster whose name is allowed for properties only": {
			labels: map[string]string{"region.example.com": "label"},
		},
		"a cluster that says itself which of its claims become labels": {
			claims: []clusterv1.ManagedClusterClaim{ocmtest.Claim("zone", "a"), ocmtest.Claim("tier", "2")},
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
			got, _ := Desired(
				Observed{Observation: selection.Observation{Cluster: trimmed, Profile: profile}}, []string{"tier"}, early)
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
