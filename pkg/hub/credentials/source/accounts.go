package source

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"strconv"
	"strings"
	"sync/atomic"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	authv1beta1 "open-cluster-management.io/managed-serviceaccount/apis/authentication/v1beta1"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/cluster"

	"open-cluster-management.io/cluster-inventory-addon/pkg/contract"
	"open-cluster-management.io/cluster-inventory-addon/pkg/kube"
)

// AccountCRD is the CRD of ManagedServiceAccounts, which a hub may lack.
const AccountCRD = "managedserviceaccounts.authentication.open-cluster-management.io"

// AccountKind is the kind that it defines.
var AccountKind = authv1beta1.GroupVersion.WithKind("ManagedServiceAccount")

// IndexAccountByCopyName finds ManagedServiceAccounts by the name of their copies,
// which accounts of different clusters may share.
const IndexAccountByCopyName = "credentials.accountByCopyName"

// Accounts is a cache of the ManagedServiceAccounts that are labelled to be copied. It is
// separate from the manager's cache because every controller that starts waits for all of
// that, and ends the manager after two minutes: accounts that cannot be listed, such as those
// whose conversion webhook fails, must not keep the manager from writing profiles. If the
// kind is removed, so are the accounts: watch.Definitions decides what that means.
type Accounts struct {
	hub      cluster.Cluster
	copyName func(account types.NamespacedName) string

	filled atomic.Pointer[filled] // nil until there is a cache that has all accounts
}

// filled is the cache once it has all accounts.
type filled struct {
	cache.Cache
	informer cache.Informer

	// unreconciled are the accounts that existed at the start and were not reconciled since.
	unreconciled kube.Memory[types.NamespacedName, struct{}]
}

// NewAccounts returns a cache that is empty until Start. The scheme of hub must know the
// accounts' type. copyName returns the name of an account's copies.
func NewAccounts(hub cluster.Cluster, copyName func(types.NamespacedName) string) *Accounts {
	return &Accounts{hub: hub, copyName: copyName}
}

// Start fills the cache and keeps it up to date until the context ends. changed is
// called for every account that is created, changed or deleted.
func (a *Accounts) Start(ctx context.Context, changed func(account types.NamespacedName)) error {
	all, err := a.fill(ctx)
	if err != nil {
		return err
	}
	list := &authv1beta1.ManagedServiceAccountList{}
	if err := all.List(ctx, list, kube.Uncopied); err != nil {
		return err
	}
	for i := range list.Items {
		all.unreconciled.Set(client.ObjectKeyFromObject(&list.Items[i]), struct{}{})
	}
	a.filled.Store(all)
	// Handlers are added last, so that their functions find the account in the cache.
	handler := kube.OnEvent(func(before, after *authv1beta1.ManagedServiceAccount, _ bool) {
		if before == nil || after == nil || accountChanged(before, after) {
			changed(client.ObjectKeyFromObject(cmp.Or(after, before)))
		}
	})
	if _, err := all.informer.AddEventHandler(handler); err != nil {
		return err
	}
	// No handler is called for an account that was deleted in between.
	for i := range list.Items {
		account := client.ObjectKeyFromObject(&list.Items[i])
		cached, err := kube.Get(ctx, all, account, &authv1beta1.ManagedServiceAccount{})
		if err != nil {
			return err
		}
		if cached == nil {
			changed(account)
		}
	}
	return nil
}

// fill starts a cache and waits until it has all accounts.
func (a *Accounts) fill(ctx context.Context) (*filled, error) {
	filling, err := cache.New(a.hub.GetConfig(), cache.Options{
		HTTPClient: a.hub.GetHTTPClient(),
		Scheme:     a.hub.GetScheme(),
		Mapper:     a.hub.GetRESTMapper(),
		ByObject: map[client.Object]cache.ByObject{
			&authv1beta1.ManagedServiceAccount{}: {
				Label:     labels.SelectorFromSet(labels.Set{contract.LabelSyncToProfile: "true"}),
				Transform: kube.Trimmed(trimAccount),
			},
		},
	})
	if err != nil {
		return nil, fmt.Errorf("making a cache of ManagedServiceAccounts: %w", err)
	}
	byCopyName := func(obj client.Object) []string { return []string{a.copyName(client.ObjectKeyFromObject(obj))} }
	err = filling.IndexField(ctx, &authv1beta1.ManagedServiceAccount{}, IndexAccountByCopyName, byCopyName)
	if err != nil {
		return nil, err
	}
	informer, err := filling.GetInformer(ctx, &authv1beta1.ManagedServiceAccount{}, cache.BlockUntilSynced(false))
	if err != nil {
		return nil, err
	}
	go func() {
		// Start fails only when it is called twice.
		_ = filling.Start(ctx)
	}()
	if !filling.WaitForCacheSync(ctx) {
		return nil, ctx.Err()
	}
	return &filled{Cache: filling, informer: informer}, nil
}

// accountChanged reports whether anything that decides about copies differs. Conditions do
// not decide: a failure to report a token now says nothing about the one reported before.
func accountChanged(before, after *authv1beta1.ManagedServiceAccount) bool {
	return before.UID != after.UID ||
		(before.DeletionTimestamp == nil) != (after.DeletionTimestamp == nil) ||
		IsLabelled(before) != IsLabelled(after) ||
		!maps.Equal(before.Annotations, after.Annotations) ||
		ReferenceOf(before) != ReferenceOf(after)
}

// Informer returns the cache's informer, or nil while it is being filled.
func (a *Accounts) Informer() cache.Informer {
	if filled := a.filled.Load(); filled != nil {
		return filled.informer
	}
	return nil
}

// Synced reports whether the accounts are known.
func (a *Accounts) Synced() bool { return a.filled.Load() != nil }

// Get returns a labelled account, or nil if there is none. known is false while the
// accounts are unknown.
func (a *Accounts) Get(
	ctx context.Context, key types.NamespacedName,
) (account *authv1beta1.ManagedServiceAccount, known bool, err error) {
	filled := a.filled.Load()
	if filled == nil {
		return nil, false, nil
	}
	account, err = kube.Get(ctx, filled, key, &authv1beta1.ManagedServiceAccount{})
	if account != nil && !IsLabelled(account) {
		account = nil
	}
	return account, err == nil, err
}

// Read reads a labelled account live, nil if there is none. There is a right to list accounts,
// and none to get them.
func Read(
	ctx context.Context, live client.Reader, key types.NamespacedName,
) (*authv1beta1.ManagedServiceAccount, error) {
	list := &authv1beta1.ManagedServiceAccountList{}
	err := live.List(ctx, list, client.InNamespace(key.Namespace),
		client.MatchingFields{metav1.ObjectNameField: key.Name}, client.MatchingLabels{contract.LabelSyncToProfile: "true"})
	if err != nil {
		return nil, fmt.Errorf("reading ManagedServiceAccount %s: %w", key, err)
	}
	if len(list.Items) == 0 {
		return nil, nil
	}
	return &list.Items[0], nil
}

// List returns the labelled accounts that the options select; none while the accounts are
// unknown.
func (a *Accounts) List(
	ctx context.Context, options ...client.ListOption,
) ([]authv1beta1.ManagedServiceAccount, error) {
	filled := a.filled.Load()
	if filled == nil {
		return nil, nil
	}
	found := &authv1beta1.ManagedServiceAccountList{}
	if err := filled.List(ctx, found, append(options, kube.Uncopied)...); err != nil {
		return nil, fmt.Errorf("listing ManagedServiceAccounts: %w", err)
	}
	return found.Items, nil
}

// SameCopyName selects the accounts whose copies have the same name as an account's copies, including
// the account.
func (a *Accounts) SameCopyName(account types.NamespacedName) client.ListOption {
	return client.MatchingFields{IndexAccountByCopyName: a.copyName(account)}
}

// Reconciled records that an account was reconciled. last is true if it was one of those that existed at
// the start, and none of them is left.
func (a *Accounts) Reconciled(account types.NamespacedName) (last bool) {
	filled := a.filled.Load()
	if filled == nil {
		return false
	}
	_, known := filled.unreconciled.Forget(account)
	return known && filled.unreconciled.Len() == 0
}

// AllReconciled reports whether every account that existed at the start was
// reconciled.
func (a *Accounts) AllReconciled() bool {
	filled := a.filled.Load()
	return filled != nil && filled.unreconciled.Len() == 0
}

// maxNameBytes exceeds the length of a Secret's name.
const maxNameBytes = 300

// trimAccount keeps only the fields of an account that are read.
func trimAccount(account *authv1beta1.ManagedServiceAccount) *authv1beta1.ManagedServiceAccount {
	trimmed := &authv1beta1.ManagedServiceAccount{
		TypeMeta:   account.TypeMeta,
		ObjectMeta: kube.TrimMeta(account.ObjectMeta),
		Status: authv1beta1.ManagedServiceAccountStatus{
			ExpirationTimestamp: account.Status.ExpirationTimestamp,
			TokenSecretRef:      account.Status.TokenSecretRef,
		},
	}
	trimmed.Labels = map[string]string{contract.LabelSyncToProfile: account.Labels[contract.LabelSyncToProfile]}
	// A spoke writes the status. A name that is cut is still not the account's.
	if ref := account.Status.TokenSecretRef; ref != nil && len(ref.Name) > maxNameBytes {
		trimmed.Status.TokenSecretRef = &authv1beta1.SecretRef{
			Name: kube.Shorten(ref.Name, maxNameBytes), LastRefreshTimestamp: ref.LastRefreshTimestamp,
		}
	}
	// The list is parsed once, and of a long one only the used part is kept.
	if named := NamedNamespaces(account); named.Is {
		trimmed.Annotations = map[string]string{contract.AnnotationSyncToNamespaces: strings.Join(named.Namespaces, ",")}
		if named.More > 0 {
			trimmed.Annotations[annotationMore] = strconv.Itoa(named.More)
		}
	}
	return trimmed
}
