package watch

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// Tells makes an event handler of a function that enqueues requests by other means. Of an update, it
// gets the old and the new object.
func Tells(tell func(context.Context, client.Object)) handler.EventHandler {
	return handler.EnqueueRequestsFromMapFunc(func(ctx context.Context, obj client.Object) []reconcile.Request {
		tell(ctx, obj)
		return nil
	})
}
