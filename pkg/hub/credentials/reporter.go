package credentials

import (
	"context"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/notices"
)

// eventAction is what the controller refrained from.
const eventAction = "Copy"

// Reporter creates the events that say, in consumers' namespaces, which tokens are not copied
// there and why. The request's name is the namespace.
type Reporter struct {
	refusals *refusals
	events   *notices.Reporter
}

// Reconcile creates the events of a namespace that are due.
func (r *Reporter) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	scope := types.NamespacedName{Namespace: req.Name}
	again, err := r.events.Report(ctx, scope, notices.Desired(r.refusals.in(req.Name)))
	return reconcile.Result{RequeueAfter: again}, err
}

// addReport registers the controller of the events.
func (c *Credentials) addReport() error {
	return builder.ControllerManagedBy(c.mgr).
		Named(ReportControllerName).
		WatchesRawSource(&c.refusals.trigger).
		Complete(c.reporter())
}

func (c *Credentials) reporter() *Reporter {
	return &Reporter{
		refusals: c.refusals,
		events:   notices.NewReporter(c.mgr.GetCache(), c.mgr.GetClient(), c.opts.Clock, ControllerName, eventAction),
	}
}
