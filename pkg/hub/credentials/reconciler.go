package credentials

import (
	"context"
	"errors"
	"slices"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"open-cluster-management.io/cluster-inventory-addon/pkg/contract"
	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/credentials/grants"
	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/credentials/report"
	"open-cluster-management.io/cluster-inventory-addon/pkg/kube"
	"open-cluster-management.io/cluster-inventory-addon/pkg/kube/watch"
)

// Reconciler maintains the copies of one account. The request is the account: its cluster's
// namespace and its name.
type Reconciler struct {
	*Credentials
	failing kube.Debounce[types.NamespacedName] // by account
}

// Reconcile brings the copies of an account to their desired state. It withdraws copies
// that must not exist before it reads the token.
func (r *Reconciler) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	o, err := r.observe(ctx, req.NamespacedName, r.opts.Clock.Now(), true)
	if err != nil {
		return reconcile.Result{}, err
	}
	plan := decide(o)
	r.operations.revoke(o.key, plan.mayHold)
	r.claim(plan, nil)
	r.failures.keep(o.key, plan.mayAttempt)
	withdrawn := r.withdraw(ctx, o, plan.withdrawals())
	unobserved := unobservedOf(o)
	if o.unknown != "" {
		// Everything else is decided later, so this concludes only what people must know if that lasts.
		paused := phaseResult{problems: plan.problems, again: kube.LastingAfter, failing: true, undecided: true}
		return r.conclude(plan, join(paused, unobserved, withdrawn))
	}
	found, token, read := r.readToken(ctx, plan)
	var last final
	if read.ok() {
		now := r.opts.Clock.Now()
		last = decideFinally(plan, found, now)
		r.opts.Metrics.TokenEnds(o.key, countedEnd(found, now))
	}
	r.operations.revoke(o.key, func(namespace string) bool { return !slices.Contains(last.withdraw, namespace) })
	applied := r.apply(ctx, plan, last, token)
	r.claim(plan, last.withdraw)
	all := join(phaseResult{problems: plan.problems, again: o.again}, unobserved, withdrawn, read, applied)
	result, err := r.conclude(plan, all)
	if o.known && unobserved.ok() && r.accounts.Reconciled(o.key) {
		r.enqueueGrants()
	}
	return result, err
}

// unobservedOf returns the result of namespaces that could not be observed, or for which the rule
// is not ready.
func unobservedOf(o observed) phaseResult {
	var all phaseResult
	for _, t := range o.targets {
		all.undecided = all.undecided || t.selection.NotReady
		if t.err == nil {
			continue
		}
		all.errs = append(all.errs, t.err)
		all.problems = append(all.problems, report.Problem{
			Reason: contract.ReasonCopyFailed, Namespace: t.namespace, Text: kube.Shorten(t.err.Error(), maxErrorBytes),
		})
		all.failing, all.undecided = true, true
	}
	return all
}

// claim claims the grants that the account needs, before any is used and again after copies
// were withdrawn.
//
// While an account may be about to be restored, its needs are unknown.
func (r *Reconciler) claim(p plan, withdrawn []string) {
	if p.restoring && !p.known {
		return
	}
	isPresent := func(namespace string) bool { return r.isPresent(p.key, namespace) }
	needed, kept := grantsOf(p, withdrawn, isPresent)
	for _, namespace := range r.operations.namespacesOf(p.key) {
		needed = append(needed, grants.Target(namespace)) // an operation in flight may create a copy
	}
	for _, grant := range r.grants.Claim(p.key, needed, kept) {
		r.enqueueGrant(grant)
	}
}

func (c *Credentials) isPresent(account types.NamespacedName, namespace string) bool {
	return c.ledger.Known(account, namespace, c.opts.Clock.Now()).Present
}

// conclude reports what came of an account, and requeues it for the earliest time at which that may
// change: an error in one namespace must not postpone, for instance, the token's expiry in another.
func (r *Reconciler) conclude(p plan, all phaseResult) (reconcile.Result, error) {
	r.report(p, all)
	return r.accountTrigger.Result(p.key, all.again, errors.Join(all.errs...))
}

// report remembers the account's problems for the condition, and for consumers. While something is
// undecided, those known before are still the best there is to say, unless that is so
// because an error lasts. A selection that is no longer unknown is not reported, either.
func (r *Reconciler) report(p plan, all phaseResult) {
	isPresent := func(d decision) bool { return r.isPresent(p.key, d.namespace) }
	isUncertain := func(problem report.Problem) bool { return problem.Reason == contract.ReasonSelectionUnknown }
	lasting := all.failing && r.failing.Lasted(p.key, kube.LastingAfter, p.now)
	if !all.failing && !all.undecided {
		r.failing.Over(p.key)
	}
	switch {
	case !p.known && !p.draining:
	case all.undecided && !lasting:
		if !slices.ContainsFunc(p.problems, isUncertain) {
			r.outcomes.Over(p.key, contract.ReasonSelectionUnknown)
		}
	case p.account == nil && !slices.ContainsFunc(p.decisions, isPresent):
		r.outcomes.Forget(p.key)
	default:
		r.outcomes.Set(p.key, report.Outcome{Problems: all.problems, ForConsumers: refusedIn(p.observed, all.problems)})
	}
}

// priority returns how urgent an account is, according to caches and memory: withdrawals first, unless
// they have failed for long, then accounts that have copies, then first copies.
func (r *Reconciler) priority(req reconcile.Request) int {
	if len(r.ledger.NamespacesOf(req.NamespacedName)) == 0 {
		return watch.PriorityLow
	}
	now := r.opts.Clock.Now()
	o, err := r.observe(r.added, req.NamespacedName, now, false)
	if err == nil && decide(o).takesAway(now) {
		return watch.PriorityHigh
	}
	return watch.PriorityNormal
}
