package upstream

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"

	"open-cluster-management.io/cluster-inventory-addon/pkg/contract"
)

// Override is the administrator's assertion about one of upstream's writers.
type Override string

const (
	// OverrideNone infers from ClusterRoles whether the writer is on.
	OverrideNone Override = "auto"

	// OverrideOff asserts that the writer is off. It applies only where the ClusterRole
	// proves nothing: for the registration controller if there is none, and for the syncer
	// even if there is one, because it may be a leftover.
	OverrideOff Override = "off"
)

// Verdict says whether this addon may write ClusterProfiles.
type Verdict struct {
	// Allowed is true when the registration controller's gate is off.
	Allowed bool

	// Reason is contract.ReasonUpstreamGateOn or contract.ReasonUpstreamGateUnknown when
	// writing is not allowed. It is empty while the gate's state is momentarily unknown.
	Reason string

	// Problem says what was seen, Fix what to do, and Message both.
	Problem, Fix, Message string
}

func forbidden(reason, problem, fix string) Verdict {
	return Verdict{Reason: reason, Problem: problem, Fix: fix, Message: problem + "; " + fix}
}

const (
	profileGroup    = "multicluster.x-k8s.io"
	profileResource = "clusterprofiles"
)

// RegistrationVerdict decides by the registration controller's ClusterRole; role is nil if
// there is none of that name. known is false while its absence does not count yet. The
// override applies at once: it is meant for an absent ClusterRole.
func RegistrationVerdict(name string, role *rbacv1.ClusterRole, known bool, override Override) Verdict {
	switch {
	case role != nil && writesProfiles(role.Rules):
		return forbidden(contract.ReasonUpstreamGateOn,
			fmt.Sprintf("ClusterRole %q lets OCM's registration controller write ClusterProfiles, "+
				"so its ClusterProfile feature gate is on", name),
			"turn the gate off in the ClusterManager (spec.registrationConfiguration.featureGates) "+
				"to let this addon write profiles")
	case role != nil && len(role.Rules) > 0, override == OverrideOff:
		return Verdict{Allowed: true}
	case !known:
		return Verdict{}
	default:
		return forbidden(contract.ReasonUpstreamGateUnknown,
			fmt.Sprintf("ClusterRole %q, which shows whether OCM's ClusterProfile feature gate is on, "+
				"is missing or empty", name),
			"name the right one in the chart's value upstreamRegistrationClusterRole, "+
				"or assert that the gate is off with upstreamGates=off")
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

// decideProxy decides by the command line of cluster-proxy's manager, which is nil if there
// is no such Deployment. problem says why access providers must be left alone, and unknown
// why the command line is not known.
func decideProxy(deployment string, args []string, unknown string) (on bool, problem string) {
	switch {
	case unknown != "":
		return false, fmt.Sprintf("Deployment %s %s", deployment, unknown)
	case proxyGateOn(args):
		return true, fmt.Sprintf("cluster-proxy writes it itself, because Deployment %s has the feature gate for it on; "+
			"turn that off to let this addon write it", deployment)
	default:
		return false, ""
	}
}

// The names of cluster-proxy's feature gate for access providers: until v0.10, and since.
var proxyGates = []string{"ClusterProfileAccessProvider", "ClusterProfile"}

// allAlpha turns on every alpha gate that is not set by its own name
// (k8s.io/component-base/featuregate).
const allAlpha = "AllAlpha"

// proxyGateOn reports whether a command line turns on cluster-proxy's feature gate for
// access providers, under any of its names. The last setting of a name wins.
func proxyGateOn(args []string) bool {
	settings := map[string]bool{}
	for i, arg := range args {
		value, found := strings.CutPrefix(strings.TrimLeft(arg, "-"), "feature-gates")
		switch {
		case !found || !strings.HasPrefix(arg, "-"):
			continue
		case value == "" && i+1 < len(args):
			value = args[i+1]
		}
		for gate := range strings.SplitSeq(strings.TrimPrefix(value, "="), ",") {
			name, setting, _ := strings.Cut(gate, "=")
			on, err := strconv.ParseBool(strings.TrimSpace(setting))
			settings[strings.TrimSpace(name)] = on && err == nil
		}
	}
	isSet := false
	for _, name := range proxyGates {
		on, set := settings[name]
		if on {
			return true
		}
		isSet = isSet || set
	}
	return !isSet && settings[allAlpha]
}
