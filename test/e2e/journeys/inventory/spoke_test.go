package inventory

import (
	"context"
	"fmt"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"open-cluster-management.io/cluster-inventory-addon/internal/apitest"
	"open-cluster-management.io/cluster-inventory-addon/test/e2e/journeys"
)

// hasEvent waits until the owner of a property finds an event about it on the spoke.
func hasEvent(t *testing.T, cluster, name, reason string) {
	t.Helper()
	spoke, property := journeys.ClientOf(t, cluster), journeys.Property(name, "")
	apitest.Must(t, spoke.Get(t.Context(), client.ObjectKeyFromObject(property), property))
	apitest.Within(t, journeys.Soon, "an event about "+name, func(ctx context.Context) error {
		events := &eventsv1.EventList{}
		if err := spoke.List(ctx, events, client.InNamespace(metav1.NamespaceDefault)); err != nil {
			return err
		}
		for _, event := range events.Items {
			if event.Regarding.UID == property.GetUID() && event.Reason == reason {
				return nil
			}
		}
		return fmt.Errorf("none among %d events", len(events.Items))
	})
}

// renewed renews a cluster's lease, so that a cluster whose lease now expires sooner has
// not missed it already: otherwise every addon of the cluster would count as lost for a
// while.
func renewed(t *testing.T, cluster string) {
	t.Helper()
	object := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: cluster, Name: "managed-cluster-lease"}}
	patch := fmt.Appendf(nil, `{"spec":{"renewTime":%q}}`, time.Now().UTC().Format(metav1.RFC3339Micro))
	apitest.Must(t, journeys.Hub(t).Patch(t.Context(), object, client.RawPatch(types.MergePatchType, patch)))
}
