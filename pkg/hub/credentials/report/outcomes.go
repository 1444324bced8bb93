package report

import (
	"maps"
	"reflect"
	"slices"

	"k8s.io/apimachinery/pkg/types"

	"open-cluster-management.io/cluster-inventory-addon/pkg/contract"
	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/metrics"
	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/notices"
	"open-cluster-management.io/cluster-inventory-addon/pkg/kube"
)

// Problem is one reason why an account is not copied.
type Problem struct {
	Reason string

	// Namespace is where; "" means everywhere.
	Namespace string

	// Text says what is wrong, and how to fix it if that is not obvious.
	Text string
}

// Outcome is what is reported about an account.
type Outcome struct {
	// Problems are for the condition; none means that the account is copied.
	Problems []Problem

	// ForConsumers is what is reported to the consumers of each namespace.
	ForConsumers map[string][]notices.Problem
}

// Outcomes remembers the outcome of each account that is known well enough, and announces what
// changes with it: the condition of the cluster, and the events in namespaces. It is safe for
// concurrent use.
type Outcomes struct {
	changed  func(cluster string)
	notify   func(namespace string)
	metrics  *metrics.Metrics
	clusters kube.Memory[string, map[string]Outcome] // by cluster and account; the inner maps never change
}

// NewOutcomes returns empty outcomes. changed is called with a cluster whose condition may have
// changed, and notify with a namespace about which there may be more or less to report.
func NewOutcomes(changed func(cluster string), notify func(namespace string), counts *metrics.Metrics) *Outcomes {
	return &Outcomes{changed: changed, notify: notify, metrics: counts}
}

// Set records the outcome of an account.
func (o *Outcomes) Set(account types.NamespacedName, now Outcome) { o.replace(account, now, true) }

// Over drops an account's problems with a reason that no longer applies. If no other problem is left, the
// account's outcome is unknown until the next Set.
func (o *Outcomes) Over(account types.NamespacedName, reason string) {
	all, _ := o.clusters.Load(account.Namespace)
	before := all[account.Name]
	rest := slices.DeleteFunc(slices.Clone(before.Problems), func(p Problem) bool { return p.Reason == reason })
	if len(rest) < len(before.Problems) {
		o.replace(account, Outcome{Problems: rest, ForConsumers: before.ForConsumers}, len(rest) > 0)
	}
}

// Forget drops an account that is gone with all its copies.
func (o *Outcomes) Forget(account types.NamespacedName) { o.replace(account, Outcome{}, false) }

func (o *Outcomes) replace(account types.NamespacedName, now Outcome, keep bool) {
	var before Outcome
	var known bool
	o.clusters.Update(account.Namespace, func(all map[string]Outcome, _ bool) (map[string]Outcome, bool) {
		before, known = all[account.Name]
		next := map[string]Outcome{}
		maps.Copy(next, all)
		if delete(next, account.Name); keep {
			next[account.Name] = now
		}
		return next, len(next) > 0
	})
	o.metrics.MoveAccount(countedAs(before.Problems, known), countedAs(now.Problems, keep))
	if known != keep || !slices.Equal(before.Problems, now.Problems) {
		o.changed(account.Namespace)
	}
	namespaces := append(slices.Collect(maps.Keys(before.ForConsumers)), slices.Collect(maps.Keys(now.ForConsumers))...)
	for _, namespace := range kube.SortedNames(namespaces) {
		if !reflect.DeepEqual(before.ForConsumers[namespace], now.ForConsumers[namespace]) {
			o.notify(namespace)
		}
	}
}

// Of returns the problems of a cluster's accounts by their names.
func (o *Outcomes) Of(cluster string) map[string][]Problem {
	all, _ := o.clusters.Load(cluster)
	byAccount := make(map[string][]Problem, len(all))
	for account, each := range all {
		byAccount[account] = each.Problems
	}
	return byAccount
}

// In returns what is reported to the consumers of a namespace.
func (o *Outcomes) In(namespace string) []notices.Problem {
	var problems []notices.Problem
	for _, accounts := range o.clusters.All() {
		for _, each := range accounts {
			problems = append(problems, each.ForConsumers[namespace]...)
		}
	}
	return problems
}

// countedAs returns the state under which an account with these problems is counted: the
// first reason, as in the condition, or that its token is copied wherever it belongs. known
// is false for an account about which nothing is known.
func countedAs(problems []Problem, known bool) string {
	if !known {
		return ""
	}
	for _, reason := range order {
		if slices.ContainsFunc(problems, func(p Problem) bool { return p.Reason == reason }) {
			return reason
		}
	}
	return contract.ReasonCopied
}
