package inventory

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	inventoryv1alpha1 "sigs.k8s.io/cluster-inventory-api/apis/v1alpha1"

	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/access"
	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/selection"
	"open-cluster-management.io/cluster-inventory-addon/pkg/kube/watch"
)

// observed is what is known about one pair of namespace and cluster.
type observed struct {
	selection.Observation

	pair types.NamespacedName

	// selected is the rule's answer, on which to act.
	selected selection.Result

	// verdict says whether profiles may be written. It is not asked for while the hub does not
	// serve them.
	verdict GuardVerdict

	access access.Decision

	// member is the cluster's member id. If nothing is known, it has the one that it asks for.
	member memberID

	// referenced is true if something refers to the profile although it does not exist, is
	// not ours, or is being deleted. It is not determined for other profiles.
	referenced bool
}

// step is what to do with a pair's profile.
type step int

const (
	leave step = iota
	create
	update // adopts a profile without our mark
	remove
	release // removes references to a profile that does not exist or is not ours

	refrain      // leaves everything as it is, since this addon cannot or may not maintain profiles
	updateAccess // updates only the access providers
)

// nextAllowed is nextStep as far as profiles are served and may be written.
func nextAllowed(o observed, answer selection.Answer) step {
	next := nextStep(o, answer)
	switch {
	case o.ProfileAPI && o.verdict.Allowed:
		return next
	case o.ProfileAPI && o.verdict.Access && next == update && answer == selection.Yes:
		return updateAccess
	default:
		return refrain
	}
}

// nextStep decides what to do with a pair's profile, from the rule's answer and the present
// profile.
//
// While the answer is unknown, a profile of ours stays and its content is updated as long
// as the cluster is in the inventory. None is created, adopted or deleted.
func nextStep(o observed, answer selection.Answer) step {
	switch {
	case isTerminating(o.Namespace):
	case o.Profile == nil:
		if answer == selection.Yes {
			return create
		}
		if answer == selection.No && o.referenced {
			return release
		}
	case !selection.IsOurs(o.Profile), o.Profile.DeletionTimestamp != nil:
		if o.referenced {
			return release
		}
	case answer == selection.Yes:
		return update
	case !selection.IsMarked(o.Profile):
	case answer == selection.No:
		return remove
	case o.InInventory():
		return update
	}
	return leave
}

// priorityOf returns how urgent a step is: removals precede edits, and edits precede
// creations. A profile that existed and has vanished is recreated with the priority of an
// edit.
func priorityOf(next step, exists, wasInPlace bool) int {
	switch {
	case next == remove, next == release:
		return watch.PriorityHigh
	case exists, wasInPlace:
		return watch.PriorityNormal
	default:
		return watch.PriorityLow
	}
}

// trustedAccess returns what to believe about a cluster's access. While objects may be
// about to be restored, those behind a missing provider may be among them: an existing
// entry stays.
func trustedAccess(says access.Decision, restoring bool) access.Decision {
	if restoring {
		says.Proxy.Known = says.Proxy.Known && says.Proxy.Provider != nil
		says.Direct.Known = says.Direct.Known && says.Direct.Provider != nil
	}
	return says
}

// isWhole reports whether a profile has everything that consumers need: its status, and
// each access provider that its cluster should have, as far as is known.
func isWhole(o observed) bool {
	if o.Profile == nil || o.Profile.DeletionTimestamp != nil || !selection.IsMarked(o.Profile) {
		return false
	}
	return !slices.ContainsFunc(o.access.Lacking, func(name string) bool {
		return !slices.ContainsFunc(o.Profile.Status.AccessProviders, func(entry inventoryv1alpha1.AccessProvider) bool {
			return entry.Name == name
		})
	})
}

func isTerminating(namespace *metav1.PartialObjectMetadata) bool {
	return namespace != nil && namespace.DeletionTimestamp != nil
}
