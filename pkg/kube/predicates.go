package kube

import (
	"slices"

	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
)

// Named passes objects with the given names.
func Named(names ...string) predicate.Predicate {
	return predicate.NewPredicateFuncs(func(obj client.Object) bool { return slices.Contains(names, obj.GetName()) })
}

// OnChange passes objects that are created, deleted or begin to be deleted, and updates for
// which changed returns true. Those of another type than changed compares pass, too.
func OnChange[T client.Object](changed func(before, after T) bool) predicate.Predicate {
	return predicate.Funcs{
		UpdateFunc: func(e event.UpdateEvent) bool {
			before, okBefore := e.ObjectOld.(T)
			after, okAfter := e.ObjectNew.(T)
			return !okBefore || !okAfter || before.GetUID() != after.GetUID() ||
				(before.GetDeletionTimestamp() == nil) != (after.GetDeletionTimestamp() == nil) || changed(before, after)
		},
	}
}

// Never makes OnChange pass only creations and deletions.
func Never(_, _ client.Object) bool { return false }

// AfterStart passes everything except the objects that exist when a watch begins.
func AfterStart() predicate.Predicate {
	return predicate.Funcs{CreateFunc: func(e event.CreateEvent) bool { return !e.IsInInitialList }}
}

// OnEvent returns the handler of an informer's events that calls changed for each object of a
// type: before is the zero value if it was added, after is if it was deleted. If its deletion was
// missed, before is the last known state. initial is true for the objects that existed when the
// handler was added.
func OnEvent[T client.Object](changed func(before, after T, initial bool)) toolscache.ResourceEventHandler {
	var none T
	return toolscache.ResourceEventHandlerDetailedFuncs{
		AddFunc: func(obj any, initial bool) {
			if after, ok := obj.(T); ok {
				changed(none, after, initial)
			}
		},
		UpdateFunc: func(old, obj any) {
			before, okBefore := old.(T)
			after, okAfter := obj.(T)
			if okBefore && okAfter {
				changed(before, after, false)
			}
		},
		DeleteFunc: func(obj any) {
			if missed, ok := obj.(toolscache.DeletedFinalStateUnknown); ok {
				obj = missed.Obj
			}
			if before, ok := obj.(T); ok {
				changed(before, none, false)
			}
		},
	}
}
