package addon

import (
	"context"
	"fmt"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"open-cluster-management.io/addon-framework/pkg/agent"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"open-cluster-management.io/cluster-inventory-addon/pkg/contract"
)

// access gives each agent its rights on the hub: to read its own
// ManagedClusterAddOn and to patch that one's status.
type access struct {
	// reader reads the marked Roles and RoleBindings from a cache.
	reader client.Reader

	// live reads what the cache cannot tell: an object that is there without
	// the mark, or was made a moment ago.
	live client.Reader

	writer client.Writer
}

// grant brings Role and RoleBinding of one cluster to what they should be. An
// error becomes the addon's condition RegistrationApplied.
func (a *access) grant(ctx context.Context, cluster *clusterv1.ManagedCluster, addon *addonv1beta1.ManagedClusterAddOn) error {
	if err := a.apply(ctx, desiredRole(addon)); err != nil {
		return err
	}
	return a.apply(ctx, desiredBinding(cluster.Name, addon))
}

// apply creates the object, or patches what is different; nothing is written
// when nothing is. An object of that name without the mark is somebody else's and left alone.
func (a *access) apply(ctx context.Context, desired client.Object) error {
	current := desired.DeepCopyObject().(client.Object)
	err := a.reader.Get(ctx, client.ObjectKeyFromObject(desired), current)
	if apierrors.IsNotFound(err) {
		err = a.writer.Create(ctx, desired.DeepCopyObject().(client.Object))
		if !apierrors.IsAlreadyExists(err) {
			return err
		}
		err = a.live.Get(ctx, client.ObjectKeyFromObject(desired), current)
	}
	if err != nil {
		return err
	}
	err = a.correct(ctx, current, desired)
	if !apierrors.IsConflict(err) {
		return err
	}
	// What the cache had may be from before our own last patch. Returned, the
	// conflict would stand in the addon's condition.
	if err := a.live.Get(ctx, client.ObjectKeyFromObject(desired), current); err != nil {
		return err
	}
	return a.correct(ctx, current, desired)
}

// correct patches what is different in current.
func (a *access) correct(ctx context.Context, current, desired client.Object) error {
	changed, err := merge(current, desired)
	if err != nil || equality.Semantic.DeepEqual(current, changed) {
		return err
	}
	return a.writer.Patch(ctx, changed, client.MergeFromWithOptions(current, client.MergeFromWithOptimisticLock{}))
}

// merge returns the current object with everything this addon says of it.
func merge(current, desired client.Object) (client.Object, error) {
	kind := fmt.Sprintf("%T %s/%s", current, current.GetNamespace(), current.GetName())
	if current.GetLabels()[contract.LabelManagedBy] != contract.ManagedBy {
		return nil, fmt.Errorf("%s is not labelled %s=%s, so it is not this addon's; delete or rename it", kind, contract.LabelManagedBy, contract.ManagedBy)
	}
	changed := current.DeepCopyObject().(client.Object)
	changed.SetOwnerReferences(desired.GetOwnerReferences())
	switch d := desired.(type) {
	case *rbacv1.Role:
		changed.(*rbacv1.Role).Rules = d.Rules
	case *rbacv1.RoleBinding:
		binding := changed.(*rbacv1.RoleBinding)
		if binding.RoleRef != d.RoleRef {
			return nil, fmt.Errorf("%s refers to %s %q, which cannot be changed; delete it", kind, binding.RoleRef.Kind, binding.RoleRef.Name)
		}
		binding.Subjects = d.Subjects
	}
	return changed, nil
}

func desiredRole(addon *addonv1beta1.ManagedClusterAddOn) *rbacv1.Role {
	rule := func(resource string, verbs ...string) rbacv1.PolicyRule {
		return rbacv1.PolicyRule{
			APIGroups:     []string{addonv1beta1.GroupName},
			Resources:     []string{resource},
			ResourceNames: []string{contract.AddonName},
			Verbs:         verbs,
		}
	}
	return &rbacv1.Role{
		ObjectMeta: accessMeta(addon),
		Rules: []rbacv1.PolicyRule{
			rule("managedclusteraddons", "get", "list", "watch"),
			rule("managedclusteraddons/status", "patch"),
		},
	}
}

// desiredBinding names the one user whose certificates are approved. What the
// addon's status says of the registration does not count: the spoke can patch it.
// The user of a token registration, a ServiceAccount of the cluster namespace,
// belongs here when that driver is supported.
func desiredBinding(cluster string, addon *addonv1beta1.ManagedClusterAddOn) *rbacv1.RoleBinding {
	return &rbacv1.RoleBinding{
		ObjectMeta: accessMeta(addon),
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: agentName},
		Subjects: []rbacv1.Subject{{
			APIGroup: rbacv1.GroupName,
			Kind:     rbacv1.UserKind,
			Name:     agent.DefaultUser(cluster, contract.AddonName, contract.AddonName),
		}},
	}
}

// accessMeta makes the garbage collector take the rights away with the addon.
func accessMeta(addon *addonv1beta1.ManagedClusterAddOn) metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Name:      agentName,
		Namespace: addon.Namespace,
		Labels:    map[string]string{contract.LabelManagedBy: contract.ManagedBy},
		OwnerReferences: []metav1.OwnerReference{{
			APIVersion: addonv1beta1.GroupVersion.String(),
			Kind:       "ManagedClusterAddOn",
			Name:       addon.Name,
			UID:        addon.UID,
		}},
	}
}
