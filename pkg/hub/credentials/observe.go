package credentials

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	authv1beta1 "open-cluster-management.io/managed-serviceaccount/apis/authentication/v1beta1"
	inventoryv1alpha1 "sigs.k8s.io/cluster-inventory-api/apis/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/credentials/grants"
	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/credentials/source"
	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/selection"
	"open-cluster-management.io/cluster-inventory-addon/pkg/kube"
	"open-cluster-management.io/cluster-inventory-addon/pkg/kube/watch"
)

// observe reads one account and everything that its copies depend on: caches and this process's
// memory. acting says that something may be withdrawn because of it: then it reads live on what a
// withdrawal rests. Otherwise it does not wait for the API server, which suffices to determine how
// urgent an account is.
func (r *Reconciler) observe(
	ctx context.Context, key types.NamespacedName, now time.Time, acting bool,
) (o observed, err error) {
	o = observed{
		key: key, now: now, draining: r.opts.Mode == ModeDraining,
		paused: r.opts.UpstreamSyncer.On(), unknown: r.opts.UpstreamSyncer.Unknown(),
	}
	lags := r.opts.Definitions.Lagging().Any(source.AccountCRD)
	if o.account, o.known, err = r.accounts.Get(ctx, key); err != nil {
		return o, err
	}
	if err := r.observeDefinition(ctx, &o, lags, acting); err != nil {
		return o, err
	}
	named, err := r.wantedNamespaces(ctx, o.account)
	if err != nil {
		return o, err
	}
	o.silent, o.uncounted = !named.Is && !r.opts.RequireTarget, named.More
	rivals, err := r.rivals(ctx, key)
	if err != nil {
		return o, err
	}
	wanted := sets.New(named.Namespaces...)
	for _, namespace := range kube.SortedNames(append(wanted.UnsortedList(), r.ledger.NamespacesOf(key)...)) {
		t := observedTarget{
			namespace: namespace, wanted: wanted.Has(namespace), copy: r.ledger.Known(key, namespace, now),
			stuck: r.failures.isStuck(key, namespace),
		}
		if (t.wanted || !o.known) && isNamespace(namespace) {
			if err := r.observeTarget(ctx, key.Namespace, rivals, &t, now, acting); err != nil {
				t.err, t.selection = fmt.Errorf("observing namespace %s: %w", namespace, err), selection.Result{}
			}
			o.again = kube.Sooner(o.again, t.selection.Again)
		}
		if t.holder != (types.NamespacedName{}) {
			o.again = kube.Sooner(o.again, foreignEvery)
		}
		if left := r.copies.Contested(key, namespace); left > 0 {
			t.contested, o.again = true, kube.Sooner(o.again, left)
		}
		if o.account != nil {
			t.blocked = !r.operations.mayWrite(key, namespace, inputsOf(o, t))
		}
		o.targets = append(o.targets, t)
	}
	if o.account != nil {
		o.finding, o.current = r.tokens.Current(key, source.ReferenceOf(o.account), now)
	}
	if !acting || !o.needsToken(lags || o.restoring) {
		return o, nil
	}
	if granted, err := r.grants.Exists(ctx, grants.Source(key.Namespace)); err != nil || granted {
		return o, err
	}
	r.confirm(ctx, &o)
	return o, nil
}

// confirm reads an account live before a right is granted to its token: the cache may still have the account
// of an earlier registration of its cluster. If it cannot be read, it is unknown whether a copy may exist, and
// those that do are left as they are.
func (r *Reconciler) confirm(ctx context.Context, o *observed) {
	account, err := source.Read(ctx, r.mgr.GetAPIReader(), o.key)
	switch {
	case err != nil:
		for i := range o.targets {
			if t := &o.targets[i]; o.isPublished(*t) {
				t.err, t.selection = err, selection.Result{}
			}
		}
		if len(r.ledger.NamespacesOf(o.key)) > 0 {
			o.restoring, o.known = true, false
		}
	case account == nil || account.UID != o.account.UID || account.DeletionTimestamp != nil:
		o.restoring, o.known, o.again = true, false, kube.Sooner(o.again, selection.LagRecheck)
	}
}

// observeDefinition doubts, if there are copies, that an account was deleted, has lost its token or no longer
// names their namespaces: it may have vanished with its CRD, and may be about to be restored, or the cache that
// was read may have been older than this process (lags).
func (r *Reconciler) observeDefinition(ctx context.Context, o *observed, lags, acting bool) error {
	if !o.known || o.draining || len(r.ledger.NamespacesOf(o.key)) == 0 {
		return nil
	}
	state, err := r.opts.Definitions.State(ctx, r.mgr.GetCache(), source.AccountCRD)
	if err != nil {
		return err
	}
	o.restoring = state != watch.Served
	if !o.restoring && acting && isIncomplete(o.account) {
		doubtful, err := r.opts.Definitions.Confirm(ctx, source.AccountCRD)
		if err != nil {
			return err
		}
		o.restoring = doubtful != ""
	}
	if !o.restoring && (!acting || !lags) {
		return nil
	}
	cached, err := r.losing(ctx, o.key, o.account, o.now)
	switch {
	case err != nil:
		return err
	case o.restoring:
		o.again = kube.Sooner(o.again, r.opts.Definitions.Left(source.AccountCRD))
		// Whether the cache lags is unknown before the CRD is followed.
		o.known = !isIncomplete(o.account) && (state != watch.Unserved || len(cached) == 0)
		return nil
	case len(cached) == 0:
		return nil
	}
	account, err := source.Read(ctx, r.mgr.GetAPIReader(), o.key)
	if err != nil {
		return err
	}
	live, err := r.losing(ctx, o.key, account, o.now)
	if o.restoring = len(cached.Difference(live)) > 0; o.restoring {
		o.again, o.known = kube.Sooner(o.again, selection.LagRecheck), false
	}
	return err
}

// losing returns the namespaces whose copies of an account's token must go because of the account itself.
func (r *Reconciler) losing(
	ctx context.Context, key types.NamespacedName, account *authv1beta1.ManagedServiceAccount, now time.Time,
) (sets.Set[string], error) {
	copied := sets.New(r.ledger.NamespacesOf(key)...)
	if isUnusable(account, now) {
		return copied, nil
	}
	named, err := r.wantedNamespaces(ctx, account)
	return copied.Delete(named.Namespaces...), err
}

// wantedNamespaces returns what an account names. Unless one must name namespaces, those where its
// cluster is shown stand in for none.
func (r *Reconciler) wantedNamespaces(
	ctx context.Context, account *authv1beta1.ManagedServiceAccount,
) (source.Named, error) {
	if account == nil {
		return source.Named{}, nil
	}
	named := source.NamedNamespaces(account)
	if named.Is || r.opts.RequireTarget {
		return named, nil
	}
	var err error
	named.Namespaces, err = r.opts.Rule.Namespaces(ctx, account.Namespace)
	if errors.Is(err, selection.ErrProfilesUnserved) {
		// The rule decides alone where a copy may stay.
		named.Namespaces, err = r.ledger.NamespacesOf(client.ObjectKeyFromObject(account)), nil
	}
	return named, err
}

// rival is another account whose copies have the same name.
type rival struct {
	key    types.NamespacedName
	wanted sets.Set[string] // namespaces to which it allows copying; none if it is not copied at all
}

// rivals returns the other accounts whose copies have the same name as the account's.
func (r *Reconciler) rivals(ctx context.Context, key types.NamespacedName) ([]rival, error) {
	accounts, err := r.accounts.List(ctx, r.accounts.SameCopyName(key))
	if err != nil {
		return nil, err
	}
	var rivals []rival
	for i := range accounts {
		other := rival{key: client.ObjectKeyFromObject(&accounts[i])}
		if other.key == key {
			continue
		}
		if source.IsLabelled(&accounts[i]) && accounts[i].DeletionTimestamp == nil {
			named, err := r.wantedNamespaces(ctx, &accounts[i])
			if err != nil {
				return nil, err
			}
			other.wanted = sets.New(named.Namespaces...)
		}
		rivals = append(rivals, other)
	}
	return rivals, nil
}

// observeTarget completes the facts about one namespace. A rival counts where it is, or may be,
// copied. That does not depend on its token, which is read later, so that it does not depend on the
// order in which accounts are reconciled. An account that is not entitled does not count: it could
// keep others from their tokens. Others must not take the place of a copy before it is certain to be
// withdrawn.
func (r *Reconciler) observeTarget(
	ctx context.Context, cluster string, rivals []rival, t *observedTarget, now time.Time, acting bool,
) (err error) {
	pair := types.NamespacedName{Namespace: t.namespace, Name: cluster}
	if t.selection, err = r.opts.Rule.Selected(ctx, pair, t.copy.Present && acting); err != nil {
		return err
	}
	profile, err := kube.Get(ctx, r.mgr.GetCache(), pair, &inventoryv1alpha1.ClusterProfile{})
	if err != nil && !kube.IsUncached(err) {
		return err
	}
	t.profile = profileState(profile)
	for _, other := range rivals {
		isThere := r.ledger.Known(other.key, t.namespace, now).Present
		if isThere {
			t.holder = other.key
		}
		if !other.wanted.Has(t.namespace) {
			continue
		}
		theirs := types.NamespacedName{Namespace: t.namespace, Name: other.key.Namespace}
		selected, err := r.opts.Rule.Selected(ctx, theirs, isThere && acting)
		if err != nil {
			return err
		}
		if selected.Answer != selection.No {
			t.rivals = append(t.rivals, other.key)
		}
	}
	return nil
}
