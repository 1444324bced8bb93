package notices

import (
	"context"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"open-cluster-management.io/cluster-inventory-addon/internal/apitest"
	"open-cluster-management.io/cluster-inventory-addon/pkg/kube/fair"
)

// queued is a controller whose sources fill a queue that nothing processes.
type queued struct {
	controller.Controller
	queue workqueue.TypedRateLimitingInterface[reconcile.Request]
}

// ofHub is a manager with the client of a hub.
type ofHub struct {
	manager.Manager
	hub *hub
}

func (ofHub) GetCache() cache.Cache      { return nil }
func (h ofHub) GetClient() client.Client { return h.hub.Client }

func (q queued) Watch(from source.Source) error { return from.Start(context.Background(), q.queue) }

// TestReportsDoNotWaitForEachOther: each has its own delay and is called with its own scopes, and only
// those of one namespace wait for each other.
func TestReportsDoNotWaitForEachOther(t *testing.T) {
	options := fair.Options{PerGroup: 1}.Controller()
	queue := options.NewQueue("test", options.RateLimiter)
	t.Cleanup(queue.ShutDown)
	var reported []string
	c := &Controller{
		mgr: ofHub{hub: newHub(t)}, clock: clock.RealClock{}, controller: queued{queue: queue},
		reports: map[string]func(context.Context, types.NamespacedName) (time.Duration, error){},
	}
	register := func(name string, delay time.Duration) func(types.NamespacedName) {
		changed, err := c.Register(Reports{
			Controller: name, Delay: delay,
			Current: func(_ context.Context, scope types.NamespacedName) ([]Notice, error) {
				reported = append(reported, name+" "+scope.String())
				return nil, nil
			},
		})
		apitest.Must(t, err)
		return changed
	}
	soon, later := register("soon", 0), register("later", time.Hour)
	later(types.NamespacedName{Namespace: "team"})
	soon(types.NamespacedName{Namespace: "team"})
	soon(types.NamespacedName{Name: "c1"})
	first, _ := queue.Get()
	second, _ := queue.Get() // the first one is still in progress
	register("another", 0)(types.NamespacedName{Namespace: "team"})
	queue.Done(second)
	if n := queue.Len(); n != 1 {
		t.Errorf("%d scopes are ready, want the other one that need not wait", n)
	}
	queue.Done(first)
	third, _ := queue.Get()
	for _, request := range []reconcile.Request{first, second, third} {
		_, err := c.Reconcile(t.Context(), request)
		apitest.Must(t, err)
	}
	if diff := cmp.Diff([]string{"soon team/", "soon /c1", "another team/"}, reported); diff != "" {
		t.Errorf("reported (-want +got):\n%s", diff)
	}
}
