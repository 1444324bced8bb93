package decisions

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"

	inventoryv1alpha1 "sigs.k8s.io/cluster-inventory-api/apis/v1alpha1"

	"open-cluster-management.io/cluster-inventory-addon/pkg/contract"
	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/notices"
	"open-cluster-management.io/cluster-inventory-addon/pkg/kube"
)

const (
	// maxNames bounds how many names an event lists.
	maxNames = 10

	// maxErrorBytes bounds how much of an API server's refusal an event repeats.
	maxErrorBytes = 300
)

// Reasons of events on a Placement.
const (
	// reasonForeign: others' PlacementDecisions have the key, or the name, of this addon's.
	reasonForeign = "ForeignPlacementDecision"

	// reasonRefused: the API server refused a write.
	reasonRefused = "PlacementDecisionRefused"

	// reasonContested: another client keeps changing a slice.
	reasonContested = "PlacementDecisionContested"
)

// foreignNotice names others' PlacementDecisions that readers may take for those of a
// Placement, or that have the name of one of these. ok is false if there are none.
func foreignNotice(placement string, foreign []*inventoryv1alpha1.PlacementDecision) (n notices.Notice, ok bool) {
	var upstreams, others []string
	for _, decision := range foreign {
		if isUpstreams(decision) {
			upstreams = append(upstreams, decision.Name)
		} else {
			others = append(others, decision.Name)
		}
	}
	var parts []string
	if len(others) > 0 {
		parts = append(parts, fmt.Sprintf(
			"This addon did not create, and leaves alone, PlacementDecisions with the label %s=%s "+
				"or the name of one of its own: %s.",
			inventoryv1alpha1.DecisionKeyLabel, keyOf(placement), kube.ListNames(kube.SortedNames(others), maxNames)))
	}
	if len(upstreams) > 0 {
		parts = append(parts, fmt.Sprintf(
			"Open Cluster Management (feature gate SIGPlacementDecision) publishes PlacementDecisions "+
				"with the same label %s: %s.",
			inventoryv1alpha1.DecisionKeyLabel, kube.ListNames(kube.SortedNames(upstreams), maxNames)))
	}
	if len(parts) == 0 {
		return notices.Notice{}, false
	}
	parts = append(parts, fmt.Sprintf("Select this addon's by the label %s=%s.",
		contract.LabelManagedBy, contract.ManagedBy))
	return warning(placement, reasonForeign, strings.Join(parts, " ")), true
}

// refusedNotice says that the API server does not accept a PlacementDecision.
func refusedNotice(placement string, err error) notices.Notice {
	text := "PlacementDecisions of SIG-Multicluster cannot be written: " + kube.Shorten(err.Error(), maxErrorBytes)
	return warning(placement, reasonRefused, text)
}

// contestedNotice says that another client keeps changing a slice.
func contestedNotice(placement string, err error) notices.Notice {
	return warning(placement, reasonContested, fmt.Sprintf("PlacementDecisions of SIG-Multicluster are not up to date: "+
		"%s; find out which one, for instance from its metadata.managedFields.", kube.Shorten(err.Error(), maxErrorBytes)))
}

func warning(placement, reason, text string) notices.Notice {
	return notices.Notice{
		Subject: notices.Subject{Kind: notices.Placement, Name: placement},
		Reason:  reason, Type: corev1.EventTypeWarning, Text: text,
	}
}
