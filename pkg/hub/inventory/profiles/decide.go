package profiles

import (
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	inventoryv1alpha1 "sigs.k8s.io/cluster-inventory-api/apis/v1alpha1"

	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/access"
	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/selection"
	"open-cluster-management.io/cluster-inventory-addon/pkg/kube/watch"
)

// Observed is what is known about one pair of namespace and cluster.
type Observed struct {
	selection.Observation

	Pair types.NamespacedName

	// Selected is the rule's answer, on which to act.
	Selected selection.Result

	// Verdict says whether profiles may be written. It is not asked for while the hub does not
	// serve them.
	Verdict Verdict

	Access access.Decision

	// Member is the cluster's member id. If nothing is known, it has the one that it asks for.
	Member MemberID

	// Orphaned is true if something refers to a profile that is missing and, before the answer
	// has settled, must be.
	Orphaned bool
}

// Verdict is a guard's verdict. If it does not allow writing, Reason and Message
// become those of the condition ProfilesSynced. Without a reason the condition stays: it is
// not known yet whether writing is allowed.
type Verdict struct {
	Allowed bool
	Reason  string
	Message string

	// HoldBack is how long that must last before the condition says so, because it may end by itself.
	HoldBack time.Duration

	// Access allows writing access providers to existing profiles although nothing else may
	// be written: the writer of the rest leaves them alone.
	Access bool
}

// Step is what to do with a pair's profile.
type Step int

// The steps.
const (
	Leave Step = iota
	Create
	Update // adopts a profile without our mark
	Remove

	Refrain      // leaves everything as it is, since this addon cannot or may not maintain profiles
	UpdateAccess // updates only the access providers
)

// NextAllowed is NextStep for the selected answer, if profiles are served and may be written.
func NextAllowed(o Observed) Step {
	next := NextStep(o, o.Selected)
	switch {
	case o.ProfileAPI && o.Verdict.Allowed:
		return next
	case o.ProfileAPI && o.Verdict.Access && next == Update && o.Selected.Answer == selection.Yes:
		return UpdateAccess
	default:
		return Refrain
	}
}

// NextStep decides what to do with a pair's profile, from the rule's answer and the present
// profile.
//
// While the answer is unknown, a profile of ours stays, and its content is updated as long as the cluster is
// in the inventory. If the caches can be trusted, a set that is bound must select the cluster, too: a tenant can
// create a profile that looks like ours, and bind a set that does not exist. None is created, adopted or deleted.
func NextStep(o Observed, selected selection.Result) Step {
	switch {
	case IsTerminating(o.Namespace):
	case o.Profile == nil:
		if selected.Answer == selection.Yes {
			return Create
		}
	case IsLost(o.Profile):
	case selected.Answer == selection.Yes:
		return Update
	case !selection.IsMarked(o.Profile):
	case selected.Answer == selection.No:
		return Remove
	case o.InInventory() && (selected.Member || selected.Untrusted):
		return Update
	}
	return Leave
}

// PriorityOf returns how urgent a step is: removals precede edits, and edits precede
// creations. A profile that existed and has disappeared is recreated with the priority of an
// edit.
func PriorityOf(next Step, exists, wasInPlace bool) int {
	switch {
	case next == Remove:
		return watch.PriorityHigh
	case exists, wasInPlace:
		return watch.PriorityNormal
	default:
		return watch.PriorityLow
	}
}

// TrustedAccess returns what to believe about a cluster's access. While objects may be
// about to be restored, those behind a missing provider may be among them: an existing
// entry stays.
func TrustedAccess(says access.Decision, restoring bool) access.Decision {
	if restoring {
		says.Proxy.Known = says.Proxy.Known && says.Proxy.Provider != nil
		says.Direct.Known = says.Direct.Known && says.Direct.Provider != nil
	}
	return says
}

// IsWhole reports whether a profile has everything that consumers need: its status, and each
// access provider that its cluster is known to need.
func IsWhole(o Observed) bool {
	if o.Profile == nil || o.Profile.DeletionTimestamp != nil || !selection.IsMarked(o.Profile) {
		return false
	}
	return !slices.ContainsFunc(o.Access.Missing, func(name string) bool {
		return !slices.ContainsFunc(o.Profile.Status.AccessProviders, func(entry inventoryv1alpha1.AccessProvider) bool {
			return entry.Name == name
		})
	})
}

// IsLost reports whether a profile is being deleted, or another manager's.
func IsLost(profile *inventoryv1alpha1.ClusterProfile) bool {
	return profile != nil && (!selection.IsOurs(profile) || profile.DeletionTimestamp != nil)
}

// IsTerminating reports whether a namespace is known to be being deleted.
func IsTerminating(namespace *metav1.PartialObjectMetadata) bool {
	return namespace != nil && namespace.DeletionTimestamp != nil
}
