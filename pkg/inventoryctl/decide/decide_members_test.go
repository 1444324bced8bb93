package decide

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"open-cluster-management.io/cluster-inventory-addon/internal/apitest/ocmtest"
)

func TestMemberIDs(t *testing.T) {
	type profile struct {
		namespace, name, id string
		age                 time.Duration
	}
	for name, test := range map[string]struct {
		profiles []profile
		state    State
		text     string
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
			text: `"x" in namespace a is that of c, d, e: consumers use none, because the oldest were created in the same second`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			var facts MemberFacts
			for _, p := range test.profiles {
				profile := ocmtest.OurProfile(p.namespace, p.name)
				profile.Labels["multicluster.x-k8s.io/inventory-member-id"] = p.id
				profile.CreationTimestamp = metav1.NewTime(now.Add(-p.age))
				facts.Add(profile)
			}
			got := facts.check()
			want := Finding{Name: "member ids", State: test.state, Text: test.text, Fix: got.Fix}
			if diff := cmp.Diff(want, got); diff != "" || (got.Fix == "") == (test.state == Problem) {
				t.Errorf("check, with fix %q (-want +got):\n%s", got.Fix, diff)
			}
		})
	}
}
