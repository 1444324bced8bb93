package decide

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"

	"open-cluster-management.io/cluster-inventory-addon/internal/apitest/ocmtest"
)

func TestMemberIDs(t *testing.T) {
	type cluster struct {
		name, wants string
		age         time.Duration
		pending     bool
	}
	type profile struct {
		namespace, name, id string
		age                 time.Duration
	}
	for name, test := range map[string]struct {
		profiles []profile
		clusters []cluster
		hidden   bool // ManagedClusters
		state    State
		text     string
		steps    map[string]State // of explain, by cluster, in namespace a
	}{
		"no profiles": {state: NotConfigured, text: "no ClusterProfile has a member id"},
		"one cluster in two namespaces": {
			profiles: []profile{{"a", "c", "c", 1}, {"b", "c", "c", 1}}, state: OK,
			text: "no two ClusterProfiles of a namespace have the same",
		},
		"two of one member: the oldest": {
			profiles: []profile{{"a", "new", "x", time.Hour}, {"a", "old", "x", 2 * time.Hour}}, state: Problem,
			text: `"x" in namespace a is that of old, new: consumers use the oldest, old`,
		},
		"a tie: none": {
			profiles: []profile{{"a", "d", "x", time.Hour}, {"a", "c", "x", time.Hour}, {"a", "e", "x", 0}}, state: Problem,
			text:  `"x" in namespace a is that of c, d, e: consumers use none, because the oldest were created in the same second`,
			steps: map[string]State{"c": Missing, "d": Missing, "e": Missing, "f": ""},
		},
		"its own id": {
			clusters: []cluster{{name: "c", wants: "x"}, {name: "d"}}, profiles: []profile{{"a", "c", "x", 1}, {"a", "d", "d", 1}},
			state: OK, text: "no two ClusterProfiles of a namespace have the same", steps: map[string]State{"c": "", "d": ""},
		},
		"two ask for one id: the one whose profile has it": {
			clusters: []cluster{{name: "c", wants: "x", age: time.Hour}, {name: "d", wants: "x"}, {name: "e", wants: "x"}},
			profiles: []profile{{"a", "d", "x", 1}, {"b", "d", "x", 1}, {"a", "c", "c", 1}}, state: Problem,
			text: `"x" is that of cluster d, because its ClusterProfiles have it already: ` +
				`c, e ask for it and have their names instead`,
			steps: map[string]State{"c": Missing, "d": Done, "e": Missing},
		},
		"two new clusters: the oldest": {
			clusters: []cluster{{name: "d", wants: "x", age: time.Hour}, {name: "c", wants: "x"}}, state: Problem,
			text:  `"x" is that of cluster d, because it is the oldest that asks for it: c asks for it and has its name instead`,
			steps: map[string]State{"c": Missing, "d": Done},
		},
		"the name of another cluster": {
			clusters: []cluster{{name: "c", wants: "d", age: time.Hour}, {name: "d", wants: "y"}}, state: Problem,
			text:  `"d" is that of cluster d, because it is its name: c asks for it and has its name instead`,
			steps: map[string]State{"c": Missing, "d": Done},
		},
		"the name is another's id": {
			clusters: []cluster{{name: "c", wants: "d"}, {name: "d"}}, profiles: []profile{{"a", "c", "d", 1}}, state: Problem,
			text:  `"d" is that of cluster c, because its ClusterProfiles have it already: d has none until it is free`,
			steps: map[string]State{"c": Done, "d": Missing},
		},
		"the profile of a cluster that is gone has it": {
			clusters: []cluster{{name: "c", wants: "x"}}, profiles: []profile{{"a", "gone", "x", 1}}, state: Problem,
			text:  `"x" is that of cluster gone, because its ClusterProfiles have it already: c asks for it and has its name instead`,
			steps: map[string]State{"c": Missing},
		},
		"one that is not accepted may ask for anything": {
			clusters: []cluster{{name: "c", wants: "x"}, {name: "d", wants: "x", pending: true}, {name: "e", wants: "c", pending: true}},
			profiles: []profile{{"a", "c", "x", 1}}, state: OK, text: "no two ClusterProfiles of a namespace have the same",
			steps: map[string]State{"c": ""},
		},
		"who asks is not visible": {
			hidden: true, profiles: []profile{{"a", "c", "x", 1}}, state: NotVisible,
			text: "you may not read ManagedClusters, whose labels ask for member ids", steps: map[string]State{"c": ""},
		},
	} {
		t.Run(name, func(t *testing.T) {
			facts := MemberFacts{HiddenClusters: test.hidden}
			for _, c := range test.clusters {
				cluster := &clusterv1.ManagedCluster{}
				cluster.Name, cluster.Spec.HubAcceptsClient = c.name, !c.pending
				cluster.CreationTimestamp = metav1.NewTime(now.Add(-c.age))
				if c.wants != "" {
					cluster.Labels = map[string]string{"multicluster.x-k8s.io/inventory-member-id": c.wants}
				}
				facts.AddCluster(cluster)
			}
			for _, p := range test.profiles {
				profile := ocmtest.OurProfile(p.namespace, p.name)
				profile.Labels["multicluster.x-k8s.io/inventory-member-id"] = p.id
				profile.CreationTimestamp = metav1.NewTime(now.Add(-p.age))
				facts.Add(profile)
			}
			got := facts.Check()
			want := Finding{Name: "member ids", State: test.state, Text: test.text, Fix: got.Fix}
			if diff := cmp.Diff(want, got); diff != "" || (got.Fix == "") == (test.state == Problem) {
				t.Errorf("check, with fix %q (-want +got):\n%s", got.Fix, diff)
			}
			for cluster, state := range test.steps {
				var step Finding
				if found := facts.steps("a", cluster); len(found) > 0 {
					step = found[0]
				}
				if step.State != state || (step.Fix == "") == (state == Missing) {
					t.Errorf("the step of %s is %+v, want %q", cluster, step, state)
				}
			}
		})
	}
}

// On a hub whose clusters all ask for one id, the check looks at each cluster a few times only.
func TestMemberIDsThatThousandsAskFor(t *testing.T) {
	var facts MemberFacts
	const clusters = 10_000
	for n := range clusters {
		cluster := &clusterv1.ManagedCluster{}
		cluster.Name, cluster.Spec.HubAcceptsClient = fmt.Sprintf("c-%05d", n), true
		cluster.Labels = map[string]string{"multicluster.x-k8s.io/inventory-member-id": "x"}
		cluster.CreationTimestamp = metav1.NewTime(now.Add(time.Duration(n)))
		facts.AddCluster(cluster)
	}
	began := time.Now()
	want := `"x" is that of cluster c-00000, because it is the oldest that asks for it: ` +
		"c-00001, c-00002, c-00003, c-00004, c-00005 and 9994 more ask for it and have their names instead"
	if got := facts.Check(); got.Text != want {
		t.Errorf("the check says %q, want %q", got.Text, want)
	}
	if took := time.Since(began); took > 10*time.Second { // 10^8 comparisons take longer
		t.Errorf("the check took %s", took)
	}
}
