package credentials

import (
	"maps"
	"reflect"
	"sync"

	"k8s.io/apimachinery/pkg/types"
)

// outcome is what there is to say about one account.
type outcome struct {
	problems []problem
}

// problem is one thing that keeps an account from being copied.
type problem struct {
	reason string

	// namespace is where; "" is everywhere.
	namespace string

	// text says what is wrong, and how to fix it where that is not obvious.
	text string
}

// outcomes remembers the outcome of each account, and tells when the cluster's
// condition may change with it. It is safe for concurrent use.
type outcomes struct {
	changed func(cluster string)

	mu       sync.RWMutex
	accounts map[string]map[string]outcome // by cluster and account
}

func newOutcomes(changed func(cluster string)) *outcomes {
	return &outcomes{changed: changed, accounts: map[string]map[string]outcome{}}
}

func (o *outcomes) set(account types.NamespacedName, value outcome) {
	o.mu.Lock()
	before, known := o.accounts[account.Namespace][account.Name]
	if !known && o.accounts[account.Namespace] == nil {
		o.accounts[account.Namespace] = map[string]outcome{}
	}
	o.accounts[account.Namespace][account.Name] = value
	o.mu.Unlock()
	if !known || !reflect.DeepEqual(before, value) {
		o.changed(account.Namespace)
	}
}

// forget drops an account that is gone with all its copies.
func (o *outcomes) forget(account types.NamespacedName) {
	o.mu.Lock()
	_, known := o.accounts[account.Namespace][account.Name]
	delete(o.accounts[account.Namespace], account.Name)
	if len(o.accounts[account.Namespace]) == 0 {
		delete(o.accounts, account.Namespace)
	}
	o.mu.Unlock()
	if known {
		o.changed(account.Namespace)
	}
}

// of returns the outcomes of a cluster by account.
func (o *outcomes) of(cluster string) map[string]outcome {
	o.mu.RLock()
	defer o.mu.RUnlock()
	return maps.Clone(o.accounts[cluster])
}
