package simulated

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"open-cluster-management.io/cluster-inventory-addon/test/fleet/await"
)

const (
	// rightsLimit is how long OCM may take to prepare one cluster of a hub without others.
	rightsLimit = time.Minute
	rightsPoll  = 100 * time.Millisecond
)

// rightsKinds are the kinds that OCM's registration controller creates for an accepted
// cluster, apart from its namespace; rightsCount is how many objects that are.
var (
	rightsKinds = []string{"ClusterRole", "ClusterRoleBinding", "RoleBinding"}
	rightsCount = 4
)

// rights are what OCM's registration controller created for one cluster. That controller
// prepares one cluster after the other and needs more than an hour for 10,000, which is not
// part of the measurement. So the benchmark creates the same for all others, and the
// controller finds nothing left to do.
type rights struct {
	of      string
	objects []unstructured.Unstructured
}

// learn waits until the registration controller has prepared a cluster, and reads what it
// created.
func (r *rights) learn(ctx context.Context, hub client.Client, cluster string) error {
	return await.Success(ctx, "the rights of "+cluster, rightsLimit, rightsPoll, func(ctx context.Context) error {
		managed := &clusterv1.ManagedCluster{}
		if err := hub.Get(ctx, client.ObjectKey{Name: cluster}, managed); err != nil {
			return err
		}
		if !slices.Contains(managed.Finalizers, clusterv1.ManagedClusterFinalizer) {
			return fmt.Errorf("%s has no finalizer of the registration controller", cluster)
		}
		var objects []unstructured.Unstructured
		for _, kind := range rightsKinds {
			list := &unstructured.UnstructuredList{}
			list.SetGroupVersionKind(rbacv1.SchemeGroupVersion.WithKind(kind + "List"))
			if err := hub.List(ctx, list, client.MatchingLabels{clusterv1.ClusterNameLabelKey: cluster}); err != nil {
				return err
			}
			objects = append(objects, list.Items...)
		}
		if len(objects) < rightsCount {
			return fmt.Errorf("%d objects give %s its rights, want %d", len(objects), cluster, rightsCount)
		}
		r.of, r.objects = cluster, objects
		return nil
	})
}

// create creates the same for another cluster, whose namespace exists.
func (r *rights) create(ctx context.Context, hub client.Client, cluster string) error {
	for i := range r.objects {
		copied := r.copyFor(&r.objects[i], cluster)
		if err := hub.Create(ctx, copied); err != nil {
			return fmt.Errorf("%s %s: %w", copied.GetKind(), copied.GetName(), err)
		}
	}
	return nil
}

// copyFor returns the same object for another cluster.
func (r *rights) copyFor(object *unstructured.Unstructured, cluster string) *unstructured.Unstructured {
	content, _ := renamed(object.Object, r.of, cluster).(map[string]any)
	given := &unstructured.Unstructured{Object: content}
	copied := &unstructured.Unstructured{Object: maps.Clone(content)}
	delete(copied.Object, "metadata")
	copied.SetName(given.GetName())
	copied.SetNamespace(given.GetNamespace())
	copied.SetLabels(given.GetLabels())
	copied.SetFinalizers(given.GetFinalizers())
	return copied
}

// renamed copies a JSON value and replaces one name in all strings.
func renamed(value any, from, to string) any {
	switch value := value.(type) {
	case string:
		return strings.ReplaceAll(value, from, to)
	case []any:
		items := make([]any, len(value))
		for i := range value {
			items[i] = renamed(value[i], from, to)
		}
		return items
	case map[string]any:
		fields := make(map[string]any, len(value))
		for key := range value {
			fields[key] = renamed(value[key], from, to)
		}
		return fields
	}
	return value
}
