package inventory

import (
	"maps"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/inventory/profiles"
	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/inventory/report"
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
	seen := profiles.Observed{Observation: o, Pair: pair}
	seen.Member = profiles.ShownMemberID(seen)
	switch profiles.NextStep(seen, result) {
	case profiles.Create:
		return Preview{Action: ActionCreate}
	case profiles.Remove:
		return Preview{Action: ActionRemove, Why: result.Why}
	case profiles.Update:
		desired, _ := profiles.Desired(seen, allow, now)
		fields := slices.Sorted(maps.Keys(profiles.MetadataChanges(o.Profile, desired)))
		if changes, ok := profiles.StatusChanges(o.Profile, desired)["status"].(map[string]any); ok {
			fields = append(fields, slices.Sorted(maps.Keys(changes))...)
		}
		switch {
		case !selection.IsMarked(o.Profile):
			return Preview{Action: ActionAdopt, Fields: fields}
		case len(fields) > 0:
			return Preview{Action: ActionChange, Fields: fields}
		}
	case profiles.Leave:
		switch out := report.Of(seen, result, nil); out.Kind {
		case report.Foreign, report.LeftAlone, report.Failed:
			return Preview{Action: ActionRefuse, Why: out.Why}
		case report.Undecided, report.Doubtful:
			return Preview{Action: ActionUndecided, Why: out.Why}
		case report.Withheld, report.InPlace:
		}
	}
	return Preview{}
}
