package apitest

import (
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
)

// SyncedInformer is an informer that has always come as far as one asks, and to which no
// object comes.
type SyncedInformer struct{ cache.Informer }

// LastSyncResourceVersion implements what kube.Definitions asks of an informer.
func (SyncedInformer) LastSyncResourceVersion() string { return "" }

// AddEventHandler adds nothing, since no object comes.
func (SyncedInformer) AddEventHandler(
	toolscache.ResourceEventHandler,
) (toolscache.ResourceEventHandlerRegistration, error) {
	return syncedHandler{}, nil
}

type syncedHandler struct {
	toolscache.ResourceEventHandlerRegistration
}

func (syncedHandler) HasSynced() bool { return true }
