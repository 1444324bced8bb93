package watch

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// HandlerFunc makes an event handler of a function that enqueues requests by other means. Of an update, it
// gets the old and the new object.
func HandlerFunc(handle func(context.Context, client.Object)) handler.EventHandler {
	return handler.EnqueueRequestsFromMapFunc(func(ctx context.Context, obj client.Object) []reconcile.Request {
		handle(ctx, obj)
		return nil
	})
}
