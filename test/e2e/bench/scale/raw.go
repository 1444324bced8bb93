package scale

import (
	"context"
	"encoding/json"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	inventoryv1alpha1 "sigs.k8s.io/cluster-inventory-api/apis/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"open-cluster-management.io/cluster-inventory-addon/test/e2e/simulated"
)

// rawWriter writes what is needed and nothing else, without any decision: no writer can be
// faster with as many requests in flight.
type rawWriter struct {
	hub      client.Client
	clusters *population
	// manager is the profiles' cluster manager: this addon would report each profile of its
	// own manager that it leaves alone, and MSA's syncer reads only OCM's.
	manager string
}

const (
	noManager  = "bench"
	ocmManager = "open-cluster-management"
)

func (r *rawWriter) profile(namespace string, i int) *inventoryv1alpha1.ClusterProfile {
	name := r.clusters.names[i]
	return &inventoryv1alpha1.ClusterProfile{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: map[string]string{
			"open-cluster-management.io/cluster-name":   name,
			"x-k8s.io/cluster-manager":                  r.manager,
			"multicluster.x-k8s.io/clusterset":          allSet,
			"multicluster.x-k8s.io/inventory-member-id": name,
		}},
		Spec: inventoryv1alpha1.ClusterProfileSpec{
			DisplayName: name, ClusterManager: inventoryv1alpha1.ClusterManager{Name: r.manager},
		},
	}
}

// create writes profiles of all clusters: a POST and a PATCH of the status each.
func (r *rawWriter) create(ctx context.Context, namespace string) error {
	return simulated.Each(ctx, r.clusters.size(), func(ctx context.Context, i int) error {
		if err := r.hub.Create(ctx, r.profile(namespace, i)); err != nil {
			return err
		}
		return r.patch(ctx, namespace, i)
	})
}

// editAll edits all clusters and writes each one's profile right after.
func (r *rawWriter) editAll(ctx context.Context, namespace string) error {
	return simulated.Each(ctx, r.clusters.size(), func(ctx context.Context, i int) error {
		if err := r.clusters.edit(ctx, i, func(int) {}); err != nil {
			return err
		}
		return r.patch(ctx, namespace, i)
	})
}

func (r *rawWriter) remove(ctx context.Context, namespace string) error {
	return simulated.Each(ctx, r.clusters.size(), func(ctx context.Context, i int) error {
		return r.hub.Delete(ctx, r.profile(namespace, i))
	})
}

func (r *rawWriter) patch(ctx context.Context, namespace string, i int) error {
	since := metav1.NewTime(r.clusters.clusters.Began())
	status := inventoryv1alpha1.ClusterProfileStatus{
		Version: inventoryv1alpha1.ClusterVersion{Kubernetes: "v1.35.4"},
		Conditions: []metav1.Condition{
			{
				Type: inventoryv1alpha1.ClusterConditionControlPlaneHealthy, Status: metav1.ConditionTrue,
				Reason: "ManagedClusterAvailable", LastTransitionTime: since,
			},
			{Type: "Joined", Status: metav1.ConditionTrue, Reason: "ManagedClusterJoined", LastTransitionTime: since},
		},
	}
	for _, claim := range r.clusters.claims(i, r.clusters.serial(i)) {
		status.Properties = append(status.Properties, inventoryv1alpha1.Property{
			Name: claim.Name, Value: claim.Value, LastObservedTime: since,
		})
	}
	patch, err := json.Marshal(map[string]any{"status": status})
	if err != nil {
		return err
	}
	return r.hub.Status().Patch(ctx, r.profile(namespace, i), client.RawPatch(types.MergePatchType, patch))
}
