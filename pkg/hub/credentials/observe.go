package credentials

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	authv1beta1 "open-cluster-management.io/managed-serviceaccount/apis/authentication/v1beta1"
	inventoryv1alpha1 "sigs.k8s.io/cluster-inventory-api/apis/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/credentials/source"
	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/credentials/target"
	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/selection"
	"open-cluster-management.io/cluster-inventory-addon/pkg/kube"
	"open-cluster-management.io/cluster-inventory-addon/pkg/kube/watch"
)

// observer reads everything that decides about an account: caches and this process's
// memory, and live the CRDs on which a withdrawal rests.
type observer struct {
	accounts      *source.Accounts
	tokens        *source.Tokens
	ledger        *target.Ledger
	copies        *target.Copies
	operations    *operations
	reader        client.Reader // ClusterProfiles
	live          client.Reader // bypasses every cache
	rule          Rule
	syncer        UpstreamSyncer
	definitions   *watch.Definitions
	draining      bool
	requireTarget bool

	// unconfirmed skips reading CRDs: nothing is done because of the observation.
	unconfirmed bool
}

// glance observes without waiting for the API server, which suffices to determine how
// urgent an account is.
func (r *observer) glance(ctx context.Context, key types.NamespacedName, now time.Time) (observed, error) {
	quick := *r
	quick.unconfirmed = true
	return quick.observe(ctx, key, now)
}

// observe reads one account and everything that its copies depend on.
func (r *observer) observe(ctx context.Context, key types.NamespacedName, now time.Time) (o observed, err error) {
	o = observed{key: key, now: now, draining: r.draining, paused: r.syncer.On(), unknown: r.syncer.Unknown()}
	lags := r.definitions.Lagging().Any(source.AccountCRD)
	if o.account, o.known, err = r.accounts.Get(ctx, key); err != nil {
		return o, err
	}
	if err := r.observeDefinition(ctx, &o, lags); err != nil {
		return o, err
	}
	if o.account != nil {
		o.finding, o.current = r.tokens.Current(key, source.ReferenceOf(o.account), now)
	}
	wanted, err := r.wantedNamespaces(ctx, o.account)
	if err != nil {
		return o, err
	}
	o.silent, o.uncounted = !wanted.named && !r.requireTarget, wanted.more
	rivals, err := r.rivals(ctx, key)
	if err != nil {
		return o, err
	}
	namespaces := append(slices.Collect(maps.Keys(wanted.in)), r.ledger.NamespacesOf(key)...)
	for _, namespace := range kube.SortedNames(namespaces) {
		_, isWanted := wanted.in[namespace]
		t := observedTarget{namespace: namespace, wanted: isWanted, copy: r.ledger.Known(key, namespace, now)}
		if (t.wanted || !o.known) && isNamespace(namespace) {
			if err := r.observeTarget(ctx, key, rivals, &t, now); err != nil {
				t.err, t.selection = fmt.Errorf("observing namespace %s: %w", namespace, err), selection.Result{}
			}
			o.again = kube.Sooner(o.again, t.selection.Again)
		}
		if left := r.copies.Contested(key, namespace); left > 0 {
			t.contested, o.again = true, kube.Sooner(o.again, left)
		}
		if o.account != nil {
			t.blocked = !r.operations.mayWrite(key, writeOf(o, namespace, t.profile.owner))
		}
		o.targets = append(o.targets, t)
	}
	return o, nil
}

// writeOf returns the request to write an account's copy in a namespace.
func writeOf(o observed, namespace string, owner target.Owner) request {
	return request{namespace, goal{source.ReferenceOf(o.account), owner}}
}

// lagRecheck is how soon to look again where the hub and the cache differ. The hub may not bind the
// cluster any more, or have another profile. A cache that was filled by an API server that lags may
// lack an account or its token.
const lagRecheck = time.Second

// observeDefinition doubts, if there are copies, that an account was deleted or has lost
// its token: it may have vanished with its CRD, and may be about to be restored, or the
// cache that was read may have been older than this process (lags).
func (r *observer) observeDefinition(ctx context.Context, o *observed, lags bool) error {
	if !o.known || o.draining || len(r.ledger.NamespacesOf(o.key)) == 0 {
		return nil
	}
	standing, err := r.definitions.Standing(ctx, r.reader, source.AccountCRD)
	if err != nil {
		return err
	}
	o.restoring = standing != watch.Served
	if !o.restoring && !r.unconfirmed && isIncomplete(o.account) {
		doubtful, err := r.definitions.Confirm(ctx, source.AccountCRD)
		if err != nil {
			return err
		}
		o.restoring = doubtful != ""
	}
	if !o.restoring && !r.unconfirmed && isIncomplete(o.account) && lags {
		account, err := source.Read(ctx, r.live, o.key)
		if err != nil {
			return err
		}
		if o.restoring = !isIncomplete(account); o.restoring {
			o.again = kube.Sooner(o.again, lagRecheck)
		}
	}
	if o.restoring {
		o.again = kube.Sooner(o.again, r.definitions.Left(source.AccountCRD))
		o.known = !isIncomplete(o.account)
	}
	return nil
}

// observeTarget completes the facts about one namespace.
func (r *observer) observeTarget(
	ctx context.Context, key types.NamespacedName, rivals []rival, t *observedTarget, now time.Time,
) (err error) {
	pair := types.NamespacedName{Namespace: t.namespace, Name: key.Namespace}
	if t.selection, err = r.rule.Selected(ctx, pair, t.copy.Present && !r.unconfirmed); err != nil {
		return err
	}
	profile, err := r.profile(ctx, pair)
	if err != nil {
		return err
	}
	t.profile = judgeProfile(profile)
	for _, other := range rivals {
		isThere := r.ledger.Known(other.key, t.namespace, now).Present
		if isThere {
			t.holder = other.key
		}
		claims, err := r.claims(ctx, other, t.namespace, isThere)
		if err != nil {
			return err
		}
		if claims {
			t.rivals = append(t.rivals, other.key)
		}
	}
	return nil
}

// rival is another account whose copies have the same name.
type rival struct {
	key    types.NamespacedName
	wanted wanted
}

// rivals returns the other accounts, by cluster, whose copies have the same name as the
// account's.
func (r *observer) rivals(ctx context.Context, key types.NamespacedName) ([]rival, error) {
	accounts, err := r.accounts.SameCopyName(ctx, key)
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
			if other.wanted, err = r.wantedNamespaces(ctx, &accounts[i]); err != nil {
				return nil, err
			}
		}
		rivals = append(rivals, other)
	}
	slices.SortFunc(rivals, func(a, b rival) int { return cmp.Compare(a.key.Namespace, b.key.Namespace) })
	return rivals, nil
}

// claims reports whether an account is, or may be, copied to a namespace. A claim does not
// depend on the token, which is read later, so that it does not depend on the order in
// which accounts are reconciled. An account that is not entitled claims nothing: it could
// keep others from their tokens. hasCopy says that others must not take the place of a copy
// of the account before it is certain to be withdrawn.
func (r *observer) claims(ctx context.Context, account rival, namespace string, hasCopy bool) (bool, error) {
	if _, ok := account.wanted.in[namespace]; !ok {
		return false, nil
	}
	pair := types.NamespacedName{Namespace: namespace, Name: account.key.Namespace}
	selected, err := r.rule.Selected(ctx, pair, hasCopy && !r.unconfirmed)
	return selected.Answer != selection.No, err
}

// wanted holds the namespaces to which the account itself allows copying.
type wanted struct {
	in    map[string]struct{} // namespaces
	named bool                // by the account
	more  int                 // named, but beyond the limit
}

// wantedNamespaces returns the namespaces to which the account itself allows copying.
func (r *observer) wantedNamespaces(
	ctx context.Context, account *authv1beta1.ManagedServiceAccount,
) (wanted, error) {
	if account == nil {
		return wanted{}, nil
	}
	said := source.NamedNamespaces(account)
	namespaces := said.Namespaces
	if !said.Is && !r.requireTarget {
		var err error
		namespaces, err = r.rule.Namespaces(ctx, account.Namespace)
		if errors.Is(err, selection.ErrProfilesUnserved) {
			// The rule decides alone where a copy may stay.
			namespaces, err = r.ledger.NamespacesOf(client.ObjectKeyFromObject(account)), nil
		}
		if err != nil {
			return wanted{}, err
		}
	}
	w := wanted{in: make(map[string]struct{}, len(namespaces)), named: said.Is, more: said.More}
	for _, namespace := range namespaces {
		w.in[namespace] = struct{}{}
	}
	return w, nil
}

// profile returns the ClusterProfile of a pair, or nil if none is known.
func (r *observer) profile(
	ctx context.Context, pair types.NamespacedName,
) (*inventoryv1alpha1.ClusterProfile, error) {
	profile, err := kube.Get(ctx, r.reader, pair, &inventoryv1alpha1.ClusterProfile{})
	if kube.IsUncached(err) {
		return nil, nil
	}
	return profile, err
}

// liveProfile returns the UID of the profile of a pair on the hub itself, past the caches; "" if there
// is none, or if it is being deleted. There is a right to list profiles, and none to get them.
func (r *observer) liveProfile(ctx context.Context, pair types.NamespacedName) (types.UID, error) {
	list := kube.PartialList(selection.ProfileKind)
	named := client.MatchingFields{metav1.ObjectNameField: pair.Name}
	err := r.live.List(ctx, list, client.InNamespace(pair.Namespace), named)
	if err != nil {
		return "", fmt.Errorf("reading ClusterProfile %s: %w", pair.Name, err)
	}
	if len(list.Items) == 0 || list.Items[0].DeletionTimestamp != nil {
		return "", nil
	}
	return list.Items[0].UID, nil
}
