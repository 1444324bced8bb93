package watch

import (
	"context"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"open-cluster-management.io/cluster-inventory-addon/internal/apitest"
)

// What is added to a manager that runs does not start before it is built.
func TestNothingStartsBeforeItIsComplete(t *testing.T) {
	mgr := apitest.NewManager(t, &rest.Config{}, runtime.NewScheme(), nil)
	running, started := make(chan struct{}), make(chan struct{})
	apitest.Must(t, mgr.Add(manager.RunnableFunc(func(ctx context.Context) error {
		close(running)
		<-ctx.Done()
		return nil
	})))
	apitest.Run(t, mgr.Start)
	<-running
	apitest.Must(t, AddWhole(mgr, func(mgr manager.Manager) error {
		err := mgr.Add(manager.RunnableFunc(func(context.Context) error { close(started); return nil }))
		select {
		case <-started:
			t.Error("it started before it was built")
		case <-time.After(100 * time.Millisecond):
		}
		return err
	}))
	<-started
}
