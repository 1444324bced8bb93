package credentials

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestCredentialsSynced(t *testing.T) {
	with := func(where []string, problems ...problem) outcome { return outcome{where: where, problems: problems} }
	tests := map[string]struct {
		outcomes                map[string]outcome
		status, reason, message string
	}{
		"no accounts": {
			status: "True", reason: "NoAccounts",
			message: "No ManagedServiceAccount of the cluster is labelled authentication.open-cluster-management.io/sync-to-clusterprofile=true.",
		},
		"all copied": {
			outcomes: map[string]outcome{"b": with([]string{"y", "x"}), "a": with([]string{"x"})},
			status:   "True", reason: "Copied", message: "Copied: a to x; b to x, y.",
		},
		"nothing to copy": {
			outcomes: map[string]outcome{"a": {}},
			status:   "True", reason: "Copied", message: "No namespace is to hold a copy.",
		},
		"the first reason of several is the condition's, the message has all": {
			outcomes: map[string]outcome{
				"a": with([]string{"x"}, problem{"CopyFailed", "y", "no"}, problem{"TargetNotEntitled", "z", "the cluster is out"}),
				"b": with(nil, problem{"ForeignSecret", "x", "theirs"}, problem{"SelectionUnknown", "y", "the cluster is undecided"}),
				"c": with(nil, problem{"NoTarget", "", ""}),
				"d": with(nil, problem{"InvalidSource", "", "its token has expired"}),
			},
			status: "False", reason: "ForeignSecret",
			message: "Account b is not copied in x: theirs. Account d is not copied: its token has expired. " +
				"Account c is copied nowhere: name the namespaces, for instance with the annotation inventory.open-cluster-management.io/sync-to-namespaces=team-a,team-b. " +
				"Account a is not copied in z: the cluster is out. Account a could not be copied or withdrawn in y: no. Account b is left as it is in y: the cluster is undecided. Copied: a to x.",
		},
		"one reason in several namespaces is one sentence": {
			outcomes: map[string]outcome{"a": with(nil, problem{"TargetNotEntitled", "y", "the cluster is out"}, problem{"TargetNotEntitled", "x", "the cluster is out"})},
			status:   "False", reason: "TargetNotEntitled", message: "Account a is not copied in x, y: the cluster is out.",
		},
		"unknown alone is unknown": {
			outcomes: map[string]outcome{"a": with([]string{"x"}, problem{"SelectionUnknown", "x", "the cluster is undecided"})},
			status:   "Unknown", reason: "SelectionUnknown", message: "Account a is left as it is in x: the cluster is undecided. Copied: a to x.",
		},
		"what concerns all is said once": {
			outcomes: map[string]outcome{"a": with(nil, problem{"Draining", "", ""}), "b": with(nil, problem{"Draining", "", ""})},
			status:   "False", reason: "Draining", message: "Copies of tokens are being removed, and none are made: the manager runs with credentials.mode=draining.",
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got := credentialsSynced(test.outcomes)
			if diff := cmp.Diff([]string{"CredentialsSynced", test.status, test.reason, test.message}, []string{got.Type, string(got.Status), got.Reason, got.Message}); diff != "" {
				t.Errorf("condition (-want +got):\n%s", diff)
			}
		})
	}
}

// TestEveryReasonHasItsPlace: a reason that order does not know would be lost.
func TestEveryReasonHasItsPlace(t *testing.T) {
	for _, reason := range order {
		got := credentialsSynced(map[string]outcome{"a": {problems: []problem{{reason, "x", "why"}}}})
		if got.Reason != reason || got.Message == "" {
			t.Errorf("%s: %+v", reason, got)
		}
	}
	if got := credentialsSynced(map[string]outcome{"a": {problems: []problem{{"CopyFailed", "x", strings.Repeat("long ", 1000)}}}}); len(got.Message) > 1024 {
		t.Errorf("the message has %d bytes", len(got.Message))
	}
}
