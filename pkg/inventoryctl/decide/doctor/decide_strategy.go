package doctor

import (
	"fmt"
	"strings"

	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"

	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/selection/rule"
	"open-cluster-management.io/cluster-inventory-addon/pkg/inventoryctl/decide"
	"open-cluster-management.io/cluster-inventory-addon/pkg/inventoryctl/docs"
)

// sliceSize is how many clusters one slice of a Placement's decisions has at most. Open Cluster
// Management writes slices one by one.
const sliceSize = 100

// StrategyFacts are the Placements that say which clusters get the addon.
type StrategyFacts struct {
	ByPlacement bool
	Placements  []InstallPlacement
}

// InstallPlacement is one of them, which may be absent or hidden.
type InstallPlacement struct {
	Ref addonv1beta1.PlacementRef
	decide.Object[clusterv1beta1.Placement]
}

func (p InstallPlacement) String() string { return "Placement " + p.Ref.Namespace + "/" + p.Ref.Name }

// checkStrategy says whether Open Cluster Management may delete the addon of clusters that stay
// chosen.
func (f HubFacts) checkStrategy() decide.Finding {
	const name = "install strategy"
	switch {
	case f.Installation.Hidden:
		return notVisible(name, "ClusterManagementAddOns")
	case !f.Strategy.ByPlacement:
		return ok(name, "no Placement decides which clusters have the addon")
	}
	var absent, hidden, split []string
	for _, placement := range f.Strategy.Placements {
		switch why := splits(placement.Object.Object); {
		case placement.Hidden:
			hidden = append(hidden, placement.String())
		case placement.Object.Object == nil:
			absent = append(absent, placement.String())
		case why != "":
			split = append(split, placement.String()+" "+why)
		}
	}
	switch {
	case len(absent) > 0:
		return problem(name, "there is no "+strings.Join(absent, ", ")+": Open Cluster Management takes that for a "+
			"Placement that chooses no cluster", "create it, or name another one in the chart's installStrategy.placement: "+
			docs.URL("docs/placements.md#installation-by-placement"))
	case len(split) > 0:
		return problem(name, strings.Join(split, "; ")+", so its decisions have several slices. Open Cluster Management "+
			"writes one after the other, and deletes the addon of each cluster that is in none at that moment, even if the "+
			"cluster stays chosen (OCM issue 1346)",
			"change such a Placement only while installStrategy.type is Manual: "+
				docs.URL("docs/placements.md#changing-the-install-placement"))
	case len(hidden) > 0:
		return notVisible(name, strings.Join(hidden, ", "))
	default:
		return ok(name, "Placements, of at most "+fmt.Sprint(sliceSize)+" clusters each and without decision groups")
	}
}

// splits says why the decisions of a Placement have more than one slice; empty if they have one.
func splits(placement *clusterv1beta1.Placement) string {
	if placement == nil {
		return ""
	}
	var reasons []string
	if n := placement.Status.NumberOfSelectedClusters; n > sliceSize {
		reasons = append(reasons, fmt.Sprintf("chooses %d clusters", n))
	}
	if rule.IsGrouped(placement) {
		reasons = append(reasons, "has decision groups")
	}
	return strings.Join(reasons, " and ")
}
