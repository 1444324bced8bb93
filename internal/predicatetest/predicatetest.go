// Package predicatetest tests predicates of controllers by tables of updates.
package predicatetest

import (
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
)

// Update is an update of an object and whether it must pass. Without an edit the
// object gets a new resource version and nothing else.
type Update struct {
	Before client.Object
	Edit   func(client.Object)
	Want   bool
}

// As makes an edit of one kind an edit of any object.
func As[T client.Object](edit func(T)) func(client.Object) {
	return func(obj client.Object) { edit(obj.(T)) }
}

// Check runs a subtest for each update.
func Check(t *testing.T, p predicate.Predicate, updates map[string]Update) {
	t.Helper()
	for name, update := range updates {
		t.Run(name, func(t *testing.T) {
			after := update.Before.DeepCopyObject().(client.Object)
			after.SetResourceVersion("2")
			if update.Edit != nil {
				update.Edit(after)
			}
			if got := p.Update(event.UpdateEvent{ObjectOld: update.Before, ObjectNew: after}); got != update.Want {
				t.Errorf("passes is %t, want %t", got, update.Want)
			}
		})
	}
}
