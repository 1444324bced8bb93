package credentials

import (
	"context"
	"fmt"
	"net/http"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	authv1beta1 "open-cluster-management.io/managed-serviceaccount/apis/authentication/v1beta1"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"open-cluster-management.io/cluster-inventory-addon/pkg/contract"
)

// Indexes of the accounts' cache.
const (
	// IndexAccountByCopyName finds ManagedServiceAccounts by the name of their
	// copies, which those of different clusters may share.
	IndexAccountByCopyName = "credentials.accountByCopyName"
)

// accounts is a cache of the ManagedServiceAccounts that are labelled to be
// copied. It is one of its own because the manager's cannot be told to select
// objects of a kind that the hub may not serve yet. When the kind goes, the cache
// keeps what it has; only an account that was seen to go is gone.
type accounts struct {
	cfg    *rest.Config
	http   *http.Client
	mapper meta.RESTMapper

	mu    sync.RWMutex
	cache cache.Cache // nil until it is filled
	// fresh are accounts that nobody has looked at since the start.
	fresh map[types.NamespacedName]struct{}
}

// uncopied reads the cache's own objects, which must not be changed.
const uncopied = client.UnsafeDisableDeepCopy

// start fills the cache and keeps it until the context ends. changed is told of
// every account that comes, changes or goes.
func (a *accounts) start(ctx context.Context, changed func(*authv1beta1.ManagedServiceAccount)) error {
	scheme := runtime.NewScheme()
	if err := authv1beta1.AddToScheme(scheme); err != nil {
		return err
	}
	filling, err := cache.New(a.cfg, cache.Options{
		HTTPClient: a.http,
		Scheme:     scheme,
		Mapper:     a.mapper,
		ByObject: map[client.Object]cache.ByObject{
			&authv1beta1.ManagedServiceAccount{}: {
				Label:     labels.SelectorFromSet(labels.Set{contract.LabelSyncToProfile: "true"}),
				Transform: trimAccount,
			},
		},
	})
	if err != nil {
		return fmt.Errorf("making a cache of ManagedServiceAccounts: %w", err)
	}
	if err := filling.IndexField(ctx, &authv1beta1.ManagedServiceAccount{}, IndexAccountByCopyName, indexByCopyName); err != nil {
		return err
	}
	informer, err := filling.GetInformer(ctx, &authv1beta1.ManagedServiceAccount{}, cache.BlockUntilSynced(false))
	if err != nil {
		return err
	}
	go func() {
		// It only ends with the context, or at once because it was started twice.
		_ = filling.Start(ctx)
	}()
	if !filling.WaitForCacheSync(ctx) {
		return ctx.Err()
	}
	list := &authv1beta1.ManagedServiceAccountList{}
	if err := filling.List(ctx, list, uncopied); err != nil {
		return err
	}
	a.mu.Lock()
	a.cache = filling
	a.fresh = make(map[types.NamespacedName]struct{}, len(list.Items))
	for i := range list.Items {
		a.fresh[client.ObjectKeyFromObject(&list.Items[i])] = struct{}{}
	}
	a.mu.Unlock()
	// Only now: who is told of an account finds it here.
	_, err = informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
		AddFunc: func(obj any) { tellOf(obj, changed) },
		UpdateFunc: func(before, after any) {
			b, okBefore := before.(*authv1beta1.ManagedServiceAccount)
			a, okAfter := after.(*authv1beta1.ManagedServiceAccount)
			if !okBefore || !okAfter || accountChanged(b, a) {
				tellOf(after, changed)
			}
		},
		DeleteFunc: func(obj any) {
			if lost, ok := obj.(toolscache.DeletedFinalStateUnknown); ok {
				obj = lost.Obj
			}
			tellOf(obj, changed)
		},
	})
	if err != nil {
		return err
	}
	// Of one that went meanwhile no handler tells.
	for i := range list.Items {
		account := &list.Items[i]
		if err := filling.Get(ctx, client.ObjectKeyFromObject(account), &authv1beta1.ManagedServiceAccount{}, uncopied); apierrors.IsNotFound(err) {
			changed(account)
		}
	}
	return nil
}

func tellOf(obj any, changed func(*authv1beta1.ManagedServiceAccount)) {
	if account, ok := obj.(*authv1beta1.ManagedServiceAccount); ok {
		changed(account)
	}
}

// accountChanged: anything that decides about copies. Conditions do not: that a
// token could not be reported this time says nothing about the one that was.
func accountChanged(before, after *authv1beta1.ManagedServiceAccount) bool {
	return before.UID != after.UID ||
		(before.DeletionTimestamp == nil) != (after.DeletionTimestamp == nil) ||
		isLabelled(before) != isLabelled(after) ||
		before.Annotations[contract.AnnotationSyncToNamespaces] != after.Annotations[contract.AnnotationSyncToNamespaces] ||
		len(before.Annotations) != len(after.Annotations) ||
		referenceOf(before) != referenceOf(after)
}

func indexByCopyName(obj client.Object) []string {
	return []string{copyName(client.ObjectKeyFromObject(obj))}
}

// filled returns the cache, or nil while it cannot be believed.
func (a *accounts) filled() cache.Cache {
	a.mu.RLock()
	defer a.mu.RUnlock()
	return a.cache
}

// get returns a labelled account, or nil if there is none; known is false while
// that cannot be told.
func (a *accounts) get(ctx context.Context, key types.NamespacedName) (account *authv1beta1.ManagedServiceAccount, known bool, err error) {
	filled := a.filled()
	if filled == nil {
		return nil, false, nil
	}
	account = &authv1beta1.ManagedServiceAccount{}
	err = filled.Get(ctx, key, account, uncopied)
	switch {
	case apierrors.IsNotFound(err):
		return nil, true, nil
	case err != nil:
		return nil, false, fmt.Errorf("reading ManagedServiceAccount: %w", err)
	case !isLabelled(account):
		return nil, true, nil
	default:
		return account, true, nil
	}
}

// list returns the labelled accounts that the options select.
func (a *accounts) list(ctx context.Context, options ...client.ListOption) ([]authv1beta1.ManagedServiceAccount, error) {
	filled := a.filled()
	if filled == nil {
		return nil, nil
	}
	found := &authv1beta1.ManagedServiceAccountList{}
	if err := filled.List(ctx, found, append(options, uncopied)...); err != nil {
		return nil, fmt.Errorf("listing ManagedServiceAccounts: %w", err)
	}
	return found.Items, nil
}

// looked records that an account has been looked at, and returns true if it was
// the last that had not been since the start.
func (a *accounts) looked(account types.NamespacedName) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if _, ok := a.fresh[account]; !ok {
		return false
	}
	delete(a.fresh, account)
	return len(a.fresh) == 0
}

// settled is true when every account that was there at the start has been looked
// at.
func (a *accounts) settled() bool {
	a.mu.RLock()
	defer a.mu.RUnlock()
	return a.cache != nil && len(a.fresh) == 0
}
