package witness

import (
	"context"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
	workv1 "open-cluster-management.io/api/work/v1"
	inventoryv1alpha1 "sigs.k8s.io/cluster-inventory-api/apis/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"open-cluster-management.io/cluster-inventory-addon/test/e2e/simulated"
)

const addonName = "cluster-inventory"

// Addons follows the addon of every cluster, by the cluster's name. Open Cluster Management
// can delete one only with the clean-up on the cluster once it has its finalizer: until then
// it does not count as there.
func Addons(ctx context.Context, hub client.WithWatch) (*Log, error) {
	l := NewLog()
	kind := schema.GroupVersion(addonv1beta1.GroupVersion).WithKind("ManagedClusterAddOn")
	return l, l.Objects(ctx, hub, kind, "", func(object *metav1.PartialObjectMetadata) (string, bool) {
		return object.Namespace, object.Name == addonName && len(object.Finalizers) > 0
	})
}

// Cleanups follows the ManifestWorks that deliver clean-up Jobs, by the cluster's name. The
// simulated clusters' agents report these and all others of the addon; nil where no cluster
// is simulated.
func Cleanups(ctx context.Context, hub client.WithWatch, agents *simulated.WorkAgents) (*Log, error) {
	l := NewLog()
	kind := schema.GroupVersion(workv1.GroupVersion).WithKind("ManifestWork")
	return l, l.Objects(ctx, hub, kind, "", func(object *metav1.PartialObjectMetadata) (string, bool) {
		if agents != nil {
			agents.Follow(object)
		}
		return object.Namespace, object.Name == simulated.CleanupWork
	})
}

// Slices follows the clusters that are in any slice of a Placement's decisions.
func Slices(ctx context.Context, hub client.WithWatch, namespace, placement string) (*Log, error) {
	l := NewLog()
	list := func() client.ObjectList { return &clusterv1beta1.PlacementDecisionList{} }
	return l, l.Entries(ctx, hub, list, &clusterv1beta1.PlacementDecision{}, namespace, func(object any) []string {
		slice, ok := object.(*clusterv1beta1.PlacementDecision)
		if !ok || slice.Labels[clusterv1beta1.PlacementLabel] != placement {
			return nil
		}
		clusters := make([]string, 0, len(slice.Status.Decisions))
		for _, decision := range slice.Status.Decisions {
			clusters = append(clusters, decision.ClusterName)
		}
		return clusters
	})
}

// Consumer is what a namespace sees of the inventory, each by the cluster's name.
type Consumer struct {
	// Profiles are its ClusterProfiles, References the clusters in its PlacementDecisions,
	// and Copies its copies of simulated accounts' tokens.
	Profiles, References, Copies *Log
}

// Follow follows what a namespace sees.
func Follow(ctx context.Context, hub client.WithWatch, namespace string) (*Consumer, error) {
	c := &Consumer{Profiles: NewLog(), References: NewLog(), Copies: NewLog()}
	kind := inventoryv1alpha1.GroupVersion.WithKind("ClusterProfile")
	err := c.Profiles.Objects(ctx, hub, kind, namespace, func(object *metav1.PartialObjectMetadata) (string, bool) {
		return object.Name, true
	})
	if err != nil {
		return nil, err
	}
	list := func() client.ObjectList { return &inventoryv1alpha1.PlacementDecisionList{} }
	err = c.References.Entries(ctx, hub, list, &inventoryv1alpha1.PlacementDecision{}, namespace, references)
	if err != nil {
		return nil, err
	}
	kind = corev1.SchemeGroupVersion.WithKind("Secret")
	return c, c.Copies.Objects(ctx, hub, kind, namespace, func(object *metav1.PartialObjectMetadata) (string, bool) {
		return strings.CutSuffix(object.Name, simulated.CopyName(""))
	})
}

func references(object any) []string {
	slice, ok := object.(*inventoryv1alpha1.PlacementDecision)
	if !ok {
		return nil
	}
	clusters := make([]string, 0, len(slice.Decisions))
	for _, decision := range slice.Decisions {
		clusters = append(clusters, decision.ClusterProfileRef.Name)
	}
	return clusters
}

// Longest is the longest of some absences.
func Longest(absences []Absence) time.Duration {
	longest := time.Duration(0)
	for _, absence := range absences {
		longest = max(longest, absence.Lasted(time.Now()))
	}
	return longest
}

// Different counts the things that were away.
func Different(absences []Absence) int {
	names := map[string]bool{}
	for _, absence := range absences {
		names[absence.Name] = true
	}
	return len(names)
}
