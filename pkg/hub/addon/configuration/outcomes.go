package configuration

import (
	"context"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"open-cluster-management.io/cluster-inventory-addon/pkg/contract"
	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/conditions"
	"open-cluster-management.io/cluster-inventory-addon/pkg/kube"
)

// Outcomes remembers the outcome of every cluster for the condition ConfigurationApplied.
type Outcomes struct {
	reader    client.Reader // the manager's cache
	changed   func(cluster string)
	byCluster kube.Memory[string, conditions.Desired]
}

// NewOutcomes returns empty outcomes; reader reads the addons.
func NewOutcomes(reader client.Reader) *Outcomes { return &Outcomes{reader: reader} }

// Record records what was decided about a cluster, unless that is unknown, and what its spoke
// refuses of it, if anything.
func (o *Outcomes) Record(cluster string, decided Decision, refusedBySpoke string) {
	refused := decided.Refused
	if refused == nil && refusedBySpoke != "" {
		refused = refuse(contract.ReasonManifestsRefused, "The cluster refuses %s", refusedBySpoke)
	}
	if refused == nil && !decided.Known {
		return
	}
	now := configurationApplied(decided.Configured, refused)
	before, known := o.byCluster.Set(cluster, now)
	if o.changed != nil && (!known || before != now) {
		o.changed(cluster)
	}
}

// Forget drops a cluster that no longer has an addon.
func (o *Outcomes) Forget(cluster string) { o.byCluster.Forget(cluster) }

// Type implements conditions.Source.
func (o *Outcomes) Type() string { return contract.ConditionConfigurationApplied }

// Subscribe implements conditions.Source.
func (o *Outcomes) Subscribe(changed func(cluster string)) { o.changed = changed }

// Desired implements conditions.Source. Until there is an outcome, an existing condition
// stays, and a missing one stays absent: after a start, a cluster that waits for its turn has
// none for a long time. That delays no other condition, and no caller asks again.
func (o *Outcomes) Desired(ctx context.Context, cluster string) (*conditions.Desired, error) {
	if known, ok := o.byCluster.Load(cluster); ok {
		return &known, nil
	}
	key := client.ObjectKey{Namespace: cluster, Name: contract.AddonName}
	addon, err := kube.Get(ctx, o.reader, key, &addonv1beta1.ManagedClusterAddOn{})
	if err != nil {
		return nil, err
	}
	if addon != nil {
		if have := apimeta.FindStatusCondition(addon.Status.Conditions, o.Type()); have != nil {
			return &conditions.Desired{Status: have.Status, Reason: have.Reason, Message: have.Message}, nil
		}
	}
	return &conditions.Desired{Absent: true}, nil
}
