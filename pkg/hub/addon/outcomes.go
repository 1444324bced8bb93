package addon

import (
	"context"
	"sync"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"open-cluster-management.io/cluster-inventory-addon/pkg/contract"
	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/conditions"
	"open-cluster-management.io/cluster-inventory-addon/pkg/kube"
)

// outcome is the outcome of one cluster's configuration.
type outcome struct {
	// configured is true if the cluster has a configuration.
	configured bool

	// refusal is nil if it is applied.
	refusal *refusal
}

func (o outcome) equals(other outcome) bool {
	if o.refusal == nil || other.refusal == nil {
		return o == other
	}
	return o.configured == other.configured && *o.refusal == *other.refusal
}

// outcomes remembers the outcome of every cluster for the condition ConfigurationApplied.
type outcomes struct {
	reader  client.Reader // the manager's cache
	changed func(cluster string)

	mu        sync.Mutex
	byCluster map[string]outcome
}

var _ conditions.Source = &outcomes{}

func newOutcomes(reader client.Reader) *outcomes {
	return &outcomes{reader: reader, byCluster: map[string]outcome{}}
}

// set records a cluster's outcome.
func (o *outcomes) set(cluster string, now outcome) {
	o.mu.Lock()
	before, known := o.byCluster[cluster]
	o.byCluster[cluster] = now
	o.mu.Unlock()
	if o.changed != nil && (!known || !before.equals(now)) {
		o.changed(cluster)
	}
}

// forget drops a cluster that no longer has an addon.
func (o *outcomes) forget(cluster string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.byCluster, cluster)
}

// Type implements conditions.Source.
func (o *outcomes) Type() string { return contract.ConditionConfigurationApplied }

// Subscribe implements conditions.Source.
func (o *outcomes) Subscribe(changed func(cluster string)) { o.changed = changed }

// Desired implements conditions.Source. Until there is an outcome, an existing condition
// stays, and a missing one stays absent: after a start, a cluster that waits for its turn
// has none for a long time. That delays no other condition, and nobody asks again.
func (o *outcomes) Desired(ctx context.Context, cluster string) (*conditions.Desired, error) {
	o.mu.Lock()
	known, ok := o.byCluster[cluster]
	o.mu.Unlock()
	if ok {
		return configurationApplied(known), nil
	}
	key := client.ObjectKey{Namespace: cluster, Name: contract.AddonName}
	addon, err := kube.Get(ctx, o.reader, key, &addonv1beta1.ManagedClusterAddOn{})
	if err != nil {
		return nil, err
	}
	if addon == nil {
		return &conditions.Desired{Absent: true}, nil
	}
	have := apimeta.FindStatusCondition(addon.Status.Conditions, o.Type())
	if have == nil {
		return &conditions.Desired{Absent: true}, nil
	}
	return &conditions.Desired{Status: have.Status, Reason: have.Reason, Message: have.Message}, nil
}
