package addon

import (
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	toolscache "k8s.io/client-go/tools/cache"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"

	"open-cluster-management.io/cluster-inventory-addon/internal/apitest"
	"open-cluster-management.io/cluster-inventory-addon/internal/apitest/ocmtest"
)

// eventsOnly is an informer whose events the test sends to the last handler.
type eventsOnly struct {
	toolscache.SharedIndexInformer
	objects toolscache.Indexer
	handler toolscache.ResourceEventHandler
}

func (e *eventsOnly) AddEventHandler(
	handler toolscache.ResourceEventHandler,
) (toolscache.ResourceEventHandlerRegistration, error) {
	e.handler = handler
	return nil, nil
}

func (e *eventsOnly) GetIndexer() toolscache.Indexer { return e.objects }

// A deletion that a watch has missed reaches addon-framework as that of an object: its filters
// would end the manager otherwise.
func TestAMissedDeletionIsThatOfAnObject(t *testing.T) {
	var deleted []string
	// The filter is as in addon-framework v1.3.0, pkg/addonmanager/controllers/agentdeploy.
	framework := toolscache.FilteringResourceEventHandler{
		FilterFunc: func(obj any) bool {
			accessor, _ := meta.Accessor(obj)
			return accessor.GetName() != ""
		},
		Handler: toolscache.ResourceEventHandlerFuncs{DeleteFunc: func(obj any) {
			accessor, _ := meta.Accessor(obj)
			deleted = append(deleted, accessor.GetNamespace())
		}},
	}
	events := &eventsOnly{}
	for _, informer := range []toolscache.SharedIndexInformer{
		deletions[*addonv1beta1.ManagedClusterAddOn]{events},
		changes[*addonv1beta1.ManagedClusterAddOn]{SharedIndexInformer: events, ctx: t.Context()},
	} {
		deleted = nil
		_, err := informer.AddEventHandler(framework)
		apitest.Must(t, err)
		events.handler.OnDelete(ocmtest.Addon("c1"))
		events.handler.OnDelete(toolscache.DeletedFinalStateUnknown{Key: "c2/x", Obj: ocmtest.Addon("c2")})
		events.handler.OnDelete(toolscache.DeletedFinalStateUnknown{Key: "c3/x"})
		if len(deleted) != 2 || deleted[0] != "c1" || deleted[1] != "c2" {
			t.Errorf("%T: deleted %v", informer, deleted)
		}
	}
}
