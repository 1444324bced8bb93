package credentials

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"open-cluster-management.io/cluster-inventory-addon/pkg/contract"
	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/conditions"
	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/credentials/report"
)

var _ conditions.Source = &Credentials{}

// Type implements conditions.Source.
func (c *Credentials) Type() string { return contract.ConditionCredentialsSynced }

// Subscribe implements conditions.Source.
func (c *Credentials) Subscribe(changed func(cluster string)) { c.status.Subscribe(changed) }

// Desired implements conditions.Source. It knows the condition of a cluster once the
// problems of each of its accounts are known. Where nothing is copied, because credentials
// are disabled, there is no condition.
func (c *Credentials) Desired(ctx context.Context, cluster string) (*conditions.Desired, error) {
	if c.opts.Mode == ModeDisabled {
		return &conditions.Desired{Absent: true}, nil
	}
	byAccount := c.outcomes.Of(cluster)
	isComplete, err := c.isComplete(ctx, cluster, byAccount)
	if err != nil {
		return nil, err
	}
	return report.CredentialsSynced(byAccount, isComplete), nil
}

// isComplete reports whether the problems of every account of a cluster are known. When
// they become known, the cluster is enqueued. A hub that does not serve accounts has none.
func (c *Credentials) isComplete(
	ctx context.Context, cluster string, byAccount map[string][]report.Problem,
) (bool, error) {
	if !c.accounts.Synced() {
		return !c.mayHaveAccounts(), nil
	}
	accounts, err := c.accounts.List(ctx, client.InNamespace(cluster))
	if err != nil {
		return false, err
	}
	for i := range accounts {
		if _, ok := byAccount[accounts[i].Name]; !ok {
			return false, nil
		}
	}
	return true, nil
}
