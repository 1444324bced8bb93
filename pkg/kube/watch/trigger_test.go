package watch

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

func TestTriggerServesEarlierKeysByPriority(t *testing.T) {
	key := func(name string) types.NamespacedName { return types.NamespacedName{Name: name} }
	trigger := &Trigger{}
	trigger.EnqueueWithPriority(key("raised"), PriorityLow)
	trigger.EnqueueWithPriority(key("raised"), PriorityNormal)
	trigger.EnqueueWithPriority(key("raised"), PriorityLow)
	trigger.EnqueueWithPriority(key("late"), PriorityLow)

	queue := priorityqueue.New[reconcile.Request]("test")
	defer queue.ShutDown()
	if err := trigger.Start(t.Context(), queue); err != nil {
		t.Fatal(err)
	}
	trigger.Enqueue(key("after"))

	var got []string
	for range 3 {
		request, priority, _ := queue.GetWithPriority()
		queue.Done(request)
		if (request.Name == "late") != (priority == PriorityLow) {
			t.Errorf("%s has priority %d", request.Name, priority)
		}
		got = append(got, request.Name)
	}
	if diff := cmp.Diff("late", got[2]); diff != "" {
		t.Errorf("last served (-want +got):\n%s\nall: %v", diff, got)
	}
}

func TestTriggerDelaysKeys(t *testing.T) {
	trigger := &Trigger{Delay: time.Hour}
	queue := priorityqueue.New[reconcile.Request]("test")
	defer queue.ShutDown()
	if err := trigger.Start(t.Context(), queue); err != nil {
		t.Fatal(err)
	}
	trigger.Enqueue(types.NamespacedName{Name: "x"})
	if queue.Len() != 0 {
		t.Error("a delayed key is ready at once")
	}
}

// A key that an error would delay for long keeps the requested time.
func TestTriggerEnqueuesAfterAWait(t *testing.T) {
	key, trigger := types.NamespacedName{Name: "x"}, &Trigger{}
	failed := errors.New("failed")
	if result, err := trigger.Result(key, time.Hour, nil); result.RequeueAfter != time.Hour || err != nil {
		t.Errorf("without an error: %v, %v", result, err)
	}
	for range 2 { // nothing makes it wait before the start
		if result, err := trigger.Result(key, time.Hour, failed); !result.IsZero() || !errors.Is(err, failed) {
			t.Errorf("with an error: %v, %v", result, err)
		}
	}
	queue := priorityqueue.New[reconcile.Request]("test")
	defer queue.ShutDown()
	if err := trigger.Start(t.Context(), queue); err != nil {
		t.Fatal(err)
	}
	first, _ := queue.Get()
	queue.Done(first)
	_, _ = trigger.Result(key, time.Millisecond, failed)
	_, _ = trigger.Result(types.NamespacedName{Name: "y"}, 0, failed)
	queue.AddAfter(reconcile.Request{NamespacedName: key}, time.Hour)
	if second, _ := queue.Get(); first != second || first.NamespacedName != key {
		t.Errorf("requests %v and %v", first, second)
	}
}

func TestTriggerIsSyncedWhenItIsReady(t *testing.T) {
	if err := (&Trigger{}).WaitForSync(t.Context()); err != nil {
		t.Errorf("without Ready: %v", err)
	}
	notReady := errors.New("not ready")
	trigger := &Trigger{Ready: func(context.Context) error { return notReady }}
	if err := trigger.WaitForSync(t.Context()); !errors.Is(err, notReady) {
		t.Errorf("wait = %v, want what Ready returns", err)
	}
}
