package credentials

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"open-cluster-management.io/cluster-inventory-addon/pkg/contract"
	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/credentials/bearer"
	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/credentials/grants"
	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/credentials/report"
	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/credentials/source"
	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/credentials/target"
	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/metrics"
	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/selection"
	"open-cluster-management.io/cluster-inventory-addon/pkg/kube"
	"open-cluster-management.io/cluster-inventory-addon/pkg/kube/fair"
	"open-cluster-management.io/cluster-inventory-addon/pkg/kube/watch"
)

const (
	// maxErrorBytes bounds how much of an API server's error is repeated.
	maxErrorBytes = 300

	// foreignEvery is how often to check whether a foreign Secret still takes a copy's
	// name; it has none of the watched labels.
	foreignEvery = 20 * time.Second
)

// Reconciler maintains the copies of one account. The request is the account: its cluster's
// namespace and its name.
type Reconciler struct {
	observer   observer
	tokens     *source.Tokens
	copies     *target.Copies
	ledger     *target.Ledger
	followers  *target.Followers
	operations *operations
	failures   *failures
	grants     *grants.Grants
	outcomes   *report.Outcomes
	metrics    *metrics.Metrics // nil: not counted
	clock      clock.PassiveClock
	failing    kube.Debounce[types.NamespacedName] // by account

	// retry enqueues an account after a delay.
	retry func(account types.NamespacedName, after time.Duration)

	// released is called for grants that an account no longer needs.
	released func(grants.Grant)

	// vacated is called for an account after a copy was withdrawn.
	vacated func(account types.NamespacedName)

	// allReconciled is called when every account has been reconciled since the start.
	allReconciled func()
}

// Reconcile brings the copies of an account to their desired state. It withdraws copies
// that must not exist before it reads the token.
func (r *Reconciler) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	o, err := r.observer.observe(ctx, req.NamespacedName, r.clock.Now())
	if err != nil {
		return reconcile.Result{}, err
	}
	plan := decide(o)
	r.operations.revoke(o.key, plan.mayHold)
	r.claim(o, plan, nil)
	r.failures.keep(o.key, plan.mayAttempt)
	withdrawn := r.withdraw(ctx, o, plan.withdrawals())
	if o.unknown != "" {
		return r.result(o.key, r.pause(o, plan, withdrawn))
	}
	found, token, read := r.readToken(ctx, o, plan)
	var last final
	if read.ok() {
		now := r.clock.Now()
		last = decideFinally(plan, found, now)
		r.metrics.TokenEnds(o.key, countedEnd(found, now))
	}
	r.operations.revoke(o.key, func(namespace string) bool { return !slices.Contains(last.withdraw, namespace) })
	applied := r.apply(ctx, o, plan, last, token)
	r.claim(o, plan, last.withdraw)
	unobserved := unobservedOf(o)
	all := join(effect{problems: plan.problems, again: o.again}, unobserved, withdrawn, read, applied)
	r.report(o, plan, all)
	if o.known && unobserved.ok() && r.observer.accounts.Reconciled(o.key) {
		r.allReconciled()
	}
	return r.result(o.key, all)
}

// result requeues an account for the earliest time in its effects. A controller ignores
// RequeueAfter with an error, so the times are passed to the queue before: an error in one
// namespace must not postpone, for instance, the token's expiry in another.
func (r *Reconciler) result(account types.NamespacedName, all effect) (reconcile.Result, error) {
	err := errors.Join(all.errs...)
	if err == nil {
		return reconcile.Result{RequeueAfter: all.again}, nil
	}
	if all.again > 0 {
		r.retry(account, all.again)
	}
	return reconcile.Result{}, err
}

// unobservedOf returns the effect of namespaces that could not be observed, or for which the rule
// is not ready.
func unobservedOf(o observed) effect {
	var all effect
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

// pause ends a reconciliation while it is unknown whether upstream's syncer is on.
// Withdrawals are done. Everything else is decided later, so the reconciliation concludes
// only what people must know if that lasts.
func (r *Reconciler) pause(o observed, p plan, withdrawn effect) effect {
	unknown := effect{problems: p.problems, again: kube.LastingAfter, failing: true, undecided: true}
	all := join(unknown, unobservedOf(o), withdrawn)
	r.report(o, p, all)
	return all
}

// priority returns how urgent an account is, according to caches and memory: withdrawals
// first, then accounts that have copies, then first copies.
func (r *Reconciler) priority(ctx context.Context, req reconcile.Request) int {
	if len(r.ledger.NamespacesOf(req.NamespacedName)) == 0 {
		return watch.PriorityLow
	}
	now := r.clock.Now()
	o, err := r.observer.glance(ctx, req.NamespacedName, now)
	if err == nil && decide(o).takesAway(now) {
		return watch.PriorityHigh
	}
	return watch.PriorityNormal
}

// effect is the result of one phase.
type effect struct {
	problems []report.Problem
	again    time.Duration

	// errs are returned from the reconciliation that finds them, and not again before the
	// next attempt.
	errs []error

	// failing is true if something failed that is retried by itself, contested if another client
	// keeps changing an object.
	failing, contested bool

	// undecided is true if something is about to be retried: there is nothing new to report
	// yet.
	undecided bool

	// lost is true if the namespace does not exist.
	lost bool

	// conflict is true if another client changed the object first. What limits repairs then
	// is kube.Brake.
	conflict bool

	// pause, unless zero, is how long a failed attempt must not be repeated. By default
	// that grows with every failure.
	pause time.Duration
}

func (e effect) ok() bool { return !e.failed() && !e.undecided && !e.lost }

// refused reports whether something failed that stays so until a user acts.
func (e effect) refused() bool { return e.failing && !e.undecided }

// failed reports whether an attempt must not be repeated at once.
func (e effect) failed() bool { return e.failing || e.contested }

func join(effects ...effect) effect {
	var all effect
	for _, e := range effects {
		all.problems = append(all.problems, e.problems...)
		all.again = kube.Sooner(all.again, e.again)
		all.errs = append(all.errs, e.errs...)
		all.failing = all.failing || e.failing
		all.contested = all.contested || e.contested
		all.undecided = all.undecided || e.undecided
	}
	return all
}

// claim claims the grants that the account needs, before any is used and again after copies
// were withdrawn.
//
// While an account may be about to be restored, its needs are unknown.
func (r *Reconciler) claim(o observed, p plan, withdrawn []string) {
	if o.restoring && !o.known {
		return
	}
	isPresent := func(namespace string) bool { return r.isPresent(o.key, namespace) }
	needed := neededGrants(o, p, withdrawn, isPresent)
	for _, namespace := range r.operations.namespacesOf(o.key) {
		if grant := grants.Target(namespace); !slices.Contains(needed, grant) {
			needed = append(needed, grant) // an operation in flight may create a copy
		}
	}
	for _, grant := range r.grants.Claim(o.key, needed, keptGrants(o, p, isPresent)) {
		r.released(grant)
	}
}

func (r *Reconciler) isPresent(account types.NamespacedName, namespace string) bool {
	return r.ledger.Known(account, namespace, r.clock.Now()).Present
}

// withdraw deletes the account's copies in the given namespaces, except for those that
// upstream's syncer has taken over and may be maintaining.
func (r *Reconciler) withdraw(ctx context.Context, o observed, namespaces []string) effect {
	var present []request
	for _, namespace := range namespaces {
		if r.isPresent(o.key, namespace) {
			present = append(present, request{namespace: namespace})
		}
	}
	// Upstream maintains only copies of accounts that exist and are labelled. It would
	// delete others that it has taken over itself.
	yield := (o.paused || o.unknown != "") && o.account != nil && o.account.DeletionTimestamp == nil
	return r.operations.do(o.key, withdrawing, present, func(namespace string, _ func() bool) effect {
		return r.withdrawFrom(ctx, o.key, namespace, yield)
	})
}

// withdrawFrom deletes the account's copy in a namespace.
func (r *Reconciler) withdrawFrom(
	ctx context.Context, account types.NamespacedName, namespace string, yield bool,
) effect {
	// Even a RoleBinding that is not ours may grant the right to delete.
	granted := r.ensure(ctx, grants.Target(namespace), namespace)
	if granted.lost {
		return effect{}
	}
	withdrawn, err := r.copies.Withdraw(ctx, account, namespace, yield)
	fight := &kube.ContestedError{}
	switch {
	case errors.As(err, &fight):
		return contested(ctx, "Secret", target.Key(account, namespace), namespace, fight)
	case err != nil && granted.ok():
		return r.failure(grants.Target(namespace), namespace, err, err.Error())
	case err != nil && granted.refused() && r.isCollected(ctx, account, namespace):
		log.FromContext(ctx).Info("Kubernetes deletes a copy that cannot be reached with its profile",
			"secret", target.Key(account, namespace))
		r.copies.Collected(account, namespace)
		r.vacated(account)
	case err != nil:
		return granted
	case withdrawn:
		log.FromContext(ctx).Info("Withdrew a copy", "secret", target.Key(account, namespace))
		r.vacated(account)
	}
	return effect{}
}

// isCollected reports whether Kubernetes' garbage collector deletes an account's copies in a namespace,
// because the profile that owns them is gone. Where nothing is bound any more, an admission policy
// refuses a RoleBinding that has been deleted, so the manager could never withdraw the copy itself.
func (r *Reconciler) isCollected(ctx context.Context, account types.NamespacedName, namespace string) bool {
	uid, err := r.observer.liveProfile(ctx, types.NamespacedName{Namespace: namespace, Name: account.Namespace})
	return err == nil && uid == ""
}

// readToken returns what is known about the account's token, and reads it if the plan says
// so. token is nil unless it was read and may be copied.
func (r *Reconciler) readToken(ctx context.Context, o observed, p plan) (source.Finding, *bearer.Token, effect) {
	switch p.token {
	case unused:
		r.tokens.Forget(o.key)
		return source.Finding{}, nil, effect{}
	case refused, unchanged, postponed:
		return p.finding, nil, effect{}
	}
	what, to := attempt{account: o.key, task: reading}, goal{token: source.ReferenceOf(o.account)}
	if instead, paused := r.failures.instead(what, to); paused {
		return source.Finding{}, nil, instead
	}
	found, token, result := r.read(ctx, o)
	return found, token, r.failures.record(what, to, result, true)
}

// read reads the account's token.
func (r *Reconciler) read(ctx context.Context, o observed) (source.Finding, *bearer.Token, effect) {
	at := grants.Source(o.key.Namespace)
	if granted := r.ensure(ctx, at, ""); !granted.ok() {
		// An account whose namespace does not exist is about to be deleted.
		granted.undecided = granted.undecided || granted.lost
		return source.Finding{}, nil, granted
	}
	found, token, err := r.tokens.Read(ctx, o.account)
	if err != nil {
		return source.Finding{}, nil, r.failure(at, "", err, err.Error())
	}
	return found, token, effect{}
}

// apply withdraws the copies of an unusable token, and writes those that differ. token is
// nil if it was not read.
func (r *Reconciler) apply(ctx context.Context, o observed, p plan, f final, token *bearer.Token) effect {
	withdrawn := r.withdraw(ctx, o, f.withdraw)
	all := join(effect{problems: f.problems, again: f.again}, withdrawn)
	if token == nil && p.token != postponed {
		// The Secret is missing and may be recreated: nothing can be written until then.
		all.undecided = all.undecided || len(f.write) > 0
		return all
	}
	decisions := make(map[string]decision, len(f.write))
	requests := make([]request, 0, len(f.write))
	for _, d := range f.write {
		decisions[d.namespace] = d
		requests = append(requests, writeOf(o, d.namespace, d.owner))
	}
	put := func(namespace string, revoked func() bool) effect {
		if token == nil { // there is room after all
			return effect{undecided: true, again: time.Millisecond}
		}
		return r.put(ctx, o.key, decisions[namespace], *token, revoked)
	}
	return join(all, r.operations.do(o.key, writing, requests, put))
}

// put brings one copy to its desired state, unless the right to it is revoked in the
// meantime.
func (r *Reconciler) put(
	ctx context.Context, account types.NamespacedName, d decision, token bearer.Token, revoked func() bool,
) effect {
	at, pair := grants.Target(d.namespace), types.NamespacedName{Namespace: d.namespace, Name: account.Namespace}
	if !d.copy.Present {
		if selected := r.selectedLive(ctx, pair); !selected.ok() {
			return selected
		}
	}
	switch granted := r.ensure(ctx, at, d.namespace); {
	case granted.lost:
		// The caches still select it; an event will tell them that the namespace is gone,
		// or exists again.
		const missing = "the Namespace does not exist"
		return effect{again: fair.RetryMost, problems: []report.Problem{{
			Reason: contract.ReasonTargetNotEntitled, Namespace: d.namespace, Text: missing,
		}}}
	case !granted.ok():
		return granted
	}
	var refused effect
	mayCreate := func() bool {
		refused = r.mayCreate(ctx, pair, d)
		return refused.ok()
	}
	err := r.copies.Put(ctx, target.Want{
		Account: account, Namespace: d.namespace, Token: token, Owner: d.owner,
		Create: d.action == publish, MayCreate: mayCreate,
		Belongs: func(other []byte) bool { return source.IssuedToTheSame(token.Token, other) },
		Revoked: revoked,
	})
	foreign, fight := &target.ForeignError{}, &kube.ContestedError{}
	switch {
	case errors.As(err, &fight):
		return contested(ctx, "Secret", target.Key(account, d.namespace), d.namespace, fight)
	case errors.Is(err, target.ErrRevoked) && !refused.ok():
		return refused
	case errors.Is(err, target.ErrRevoked):
		return effect{undecided: true} // the account is or will be reconciled again
	case errors.As(err, &foreign):
		return effect{again: foreignEvery, problems: []report.Problem{{
			Reason: contract.ReasonForeignSecret, Namespace: d.namespace, Text: foreign.Error(),
		}}}
	case err != nil:
		return r.failure(at, d.namespace, err, token.Censor(err.Error()))
	default:
		return effect{}
	}
}

// mayCreate returns no effect if the hub itself allows creating a pair's copy. One that was known to be
// there may be gone because another manager withdrew it.
func (r *Reconciler) mayCreate(ctx context.Context, pair types.NamespacedName, d decision) effect {
	if d.copy.Present {
		if selected := r.selectedLive(ctx, pair); !selected.ok() {
			return selected
		}
	}
	return r.ownedLive(ctx, pair, d.owner.UID)
}

// selectedLive returns no effect if the hub itself, past the caches, allows a first copy of a pair.
func (r *Reconciler) selectedLive(ctx context.Context, pair types.NamespacedName) effect {
	switch selected, err := r.observer.rule.Granted(ctx, pair); {
	case err != nil:
		return r.failure(grants.Target(pair.Namespace), pair.Namespace, err, err.Error())
	case selected.Answer != selection.Yes:
		return effect{undecided: true, again: cmp.Or(selected.Again, lagRecheck)}
	default:
		return effect{}
	}
}

// ownedLive returns no effect if the hub itself has the profile that will own a first copy. If the
// cache still shows one that was deleted and recreated, Kubernetes would collect the copy as garbage.
func (r *Reconciler) ownedLive(ctx context.Context, pair types.NamespacedName, owner types.UID) effect {
	switch uid, err := r.observer.liveProfile(ctx, pair); {
	case err != nil:
		return r.failure(grants.Target(pair.Namespace), pair.Namespace, err, err.Error())
	case uid != owner:
		return effect{undecided: true, again: lagRecheck}
	default:
		return effect{}
	}
}

// contested returns the effect of a contested object: it stays as it is for a while.
// namespace is where that is reported; "" means everywhere.
func contested(
	ctx context.Context, kind string, key types.NamespacedName, namespace string, fight *kube.ContestedError,
) effect {
	if fight.First {
		log.FromContext(ctx).Info("Another client keeps changing an object, so it is repaired less often",
			"kind", kind, "namespace", key.Namespace, "name", key.Name, "every", kube.RepairEvery)
	}
	return effect{
		problems:  []report.Problem{contestedProblem(kind, key, namespace)},
		contested: true, again: fight.Wait, pause: fight.Wait,
	}
}

// ensure ensures that a grant's RoleBinding exists. namespace is where a failure is
// reported; "" means everywhere.
func (r *Reconciler) ensure(ctx context.Context, grant grants.Grant, namespace string) effect {
	made, err := r.grants.Ensure(ctx, grant)
	if kube.IsNamespaceMissing(err) {
		if grant.IsTarget() {
			r.followers.Lost(grant.Namespace)
		}
		return effect{lost: true}
	}
	if fight := (&kube.ContestedError{}); errors.As(err, &fight) {
		return contested(ctx, "RoleBinding", grant.Key(), namespace, fight)
	}
	if err != nil {
		return r.failure(grant, namespace, err, err.Error())
	}
	if grant.IsTarget() {
		r.followers.Follow(grant.Namespace, made) //nolint:contextcheck // it outlives this reconciliation
	}
	return effect{}
}

// failure returns the effect of an error: a request forbidden although its grant was just
// created is retried soon; a refusal is reported and retried; everything else is retried,
// and reported if that does not help. text is the part of the error that may be reported.
func (r *Reconciler) failure(grant grants.Grant, namespace string, err error, text string) effect {
	text = bearer.WithoutTokens(text)
	if wait := r.grants.Settling(grant); wait > 0 && apierrors.IsForbidden(err) && !isTerminating(err) {
		return effect{undecided: true, again: wait}
	}
	return effect{
		errs:    []error{errors.New(text)},
		failing: true,
		problems: []report.Problem{{
			Reason: contract.ReasonCopyFailed, Namespace: namespace, Text: kube.Shorten(text, maxErrorBytes),
		}},
		undecided: !grants.IsRefusal(err),
		conflict:  target.IsConflict(err),
	}
}

// isTerminating reports whether something is forbidden because the namespace is
// being deleted.
func isTerminating(err error) bool {
	return apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause)
}

// report remembers the account's problems for the condition, and for consumers. While something is
// undecided, those known before are still the best there is to say, unless that is so
// because an error lasts. A selection that is no longer unknown is not reported, either.
func (r *Reconciler) report(o observed, p plan, all effect) {
	isPresent := func(d decision) bool { return r.isPresent(o.key, d.namespace) }
	lasting := all.failing && r.failing.Lasted(o.key, kube.LastingAfter, o.now)
	if !all.failing && !all.undecided {
		r.failing.Over(o.key)
	}
	switch {
	case !o.known && !o.draining:
	case all.undecided && !lasting:
		if !slices.ContainsFunc(p.problems, isUncertain) {
			r.outcomes.Over(o.key, contract.ReasonSelectionUnknown)
		}
	case o.account == nil && !slices.ContainsFunc(p.decisions, isPresent):
		r.outcomes.Forget(o.key)
	default:
		r.outcomes.Set(o.key, report.Outcome{Problems: all.problems, Lacks: refusedIn(o, all.problems)})
	}
}

func isUncertain(p report.Problem) bool { return p.Reason == contract.ReasonSelectionUnknown }
