package hub

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/types"
	inventoryv1alpha1 "sigs.k8s.io/cluster-inventory-api/apis/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/credentials"
	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/inventory"
)

// selector lets credentials ask the inventory what is published where.
type selector struct {
	inventory *inventory.Inventory
	reader    client.Reader
}

var answers = map[inventory.Answer]credentials.Answer{
	inventory.No:  credentials.No,
	inventory.Yes: credentials.Yes,
}

// Selected applies the rule to a pair.
func (s selector) Selected(ctx context.Context, pair types.NamespacedName) (credentials.Selection, error) {
	selection, err := s.inventory.Selected(ctx, pair)
	return credentials.Selection{Answer: answers[selection.Answer], Why: selection.Why, Again: selection.Again}, err
}

// Namespaces returns where there is a ClusterProfile of a cluster's name. Before
// the inventory has begun, that is an error.
func (s selector) Namespaces(ctx context.Context, cluster string) ([]string, error) {
	profiles := &inventoryv1alpha1.ClusterProfileList{}
	if err := s.reader.List(ctx, profiles, client.MatchingFields{inventory.IndexProfileByName: cluster}, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("finding the ClusterProfiles of cluster %s: %w", cluster, err)
	}
	namespaces := make([]string, 0, len(profiles.Items))
	for i := range profiles.Items {
		namespaces = append(namespaces, profiles.Items[i].Namespace)
	}
	return namespaces, nil
}
