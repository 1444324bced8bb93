package profiles

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"open-cluster-management.io/cluster-inventory-addon/internal/apitest/ocmtest"
	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/selection"
)

func TestMemberIDHolder(t *testing.T) {
	old, young := time.Unix(1, 0), time.Unix(2, 0)
	tests := map[string]struct {
		last      string
		claimants []selection.MemberIDClaimant
		want      string
	}{
		"no cluster":                      {},
		"the last holder, though younger": {last: "b", claimants: []selection.MemberIDClaimant{{Name: "a", Created: old}, {Name: "b", Created: young}}, want: "b"},
		"the last holder, though another has its name": {
			last: "b", claimants: []selection.MemberIDClaimant{{Name: "id", Created: old, Holds: true}, {Name: "b"}}, want: "b",
		},
		"after a start, the one whose profile has it": {
			claimants: []selection.MemberIDClaimant{{Name: "a", Created: old}, {Name: "b", Created: young, Holds: true}}, want: "b",
		},
		"after a start, though another now has its name": {
			claimants: []selection.MemberIDClaimant{{Name: "id", Created: old}, {Name: "b", Created: young, Holds: true}}, want: "b",
		},
		"a profile of no cluster, and another has its name": {
			claimants: []selection.MemberIDClaimant{{Name: "id", Created: old}, {Name: "b", Holds: true}}, want: "b",
		},
		"a profile of no cluster, which a tenant may have made up": {
			claimants: []selection.MemberIDClaimant{{Name: "a", Created: young, Holds: true}, {Name: "A", Holds: true}}, want: "a",
		},
		"two profiles have it: the cluster of that name": {
			claimants: []selection.MemberIDClaimant{{Name: "a", Created: old, Holds: true}, {Name: "id", Created: young, Holds: true}}, want: "id",
		},
		"new: the cluster of that name": {
			claimants: []selection.MemberIDClaimant{{Name: "a", Created: old}, {Name: "id", Created: young}}, want: "id",
		},
		"new: the oldest":    {claimants: []selection.MemberIDClaimant{{Name: "a", Created: young}, {Name: "b", Created: old}}, want: "b"},
		"made together":      {claimants: []selection.MemberIDClaimant{{Name: "b", Created: old}, {Name: "a", Created: old}}, want: "a"},
		"the holder gave up": {last: "b", claimants: []selection.MemberIDClaimant{{Name: "a"}}, want: "a"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := MemberIDHolder("id", test.last, test.claimants); got != test.want {
				t.Errorf("the holder is %q, want %q", got, test.want)
			}
		})
	}
}

func TestMemberIDOf(t *testing.T) {
	for name, test := range map[string]struct {
		wanted  string
		holders map[string]string
		want    MemberID
	}{
		"no label":                        {holders: map[string]string{"c": "c"}, want: MemberID{ID: "c"}},
		"a free id":                       {wanted: "x", holders: map[string]string{"x": "c"}, want: MemberID{ID: "x"}},
		"a taken id: the name":            {wanted: "x", holders: map[string]string{"x": "d", "c": "c"}, want: MemberID{ID: "c", Refused: "x"}},
		"the name is another's id":        {holders: map[string]string{"c": "d"}, want: MemberID{Refused: "c"}},
		"no cluster asks for it any more": {wanted: "x", holders: map[string]string{"c": "c"}, want: MemberID{ID: "x"}},
		"both are another cluster's":      {wanted: "x", holders: map[string]string{"x": "d", "c": "e"}, want: MemberID{Refused: "x"}},
	} {
		t.Run(name, func(t *testing.T) {
			cluster := ocmtest.ClusterWith("c", map[string]string{"multicluster.x-k8s.io/inventory-member-id": test.wanted})
			got := MemberIDOf(cluster, func(id string) string { return test.holders[id] })
			if diff := cmp.Diff(test.want, got, cmp.AllowUnexported(MemberID{})); diff != "" {
				t.Errorf("member id (-want +got):\n%s", diff)
			}
		})
	}
}
