package credentials

import (
	"slices"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/credentials/grants"
	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/selection"
	"open-cluster-management.io/cluster-inventory-addon/pkg/kube"
)

// listed returns the labelled accounts that the options select.
func (c *Credentials) listed(options ...client.ListOption) []types.NamespacedName {
	accounts, _ := c.accounts.List(c.added, options...) // none while the cache is being shut down
	keys := make([]types.NamespacedName, len(accounts))
	for i := range accounts {
		keys[i] = client.ObjectKeyFromObject(&accounts[i])
	}
	return keys
}

// enqueuePair enqueues every account whose copies depend on a pair of namespace and
// cluster.
func (c *Credentials) enqueuePair(pair types.NamespacedName) {
	for _, account := range c.listed(client.InNamespace(pair.Name)) {
		c.enqueueWithRivals(account)
	}
	for _, account := range c.ledger.AccountsOf(pair.Name) {
		c.enqueueAccount(account)
	}
}

// enqueueUnselected enqueues the accounts that have copies where their cluster is no longer
// selected. It learns of an unbinding from the binding itself, however long the profile
// takes to be deleted.
func (c *Credentials) enqueueUnselected(pair types.NamespacedName) {
	accounts := slices.DeleteFunc(c.ledger.AccountsOf(pair.Name), func(account types.NamespacedName) bool {
		return !c.isPresent(account, pair.Namespace)
	})
	if len(accounts) == 0 {
		return
	}
	if result, err := c.opts.Rule.Selected(c.added, pair, false); err == nil && result.Answer == selection.Yes {
		return
	}
	for _, account := range accounts {
		c.enqueueAccount(account)
	}
}

// enqueueAccount enqueues one account. The queue looks up how urgent it is.
func (c *Credentials) enqueueAccount(account types.NamespacedName) { c.accountTrigger.Enqueue(account) }

// enqueueRivals enqueues the other accounts whose copies have the same name: when the copy
// of one is deleted, its name is free.
func (c *Credentials) enqueueRivals(account types.NamespacedName) {
	for _, other := range c.listed(c.accounts.SameCopyName(account)) {
		if other != account {
			c.enqueueAccount(other)
		}
	}
}

// enqueueWithRivals enqueues an account that has changed, or whose copy another client changed or
// deleted, and its rivals.
func (c *Credentials) enqueueWithRivals(account types.NamespacedName) {
	c.enqueueAccount(account)
	c.enqueueRivals(account)
}

// enqueueEverything enqueues every account.
func (c *Credentials) enqueueEverything() {
	for _, account := range slices.Concat(c.listed(), c.ledger.Accounts()) {
		c.enqueueAccount(account)
	}
}

func (c *Credentials) enqueueGrant(grant grants.Grant) { c.grantTrigger.Enqueue(grant.Key()) }

// enqueueGrants enqueues every RoleBinding of a grant that exists.
func (c *Credentials) enqueueGrants() {
	bindings := &rbacv1.RoleBindingList{}
	if err := c.bindings.List(c.added, bindings, kube.Uncopied); err != nil {
		return // the caches are being shut down
	}
	for i := range bindings.Items {
		c.grantTrigger.Enqueue(client.ObjectKeyFromObject(&bindings.Items[i]))
	}
}
