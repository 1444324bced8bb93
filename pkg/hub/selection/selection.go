package selection

import (
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	inventoryv1alpha1 "sigs.k8s.io/cluster-inventory-api/apis/v1alpha1"

	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/selection/routes"
	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/selection/rule"
)

// What the rule observes and returns, and what it asks of controllers. Packages rule and routes
// are its own.
type (
	Answer           = rule.Answer
	Result           = rule.Result
	Observation      = rule.Observation
	Choice           = rule.Choice
	Group            = rule.Group
	MemberIDClaimant = rule.MemberIDClaimant

	Routes  = routes.Routes
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

// CacheOptions returns which part of each kind the manager's cache must hold for the rule.
func CacheOptions() map[client.Object]cache.ByObject { return routes.CacheOptions() }

// IsOurs reports whether a profile names our cluster manager.
func IsOurs(profile *inventoryv1alpha1.ClusterProfile) bool { return rule.IsOurs(profile) }

// IsMarked reports whether a profile was created or adopted by this addon.
func IsMarked(profile *inventoryv1alpha1.ClusterProfile) bool { return rule.IsMarked(profile) }
