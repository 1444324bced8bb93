package doctor

import (
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	clusterv1beta2 "open-cluster-management.io/api/cluster/v1beta2"

	"open-cluster-management.io/cluster-inventory-addon/pkg/contract"
	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/selection/rule"
	"open-cluster-management.io/cluster-inventory-addon/pkg/inventoryctl/decide"
	"open-cluster-management.io/cluster-inventory-addon/pkg/kube"
)

// BoundFacts says which clusters of bound sets lack the addon.
type BoundFacts struct {
	// Hidden are the kinds that may not be read.
	Hidden []string

	// Total is how many accepted clusters are in a bound set, and Missing those without the addon.
	Total   int
	Missing []string

	bindings []rule.Binding
	seen     map[boundSet]struct{}
}

// boundSet is what decides about a binding in any namespace: one of each is enough.
type boundSet struct {
	set, publish string
	bound        metav1.ConditionStatus
}

// AddBinding adds a binding with its set, which is nil if it does not exist.
func (b *BoundFacts) AddBinding(
	binding *clusterv1beta2.ManagedClusterSetBinding, set *clusterv1beta2.ManagedClusterSet,
) {
	key := boundSet{
		set: binding.Spec.ClusterSet, publish: binding.Labels[contract.LabelPublish],
		bound: kube.StatusOf(binding.Status.Conditions, clusterv1beta2.ClusterSetBindingBoundType),
	}
	if _, known := b.seen[key]; known || binding.DeletionTimestamp != nil {
		return
	}
	if b.seen == nil {
		b.seen = map[boundSet]struct{}{}
	}
	b.seen[key] = struct{}{}
	b.bindings = append(b.bindings, rule.Binding{Binding: binding, Set: set})
}

// AddCluster adds a cluster once all bindings are added.
func (b *BoundFacts) AddCluster(cluster *clusterv1.ManagedCluster, hasAddon, exclusiveSetsOnly bool) {
	if !cluster.Spec.HubAcceptsClient || cluster.DeletionTimestamp != nil {
		return
	}
	facts := rule.Facts{Cluster: cluster, Bindings: b.bindings, ExclusiveSetsOnly: exclusiveSetsOnly}
	if !facts.IsBound() {
		return
	}
	if b.Total++; !hasAddon {
		b.Missing = append(b.Missing, cluster.Name)
	}
}

func (b BoundFacts) check() decide.Finding {
	const name = "bound clusters"
	switch {
	case len(b.Hidden) > 0:
		return notVisible(name, strings.Join(b.Hidden, ", "))
	case b.Total == 0:
		return notConfigured(name, "no cluster is in a ManagedClusterSet that is bound")
	case len(b.Missing) > 0:
		first := slices.Sorted(slices.Values(b.Missing))
		first = first[:min(len(first), decide.MaxClusters)]
		return problem(name, fmt.Sprintf("%d of %d clusters in bound sets do not have the addon (%s)", len(b.Missing),
			b.Total, clusterNames(b.Missing)),
			decide.EnableAddon(strings.Join(first, ",")))
	default:
		return ok(name, fmt.Sprintf("all %d clusters in bound sets have the addon", b.Total))
	}
}
