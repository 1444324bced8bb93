package agents

import (
	"context"
	"fmt"
	"slices"

	toolscache "k8s.io/client-go/tools/cache"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"open-cluster-management.io/cluster-inventory-addon/pkg/contract"
	"open-cluster-management.io/cluster-inventory-addon/pkg/kube"
)

// Counter is notified of changes.
type Counter interface {
	// CountCondition counts more addons with a condition, or less if that is negative.
	CountCondition(condition, status, reason string, more int)

	// CountAgent counts more agents with a revision and a state, or less if that is negative.
	CountAgent(revision, state string, more int)

	// NameRevisions says which revisions there are.
	NameRevisions(revisions []string)
}

// counted are the conditions that are counted.
var counted = []string{
	contract.ConditionPropertiesPublished, contract.ConditionProfilesSynced, contract.ConditionCredentialsSynced,
	contract.ConditionConfigurationApplied, contract.ConditionDegraded,
	addonv1beta1.ManagedClusterAddOnConditionAvailable,
}

// summary is what counts of one addon. Its texts are the cache's own.
type summary struct {
	revision string
	state    State

	conditions []condition
}

type condition struct{ conditionType, status, reason string }

func summaryOf(addon *addonv1beta1.ManagedClusterAddOn) summary {
	agent := Of(addon)
	s := summary{revision: agent.Revision, state: agent.State}
	for _, found := range addon.Status.Conditions {
		if slices.Contains(counted, found.Type) {
			s.conditions = append(s.conditions, condition{found.Type, string(found.Status), found.Reason})
		}
	}
	return s
}

// Reporter notifies a Counter of the addons of all clusters while this process leads. It makes no
// request: it follows the manager's cache.
type Reporter struct {
	cache   cache.Cache
	counter Counter
	seen    kube.Memory[string, summary] // by cluster
}

var _ manager.LeaderElectionRunnable = &Reporter{}

// Add adds a Reporter to a manager, whose cache must hold this addon's ManagedClusterAddOns with
// their status, and the ClusterManagementAddOn.
func Add(mgr manager.Manager, counter Counter) error {
	return mgr.Add(&Reporter{cache: mgr.GetCache(), counter: counter})
}

// NeedLeaderElection implements manager.LeaderElectionRunnable: only the leader counts.
func (*Reporter) NeedLeaderElection() bool { return true }

// Start follows the caches until the context ends.
func (r *Reporter) Start(ctx context.Context) error {
	for object, handler := range map[client.Object]toolscache.ResourceEventHandler{
		&addonv1beta1.ManagedClusterAddOn{}:    kube.OnEvent(r.onAddon),
		&addonv1beta1.ClusterManagementAddOn{}: kube.OnEvent(r.onDefinition),
	} {
		informer, err := r.cache.GetInformer(ctx, object)
		if err != nil {
			return fmt.Errorf("following %T: %w", object, err)
		}
		registration, err := informer.AddEventHandler(handler)
		if err != nil {
			return fmt.Errorf("following %T: %w", object, err)
		}
		defer func() { _ = informer.RemoveEventHandler(registration) }()
	}
	<-ctx.Done()
	return nil
}

func (r *Reporter) onAddon(before, after *addonv1beta1.ManagedClusterAddOn, _ bool) {
	switch {
	case after != nil && after.Name == contract.AddonName:
		r.count(after.Namespace, summaryOf(after))
	case after == nil && before.Name == contract.AddonName:
		if counted, known := r.seen.Forget(before.Namespace); known {
			r.add(counted, -1)
		}
	}
}

func (r *Reporter) onDefinition(_, after *addonv1beta1.ClusterManagementAddOn, _ bool) {
	if after != nil && after.Name == contract.AddonName {
		r.counter.NameRevisions(Known(after))
	}
}

func (r *Reporter) count(cluster string, now summary) {
	before, known := r.seen.Set(cluster, now)
	if known && before.revision == now.revision && before.state == now.state &&
		slices.Equal(before.conditions, now.conditions) {
		return
	}
	if known {
		r.add(before, -1)
	}
	r.add(now, 1)
}

func (r *Reporter) add(s summary, more int) {
	r.counter.CountAgent(s.revision, string(s.state), more)
	for _, c := range s.conditions {
		r.counter.CountCondition(c.conditionType, c.status, c.reason, more)
	}
}
