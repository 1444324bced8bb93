package inventory

import (
	"maps"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clusterv1 "open-cluster-management.io/api/cluster/v1"

	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/selection"
)

// Action is what the manager would do with a pair's profile.
type Action string

// The actions. The zero value means nothing, because all is as it should be.
const (
	ActionCreate    Action = "create"
	ActionAdopt     Action = "adopt" // a profile of our cluster manager without our mark
	ActionChange    Action = "change"
	ActionRemove    Action = "remove"
	ActionRefuse    Action = "refuse"    // it is wanted, or ours by name, but left alone
	ActionUndecided Action = "undecided" // it is unknown whether it is wanted
)

// Preview is an action and why it would be taken.
type Preview struct {
	Action Action

	// Why completes a sentence that begins with the cluster; empty if no reason is needed.
	Why string

	// Fields are the parts of the profile that would be written: metadata, spec, and the
	// names of status fields.
	Fields []string
}

// PreviewOf says what would be done with a pair's profile, using the reconciler's own
// decisions. The cluster must be as Limits.Trim returns it. allow are the patterns of the
// copied labels. Access providers count as correct, and so does a member id that the cluster
// may have.
func PreviewOf(
	pair types.NamespacedName, o selection.Observation, result selection.Result, allow []string, now metav1.Time,
) Preview {
	seen := observed{Observation: o, pair: pair}
	seen.member = shownMemberID(seen)
	switch nextStep(seen, result.Answer) {
	case create:
		return Preview{Action: ActionCreate}
	case remove:
		return Preview{Action: ActionRemove, Why: result.Why}
	case update:
		desired, _ := desiredProfile(seen, allow, now)
		fields := slices.Sorted(maps.Keys(metadataChanges(o.Profile, desired)))
		if changes, ok := statusChanges(o.Profile, desired)["status"].(map[string]any); ok {
			fields = append(fields, slices.Sorted(maps.Keys(changes))...)
		}
		switch {
		case !selection.IsMarked(o.Profile):
			return Preview{Action: ActionAdopt, Fields: fields}
		case len(fields) > 0:
			return Preview{Action: ActionChange, Fields: fields}
		}
	case leave:
		switch out := outcomeOf(seen, result, nil); out.kind {
		case foreign, leftAlone, failed:
			return Preview{Action: ActionRefuse, Why: out.why}
		case undecided, doubtful:
			return Preview{Action: ActionUndecided, Why: out.why}
		case withheld, inPlace:
		}
	}
	return Preview{}
}

// Trim returns the part of a cluster within the limits, and what was left out of it.
func (l Limits) Trim(cluster *clusterv1.ManagedCluster) (trimmed *clusterv1.ManagedCluster, leftOut []string) {
	object, _ := l.trimCluster(cluster) // it returns no error
	trimmed, _ = object.(*clusterv1.ManagedCluster)
	return trimmed, leftOutOf(trimmed)
}
