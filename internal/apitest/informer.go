package apitest

import (
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
)

// SyncedInformer is an informer that is always up to date and never receives an object.
type SyncedInformer struct{ cache.Informer }

// GetStore returns a store without a resource version.
func (SyncedInformer) GetStore() toolscache.Store { return StoreAt("") }

// StoreAt returns what watch.Definitions needs of an informer's store, which has reached a resource version.
func StoreAt(version string) toolscache.Store {
	return &toolscache.FakeCustomStore{LastStoreSyncResourceVersionFunc: func() string { return version }}
}

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
