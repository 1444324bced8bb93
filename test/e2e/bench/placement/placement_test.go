package placement

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestOnlyWritesOfTheSecondSliceAreSlow(t *testing.T) {
	const slices = "/apis/cluster.open-cluster-management.io/v1beta1/namespaces/a/placementdecisions"
	tests := map[string]struct {
		method, path string
		want         bool
	}{
		"its status":           {"PATCH", slices + "/p-decision-2/status", true},
		"its labels":           {"PATCH", slices + "/p-decision-2", true},
		"it is read":           {"GET", slices + "/p-decision-2", false},
		"it is deleted":        {"DELETE", slices + "/p-decision-2", false},
		"the first":            {"PATCH", slices + "/p-decision-1/status", false},
		"the twelfth":          {"PATCH", slices + "/p-decision-12/status", false},
		"it is created":        {"POST", slices, false},
		"the Placement itself": {"PATCH", "/apis/cluster.open-cluster-management.io/v1beta1/namespaces/a/placements/p-decision-2", false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := isSlow(test.method, test.path); got != test.want {
				t.Errorf("got %t", got)
			}
		})
	}
}

func TestTheKubeconfigIsReplaced(t *testing.T) {
	given := []string{"ocm", "placement", "--kubeconfig=a", "--listen=x"}
	want := []string{"ocm", "placement", "--kubeconfig=b", "--listen=x"}
	if diff := cmp.Diff(want, withKubeconfig(given, "b")); diff != "" {
		t.Error(diff)
	}
	if given[2] != "--kubeconfig=a" {
		t.Error("the arguments of the fleet were changed")
	}
}

func TestWhoShouldHaveAProfile(t *testing.T) {
	tests := map[string]struct {
		e    expectation
		want map[string]bool
	}{
		"whom the install Placement chooses": {expectation{enabled: setOf("a", "b")}, setOf("a", "b")},
		"not who has no addon":               {expectation{manual: setOf("a"), published: setOf("a", "b")}, setOf("a")},
		"not whom the publishing Placement does not choose": {
			expectation{enabled: setOf("a", "b"), published: setOf("b")}, setOf("b"),
		},
		"nobody in a namespace without a binding": {expectation{enabled: setOf("a"), unbound: true}, setOf()},
		"not who is refused":                      {expectation{enabled: setOf("a", "b"), without: setOf("b")}, setOf("a")},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, test.e.profilesOf()); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestWhatWasLostIsPrintedWithItsLongestAbsence(t *testing.T) {
	if got := (Lost{Clusters: 92, Longest: 28400 * time.Millisecond}).String(); got != "92 (28.4 s)" {
		t.Errorf("got %s", got)
	}
	if got := (Lost{}).String(); got != "0" {
		t.Errorf("got %s", got)
	}
}
