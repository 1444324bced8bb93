package credentials

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	authv1beta1 "open-cluster-management.io/managed-serviceaccount/apis/authentication/v1beta1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"open-cluster-management.io/cluster-inventory-addon/pkg/contract"
	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/credentials/bearer"
	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/credentials/grants"
	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/credentials/report"
	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/credentials/source"
	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/credentials/target"
	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/selection"
	"open-cluster-management.io/cluster-inventory-addon/pkg/kube"
	"open-cluster-management.io/cluster-inventory-addon/pkg/kube/fair"
)

const (
	// maxErrorBytes bounds how much of an API server's error is repeated.
	maxErrorBytes = 300

	// foreignEvery is how often to check whether a foreign Secret still takes a copy's
	// name; it has none of the watched labels.
	foreignEvery = 20 * time.Second
)

// withdraw deletes the account's copies in the given namespaces, except for those that
// upstream's syncer has taken over and may be maintaining.
func (r *Reconciler) withdraw(ctx context.Context, o observed, namespaces []string) phaseResult {
	// Upstream maintains only copies of accounts that exist and are labelled. It would
	// delete others that it has taken over itself.
	yield := (o.paused || o.unknown != "") && o.account != nil && o.account.DeletionTimestamp == nil
	var requests []request
	for _, namespace := range namespaces {
		if r.isPresent(o.key, namespace) {
			requests = append(requests, request{namespace: namespace, act: func(func() bool) phaseResult {
				return r.withdrawFrom(ctx, o.key, namespace, yield)
			}})
		}
	}
	return r.operations.do(o.key, withdrawing, requests)
}

// withdrawFrom deletes the account's copy in a namespace.
func (r *Reconciler) withdrawFrom(
	ctx context.Context, account types.NamespacedName, namespace string, yield bool,
) phaseResult {
	// Even a RoleBinding that is not ours may grant the right to delete.
	at, secret := grants.Target(namespace), target.Key(account, namespace)
	granted := r.ensure(ctx, at)
	if granted.lost {
		return phaseResult{}
	}
	withdrawn, err := r.copies.Withdraw(ctx, account, namespace, yield)
	contention := &kube.ContestedError{}
	switch {
	case errors.As(err, &contention):
		return contested(ctx, at, "Secret", secret.Name, contention)
	case err != nil && granted.ok():
		return r.failure(at, err, err.Error())
	case err != nil && granted.refused() && r.isCollected(ctx, account, namespace):
		log.FromContext(ctx).Info("Kubernetes deletes a copy that cannot be reached with its profile", "secret", secret)
		r.copies.Collected(account, namespace)
		r.enqueueRivals(account)
	case err != nil:
		return granted
	case withdrawn:
		log.FromContext(ctx).Info("Withdrew a copy", "secret", secret)
		r.enqueueRivals(account)
	}
	return phaseResult{}
}

// isCollected reports whether Kubernetes' garbage collector deletes an account's copies in a namespace,
// because the profile that owns them is gone. Where nothing is bound any more, an admission policy
// refuses a RoleBinding that has been deleted, so the manager could never withdraw the copy itself.
func (r *Reconciler) isCollected(ctx context.Context, account types.NamespacedName, namespace string) bool {
	uid, err := r.liveProfile(ctx, types.NamespacedName{Namespace: namespace, Name: account.Namespace})
	return err == nil && uid == ""
}

// readToken returns what is known about the account's token, and reads it if the plan says
// so. token is nil unless it was read and may be copied.
func (r *Reconciler) readToken(ctx context.Context, p plan) (source.Finding, *bearer.Token, phaseResult) {
	switch p.token {
	case unused:
		r.tokens.Forget(p.key)
		return source.Finding{}, nil, phaseResult{}
	case refused, unchanged, postponed:
		return p.found, nil, phaseResult{}
	}
	what, in := operationID{account: p.key, kind: reading}, inputs{token: source.ReferenceOf(p.account)}
	if instead, paused := r.failures.instead(what, in); paused {
		return source.Finding{}, nil, instead
	}
	found, token, result := r.read(ctx, p.account)
	return found, token, r.failures.record(what, in, result, true)
}

// read reads an account's token.
func (r *Reconciler) read(
	ctx context.Context, account *authv1beta1.ManagedServiceAccount,
) (source.Finding, *bearer.Token, phaseResult) {
	at := grants.Source(account.Namespace)
	if granted := r.ensure(ctx, at); !granted.ok() {
		// An account whose namespace does not exist is about to be deleted.
		granted.undecided = granted.undecided || granted.lost
		return source.Finding{}, nil, granted
	}
	found, token, err := r.tokens.Read(ctx, account)
	if err != nil {
		return source.Finding{}, nil, r.failure(at, err, err.Error())
	}
	return found, token, phaseResult{}
}

// apply withdraws the copies of an unusable token, and writes those that differ. token is
// nil if it was not read.
func (r *Reconciler) apply(ctx context.Context, p plan, f final, token *bearer.Token) phaseResult {
	withdrawn := r.withdraw(ctx, p.observed, f.withdraw)
	all := join(phaseResult{problems: f.problems, again: f.again}, withdrawn)
	if token == nil && p.token != postponed {
		// The Secret is missing and may be recreated: nothing can be written until then.
		all.undecided = all.undecided || len(f.write) > 0
		return all
	}
	requests := make([]request, 0, len(f.write))
	for _, d := range f.write {
		put := func(revoked func() bool) phaseResult {
			if token == nil { // there is a free slot after all
				return phaseResult{undecided: true, again: time.Millisecond}
			}
			return r.put(ctx, p.key, d, *token, revoked)
		}
		requests = append(requests, request{d.namespace, inputsOf(p.observed, d.observedTarget), put})
	}
	return join(all, r.operations.do(p.key, writing, requests))
}

// put brings one copy to its desired state, unless the right to it is revoked in the
// meantime.
func (r *Reconciler) put(
	ctx context.Context, account types.NamespacedName, d decision, token bearer.Token, revoked func() bool,
) phaseResult {
	at, pair := grants.Target(d.namespace), types.NamespacedName{Namespace: d.namespace, Name: account.Namespace}
	held := &kube.HeldBackError{} // asked first: a first copy costs live reads
	if err := r.copies.CheckBudget(account, d.namespace); errors.As(err, &held) {
		return phaseResult{undecided: true, again: held.Wait}
	}
	if !d.copy.Present {
		if selected := r.selectedLive(ctx, pair); !selected.ok() {
			return selected
		}
	}
	switch granted := r.ensure(ctx, at); {
	case granted.lost:
		// The caches still select it; an event will tell them that the namespace is gone,
		// or exists again.
		const missing = "the Namespace does not exist"
		return phaseResult{again: fair.RetryMost, problems: []report.Problem{{
			Reason: contract.ReasonTargetNotEntitled, Namespace: d.namespace, Text: missing,
		}}}
	case !granted.ok():
		return granted
	}
	var refused phaseResult
	mayCopy := func() bool {
		refused = r.mayCopy(ctx, pair, d)
		return refused.ok()
	}
	err := r.copies.Put(ctx, target.Want{
		Account: account, Namespace: d.namespace, Token: token, Owner: d.profile.owner,
		Create: d.action == publish, MayCopy: mayCopy, Revoked: revoked,
	})
	foreign, contention := &target.ForeignError{}, &kube.ContestedError{}
	switch {
	case err == nil:
		return phaseResult{}
	case errors.As(err, &contention):
		return contested(ctx, at, "Secret", target.Name(account), contention)
	case errors.Is(err, target.ErrRevoked) && !refused.ok():
		return refused
	case errors.Is(err, target.ErrRevoked):
		return phaseResult{undecided: true} // the account is or will be reconciled again
	case errors.As(err, &foreign):
		return phaseResult{again: foreignEvery, problems: []report.Problem{{
			Reason: contract.ReasonForeignSecret, Namespace: d.namespace, Text: foreign.Error(),
		}}}
	default:
		return r.failure(at, err, token.Censor(err.Error()))
	}
}

// mayCopy returns a zero result if the hub itself allows a pair's copy, and has the profile that will own it.
// A copy that was known to be there may be gone because another manager withdrew it, and one that only its
// labels show may be a tenant's, who would get the token. If the cache still shows a profile that was deleted
// and recreated, Kubernetes would collect the copy as garbage.
func (r *Reconciler) mayCopy(ctx context.Context, pair types.NamespacedName, d decision) phaseResult {
	switch {
	case d.selection.Answer != selection.Yes:
		return phaseResult{undecided: true} // the end of that enqueues the account
	case d.copy.Present:
		if selected := r.selectedLive(ctx, pair); !selected.ok() {
			return selected
		}
	}
	switch uid, err := r.liveProfile(ctx, pair); {
	case err != nil:
		return r.failure(grants.Target(pair.Namespace), err, err.Error())
	case uid != d.profile.owner.UID:
		return phaseResult{undecided: true, again: selection.LagRecheck}
	default:
		return phaseResult{}
	}
}

// selectedLive returns a zero result if the hub itself, past the caches, allows a first copy of a pair.
func (r *Reconciler) selectedLive(ctx context.Context, pair types.NamespacedName) phaseResult {
	switch selected, err := r.opts.Rule.ConfirmYes(ctx, pair); {
	case err != nil:
		return r.failure(grants.Target(pair.Namespace), err, err.Error())
	case selected.Answer != selection.Yes:
		return phaseResult{undecided: true, again: cmp.Or(selected.Again, selection.LagRecheck)}
	default:
		return phaseResult{}
	}
}

// liveProfile returns the UID of the profile of a pair on the hub itself, past the caches; "" if there
// is none, or if it is being deleted. There is a right to list profiles, and none to get them.
func (r *Reconciler) liveProfile(ctx context.Context, pair types.NamespacedName) (types.UID, error) {
	list := kube.PartialList(selection.ProfileKind)
	named := client.MatchingFields{metav1.ObjectNameField: pair.Name}
	err := r.mgr.GetAPIReader().List(ctx, list, client.InNamespace(pair.Namespace), named)
	if err != nil {
		return "", fmt.Errorf("reading ClusterProfile %s: %w", pair.Name, err)
	}
	if len(list.Items) == 0 || list.Items[0].DeletionTimestamp != nil {
		return "", nil
	}
	return list.Items[0].UID, nil
}

// ensure ensures that a grant's RoleBinding exists.
func (r *Reconciler) ensure(ctx context.Context, grant grants.Grant) phaseResult {
	err := r.grants.Ensure(ctx, grant)
	contention := &kube.ContestedError{}
	switch {
	case err == nil:
		return phaseResult{}
	case kube.IsNamespaceMissing(err):
		return phaseResult{lost: true}
	case errors.As(err, &contention):
		return contested(ctx, grant, "RoleBinding", grant.Key().Name, contention)
	default:
		return r.failure(grant, err, err.Error())
	}
}

// contested returns the result of a contested object, for which the manager has a right: the object
// stays as it is for a while.
func contested(ctx context.Context, at grants.Grant, kind, name string, contention *kube.ContestedError) phaseResult {
	if contention.First {
		log.FromContext(ctx).Info("Another client keeps changing an object, so it is repaired less often",
			"kind", kind, "namespace", at.Namespace, "name", name, "every", kube.RepairEvery)
	}
	return phaseResult{
		problems:  []report.Problem{contestedProblem(at, kind, name)},
		contested: true, again: contention.Wait,
	}
}

// failure returns the result of an error: a request forbidden although its grant was just
// created is retried soon; a refusal is reported and retried; everything else is retried,
// and reported if that does not help. text is the part of the error that may be reported.
func (r *Reconciler) failure(grant grants.Grant, err error, text string) phaseResult {
	text = bearer.WithoutTokens(text)
	// Something is also forbidden because the namespace is being deleted.
	if wait := r.grants.ForbiddenRetry(grant); wait > 0 && apierrors.IsForbidden(err) &&
		!apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause) {
		return phaseResult{undecided: true, again: wait}
	}
	return phaseResult{
		errs:    []error{errors.New(text)},
		failing: true,
		problems: []report.Problem{{
			Reason: contract.ReasonCopyFailed, Namespace: reportedIn(grant), Text: kube.Shorten(text, maxErrorBytes),
		}},
		undecided: !grants.IsRefusal(err),
		conflict:  target.IsConflict(err),
	}
}
