package apitest

import (
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
)

// SyncedInformer is an informer that is always up to date and never receives an object.
type SyncedInformer struct{ cache.Informer }

// LastSyncResourceVersion implements what watch.Definitions needs of an informer.
func (SyncedInformer) LastSyncResourceVersion() string { return "" }

// AddEventHandler adds nothing, since no object arrives.
func (SyncedInformer) AddEventHandler(
	toolscache.ResourceEventHandler,
) (toolscache.ResourceEventHandlerRegistration, error) {
	return syncedHandler{}, nil
}

type syncedHandler struct {
	toolscache.ResourceEventHandlerRegistration
}

func (syncedHandler) HasSynced() bool { return true }
