package spoke

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"open-cluster-management.io/cluster-inventory-addon/pkg/spoke/property"
)

const (
	// neverGiveUp makes a manager wait for its controllers however long they
	// take to end.
	neverGiveUp time.Duration = -1

	// slowLook is how often the situation is looked at without a reason: one or
	// two small requests and a file.
	slowLook = 10 * time.Second

	// quickLook and quickLooks are how often and how many times it is after the
	// CustomResourceDefinition changed: discovery follows that with a delay.
	quickLook  = 250 * time.Millisecond
	quickLooks = 40

	// sessionRetry is the pause after a session that failed.
	sessionRetry = 5 * time.Second
)

// lookout is how the situation is looked at.
type lookout struct {
	api     func(context.Context) (property.API, error)
	hub     func() (*rest.Config, error)
	removed func(context.Context) (bool, error)
}

// runFunc runs one session until ctx ends, and returns when it has done its last
// write. It calls ready once it has what it needs.
type runFunc func(ctx context.Context, now situation, ready func()) error

// sessions runs one session after the other, each until the situation changes.
type sessions struct {
	look      lookout
	run       runFunc
	informers cache.Informers

	// stop is closed when publishing is to end, stopped when it has.
	stop, stopped       chan struct{}
	stopOnce, endedOnce sync.Once

	crdChanged chan struct{}
	ready      atomic.Bool
}

var (
	_ manager.Runnable = &sessions{}

	errNotReady = errors.New("the caches of the spoke are not filled")
)

func newSessions(look lookout, run runFunc, informers cache.Informers) *sessions {
	return &sessions{
		look:       look,
		run:        run,
		informers:  informers,
		stop:       make(chan struct{}),
		stopped:    make(chan struct{}),
		crdChanged: make(chan struct{}, 1),
	}
}

// Start runs sessions until ctx ends. It is to start when the marker's cache is
// filled.
func (s *sessions) Start(ctx context.Context) error {
	removed, err := s.look.removed(ctx)
	if err != nil {
		return err
	}
	if removed {
		s.requestStop()
	}
	if err := s.watchCRD(ctx); err != nil {
		return err
	}
	s.follow(ctx)
	return nil
}

// follow looks at the situation and keeps a session running for it.
func (s *sessions) follow(ctx context.Context) {
	var now situation
	end := func() {}
	defer func() { end() }()
	stop, quick := s.stop, 0
	for ctx.Err() == nil {
		if next := s.observe(ctx, now); next != now {
			end()
			if next.removed {
				s.endedOnce.Do(func() { close(s.stopped) })
			}
			log.FromContext(ctx).Info("Starting a session", "propertyVersion", next.api.Version, "propertyAPIAbsent", next.api.Absent, "removed", next.removed)
			now, end = next, s.begin(ctx, next)
		}
		pause := slowLook
		if quick > 0 {
			quick, pause = quick-1, quickLook
		}
		select {
		case <-ctx.Done():
		case <-time.After(pause):
		case <-s.crdChanged:
			quick = quickLooks
		case <-stop:
			stop = nil
		}
	}
}

// observe returns the situation. What cannot be told is as it was.
func (s *sessions) observe(ctx context.Context, now situation) situation {
	logger := log.FromContext(ctx)
	hub, err := s.look.hub()
	if err != nil {
		logger.Error(err, "Keeping the way to the hub as it was")
	}
	select {
	case <-s.stop:
		return situation{hub: hub, removed: true}
	default:
	}
	api, err := s.look.api(ctx)
	if err != nil {
		logger.Error(err, "Going on as before: what the spoke serves cannot be told")
		if now == (situation{}) {
			return now
		}
		api = now.api
	}
	return situation{api: api, hub: hub}
}

// begin starts a session, again and again if it fails, and returns what ends it
// and waits for its end.
func (s *sessions) begin(ctx context.Context, now situation) func() {
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		wait.UntilWithContext(ctx, func(ctx context.Context) {
			err := s.run(ctx, now, func() { s.ready.Store(true) })
			if err != nil && ctx.Err() == nil {
				s.ready.Store(false)
				log.FromContext(ctx).Error(err, "The session failed and starts again", "pause", sessionRetry)
			}
		}, sessionRetry)
	}()
	return func() {
		cancel()
		<-done
	}
}

// watchCRD makes changes of the CustomResourceDefinition shorten the pause. It
// does not wait for the watch, which only makes things faster.
func (s *sessions) watchCRD(ctx context.Context) error {
	informer, err := s.informers.GetInformer(ctx, property.NewCRD(), cache.BlockUntilSynced(false))
	if err != nil {
		return err
	}
	changed := func() {
		select {
		case s.crdChanged <- struct{}{}:
		default:
		}
	}
	_, err = informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
		AddFunc:    func(any) { changed() },
		UpdateFunc: func(any, any) { changed() },
		DeleteFunc: func(any) { changed() },
	})
	return err
}

// StopPublishing ends publishing for good. It returns once nothing is published
// any more and no write is under way.
func (s *sessions) StopPublishing(ctx context.Context) error {
	s.requestStop()
	select {
	case <-s.stopped:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (s *sessions) requestStop() {
	s.stopOnce.Do(func() { close(s.stop) })
}

// Ready is a readiness check: the caches of the spoke are filled, or what they
// would be filled from is waited for.
func (s *sessions) Ready(*http.Request) error {
	if !s.ready.Load() {
		return errNotReady
	}
	return nil
}

var _ healthz.Checker = (&sessions{}).Ready
