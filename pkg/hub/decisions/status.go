package decisions

import (
	"fmt"
	"strings"

	inventoryv1alpha1 "sigs.k8s.io/cluster-inventory-api/apis/v1alpha1"

	"open-cluster-management.io/cluster-inventory-addon/pkg/contract"
	"open-cluster-management.io/cluster-inventory-addon/pkg/kube"
)

const (
	// maxNames bounds how many names an event lists.
	maxNames = 10

	// maxErrorBytes bounds how much of an API server's refusal an event repeats.
	maxErrorBytes = 300
)

// notice is what an event on a Placement says; empty if there is nothing to say.
type notice struct {
	reason string
	text   string
}

// Reasons of events on a Placement.
const (
	// reasonForeign: PlacementDecisions of somebody else have the key, or the name, of
	// this addon's.
	reasonForeign = "ForeignPlacementDecision"

	// reasonRefused: the API server refused a write.
	reasonRefused = "PlacementDecisionRefused"

	// reasonContested: somebody else keeps changing a slice.
	reasonContested = "PlacementDecisionContested"
)

// foreignNotice says which PlacementDecisions of somebody else readers may take for those
// of a Placement, or stand where these would.
func foreignNotice(placement string, foreign []*inventoryv1alpha1.PlacementDecision) notice {
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
			"This addon did not make, and leaves alone, PlacementDecisions with the label %s=%s or the name of one of its own: %s.",
			inventoryv1alpha1.DecisionKeyLabel, keyOf(placement), kube.ListNames(kube.SortedNames(others), maxNames)))
	}
	if len(upstreams) > 0 {
		parts = append(parts, fmt.Sprintf(
			"Open Cluster Management (feature gate SIGPlacementDecision) publishes PlacementDecisions with the same label %s: %s.",
			inventoryv1alpha1.DecisionKeyLabel, kube.ListNames(kube.SortedNames(upstreams), maxNames)))
	}
	if len(parts) == 0 {
		return notice{}
	}
	parts = append(parts, fmt.Sprintf("Readers tell this addon's by the label %s=%s.",
		contract.LabelManagedBy, contract.ManagedBy))
	return notice{reason: reasonForeign, text: strings.Join(parts, " ")}
}

// refusedNotice says that the API server does not accept a PlacementDecision.
func refusedNotice(err error) notice {
	text := "PlacementDecisions of SIG-Multicluster cannot be written: " + kube.Shorten(err.Error(), maxErrorBytes)
	return notice{reason: reasonRefused, text: text}
}

// contestedNotice says that somebody else keeps changing a slice.
func contestedNotice(err error) notice {
	return notice{reason: reasonContested, text: fmt.Sprintf("A PlacementDecision of SIG-Multicluster is not right: %s; "+
		"find out who it is, for instance by its metadata.managedFields.", kube.Shorten(err.Error(), maxErrorBytes))}
}
