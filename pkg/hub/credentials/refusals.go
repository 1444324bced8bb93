package credentials

import (
	"reflect"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/notices"
	"open-cluster-management.io/cluster-inventory-addon/pkg/kube"
	"open-cluster-management.io/cluster-inventory-addon/pkg/kube/watch"
)

// reportDelay lets a burst of changes in a namespace become one event, and what passes by
// itself, such as the time until a new account has its first token, become none.
const reportDelay = 10 * time.Second

// refusals remembers, in memory, what consumers are told about accounts, and triggers a report
// for each namespace where that changes. It is safe for concurrent use.
type refusals struct {
	trigger watch.Trigger // by namespace, in which it is the name

	mu         sync.Mutex
	accounts   map[types.NamespacedName]map[string][]notices.Lack // by namespace
	namespaces kube.SetIndex[string, types.NamespacedName]        // accounts by namespace
}

func newRefusals(delay time.Duration) *refusals {
	return &refusals{
		trigger:    watch.Trigger{Delay: delay},
		accounts:   map[types.NamespacedName]map[string][]notices.Lack{},
		namespaces: kube.SetIndex[string, types.NamespacedName]{},
	}
}

// set records what the consumers of each namespace are told about an account.
func (r *refusals) set(account types.NamespacedName, now map[string][]notices.Lack) {
	for _, namespace := range r.replace(account, now) {
		r.trigger.Enqueue(types.NamespacedName{Name: namespace})
	}
}

// replace returns the namespaces for which something has changed.
func (r *refusals) replace(account types.NamespacedName, now map[string][]notices.Lack) (changed []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	before := r.accounts[account]
	for namespace := range before {
		if _, stays := now[namespace]; !stays {
			r.namespaces.Delete(namespace, account)
			changed = append(changed, namespace)
		}
	}
	for namespace, lacks := range now {
		if !reflect.DeepEqual(before[namespace], lacks) {
			r.namespaces.Insert(namespace, account)
			changed = append(changed, namespace)
		}
	}
	if len(now) == 0 {
		delete(r.accounts, account)
	} else {
		r.accounts[account] = now
	}
	return changed
}

// in returns what the consumers of a namespace are told.
func (r *refusals) in(namespace string) []notices.Lack {
	r.mu.Lock()
	defer r.mu.Unlock()
	var lacks []notices.Lack
	for account := range r.namespaces[namespace] {
		lacks = append(lacks, r.accounts[account][namespace]...)
	}
	return lacks
}
