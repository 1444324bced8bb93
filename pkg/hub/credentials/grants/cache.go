package grants

import (
	"context"
	"fmt"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"open-cluster-management.io/cluster-inventory-addon/pkg/contract"
	"open-cluster-management.io/cluster-inventory-addon/pkg/kube"
)

// Bindings are caches of the grants' RoleBindings, by the names of these. They are separate
// because a cache selects the objects of a kind by one name, and the manager may read no
// other RoleBindings.
type Bindings map[string]cache.Cache

var _ client.Reader = Bindings{}

// NewBindings returns caches that the manager starts before its controllers.
func NewBindings(ctx context.Context, mgr manager.Manager) (Bindings, error) {
	bindings := Bindings{}
	for _, name := range []string{contract.TokenSourceRole, contract.TokenTargetRole} {
		named, err := cache.New(mgr.GetConfig(), cache.Options{
			HTTPClient: mgr.GetHTTPClient(),
			Scheme:     mgr.GetScheme(),
			Mapper:     mgr.GetRESTMapper(),
			ByObject: map[client.Object]cache.ByObject{&rbacv1.RoleBinding{}: {
				Field:     fields.OneTermEqualSelector(metav1.ObjectNameField, name),
				Transform: kube.Trimmed(trim),
			}},
		})
		if err != nil {
			return nil, fmt.Errorf("making a cache of RoleBindings %s: %w", name, err)
		}
		if _, err := named.GetInformer(ctx, &rbacv1.RoleBinding{}, cache.BlockUntilSynced(false)); err != nil {
			return nil, fmt.Errorf("watching RoleBindings %s: %w", name, err)
		}
		if err := mgr.Add(started{named}); err != nil {
			return nil, err
		}
		bindings[name] = named
	}
	return bindings, nil
}

// Get implements client.Reader.
func (b Bindings) Get(
	ctx context.Context, key client.ObjectKey, into client.Object, opts ...client.GetOption,
) error {
	return b[key.Name].Get(ctx, key, into, opts...)
}

// List implements client.Reader. The list must be a new one of RoleBindings.
func (b Bindings) List(ctx context.Context, into client.ObjectList, opts ...client.ListOption) error {
	all, ok := into.(*rbacv1.RoleBindingList)
	if !ok {
		return fmt.Errorf("caches of RoleBindings cannot list a %T", into)
	}
	for _, named := range b {
		list := &rbacv1.RoleBindingList{}
		if err := named.List(ctx, list, opts...); err != nil {
			return err
		}
		all.Items = append(all.Items, list.Items...)
	}
	return nil
}

// started is a cache that a manager starts like its own.
type started struct{ cache.Cache }

// GetCache makes the manager wait until the cache has synced.
func (s started) GetCache() cache.Cache { return s.Cache }

// trim keeps what this package reads. Users who may change RoleBindings of their namespace
// may fill the metadata of these, too.
func trim(binding *rbacv1.RoleBinding) *rbacv1.RoleBinding {
	trimmed := kube.TrimRoleBinding(binding)
	trimmed.OwnerReferences = nil
	return trimmed
}
