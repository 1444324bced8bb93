package watch

import (
	"context"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"open-cluster-management.io/cluster-inventory-addon/pkg/kube"
)

const (
	// servedRecheck is how soon to check again whether everything is served. A missing CRD is
	// looked for in the cache.
	servedRecheck = time.Second

	// servedRecheckMost bounds the intervals between requests, which double as long as the same
	// kind is not served: its CRD may never serve the version.
	servedRecheckMost = 16 * time.Second
)

// LateStart starts something once, when the API server serves everything it
// needs, which may be long after the manager has started.
type LateStart struct {
	// Name says in logs what waits.
	Name string

	// Kinds must be served, and their CRDs must not be terminating.
	Kinds Kinds

	// Ready, if not nil, reports whether nothing else prevents the start. It is polled
	// every second.
	Ready func() bool

	// Start is called on the elected leader, with a context that lasts while it leads, again
	// after an error, and never again after it has returned nil. It must be able to resume where
	// it failed.
	Start func(ctx context.Context) error

	crds      client.Reader // a cache of their metadata
	discovery *Discovery

	waiting string        // for what it waits
	again   time.Duration // until the next request about it
}

// AddTo makes the manager wait and start. Its cache must hold the metadata of
// CustomResourceDefinitions.
func (s *LateStart) AddTo(mgr manager.Manager) error {
	var err error
	if s.discovery, err = NewDiscovery(mgr.GetConfig(), mgr.GetHTTPClient()); err != nil {
		return err
	}
	s.crds = mgr.GetCache()
	return mgr.Add(manager.RunnableFunc(func(ctx context.Context) error {
		_, err := mgr.GetCache().GetInformer(ctx, kube.Partial(kube.CRDKind))
		switch {
		case ctx.Err() != nil:
			return nil //nolint:nilerr // the manager was told to end
		case err != nil:
			return fmt.Errorf("%s: watching CustomResourceDefinitions: %w", s.Name, err)
		}
		for {
			started, again := s.try(log.IntoContext(ctx, log.FromContext(ctx).WithName(s.Name)))
			if started {
				return nil
			}
			select {
			case <-ctx.Done():
				return nil
			case <-time.After(again):
			}
		}
	}))
}

// try starts it unless something is missing. Otherwise it returns when to try again, and logs
// once for what it waits.
func (s *LateStart) try(ctx context.Context) (started bool, again time.Duration) {
	crds, kind, err := s.missing(ctx)
	switch {
	case err != nil:
		log.FromContext(ctx).Error(err, "Cannot check whether the API server serves the required APIs")
		s.waitFor(err.Error())
		return false, s.again
	case len(crds) > 0:
		if s.waitFor(fmt.Sprint(crds)) {
			log.FromContext(ctx).Info("Waiting for the API server to serve a required API", "missing", crds)
		}
		return false, servedRecheck
	case !kind.Empty():
		if s.waitFor(kind.String()) {
			log.FromContext(ctx).Info("Waiting for the API server to serve a required kind, whose CRD exists",
				"kind", kind.Kind, "version", kind.GroupVersion().String())
		}
		return false, s.again
	case s.Ready != nil && !s.Ready():
		return false, servedRecheck
	}
	if err := s.Start(ctx); err != nil {
		if ctx.Err() == nil {
			log.FromContext(ctx).Error(err, "Cannot start yet")
		}
		s.waitFor(err.Error())
		return false, s.again
	}
	return true, 0
}

// missing returns the CRDs that are missing, sorted; if none is, a kind that is not served.
func (s *LateStart) missing(ctx context.Context) (crds []string, kind schema.GroupVersionKind, err error) {
	for crd := range s.Kinds {
		served, err := kube.IsServed(ctx, s.crds, crd)
		if err != nil {
			return nil, kind, err
		}
		if !served {
			crds = append(crds, crd)
		}
	}
	if len(crds) > 0 {
		slices.Sort(crds)
		return crds, kind, nil
	}
	for _, kind := range s.Kinds {
		if served, err := s.discovery.Serves(ctx, kind); err != nil || !served {
			return nil, kind, err
		}
	}
	return nil, kind, nil
}

// waitFor records for what it waits, and reports whether that is new.
func (s *LateStart) waitFor(what string) bool {
	if s.waiting == what {
		s.again = min(2*s.again, servedRecheckMost)
		return false
	}
	s.waiting, s.again = what, servedRecheck
	return true
}
