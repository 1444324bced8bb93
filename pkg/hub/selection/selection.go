package selection

import (
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	inventoryv1alpha1 "sigs.k8s.io/cluster-inventory-api/apis/v1alpha1"

	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/selection/routes"
	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/selection/rule"
)

// What the rule observes and returns, which package rule declares.
type (
	// Answer is about one pair: Yes, No or Unknown.
	Answer = rule.Answer
	// Result is an Answer with its reasons.
	Result = rule.Result
	// Observation is what an answer rests on.
	Observation = rule.Observation
	// Choice is what one Placement chooses.
	Choice = rule.Choice
	// Group is a decision group of a Placement.
	Group = rule.Group
	// MemberIDClaimant is a ManagedCluster that may have a member id.
	MemberIDClaimant = rule.MemberIDClaimant
)

// How controllers are notified of changes, which package routes declares.
type (
	// Routes map events to the pairs that they concern.
	Routes = routes.Routes
	// Changed holds functions that are called with a Placement when its Choice may have changed.
	Changed = routes.Changed
)

// The answers.
const (
	Unknown = rule.Unknown
	No      = rule.No
	Yes     = rule.Yes
)

// ProfileCRD is the name of the CRD of ClusterProfiles.
const ProfileCRD = rule.ProfileCRD

// LagRecheck is how soon to look again where the hub and the cache differ.
const LagRecheck = rule.LagRecheck

// CacheOptions returns which part of each kind the manager's cache must hold for the rule.
func CacheOptions() map[client.Object]cache.ByObject { return routes.CacheOptions() }

// IsOurs reports whether a profile names our cluster manager.
func IsOurs(profile *inventoryv1alpha1.ClusterProfile) bool { return rule.IsOurs(profile) }

// MemberIDHeldBy returns the member id that a profile of this addon's holds for its cluster; "" if none.
func MemberIDHeldBy(profile *inventoryv1alpha1.ClusterProfile) string {
	return rule.MemberIDHeldBy(profile)
}

// IsMarked reports whether a profile was created or adopted by this addon.
func IsMarked(profile *inventoryv1alpha1.ClusterProfile) bool { return rule.IsMarked(profile) }
