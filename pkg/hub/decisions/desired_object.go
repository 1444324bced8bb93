package decisions

import (
	"crypto/sha256"
	"encoding/hex"
	"maps"
	"slices"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	inventoryv1alpha1 "sigs.k8s.io/cluster-inventory-api/apis/v1alpha1"

	"open-cluster-management.io/cluster-inventory-addon/pkg/contract"
	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/selection"
	"open-cluster-management.io/cluster-inventory-addon/pkg/kube"
)

const (
	// infix stands between the Placement's name and a number in the name of each slice.
	// Open Cluster Management's own have "-decision-" there.
	infix = "-profiles-"

	// maxBaseBytes is how much of a Placement's name fits before that: names of objects
	// have at most 253 bytes.
	maxBaseBytes = 253 - len(infix) - 6

	// maxKeyBytes is the longest value of a label.
	maxKeyBytes = 63

	// hashBytes is the length of the hash at the end of a name that had to be cut.
	hashBytes = 10
)

// baseOf returns the start of the names of a Placement's slices: its name, cut if it is too
// long.
func baseOf(placement string) string { return cut(placement, maxBaseBytes) }

// keyOf returns the decision-key of a Placement's slices: its name, cut if it is too long.
func keyOf(placement string) string { return cut(placement, maxKeyBytes) }

// cut shortens a name to a limit; a hash keeps it distinct.
func cut(name string, limit int) string {
	if len(name) <= limit {
		return name
	}
	sum := sha256.Sum256([]byte(name))
	kept := strings.TrimRight(name[:limit-hashBytes-1], ".-")
	return kept + "-" + hex.EncodeToString(sum[:])[:hashBytes]
}

// nameOf names the n-th slice of a Placement. A slice keeps its name; n is not its index.
func nameOf(base string, n int) string { return base + infix + strconv.Itoa(n) }

// parseName returns the base of a slice's name; "" if it is not the name of a slice.
func parseName(name string) (base string) {
	at := strings.LastIndex(name, infix)
	if at <= 0 {
		return ""
	}
	base = name[:at]
	n, err := strconv.Atoi(name[at+len(infix):])
	if err != nil || n < 0 || nameOf(base, n) != name {
		return ""
	}
	return base
}

// isOurs reports whether a PlacementDecision was made by this addon.
func isOurs(decision *inventoryv1alpha1.PlacementDecision) bool {
	return decision.Labels[contract.LabelManagedBy] == contract.ManagedBy && parseName(decision.Name) != ""
}

// isUpstreams reports whether a PlacementDecision is a copy that Open Cluster Management
// makes by itself.
func isUpstreams(decision *inventoryv1alpha1.PlacementDecision) bool {
	owner := metav1.GetControllerOf(decision)
	return owner != nil && owner.Kind == "PlacementDecision" &&
		strings.HasPrefix(owner.APIVersion, "cluster.open-cluster-management.io/")
}

// labelsOf returns the labels of a slice that are this addon's.
func labelsOf(placement string, s slice) map[string]string {
	labels := map[string]string{
		contract.LabelManagedBy:              contract.ManagedBy,
		inventoryv1alpha1.DecisionKeyLabel:   keyOf(placement),
		inventoryv1alpha1.DecisionIndexLabel: strconv.Itoa(s.index),
		contract.LabelDecisionGroupIndex:     strconv.Itoa(s.group.Index),
	}
	if s.group.Name != "" {
		labels[contract.LabelDecisionGroupName] = s.group.Name
	}
	return labels
}

// ourLabels are the keys of labelsOf.
var ourLabels = []string{
	contract.LabelManagedBy, inventoryv1alpha1.DecisionKeyLabel, inventoryv1alpha1.DecisionIndexLabel,
	contract.LabelDecisionGroupIndex, contract.LabelDecisionGroupName,
}

// observedSlice returns the content of a Placement's PlacementDecision. References to other
// namespaces are not ours, and count as an alteration.
func observedSlice(decision *inventoryv1alpha1.PlacementDecision, placement string) slice {
	s := slice{
		name:     decision.Name,
		index:    parseIndex(decision.Labels[inventoryv1alpha1.DecisionIndexLabel], noIndex),
		clusters: referredClusters(decision),
		group: selection.Group{
			Index: parseIndex(decision.Labels[contract.LabelDecisionGroupIndex], 0),
			Name:  decision.Labels[contract.LabelDecisionGroupName],
		},
	}
	ours := func(d inventoryv1alpha1.ClusterDecision) bool { return d == reference(d.ClusterProfileRef.Name) }
	s.altered = decision.SchedulerName != contract.SchedulerName || len(s.clusters) != len(decision.Decisions) ||
		!maps.Equal(ownLabels(decision), labelsOf(placement, s)) ||
		slices.ContainsFunc(decision.Decisions, func(d inventoryv1alpha1.ClusterDecision) bool { return !ours(d) })
	return s
}

// ownLabels returns those of a PlacementDecision's labels that this addon writes.
func ownLabels(decision *inventoryv1alpha1.PlacementDecision) map[string]string {
	return kube.OnlyLabels(decision.Labels, ourLabels...)
}

// ownPart identifies what this addon writes of a PlacementDecision, as it is cached. What
// others add to it does not delay a repair.
func ownPart(decision *inventoryv1alpha1.PlacementDecision) string {
	return kube.Fingerprint(decision, ownLabels(decision), decision.Decisions, decision.SchedulerName)
}

// partWritten is the ownPart that a write left, or kube.NotAsMeant if a webhook has changed
// what was written.
func partWritten(written *inventoryv1alpha1.PlacementDecision, placement string, s slice) string {
	if len(desiredChanges(written, placement, s)) > 0 {
		return kube.NotAsMeant
	}
	return ownPart(written)
}

// losesAny reports whether a PlacementDecision refers to a cluster that a slice does not.
func losesAny(current *inventoryv1alpha1.PlacementDecision, s slice) bool {
	return slices.ContainsFunc(referredClusters(current), func(cluster string) bool {
		return !slices.Contains(s.clusters, cluster)
	})
}

func parseIndex(label string, otherwise int) int {
	if n, err := strconv.Atoi(label); err == nil && n >= 0 {
		return n
	}
	return otherwise
}

// referredClusters returns the clusters whose profiles, in its own namespace, a
// PlacementDecision refers to.
func referredClusters(decision *inventoryv1alpha1.PlacementDecision) []string {
	clusters := make([]string, 0, len(decision.Decisions))
	for _, d := range decision.Decisions {
		ref := d.ClusterProfileRef
		if ref.Name != "" && (ref.Namespace == "" || ref.Namespace == decision.Namespace) {
			clusters = append(clusters, ref.Name)
		}
	}
	return clusters
}

// reference returns a reference as this addon writes it: without a namespace, it refers to
// the PlacementDecision's own.
func reference(cluster string) inventoryv1alpha1.ClusterDecision {
	return inventoryv1alpha1.ClusterDecision{
		ClusterProfileRef: inventoryv1alpha1.ClusterProfileReference{Name: cluster},
	}
}

func references(clusters []string) []inventoryv1alpha1.ClusterDecision {
	list := make([]inventoryv1alpha1.ClusterDecision, 0, len(clusters))
	for _, cluster := range clusters {
		list = append(list, reference(cluster))
	}
	return list
}

// desiredDecision returns the PlacementDecision of a new slice. It has no owner: a restored
// Placement has another UID, so the garbage collector would conclude that the Placement was
// deleted.
func desiredDecision(namespace, placement string, s slice) *inventoryv1alpha1.PlacementDecision {
	return &inventoryv1alpha1.PlacementDecision{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace, Name: s.name, Labels: labelsOf(placement, s),
		},
		Decisions:     references(s.clusters),
		SchedulerName: contract.SchedulerName,
	}
}

// desiredChanges returns the part of a merge patch that turns a PlacementDecision into a
// desired slice and leaves others' additions alone.
func desiredChanges(current *inventoryv1alpha1.PlacementDecision, placement string, s slice) map[string]any {
	changes := map[string]any{}
	if labels := kube.MapChanges(ownLabels(current), labelsOf(placement, s)); labels != nil {
		changes["metadata"] = map[string]any{"labels": labels}
	}
	if list := references(s.clusters); !slices.Equal(current.Decisions, list) {
		changes["decisions"] = list
	}
	if current.SchedulerName != contract.SchedulerName {
		changes["schedulerName"] = contract.SchedulerName
	}
	return changes
}
