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
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"open-cluster-management.io/cluster-inventory-addon/pkg/kube"
	"open-cluster-management.io/cluster-inventory-addon/pkg/spoke/property"
)

const (
	// waitForever makes a manager wait for its controllers however long they take
	// to stop.
	waitForever time.Duration = -1

	// slowPoll is how often the situation is observed when no event says that it
	// changed. It costs one or two small requests and reading a few files.
	slowPoll = 10 * time.Second

	// fastPoll and fastPolls are how often and how many times the situation is
	// observed after the CustomResourceDefinition changed: discovery lags behind.
	fastPoll  = 250 * time.Millisecond
	fastPolls = 40

	// sessionRetry is the pause after a session that failed.
	sessionRetry = 5 * time.Second
)

// observers read the parts of the situation.
type observers struct {
	api func(context.Context) (property.API, error)
	hub func() (*rest.Config, error)
	// removed reads live whether the addon is being removed.
	removed func(context.Context) (bool, error)
}

// runFunc runs one session until ctx ends and returns after its last write. It
// calls ready once its caches have synced.
type runFunc func(ctx context.Context, now situation, ready func()) error

// sessions runs one session after the other, each until the situation changes.
type sessions struct {
	observers observers
	run       runFunc
	informers cache.Informers

	// stop is closed by requestStop to end publishing, stopped by ended when it has ended.
	stop, stopped      chan struct{}
	requestStop, ended func()

	crdChanged chan struct{}
	ready      atomic.Bool

	// hubKnown says that there is a configuration for the hub, hubProblem which problem of
	// its kubeconfig was logged last.
	hubKnown   atomic.Bool
	hubProblem string
}

func newSessions(observers observers, run runFunc, informers cache.Informers) *sessions {
	stop, stopped := make(chan struct{}), make(chan struct{})
	return &sessions{
		observers:   observers,
		run:         run,
		informers:   informers,
		stop:        stop,
		stopped:     stopped,
		requestStop: sync.OnceFunc(func() { close(stop) }),
		ended:       sync.OnceFunc(func() { close(stopped) }),
		crdChanged:  make(chan struct{}, 1),
	}
}

// Start runs sessions until ctx ends.
func (s *sessions) Start(ctx context.Context) error {
	if err := s.watchCRD(ctx); err != nil {
		return err
	}
	s.follow(ctx)
	return nil
}

// follow observes the situation and keeps a session running for it.
func (s *sessions) follow(ctx context.Context) {
	var now situation
	end := func() {}
	defer func() { end() }()
	stop, fast := s.stop, 0
	for ctx.Err() == nil {
		if next := s.observe(ctx, now); next != now {
			end()
			if next.removed {
				s.ended()
			}
			log.FromContext(ctx).Info("Starting a session", "propertyVersion", next.api.Version,
				"propertyAPIAbsent", next.api.Absent, "removed", next.removed)
			now, end = next, s.begin(ctx, next)
		}
		pause := slowPoll
		if fast > 0 {
			fast, pause = fast-1, fastPoll
		}
		select {
		case <-ctx.Done():
		case <-time.After(pause):
		case <-s.crdChanged:
			fast = fastPolls
		case <-stop:
			stop = nil
		}
	}
}

// observe returns the situation. Parts that cannot be observed are taken from the previous
// one.
func (s *sessions) observe(ctx context.Context, now situation) situation {
	logger := log.FromContext(ctx)
	hub, hubProblem := s.observeHub(ctx)
	select {
	case <-s.stop:
		return situation{hub: hub, hubProblem: hubProblem, removed: true}
	default:
	}
	api, err := s.observers.api(ctx)
	if err != nil {
		logger.Error(err, "Continuing as before: cannot determine which ClusterProperty API the spoke serves")
		if now == (situation{}) {
			return now
		}
		api = now.api
	}
	return situation{api: api, hub: hub, hubProblem: hubProblem}
}

// observeHub returns the configuration for the hub, or the previous one if there is a
// problem, and logs each new problem.
func (s *sessions) observeHub(ctx context.Context) (*rest.Config, string) {
	hub, err := s.observers.hub()
	hubProblem := problemOf(err)
	if err != nil && (hubProblem == "" || hubProblem != s.hubProblem) {
		log.FromContext(ctx).Error(err, "The kubeconfig of the hub cannot be used", "previousIsUsed", hub != nil)
	}
	s.hubProblem = hubProblem
	s.hubKnown.Store(hub != nil)
	return hub, hubProblem
}

// begin starts a session, and restarts it whenever it fails. It returns a function
// that stops the session and waits for its end.
func (s *sessions) begin(ctx context.Context, now situation) func() {
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		wait.UntilWithContext(ctx, func(ctx context.Context) {
			if !now.removed && !s.mayBegin(ctx) {
				return
			}
			err := s.run(ctx, now, func() { s.ready.Store(true) })
			if err != nil && ctx.Err() == nil {
				s.ready.Store(false)
				log.FromContext(ctx).Error(err, "The session failed and is restarted", "pause", sessionRetry)
			}
		}, sessionRetry)
	}()
	return func() {
		cancel()
		<-done
	}
}

// mayBegin reads live whether the addon is being removed, and requests the end of publishing if it is: a new session
// may have newer caches than that of the marker, so that it would publish again what the hook has deleted.
func (s *sessions) mayBegin(ctx context.Context) bool {
	removed, err := s.observers.removed(ctx)
	if err != nil {
		log.FromContext(ctx).Error(err, "No session starts: cannot read whether the addon is being removed",
			"pause", sessionRetry)
		return false
	}
	if removed {
		s.requestStop()
	}
	return !removed
}

// watchCRD makes changes of the CustomResourceDefinition shorten the polling
// interval. It does not wait for the watch, which only speeds things up.
func (s *sessions) watchCRD(ctx context.Context) error {
	informer, err := s.informers.GetInformer(ctx, kube.Partial(kube.CRDKind), cache.BlockUntilSynced(false))
	if err != nil {
		return err
	}
	_, err = informer.AddEventHandler(kube.OnEvent(func(_, _ client.Object, _ bool) {
		select {
		case s.crdChanged <- struct{}{}:
		default:
		}
	}))
	return err
}

// StopPublishing ends publishing permanently. It returns once publishing has ended and no
// write is in progress.
func (s *sessions) StopPublishing(ctx context.Context) error {
	s.requestStop()
	select {
	case <-s.stopped:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Ready is a readiness check: the caches of the spoke have synced. A session that reads
// nothing from the spoke is ready at once.
func (s *sessions) Ready(*http.Request) error {
	if !s.ready.Load() {
		return errors.New("the caches of the spoke have not synced")
	}
	return nil
}

// Reporting is a readiness check: there is a hub to report to, reachable or not. The agent
// cannot report otherwise, but its readiness is visible on the hub.
func (s *sessions) Reporting(*http.Request) error {
	if !s.hubKnown.Load() {
		return errors.New("there has been no usable kubeconfig of the hub yet, so nothing is reported there")
	}
	return nil
}
