package addon

import (
	"context"
	"fmt"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/util/workqueue"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"open-cluster-management.io/cluster-inventory-addon/pkg/contract"
	"open-cluster-management.io/cluster-inventory-addon/pkg/kube"
)

// grants grants each agent its rights on the hub: to read its own ManagedClusterAddOn and
// to patch its status. They are in a ClusterRole of the chart, to which a RoleBinding in
// the cluster's namespace binds the agent.
type grants struct {
	// reader reads this addon's RoleBindings from a cache.
	reader client.Reader

	// live reads what the cache lacks: RoleBindings without this addon's label, and those
	// that were created a moment ago.
	live client.Reader

	writer client.Writer
}

// apply creates the RoleBinding of one cluster, or patches it if it differs. A RoleBinding of
// that name without this addon's label belongs to another client and is left alone. An error
// becomes the addon's condition RegistrationApplied.
func (g *grants) apply(
	ctx context.Context, cluster *clusterv1.ManagedCluster, addon *addonv1beta1.ManagedClusterAddOn,
) error {
	desired, current := desiredBinding(cluster.Name, addon), &rbacv1.RoleBinding{}
	err := g.reader.Get(ctx, client.ObjectKeyFromObject(desired), current)
	if apierrors.IsNotFound(err) {
		err = g.writer.Create(ctx, desired.DeepCopy())
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
	// The cache may not have seen our own last patch. If the conflict were returned, it
	// would appear in the addon's condition.
	if err := g.live.Get(ctx, client.ObjectKeyFromObject(desired), current); err != nil {
		return err
	}
	return g.repair(ctx, current, desired)
}

func (g *grants) repair(ctx context.Context, current, desired *rbacv1.RoleBinding) error {
	changed, err := mergeBinding(current, desired)
	if err != nil || equality.Semantic.DeepEqual(current, changed) {
		return err
	}
	return g.writer.Patch(ctx, changed, client.MergeFromWithOptions(current, client.MergeFromWithOptimisticLock{}))
}

// mergeBinding returns the current RoleBinding with this addon's fields as desired.
func mergeBinding(current, desired *rbacv1.RoleBinding) (*rbacv1.RoleBinding, error) {
	name := current.Namespace + "/" + current.Name
	switch {
	case current.Labels[contract.LabelManagedBy] != contract.ManagedBy:
		return nil, fmt.Errorf("RoleBinding %s is not labeled %s=%s, so it is not this addon's; delete or rename it",
			name, contract.LabelManagedBy, contract.ManagedBy)
	case current.RoleRef != desired.RoleRef:
		return nil, fmt.Errorf("RoleBinding %s refers to %s %q, which cannot be changed; delete it",
			name, current.RoleRef.Kind, current.RoleRef.Name)
	}
	changed := current.DeepCopy()
	changed.OwnerReferences = desired.OwnerReferences
	changed.Subjects = desired.Subjects
	return changed, nil
}

// newGrantCache returns a cache of the RoleBindings of the agents. It is separate from the
// manager's cache because every controller that starts waits for all of that, and this one is
// filled last.
func (f *framework) newGrantCache() (cache.Cache, error) {
	ours := cache.ByObject{
		Label:     labels.SelectorFromSet(grantLabels()),
		Field:     fields.OneTermEqualSelector(metav1.ObjectNameField, contract.AgentRole),
		Transform: kube.Trimmed(trimGrant),
	}
	return cache.New(f.cfg, cache.Options{
		Scheme:   f.client.Scheme(),
		Mapper:   f.client.RESTMapper(),
		ByObject: map[client.Object]cache.ByObject{&rbacv1.RoleBinding{}: ours},
	})
}

// triggerOnGrantChanges makes the framework register an addon again when its grants change:
// the framework does not watch the objects that PermissionConfig creates.
func triggerOnGrantChanges(
	ctx context.Context, cached cache.Cache, queue workqueue.TypedRateLimitingInterface[string],
) error {
	informer, err := cached.GetInformer(ctx, &rbacv1.RoleBinding{}) // waits until it has synced
	if err != nil {
		return err
	}
	_, err = informer.AddEventHandler(kube.OnEvent(func(before, _ client.Object, _ bool) {
		if before != nil {
			queue.Add(queueKey(before.GetNamespace()))
		}
	}))
	return err
}
