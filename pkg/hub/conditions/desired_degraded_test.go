package conditions

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"

	"open-cluster-management.io/cluster-inventory-addon/internal/apitest/ocmtest"
)

const allIsWell = "None of this addon's own conditions is False."

func TestDegraded(t *testing.T) {
	now := time.Date(2026, 3, 3, 3, 3, 3, 0, time.UTC)
	list := func(conditions ...metav1.Condition) []metav1.Condition { return conditions }
	published := func(status, reason string) metav1.Condition {
		return ocmtest.Condition("PropertiesPublished", status, reason, "any")
	}
	synced := ocmtest.Condition("ProfilesSynced", "True", "Synced", "p")
	refused := ocmtest.Condition("ProfilesSynced", "False", "WriteFailed", "no")
	copied := ocmtest.Condition("CredentialsSynced", "True", "Copied", "t")
	noTarget := ocmtest.Condition("CredentialsSynced", "False", "NoTarget", "no")
	well := ocmtest.Condition("Degraded", "False", "AsExpected", allIsWell)
	degraded := func(reason, message string) metav1.Condition {
		return ocmtest.Condition("Degraded", "True", reason, message)
	}
	tests := map[string]struct {
		have     []metav1.Condition
		want     []metav1.Condition // of the sources, beside what is there
		reported time.Duration      // how long the agent has reported that something is wrong
		written  []metav1.Condition
		againSec float64
	}{
		"at birth it is written with the others": {
			want: list(synced, copied), written: list(synced, copied, well),
		},
		"something is wrong at birth": {
			want:    list(synced, noTarget),
			written: list(synced, noTarget, degraded("NoTarget", "CredentialsSynced is False (NoTarget).")),
		},
		"a healthy addon that an earlier manager wrote: nothing is written for it alone": {
			have: list(synced, copied), want: list(synced, copied),
		},
		"an addon that an earlier manager wrote is degraded": {
			have: list(refused, copied), want: list(refused, copied),
			written: list(degraded("WriteFailed", "ProfilesSynced is False (WriteFailed).")),
		},
		"one becomes False: both in one patch": {
			have: list(synced, copied, well), want: list(refused, copied),
			written: list(refused, degraded("WriteFailed", "ProfilesSynced is False (WriteFailed).")),
		},
		"the most important one is first": {
			have: list(
				published("False", "ClaimLimitExceeded"), synced, noTarget,
				ocmtest.Condition("ConfigurationApplied", "False", "InvalidConfiguration", "no"),
				degraded("NoTarget", "CredentialsSynced is False (NoTarget)."),
			),
			want: list(refused, noTarget), reported: time.Hour,
			written: list(refused, degraded("WriteFailed", "ProfilesSynced is False (WriteFailed), "+
				"CredentialsSynced is False (NoTarget), PropertiesPublished is False (ClaimLimitExceeded), "+
				"ConfigurationApplied is False (InvalidConfiguration).")),
		},
		"all is well again: both in one patch": {
			have: list(refused, copied, degraded("WriteFailed", "ProfilesSynced is False (WriteFailed).")),
			want: list(synced, copied), written: list(synced, well),
		},
		"another text of what is wrong changes nothing": {
			have:    list(refused, copied, degraded("WriteFailed", "ProfilesSynced is False (WriteFailed).")),
			want:    list(ocmtest.Condition("ProfilesSynced", "False", "WriteFailed", "still no"), copied),
			written: list(ocmtest.Condition("ProfilesSynced", "False", "WriteFailed", "still no")),
		},
		"a report waits although something else is wrong": {
			have: list(published("False", "PartiallyPublished"), refused, copied,
				degraded("WriteFailed", "ProfilesSynced is False (WriteFailed).")),
			want: list(refused, copied), reported: time.Second, againSec: 4,
		},
		"a report that is named stays named": {
			have: list(published("False", "PartiallyPublished"), refused, copied,
				degraded("WriteFailed",
					"ProfilesSynced is False (WriteFailed), PropertiesPublished is False (PartiallyPublished).")),
			want: list(refused, copied), reported: time.Second,
		},
		"unknown is not degraded": {
			have: list(ocmtest.Condition("ProfilesSynced", "Unknown", "SelectionUnknown", "u"), copied, well),
			want: list(ocmtest.Condition("ProfilesSynced", "Unknown", "SelectionUnknown", "u"), copied),
		},
		"the agent has just reported something: it may pass": {
			have: list(published("False", "ClusterPropertyAPIMissing"), synced, copied, well), want: list(synced, copied),
			reported: 2 * time.Second, againSec: 3,
		},
		"what the agent reports has not passed": {
			have: list(published("False", "PartiallyPublished"), synced, copied, well), want: list(synced, copied),
			reported: 5 * time.Second,
			written:  list(degraded("PartiallyPublished", "PropertiesPublished is False (PartiallyPublished).")),
		},
		"a manager that has just started takes nothing back": {
			have: list(
				published("False", "PartiallyPublished"), synced, copied,
				degraded("PartiallyPublished", "PropertiesPublished is False (PartiallyPublished)."),
			),
			want: list(synced, copied),
		},
		"the agent has nothing to report any more": {
			have: list(
				published("True", "Published"), synced, copied,
				degraded("PartiallyPublished", "PropertiesPublished is False (PartiallyPublished)."),
			),
			want: list(synced, copied), written: list(well),
		},
		"what others report is not this addon's": {
			have: list(ocmtest.Condition("Available", "False", "ProbeUnavailable", "no"), synced, copied, well),
			want: list(synced, copied),
		},
		"another client altered it": {
			have: list(synced, copied, degraded("Wrong", "somebody's")), want: list(synced, copied), written: list(well),
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			addon := &addonv1beta1.ManagedClusterAddOn{}
			addon.Status.Conditions = test.have
			addon.Status.HealthCheck.Mode = "Customized"
			var all []wanted
			for _, c := range test.want {
				all = append(all, wanted{
					conditionType: c.Type, Desired: &Desired{Status: c.Status, Reason: c.Reason, Message: c.Message},
				})
			}
			reported := wanted{Desired: reportOf(addon).heldBack(), since: now.Add(-test.reported)}
			write, again := decide(addon, all, reported, now)
			var written []metav1.Condition
			for _, w := range write {
				written = append(written, ocmtest.Condition(w.conditionType, string(w.Status), w.Reason, w.Message))
			}
			ignoreTime := cmpopts.IgnoreFields(metav1.Condition{}, "LastTransitionTime")
			if diff := cmp.Diff(test.written, written, ignoreTime); diff != "" {
				t.Errorf("to write (-want +got):\n%s", diff)
			}
			if again.Seconds() != test.againSec {
				t.Errorf("again after %s, want %gs", again, test.againSec)
			}
		})
	}
}

// The agent chooses its own reason, whose length the API server bounds like a message's: it
// never makes ours too long.
func TestTheMessageOfDegradedIsBounded(t *testing.T) {
	have := []metav1.Condition{
		ocmtest.Condition("ProfilesSynced", "False", "WriteFailed", ""),
		ocmtest.Condition("PropertiesPublished", "False", strings.Repeat("R", 1024), ""),
	}
	degraded, _ := desiredDegraded(have, nil, wanted{}, time.Now())
	if degraded.Reason != "WriteFailed" || len(degraded.Message) > 1024 {
		t.Errorf("reason %s, message of %d bytes", degraded.Reason, len(degraded.Message))
	}
}
