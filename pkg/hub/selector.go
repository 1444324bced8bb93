package hub

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/types"
	inventoryv1alpha1 "sigs.k8s.io/cluster-inventory-api/apis/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/inventory"
	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/selection"
)

// selector lets credentials ask the inventory what is published where.
type selector struct {
	inventory *inventory.Inventory
	reader    client.Reader
	changed   []func(pair types.NamespacedName)
}

var answers = map[inventory.Answer]selection.Answer{
	inventory.No:  selection.No,
	inventory.Yes: selection.Yes,
}

// Subscribe has changed called whenever a pair may have another answer.
func (s *selector) Subscribe(changed func(pair types.NamespacedName)) {
	s.changed = append(s.changed, changed)
}

func (s *selector) notify(pair types.NamespacedName) {
	for _, changed := range s.changed {
		changed(pair)
	}
}

// Selected applies the rule to a pair.
func (s *selector) Selected(ctx context.Context, pair types.NamespacedName) (selection.Result, error) {
	selected, err := s.inventory.Selected(ctx, pair)
	return selection.Result{Answer: answers[selected.Answer], Why: selected.Why, Again: selected.Again}, err
}

// Namespaces returns where there is a ClusterProfile of a cluster's name. Before
// the inventory has begun, that is an error.
func (s *selector) Namespaces(ctx context.Context, cluster string) ([]string, error) {
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
