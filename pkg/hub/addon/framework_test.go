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
	"sigs.k8s.io/controller-runtime/pkg/cache"

	"open-cluster-management.io/cluster-inventory-addon/internal/apitest"
	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/addon/configuration"
)

// queueRecorder is a queue that records when keys are to be retried.
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
		conflict, conflict, utilerrors.NewAggregate([]error{conflict, configuration.ErrHeld}), nil, conflict,
		errors.New("refused"), utilerrors.NewAggregate([]error{conflict, errors.New("refused")}), configuration.ErrHeld,
	} {
		w.finish(t.Context(), "cluster/addon", err)
	}
	want := []string{
		"done", "1s", "done", "2s", "done", "4s", "done", "done", "1s",
		"soon", "soon", "done",
	}
	if diff := cmp.Diff(want, queue.again); diff != "" {
		t.Errorf("retried (-want +got):\n%s", diff)
	}
}

// A manager that is stopped while its caches are still empty, because the hub does not
// respond, ends without an error.
func TestTheFrameworkMayEndWhileItStarts(t *testing.T) {
	w := newWorld(t)
	wire, held := &apitest.Wire{}, make(chan struct{})
	wire.Fail(func(call apitest.Call) apitest.Fault {
		if call.Resource == "managedclusteraddons" {
			return apitest.Fault{Until: held}
		}
		return apitest.Fault{}
	})
	cfg := wire.Tap(hub.Config(t))
	cached, err := cache.New(cfg, cache.Options{Scheme: w.Scheme(), ByObject: CacheOptions()})
	apitest.Must(t, err)
	apitest.Run(t, cached.Start)
	t.Cleanup(func() { close(held) })
	stop := apitest.Run(t, (&framework{
		cfg: cfg, shared: cached, client: w.Client, live: w.Client, outcomes: configuration.NewOutcomes(w),
	}).Start)
	w.Eventually("addons are asked for", func() string {
		for _, call := range wire.Calls() {
			if call.Resource == "managedclusteraddons" {
				return ""
			}
		}
		return "they are not"
	})
	stop()
}
