package credentials

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"
	authv1beta1 "open-cluster-management.io/managed-serviceaccount/apis/authentication/v1beta1"
	inventoryv1alpha1 "sigs.k8s.io/cluster-inventory-api/apis/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/credentials/source"
	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/credentials/target"
	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/selection"
	"open-cluster-management.io/cluster-inventory-addon/pkg/kube"
)

// observer reads what decides about an account. It reads caches and this process's
// memory only.
type observer struct {
	accounts      *source.Accounts
	tokens        *source.Tokens
	ledger        *target.Ledger
	reader        client.Reader // ClusterProfiles
	rule          Rule
	syncer        UpstreamSyncer
	draining      bool
	requireTarget bool
}

// observe looks at one account and everything that its copies depend on.
func (r *observer) observe(ctx context.Context, key types.NamespacedName, now time.Time) (o observed, err error) {
	o = observed{key: key, now: now, draining: r.draining, paused: r.syncer.On()}
	if o.account, o.known, err = r.accounts.Get(ctx, key); err != nil {
		return o, err
	}
	if o.account != nil {
		o.finding, o.current = r.tokens.Current(key, source.ReferenceOf(o.account), now)
	}
	wanted, named, err := r.wantedNamespaces(ctx, o.account)
	if err != nil {
		return o, err
	}
	o.silent = !named && !r.requireTarget
	rivals, err := r.accounts.SameCopyName(ctx, key)
	if err != nil {
		return o, err
	}
	namespaces := append(slices.Clone(wanted), r.ledger.NamespacesOf(key)...)
	slices.Sort(namespaces)
	for _, namespace := range slices.Compact(namespaces) {
		t := observedTarget{
			namespace: namespace,
			wanted:    slices.Contains(wanted, namespace),
			copy:      r.ledger.Known(key, namespace, now),
		}
		if (t.wanted || !o.known) && isNamespace(namespace) {
			if err := r.observeTarget(ctx, key, rivals, &t); err != nil {
				return o, err
			}
			o.again = kube.Sooner(o.again, t.selection.Again)
		}
		o.targets = append(o.targets, t)
	}
	return o, nil
}

// observeTarget completes what is known of one namespace.
func (r *observer) observeTarget(
	ctx context.Context, key types.NamespacedName, rivals []authv1beta1.ManagedServiceAccount, t *observedTarget,
) (err error) {
	pair := types.NamespacedName{Namespace: t.namespace, Name: key.Namespace}
	if t.selection, err = r.rule.Selected(ctx, pair); err != nil {
		return err
	}
	profile, err := r.profile(ctx, pair)
	if err != nil {
		return err
	}
	t.profile = judgeProfile(profile, key.Namespace)
	for i := range rivals {
		rival := client.ObjectKeyFromObject(&rivals[i])
		if rival == key {
			continue
		}
		claims, err := r.claims(ctx, &rivals[i], t.namespace)
		if err != nil {
			return err
		}
		if claims {
			t.rivals = append(t.rivals, rival)
		}
	}
	slices.SortFunc(t.rivals, func(a, b types.NamespacedName) int { return cmp.Compare(a.Namespace, b.Namespace) })
	return nil
}

// claims reports whether an account is, or may be, to be copied to a namespace. A
// claim does not depend on the token, which is read later, so that it is the same in
// whatever order accounts are reconciled. An account that is not entitled claims
// nothing: it could keep others from their tokens.
func (r *observer) claims(
	ctx context.Context, account *authv1beta1.ManagedServiceAccount, namespace string,
) (bool, error) {
	if !source.IsLabelled(account) || account.DeletionTimestamp != nil {
		return false, nil
	}
	wanted, _, err := r.wantedNamespaces(ctx, account)
	if err != nil || !slices.Contains(wanted, namespace) {
		return false, err
	}
	selected, err := r.rule.Selected(ctx, types.NamespacedName{Namespace: namespace, Name: account.Namespace})
	return selected.Answer != selection.No, err
}

// wantedNamespaces are those an account is to be copied to as far as the account
// goes. named reports whether it names them.
func (r *observer) wantedNamespaces(
	ctx context.Context, account *authv1beta1.ManagedServiceAccount,
) (namespaces []string, named bool, err error) {
	if account == nil {
		return nil, false, nil
	}
	namespaces, named = source.NamedNamespaces(account)
	if named || r.requireTarget {
		return namespaces, named, nil
	}
	namespaces, err = r.rule.Namespaces(ctx, account.Namespace)
	return namespaces, false, err
}

// profile returns the ClusterProfile of a pair, or nil if none is known.
func (r *observer) profile(
	ctx context.Context, pair types.NamespacedName,
) (*inventoryv1alpha1.ClusterProfile, error) {
	profile, err := kube.Get(ctx, r.reader, pair, &inventoryv1alpha1.ClusterProfile{})
	if uncached := new(cache.ErrResourceNotCached); errors.As(err, &uncached) {
		return nil, nil
	}
	return profile, err
}
