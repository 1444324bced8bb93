package notices

import (
	"context"
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"open-cluster-management.io/cluster-inventory-addon/pkg/kube/fair"
	"open-cluster-management.io/cluster-inventory-addon/pkg/kube/watch"
)

// ControllerName is the controller's name in logs and metrics. Its events name the controllers
// of the Reports.
const ControllerName = "hub.notices"

// Reports are what one of the other controllers has to report.
type Reports struct {
	// Controller is the one that the events name, and Action what it took or refrained from.
	Controller, Action string

	// Delay turns a burst of changes in a scope into one event.
	Delay time.Duration

	// Current returns everything to report in a scope: see Reporter.Report.
	Current func(ctx context.Context, scope types.NamespacedName) ([]Notice, error)
}

// Controller creates the events of Reports, one request of a namespace at a time, so that a slow
// namespace keeps no other one waiting. The request's namespace is the scope's; its name is that of
// the reporting controller, a slash, and the scope's.
type Controller struct {
	mgr        manager.Manager
	clock      clock.PassiveClock
	controller controller.Controller
	reports    map[string]func(ctx context.Context, scope types.NamespacedName) (time.Duration, error)
}

// Add registers the controller.
func Add(mgr manager.Manager, clock clock.PassiveClock) (*Controller, error) {
	c := &Controller{
		mgr: mgr, clock: clock,
		reports: map[string]func(context.Context, types.NamespacedName) (time.Duration, error){},
	}
	options := fair.Options{PerGroup: 1}.Controller()
	options.Reconciler = c
	var err error
	if c.controller, err = controller.New(ControllerName, mgr, options); err != nil {
		return nil, fmt.Errorf("adding %s: %w", ControllerName, err)
	}
	return c, nil
}

// Register adds Reports, before the manager starts. changed has a scope reported.
func (c *Controller) Register(r Reports) (changed func(scope types.NamespacedName), err error) {
	reporter := NewReporter(c.mgr.GetCache(), c.mgr.GetClient(), c.clock, r.Controller, r.Action)
	c.reports[r.Controller] = func(ctx context.Context, scope types.NamespacedName) (time.Duration, error) {
		current, err := r.Current(ctx, scope)
		if err != nil {
			return 0, err
		}
		return reporter.Report(ctx, scope, current)
	}
	trigger := &watch.Trigger{Delay: r.Delay}
	return func(scope types.NamespacedName) {
		trigger.Enqueue(types.NamespacedName{Namespace: scope.Namespace, Name: r.Controller + "/" + scope.Name})
	}, c.controller.Watch(trigger)
}

// Reconcile creates an event about each object in a scope whose last event is out of date.
func (c *Controller) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	controller, name, _ := strings.Cut(req.Name, "/")
	again, err := c.reports[controller](ctx, types.NamespacedName{Namespace: req.Namespace, Name: name})
	return reconcile.Result{RequeueAfter: again}, err
}
