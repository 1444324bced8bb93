package credentials

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	authv1beta1 "open-cluster-management.io/managed-serviceaccount/apis/authentication/v1beta1"
	inventoryv1alpha1 "sigs.k8s.io/cluster-inventory-api/apis/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// observer reads what decides about an account. It reads caches only.
type observer struct {
	accounts      *accounts
	book          *book
	reader        client.Reader // ClusterProfiles
	selector      Selector
	syncer        UpstreamSyncer
	draining      bool
	requireTarget bool
}

// observe looks at one account and everything that its copies depend on. Its work
// is that of the account's own targets. again is how soon to ask again because
// time alone will change the answer; zero is never.
func (r *observer) observe(ctx context.Context, key types.NamespacedName, now time.Time) (o observed, again time.Duration, err error) {
	o = observed{key: key, draining: r.draining, held: r.syncer.On()}
	if o.account, o.known, err = r.accounts.get(ctx, key); err != nil {
		return o, 0, err
	}
	wanted, named, err := r.wantedNamespaces(ctx, o.account)
	if err != nil {
		return o, 0, err
	}
	o.silent = !named && !r.requireTarget
	rivals, err := r.accounts.list(ctx, client.MatchingFields{IndexAccountByCopyName: copyName(key)})
	if err != nil {
		return o, 0, err
	}
	namespaces := append(slices.Clone(wanted), r.book.namespacesOf(key)...)
	slices.Sort(namespaces)
	for _, namespace := range slices.Compact(namespaces) {
		t := observedTarget{
			namespace: namespace,
			wanted:    slices.Contains(wanted, namespace),
			present:   r.book.hasCopy(copyKey(key, namespace), now),
		}
		if t.wanted || !o.known {
			wait, err := r.observeTarget(ctx, key, rivals, &t)
			if err != nil {
				return o, 0, err
			}
			again = sooner(again, wait)
		}
		o.targets = append(o.targets, t)
	}
	return o, again, nil
}

func (r *observer) observeTarget(ctx context.Context, key types.NamespacedName, rivals []authv1beta1.ManagedServiceAccount, t *observedTarget) (again time.Duration, err error) {
	if !isNamespace(t.namespace) {
		return 0, nil
	}
	pair := types.NamespacedName{Namespace: t.namespace, Name: key.Namespace}
	if t.selection, err = r.selector.Selected(ctx, pair); err != nil {
		return 0, err
	}
	profile, err := r.profile(ctx, pair)
	if err != nil {
		return 0, err
	}
	t.profile = judgeProfile(profile, key.Namespace)
	for i := range rivals {
		rival := client.ObjectKeyFromObject(&rivals[i])
		if rival == key {
			continue
		}
		claims, err := r.claims(ctx, &rivals[i], t.namespace)
		if err != nil {
			return 0, err
		}
		if claims {
			t.rivals = append(t.rivals, rival)
		}
	}
	slices.SortFunc(t.rivals, func(a, b types.NamespacedName) int { return cmp.Compare(a.Namespace, b.Namespace) })
	return t.selection.Again, nil
}

// claims tells whether an account is, or may be, to be copied to a namespace. A
// claim does not depend on the token, which is read later, so that it is the same
// in whatever order accounts are looked at. One that is not entitled claims
// nothing: it could keep others from their tokens.
func (r *observer) claims(ctx context.Context, account *authv1beta1.ManagedServiceAccount, namespace string) (bool, error) {
	if !isLabelled(account) || account.DeletionTimestamp != nil {
		return false, nil
	}
	wanted, _, err := r.wantedNamespaces(ctx, account)
	if err != nil || !slices.Contains(wanted, namespace) {
		return false, err
	}
	selection, err := r.selector.Selected(ctx, types.NamespacedName{Namespace: namespace, Name: account.Namespace})
	return selection.Answer != No, err
}

// wantedNamespaces are those an account is to be copied to as far as it goes
// itself; named tells whether it names them.
func (r *observer) wantedNamespaces(ctx context.Context, account *authv1beta1.ManagedServiceAccount) (namespaces []string, named bool, err error) {
	if account == nil {
		return nil, false, nil
	}
	namespaces, named = namedNamespaces(account)
	if named || r.requireTarget {
		return namespaces, named, nil
	}
	namespaces, err = r.selector.Namespaces(ctx, account.Namespace)
	return namespaces, false, err
}

// profile returns the ClusterProfile of a pair, or nil if none is known.
func (r *observer) profile(ctx context.Context, pair types.NamespacedName) (*inventoryv1alpha1.ClusterProfile, error) {
	profile := &inventoryv1alpha1.ClusterProfile{}
	err := r.reader.Get(ctx, pair, profile, uncopied)
	uncached := &cache.ErrResourceNotCached{}
	switch {
	case apierrors.IsNotFound(err), errors.As(err, &uncached):
		return nil, nil
	case err != nil:
		return nil, err
	default:
		return profile, nil
	}
}

// sooner returns the shorter of two waits, of which zero is none.
func sooner(a, b time.Duration) time.Duration {
	switch {
	case a == 0:
		return b
	case b == 0:
		return a
	default:
		return min(a, b)
	}
}
