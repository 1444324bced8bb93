package configuration

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"open-cluster-management.io/cluster-inventory-addon/pkg/contract"
	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/conditions"
)

const (
	// appliedMessage is the one message of the condition while nothing is wrong.
	appliedMessage = "The agent's manifests match its configuration."

	// missingFor is how long a configuration must be missing before that is written:
	// Helm may replace it.
	missingFor = 5 * time.Second

	// unknownFor is how long a revision must be for another version of the manager before
	// that is written: in an upgrade, the manager that leads may not be the new one yet.
	unknownFor = time.Minute

	// refusedFor is how long a spoke must refuse a manifest before that is written: the
	// first attempt to apply them often fails, because the namespace is not there yet.
	refusedFor = 30 * time.Second
)

// configurationApplied words the condition ConfigurationApplied. Without a configuration
// and without a problem there is none.
func configurationApplied(configured bool, refused *Refusal) conditions.Desired {
	switch {
	case refused != nil:
		desired := conditions.Desired{
			Status: metav1.ConditionFalse, Reason: refused.Reason, Message: refused.Message,
		}
		switch {
		case refused.UnknownManifests:
			desired.HoldBack = unknownFor
		case refused.Reason == contract.ReasonConfigurationMissing:
			desired.HoldBack = missingFor
		case refused.Reason == contract.ReasonManifestsRefused:
			desired.HoldBack = refusedFor
		}
		return desired
	case configured:
		return conditions.Desired{
			Status: metav1.ConditionTrue, Reason: contract.ReasonConfigurationApplied, Message: appliedMessage,
		}
	default:
		return conditions.Desired{Absent: true}
	}
}
