package conditions

import (
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"

	"open-cluster-management.io/cluster-inventory-addon/pkg/contract"
	"open-cluster-management.io/cluster-inventory-addon/pkg/kube"
)

const (
	// reportedFor is how long the agent must report a problem before the addon counts as
	// degraded: problems that it finds when it starts are often transient.
	reportedFor = 5 * time.Second

	// asExpectedMessage is the one message of Degraded while nothing is wrong.
	asExpectedMessage = "None of this addon's own conditions is False."

	// messageBytes bounds a message.
	messageBytes = 1024
)

// degrading are the conditions that degrade an addon while they are False, most costly for
// consumers first.
var degrading = []string{
	contract.ConditionProfilesSynced, contract.ConditionCredentialsSynced, contract.ConditionPropertiesPublished,
	contract.ConditionConfigurationApplied,
}

// report is what the agent reports in its own condition.
type report struct {
	status metav1.ConditionStatus
	reason string
}

// reportOf reads the agent's report. It ignores the message, which changes with every name
// of a property.
func reportOf(addon *addonv1beta1.ManagedClusterAddOn) report {
	found := meta.FindStatusCondition(addon.Status.Conditions, contract.ConditionPropertiesPublished)
	if found == nil {
		return report{}
	}
	return report{status: found.Status, reason: found.Reason}
}

// heldBack returns a report of a problem in the form in which conditions are held back, or
// nil.
func (r report) heldBack() *Desired {
	if r.status != metav1.ConditionFalse {
		return nil
	}
	return &Desired{Status: r.status, HoldBack: reportedFor}
}

// desiredDegraded returns what Degraded must be once the other conditions are written, and
// how soon that may change by itself. It names only conditions and reasons, so that it does
// not follow every change of a message.
func desiredDegraded(
	have []metav1.Condition, write []wanted, reported wanted, now time.Time,
) (degraded wanted, again time.Duration) {
	left := time.Duration(0)
	// A manager that has just started must not retract the existing condition.
	if reported.Desired != nil && !isNamed(have, contract.ConditionPropertiesPublished) {
		left = reported.heldBackFor(now)
	}
	var reasons, named []string
	for _, conditionType := range degrading {
		status, reason := afterwards(have, write, conditionType)
		if status != metav1.ConditionFalse || conditionType == contract.ConditionPropertiesPublished && left > 0 {
			continue
		}
		reasons = append(reasons, reason)
		named = append(named, nameOf(conditionType, reason))
	}
	desired := &Desired{Status: metav1.ConditionFalse, Reason: contract.ReasonAsExpected, Message: asExpectedMessage}
	if len(reasons) > 0 {
		desired = &Desired{
			Status: metav1.ConditionTrue, Reason: reasons[0],
			Message: kube.Shorten(strings.Join(named, ", ")+".", messageBytes),
		}
	}
	return wanted{conditionType: contract.ConditionDegraded, Desired: desired}, left
}

// isNamed reports whether Degraded names a condition. Its message is the only record of that
// which survives a restart of the manager: the reason is that of the first condition alone.
func isNamed(have []metav1.Condition, conditionType string) bool {
	degraded := meta.FindStatusCondition(have, contract.ConditionDegraded)
	return degraded != nil && degraded.Status == metav1.ConditionTrue &&
		strings.Contains(degraded.Message, nameOf(conditionType, ""))
}

// nameOf returns the beginning of what Degraded says about a condition.
func nameOf(conditionType, reason string) string {
	name := conditionType + " is False"
	if reason != "" {
		name += " (" + reason + ")"
	}
	return name
}

// afterwards returns a condition's status and reason once others are written.
func afterwards(
	have []metav1.Condition, write []wanted, conditionType string,
) (status metav1.ConditionStatus, reason string) {
	for _, w := range write {
		if w.conditionType == conditionType {
			return w.Status, w.Reason // empty if it must be absent
		}
	}
	if found := meta.FindStatusCondition(have, conditionType); found != nil {
		return found.Status, found.Reason
	}
	return "", ""
}
