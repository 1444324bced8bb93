package report

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"open-cluster-management.io/cluster-inventory-addon/pkg/contract"
	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/conditions"
	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/metrics"
)

func TestCredentialsSynced(t *testing.T) {
	const copied = "All tokens of this cluster's accounts are copied."
	tests := map[string]struct {
		problems                map[string][]Problem
		isIncomplete            bool
		status, reason, message string // none: it is not known
		holdBack                time.Duration
	}{
		"no accounts": {status: "True", reason: "Copied", message: copied},
		"all copied": {
			problems: map[string][]Problem{"b": {}, "a": {}}, status: "True", reason: "Copied", message: copied,
		},
		"no known problem, but not all is known: not known": {problems: map[string][]Problem{"b": {}}, isIncomplete: true},
		"one is wrong, the other not known: held back": {
			problems: map[string][]Problem{"b": {{"ForeignSecret", "x", "theirs"}}}, isIncomplete: true,
			status: "False", reason: "ForeignSecret", message: "Account b is not copied in x: theirs.",
			holdBack: 30 * time.Second,
		},
		"the first reason of several is the condition's, the message has all": {
			problems: map[string][]Problem{
				"a": {{"CopyFailed", "y", "no"}, {"TargetNotEntitled", "z", "the cluster is out"}},
				"b": {{"ForeignSecret", "x", "theirs"}, {"SelectionUnknown", "y", "the cluster is undecided"}},
				"c": {{"NoTarget", "", ""}},
				"d": {{"InvalidSource", "", "its token has expired"}},
			},
			status: "False", reason: "ForeignSecret",
			message: "Account b is not copied in x: theirs. Account d is not copied: its token has expired. " +
				"Account c is copied nowhere: name the namespaces, for instance with the annotation " +
				"inventory.open-cluster-management.io/sync-to-namespaces=team-a,team-b. " +
				"Account a is not copied in z: the cluster is out. Account a could not be copied or withdrawn in y: no. Account " +
				"b is left as it is in y: the cluster is undecided.",
		},
		"one reason in several namespaces is one sentence": {
			problems: map[string][]Problem{"a": {{"TargetNotEntitled", "y", "the cluster is out"},
				{"TargetNotEntitled", "x", "the cluster is out"}}},
			status: "False", reason: "TargetNotEntitled", message: "Account a is not copied in x, y: the cluster is out.",
		},
		"unknown alone is unknown, and may pass": {
			problems: map[string][]Problem{"a": {{"SelectionUnknown", "x", "the cluster is undecided"}}},
			status:   "Unknown", reason: "SelectionUnknown",
			message: "Account a is left as it is in x: the cluster is undecided.", holdBack: 30 * time.Second,
		},
		"what concerns all is said once": {
			problems: map[string][]Problem{"a": {{"Draining", "", ""}}, "b": {{"Draining", "", ""}}},
			status:   "False", reason: "Draining",
			message: "Copies of tokens are being removed, and none are created: the manager runs with credentials.mode=draining.",
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			var want *conditions.Desired
			if test.status != "" {
				want = &conditions.Desired{
					Status: metav1.ConditionStatus(test.status), Reason: test.reason, Message: test.message, HoldBack: test.holdBack,
				}
			}
			if diff := cmp.Diff(want, CredentialsSynced(test.problems, !test.isIncomplete)); diff != "" {
				t.Errorf("condition (-want +got):\n%s", diff)
			}
		})
	}
}

// TestEveryReasonIsOrdered: a reason that order does not know would be lost.
func TestEveryReasonIsOrdered(t *testing.T) {
	for _, reason := range order {
		got := CredentialsSynced(map[string][]Problem{"a": {{reason, "x", "why"}}}, true)
		if got.Reason != reason || got.Message == "" {
			t.Errorf("%s: %+v", reason, got)
		}
	}
	counted := slices.Sorted(slices.Values(metrics.Reasons()[contract.ConditionCredentialsSynced]))
	known := slices.Sorted(slices.Values(append(slices.Clone(order), contract.ReasonCopied)))
	if diff := cmp.Diff(counted, known); diff != "" {
		t.Errorf("reasons (-counted +ordered):\n%s", diff)
	}
	if got := CredentialsSynced(map[string][]Problem{"a": {{"CopyFailed", "x", strings.Repeat("long ", 1000)}}},
		true); len(got.Message) > 1024 {
		t.Errorf("the message has %d bytes", len(got.Message))
	}
}
