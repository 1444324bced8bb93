package addon

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	"k8s.io/client-go/util/workqueue"
	"open-cluster-management.io/sdk-go/pkg/basecontroller/factory"
)

// queueRecorder is a queue that notes when keys are to be tried again.
type queueRecorder struct {
	workqueue.TypedRateLimitingInterface[string]
	again []string
}

func (q *queueRecorder) Forget(string)         { q.again = append(q.again, "done") }
func (q *queueRecorder) AddRateLimited(string) { q.again = append(q.again, "soon") }
func (q *queueRecorder) AddAfter(_ string, delay time.Duration) {
	q.again = append(q.again, delay.String())
}

type controllerWith struct {
	factory.Controller
	context contextWith
}

func (c controllerWith) Name() string                     { return "c" }
func (c controllerWith) SyncContext() factory.SyncContext { return c.context }

type contextWith struct {
	factory.SyncContext
	queue *queueRecorder
}

func (c contextWith) Queue() workqueue.TypedRateLimitingInterface[string] { return c.queue }

// TestConflictsWaitForTheCache: a hub that is busy is not asked the same
// again and again.
func TestConflictsWaitForTheCache(t *testing.T) {
	conflict := fmt.Errorf("updating: %w",
		apierrors.NewConflict(schema.GroupResource{Resource: "r"}, "n", errors.New("it has changed")))
	queue := &queueRecorder{}
	w := newWork(controllerWith{context: contextWith{queue: queue}})
	for _, err := range []error{
		conflict, conflict, utilerrors.NewAggregate([]error{conflict, errHeld}), nil, conflict,
		errors.New("refused"), utilerrors.NewAggregate([]error{conflict, errors.New("refused")}), errHeld,
	} {
		w.finish(t.Context(), "cluster/addon", err)
	}
	want := []string{
		"done", "1s", "done", "2s", "done", "4s", "done", "done", "1s",
		"soon", "soon", "done",
	}
	if diff := cmp.Diff(want, queue.again); diff != "" {
		t.Errorf("tried again (-want +got):\n%s", diff)
	}
}
