package upstream

import (
	"fmt"
	"slices"

	rbacv1 "k8s.io/api/rbac/v1"

	"open-cluster-management.io/cluster-inventory-addon/pkg/contract"
)

// DefaultRegistrationClusterRole is the ClusterRole that OCM's operator gives
// the hub's registration controller when its ClusterManager has the name it has
// by default, "cluster-manager".
const DefaultRegistrationClusterRole = "open-cluster-management:cluster-manager-registration:controller"

const (
	profileGroup    = "multicluster.x-k8s.io"
	profileResource = "clusterprofiles"
)

// Override is what the administrator says of upstream's gates.
type Override string

const (
	// OverrideNone leaves it to the evidence.
	OverrideNone Override = "auto"

	// OverrideOff vouches that the gates are off where there is no evidence.
	// Evidence that they are on still wins.
	OverrideOff Override = "off"
)

// Verdict says whether this addon may write ClusterProfiles.
type Verdict struct {
	// Allowed is true when upstream's gate is off.
	Allowed bool

	// Reason is contract.ReasonUpstreamGateOn or
	// contract.ReasonUpstreamGateUnknown when writing is not allowed.
	Reason string

	// Message says what was seen and what to do.
	Message string
}

// decide judges the registration controller's ClusterRole; role is nil when
// there is none of that name.
func decide(name string, role *rbacv1.ClusterRole, override Override) Verdict {
	switch {
	case role != nil && writesProfiles(role.Rules):
		return Verdict{
			Reason: contract.ReasonUpstreamGateOn,
			Message: fmt.Sprintf("ClusterRole %q lets OCM's registration controller write ClusterProfiles, so its ClusterProfile feature gate is on; "+
				"turn the gate off in the ClusterManager (spec.registrationConfiguration.featureGates) to let this addon write profiles", name),
		}
	case role != nil && len(role.Rules) > 0, override == OverrideOff:
		return Verdict{Allowed: true}
	default:
		return Verdict{
			Reason: contract.ReasonUpstreamGateUnknown,
			Message: fmt.Sprintf("ClusterRole %q, which tells whether OCM's ClusterProfile feature gate is on, is missing or empty; "+
				"name the right one with --upstream-registration-clusterrole, or vouch that the gate is off with --upstream-gates=off", name),
		}
	}
}

func writesProfiles(rules []rbacv1.PolicyRule) bool {
	return slices.ContainsFunc(rules, func(rule rbacv1.PolicyRule) bool {
		return containsOrAll(rule.APIGroups, profileGroup) &&
			containsOrAll(rule.Resources, profileResource) &&
			slices.ContainsFunc(rule.Verbs, isWrite)
	})
}

func containsOrAll(list []string, wanted string) bool {
	return slices.Contains(list, wanted) || slices.Contains(list, rbacv1.ResourceAll)
}

func isWrite(verb string) bool {
	return !slices.Contains([]string{"get", "list", "watch"}, verb)
}
