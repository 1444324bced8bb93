package inventory

import (
	"context"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/handler"

	"open-cluster-management.io/cluster-inventory-addon/pkg/contract"
	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/conditions"
	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/inventory/report"
	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/selection"
	"open-cluster-management.io/cluster-inventory-addon/pkg/kube"
)

// statusSource determines the condition ProfilesSynced of a cluster's addon.
type statusSource struct{ *inventory }

var _ conditions.Watcher = statusSource{}

// Type implements conditions.Source.
func (s statusSource) Type() string { return contract.ConditionProfilesSynced }

// Subscribe implements conditions.Source.
func (s statusSource) Subscribe(changed func(cluster string)) {
	s.pairs.outcomes.StatusChanged = changed
}

// Watch implements conditions.Watcher: some objects forbid writing any profile.
func (s statusSource) Watch(b *builder.Builder, everyCluster handler.EventHandler) *builder.Builder {
	crdMatters := builder.WithPredicates(
		kube.Named(selection.CRDs()...), kube.AfterStart(), kube.OnChange(kube.Never))
	b = b.WatchesMetadata(kube.Partial(kube.CRDKind), everyCluster, crdMatters)
	for _, obj := range s.opts.GuardObjects {
		b = b.Watches(obj, everyCluster, guardMatters())
	}
	return b
}

// Desired implements conditions.Source.
func (s statusSource) Desired(ctx context.Context, cluster string) (*conditions.Desired, error) {
	served, err := kube.IsServed(ctx, s.reader, selection.ProfileCRD)
	if err != nil {
		return nil, err
	}
	if !served {
		return report.Unserved(), nil
	}
	verdict, err := s.opts.Guard(ctx)
	if err != nil {
		return nil, err
	}
	if !verdict.Allowed && verdict.Reason == "" {
		return nil, nil // not known yet
	}
	if !verdict.Allowed {
		return report.Blocked(verdict), nil
	}
	if !s.opts.Rule.Ready() {
		return nil, nil
	}
	byNamespace, isComplete, err := s.observe(ctx, cluster)
	if err != nil {
		return nil, err
	}
	return report.ProfilesSynced(byNamespace, isComplete), nil
}

// observe returns the outcomes of all namespaces that concern a cluster, and whether each
// of them has one that is current.
func (s statusSource) observe(ctx context.Context, cluster string) (map[string]report.Outcome, bool, error) {
	namespaces, err := s.routes.ExpectedNamespaces(ctx, cluster)
	if err != nil {
		return nil, false, err
	}
	isComplete := true
	byNamespace := make(map[string]report.Outcome, len(namespaces))
	for _, namespace := range namespaces {
		pair := types.NamespacedName{Namespace: namespace, Name: cluster}
		out, ok := s.pairs.outcomes.Get(pair)
		if ok && out.Kind == report.Undecided {
			if ok, err = s.isUndecided(ctx, pair); err != nil {
				return nil, false, err
			}
		}
		if ok {
			byNamespace[namespace] = out
		}
		isComplete = isComplete && ok
	}
	return byNamespace, isComplete, nil
}

// isUndecided reports whether it is still unknown if a pair must have a profile. If it is
// known by now, the pair only waits for its turn: among thousands of profiles to write,
// that may take longer than the condition is held back.
func (s statusSource) isUndecided(ctx context.Context, pair types.NamespacedName) (bool, error) {
	_, result, err := s.opts.Rule.Observe(ctx, pair)
	return result.Answer == selection.Unknown, err
}
