package credentials

import (
	"maps"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/types"

	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/metrics"
)

// problem is one reason why an account is not copied.
type problem struct {
	reason string

	// namespace is where; "" means everywhere.
	namespace string

	// text says what is wrong, and how to fix it if that is not obvious.
	text string
}

// accountProblems stores the problems of each account that is known well enough, and
// announces when the cluster's condition may change with them. It is safe for concurrent
// use.
type accountProblems struct {
	changed func(cluster string)
	metrics *metrics.Metrics // nil: not counted

	mu       sync.RWMutex
	accounts map[string]map[string][]problem // by cluster and account
}

func newAccountProblems(changed func(cluster string), counts *metrics.Metrics) *accountProblems {
	return &accountProblems{changed: changed, metrics: counts, accounts: map[string]map[string][]problem{}}
}

// set stores the problems of an account; none means that it is copied.
func (a *accountProblems) set(account types.NamespacedName, problems []problem) {
	a.mu.Lock()
	before, known := a.accounts[account.Namespace][account.Name]
	if !known && a.accounts[account.Namespace] == nil {
		a.accounts[account.Namespace] = map[string][]problem{}
	}
	a.accounts[account.Namespace][account.Name] = problems
	a.mu.Unlock()
	a.metrics.MoveAccount(countedAs(before, known), countedAs(problems, true))
	if !known || !slices.Equal(before, problems) {
		a.changed(account.Namespace)
	}
}

// forget drops an account that is gone with all its copies.
func (a *accountProblems) forget(account types.NamespacedName) {
	a.mu.Lock()
	before, known := a.accounts[account.Namespace][account.Name]
	delete(a.accounts[account.Namespace], account.Name)
	if len(a.accounts[account.Namespace]) == 0 {
		delete(a.accounts, account.Namespace)
	}
	a.mu.Unlock()
	a.metrics.MoveAccount(countedAs(before, known), "")
	if known {
		a.changed(account.Namespace)
	}
}

// of returns the problems of a cluster's accounts by their names.
func (a *accountProblems) of(cluster string) map[string][]problem {
	a.mu.RLock()
	defer a.mu.RUnlock()
	return maps.Clone(a.accounts[cluster])
}
