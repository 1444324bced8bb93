package kube

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

const (
	// servedRecheck is how soon to check again whether an existing CRD is served, which it
	// is a moment after its creation.
	servedRecheck = time.Second

	// servedRecheckMost bounds the intervals, which double as long as the same kind is not
	// served: the CRD may never serve the version.
	servedRecheckMost = 16 * time.Second
)

// LateStart starts something once, when the API server serves everything it
// needs, which may be long after the manager has started.
type LateStart struct {
	// Name is the name of the controller that waits.
	Name string

	// CRDs, by name, must exist and not be terminating.
	CRDs []string

	// Kinds must be served: a CRD is served a moment after its creation.
	Kinds []schema.GroupVersionKind

	// Ready, if not nil, reports whether nothing else prevents the start. It is polled
	// every second.
	Ready func() bool

	// Start is called on the elected leader, again after an error, and never again
	// after it has returned nil. It must be able to resume where it failed.
	Start func(ctx context.Context) error

	started bool
	waiting waiting
}

// waiting is the wait for a kind that is not served although its CRD exists.
type waiting struct {
	kind  schema.GroupVersionKind
	again time.Duration // until the next check
}

// AddTo registers the controller that waits. The manager's cache must hold the
// metadata of CustomResourceDefinitions.
func (s *LateStart) AddTo(mgr manager.Manager) error {
	one := func(context.Context, client.Object) []reconcile.Request {
		return []reconcile.Request{{NamespacedName: types.NamespacedName{Name: s.Name}}}
	}
	cameOrWent := builder.WithPredicates(Named(s.CRDs...), OnChange(Never))
	return builder.ControllerManagedBy(mgr).
		Named(s.Name).
		WatchesMetadata(Partial(CRDKind), handler.EnqueueRequestsFromMapFunc(one), cameOrWent).
		Complete(reconcile.Func(func(ctx context.Context, _ reconcile.Request) (reconcile.Result, error) {
			return s.reconcile(ctx, mgr)
		}))
}

// reconcile never runs concurrently, since there is a single request.
func (s *LateStart) reconcile(ctx context.Context, mgr manager.Manager) (reconcile.Result, error) {
	if s.started {
		return reconcile.Result{}, nil
	}
	var missing []string
	for _, crd := range s.CRDs {
		served, err := IsServed(ctx, mgr.GetCache(), crd)
		if err != nil {
			return reconcile.Result{}, err
		}
		if !served {
			missing = append(missing, crd)
		}
	}
	if len(missing) > 0 {
		log.FromContext(ctx).Info("Waiting for the API server to serve a required API", "missing", missing)
		s.waiting = waiting{}
		return reconcile.Result{}, nil
	}
	for _, kind := range s.Kinds {
		switch _, err := mgr.GetRESTMapper().RESTMapping(kind.GroupKind(), kind.Version); {
		case meta.IsNoMatchError(err):
			return reconcile.Result{RequeueAfter: s.wait(ctx, kind)}, nil
		case err != nil:
			return reconcile.Result{}, fmt.Errorf("looking up %s: %w", kind, err)
		}
	}
	if s.Ready != nil && !s.Ready() {
		return reconcile.Result{RequeueAfter: servedRecheck}, nil
	}
	if err := s.Start(ctx); err != nil {
		return reconcile.Result{}, err
	}
	s.started = true
	return reconcile.Result{}, nil
}

// wait returns how soon to check again whether a kind is served. It logs once that the kind
// is not.
func (s *LateStart) wait(ctx context.Context, kind schema.GroupVersionKind) time.Duration {
	if s.waiting.kind == kind {
		s.waiting.again = min(2*s.waiting.again, servedRecheckMost)
	} else {
		s.waiting = waiting{kind: kind, again: servedRecheck}
		log.FromContext(ctx).Info("Waiting for the API server to serve a required kind, whose CRD exists",
			"kind", kind.Kind, "version", kind.GroupVersion().String())
	}
	return s.waiting.again
}
