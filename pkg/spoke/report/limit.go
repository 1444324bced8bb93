package report

import (
	"slices"
	"strings"

	clusterv1alpha1 "open-cluster-management.io/api/cluster/v1alpha1"

	"open-cluster-management.io/cluster-inventory-addon/pkg/contract"
)

// Limit is the klusterlet's configuration of custom claims.
type Limit struct {
	// Custom is the number of custom claims it reports (its flag
	// --max-custom-cluster-claims).
	Custom int

	// ReservedSuffixes are the name suffixes of claims that it always reports (its
	// flag --reserved-cluster-claim-suffixes).
	ReservedSuffixes []string
}

// cut describes the claims that the klusterlet will not report.
type cut struct {
	// custom is how many claims count against the limit.
	custom int

	// ours and others are the names beyond the limit, sorted.
	ours, others []string

	// crowding says that claims of ours are reported in place of others.
	crowding bool
}

// predictCut mirrors the klusterlet (OCM,
// pkg/registration/spoke/managedcluster/claim_reconcile.go): claims labelled to
// stay on the spoke do not count, reserved ones are always reported, and of the
// rest, sorted by name, those beyond the limit are left out.
func predictCut(claims []claim, limit Limit) cut {
	var custom []claim
	for _, c := range claims {
		if !c.spokeOnly && !limit.reserved(c.name) {
			custom = append(custom, c)
		}
	}
	slices.SortFunc(custom, func(a, b claim) int { return strings.Compare(a.name, b.name) })
	beyond := cut{custom: len(custom)}
	reported := min(limit.Custom, len(custom))
	for _, c := range custom[reported:] {
		if c.ours {
			beyond.ours = append(beyond.ours, c.name)
		} else {
			beyond.others = append(beyond.others, c.name)
		}
	}
	isOurs := func(c claim) bool { return c.ours }
	beyond.crowding = len(beyond.others) > 0 && slices.ContainsFunc(custom[:reported], isOurs)
	return beyond
}

func (l Limit) reserved(name string) bool {
	return slices.Contains(clusterv1alpha1.ReservedClusterClaimNames[:], name) ||
		slices.ContainsFunc(l.ReservedSuffixes, func(suffix string) bool { return strings.HasSuffix(name, suffix) })
}

// claim holds the properties of a ClusterClaim that the report depends on.
type claim struct {
	name, value     string
	ours, spokeOnly bool
}

func readClaim(obj *clusterv1alpha1.ClusterClaim) claim {
	_, spokeOnly := obj.Labels[contract.LabelSpokeOnly]
	return claim{
		name:      obj.Name,
		value:     obj.Spec.Value,
		ours:      obj.Labels[contract.LabelManagedBy] == contract.ManagedBy,
		spokeOnly: spokeOnly,
	}
}
