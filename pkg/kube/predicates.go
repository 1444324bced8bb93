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
// which changed returns true.
func OnChange(changed func(before, after client.Object) bool) predicate.Predicate {
	return predicate.Funcs{
		UpdateFunc: func(e event.UpdateEvent) bool {
			return e.ObjectOld.GetUID() != e.ObjectNew.GetUID() ||
				(e.ObjectOld.GetDeletionTimestamp() == nil) != (e.ObjectNew.GetDeletionTimestamp() == nil) ||
				changed(e.ObjectOld, e.ObjectNew)
		},
	}
}

// Never makes OnChange pass only creations and deletions.
func Never(_, _ client.Object) bool { return false }

// AfterStart passes everything except the objects that exist when a watch begins.
func AfterStart() predicate.Predicate {
	return predicate.Funcs{CreateFunc: func(e event.CreateEvent) bool { return !e.IsInInitialList }}
}

// InEvent returns the object that an informer's event is about; if its deletion was missed, the
// last known state.
func InEvent[T any](obj any) (T, bool) {
	if stale, ok := obj.(toolscache.DeletedFinalStateUnknown); ok {
		obj = stale.Obj
	}
	typed, ok := obj.(T)
	return typed, ok
}
