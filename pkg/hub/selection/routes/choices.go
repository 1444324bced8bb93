package routes

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/types"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
	clusterv1beta2 "open-cluster-management.io/api/cluster/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/selection/rule"
	"open-cluster-management.io/cluster-inventory-addon/pkg/kube"
	"open-cluster-management.io/cluster-inventory-addon/pkg/kube/watch"
)

// Changed holds functions that are called with a Placement when its Choice may have
// changed.
type Changed struct {
	// Scope is called when the Placement, or the namespace's bindings, began or ceased to
	// publish.
	Scope func(placement types.NamespacedName)

	// Decisions is called when the Placement may have chosen other clusters.
	Decisions func(placement types.NamespacedName)
}

// WatchChoices adds to a controller the watches of everything from which a choice is decided,
// except CRDs. The functions of Changed enqueue its requests.
func WatchChoices(b *builder.Builder, reader client.Reader, settling Settling, changed Changed) *builder.Builder {
	c := choiceRoutes{reader: reader, settling: settling, changed: changed}
	placement := func(enqueue func(placement types.NamespacedName)) handler.EventHandler {
		return watch.HandlerFunc(func(_ context.Context, obj client.Object) { enqueue(client.ObjectKeyFromObject(obj)) })
	}
	return b.
		Watches(&clusterv1beta1.Placement{}, placement(changed.Scope), when(ofPublishing(placementScopeChanged))).
		Watches(&clusterv1beta1.Placement{}, placement(changed.Decisions), when(ofPublishing(placementStatusChanged))).
		Watches(&clusterv1beta1.PlacementDecision{}, watch.HandlerFunc(c.decision), when(kube.OnChange(choiceChanged))).
		Watches(&clusterv1beta2.ManagedClusterSetBinding{}, watch.HandlerFunc(c.binding),
			when(kube.OnChange(bindingChanged))).
		WatchesMetadata(kube.Partial(kube.NamespaceKind), watch.HandlerFunc(c.namespace), when(kube.OnChange(kube.Never)))
}

// Publishing returns the publishing Placements of a namespace, or of all namespaces if it
// is empty.
func Publishing(ctx context.Context, reader client.Reader, namespace string) ([]types.NamespacedName, error) {
	list := &clusterv1beta1.PlacementList{}
	labelled := client.MatchingFields{IndexPublishingPlacement: Published}
	if err := reader.List(ctx, list, client.InNamespace(namespace), labelled, kube.Uncopied); err != nil {
		return nil, fmt.Errorf("listing publishing Placements: %w", err)
	}
	keys := make([]types.NamespacedName, 0, len(list.Items))
	for i := range list.Items {
		keys = append(keys, client.ObjectKeyFromObject(&list.Items[i]))
	}
	return keys, nil
}

// choiceRoutes map events to Placements.
type choiceRoutes struct {
	reader   client.Reader
	settling Settling
	changed  Changed
}

// decision maps a slice of decisions, in its old and new state, to its Placement, if that
// publishes. The clusters in the slice have not been absent from it before.
func (c choiceRoutes) decision(ctx context.Context, obj client.Object) {
	decision, ok := obj.(*clusterv1beta1.PlacementDecision)
	if !ok || rule.PlacementOf(decision) == "" {
		return
	}
	key := rule.PlacementKey(decision)
	placement, err := kube.Get(ctx, c.reader, key, &clusterv1beta1.Placement{})
	if err != nil {
		log.FromContext(ctx).Error(err, "Cannot find the Placement of a PlacementDecision")
	}
	if placement == nil || !rule.Publishes(placement) {
		return
	}
	c.settling.Chosen(key, rule.DecidedClusters(decision))
	c.changed.Decisions(key)
}

func (c choiceRoutes) binding(ctx context.Context, obj client.Object) {
	c.enqueueAll(ctx, obj.GetNamespace(), c.changed.Scope)
}

func (c choiceRoutes) namespace(ctx context.Context, obj client.Object) {
	c.enqueueAll(ctx, obj.GetName(), c.changed.Decisions)
}

func (c choiceRoutes) enqueueAll(ctx context.Context, namespace string, enqueue func(types.NamespacedName)) {
	placements, err := Publishing(ctx, c.reader, namespace)
	if err != nil { // the cache is being shut down
		log.FromContext(ctx).Error(err, "Cannot find the Placements an event concerns")
	}
	for _, placement := range placements {
		enqueue(placement)
	}
}
