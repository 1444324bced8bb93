package addon

import (
	"context"
	"fmt"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"open-cluster-management.io/cluster-inventory-addon/pkg/contract"
)

// grants gives each agent its rights on the hub: read its own ManagedClusterAddOn and
// patch its status.
type grants struct {
	// reader reads this addon's Roles and RoleBindings from a cache.
	reader client.Reader

	// live reads what the cache does not contain: objects without this addon's label,
	// and those that were created a moment ago.
	live client.Reader

	writer client.Writer
}

// apply creates or repairs the Role and RoleBinding of one cluster. An error
// becomes the addon's condition RegistrationApplied.
func (g *grants) apply(
	ctx context.Context, cluster *clusterv1.ManagedCluster, addon *addonv1beta1.ManagedClusterAddOn,
) error {
	if err := g.applyOne(ctx, desiredRole(addon)); err != nil {
		return err
	}
	return g.applyOne(ctx, desiredBinding(cluster.Name, addon))
}

// applyOne creates the object, or patches it if it differs. An object of that name
// without this addon's label belongs to somebody else and is left alone.
func (g *grants) applyOne(ctx context.Context, desired client.Object) error {
	current := desired.DeepCopyObject().(client.Object)
	err := g.reader.Get(ctx, client.ObjectKeyFromObject(desired), current)
	if apierrors.IsNotFound(err) {
		err = g.writer.Create(ctx, desired.DeepCopyObject().(client.Object))
		if !apierrors.IsAlreadyExists(err) {
			return err
		}
		err = g.live.Get(ctx, client.ObjectKeyFromObject(desired), current)
	}
	if err != nil {
		return err
	}
	err = g.repair(ctx, current, desired)
	if !apierrors.IsConflict(err) {
		return err
	}
	// The cache may not have seen our own last patch. If the conflict were returned,
	// it would appear in the addon's condition.
	if err := g.live.Get(ctx, client.ObjectKeyFromObject(desired), current); err != nil {
		return err
	}
	return g.repair(ctx, current, desired)
}

// repair patches current if it differs from desired.
func (g *grants) repair(ctx context.Context, current, desired client.Object) error {
	changed, err := merge(current, desired)
	if err != nil || equality.Semantic.DeepEqual(current, changed) {
		return err
	}
	return g.writer.Patch(ctx, changed, client.MergeFromWithOptions(current, client.MergeFromWithOptimisticLock{}))
}

// merge returns the current object with this addon's fields as desired.
func merge(current, desired client.Object) (client.Object, error) {
	kind := fmt.Sprintf("%T %s/%s", current, current.GetNamespace(), current.GetName())
	if current.GetLabels()[contract.LabelManagedBy] != contract.ManagedBy {
		return nil, fmt.Errorf("%s is not labelled %s=%s, so it is not this addon's; delete or rename it",
			kind, contract.LabelManagedBy, contract.ManagedBy)
	}
	changed := current.DeepCopyObject().(client.Object)
	changed.SetOwnerReferences(desired.GetOwnerReferences())
	switch d := desired.(type) {
	case *rbacv1.Role:
		changed.(*rbacv1.Role).Rules = d.Rules
	case *rbacv1.RoleBinding:
		binding := changed.(*rbacv1.RoleBinding)
		if binding.RoleRef != d.RoleRef {
			return nil, fmt.Errorf("%s refers to %s %q, which cannot be changed; delete it",
				kind, binding.RoleRef.Kind, binding.RoleRef.Name)
		}
		binding.Subjects = d.Subjects
	}
	return changed, nil
}
