package watch

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"open-cluster-management.io/cluster-inventory-addon/pkg/kube"
)

const (
	// RestoreTime is how long no object must have been added before objects that a
	// recreated CRD lacks count as missing: restoring a backup creates the CRD first, and
	// then one object after the other, kind by kind.
	RestoreTime = time.Minute

	// RestoreLimit is the longest that such a CRD's missing objects are disregarded, however
	// often objects are added: a fleet that always grows must not keep unwanted objects forever.
	// Ten thousand clusters, each with its addon and an account, take 25 minutes at twenty
	// objects a second.
	RestoreLimit = 30 * time.Minute

	// relistRecheck is how soon to check again whether an informer has caught up with a
	// recreated CRD; no event announces it.
	relistRecheck = time.Second

	// liveTimeout bounds a live read of one CRD, or of what is served.
	liveTimeout = 10 * time.Second
)

// State says how far a cache of custom resources can be trusted.
type State int

const (
	// Unserved means that the kind is not served, or the cache has not caught up with a
	// recreated CRD. Neither presence nor absence in the cache means anything.
	Unserved State = iota

	// Restoring means that the CRD was deleted and recreated, so missing objects may yet be
	// restored. Objects that exist count.
	Restoring

	// Served means that objects missing from the cache do not exist, unless it lags (Lagging).
	Served
)

// Source is a kind whose absent objects a controller acts on.
type Source struct {
	// CRD is the name of the kind's CustomResourceDefinition.
	CRD string

	// Informer holds the objects. It must be one of client-go's, whose stores report their
	// progress.
	Informer any

	// OwnWork is true if only this process creates the objects: after a CRD was recreated,
	// there is nothing to wait for.
	OwnWork bool
}

// informer is the subset of client-go's informers that is needed.
type informer interface {
	GetStore() toolscache.Store
	AddEventHandler(toolscache.ResourceEventHandler) (toolscache.ResourceEventHandlerRegistration, error)
}

// Definitions distinguishes objects that vanished with their CustomResourceDefinition from
// objects that a client deleted. The API server deletes the objects first and the CRD last,
// so watches see ordinary deletions; and restoring the objects requires a new CRD first.
//
// Caches may lag: a cached CRD may look healthy although its objects are being deleted. So
// Confirm reads it live; call it before acting on the absence of an object. Definitions is
// safe for concurrent use.
type Definitions struct {
	live    client.Reader
	clock   clock.PassiveClock
	trigger Trigger // for CRDs that are followed from now on

	mu          sync.Mutex
	known       map[string]*definition                 // by the name of the CRD
	subscribers map[string][]func(ctx context.Context) // likewise

	// newest is when an object of any of the kinds was last added: while objects of one are
	// being restored, those of another may follow.
	newest time.Time
}

type definition struct {
	Source

	// uid is that of the CRD under which the informer has listed.
	uid types.UID

	// waiting is true until missing objects count as missing; once they do, they always do.
	// The wait began at since and ends at limit at the latest.
	waiting      bool
	since, limit time.Time

	// next is a recreated CRD under which the informer may not have listed yet. It has once
	// the informer reaches the resource version least.
	next  types.UID
	least string

	// started is the resource version that the API server had when Follow was called. caughtUp
	// is true once the informer is known to have reached it.
	started  string
	caughtUp bool

	announced State // the state announced last

	reading liveRead
}

// NewDefinitions returns Definitions that know of no kind. live must bypass every cache. One
// instance serves all kinds that may be restored together.
func NewDefinitions(live client.Reader, clock clock.PassiveClock) *Definitions {
	return &Definitions{
		live: live, clock: clock, known: map[string]*definition{}, subscribers: map[string][]func(context.Context){},
	}
}

// Follow begins to follow kinds, whose informers must have synced. crds reads a cache of
// the metadata of CRDs. It may be called again, for other kinds.
//
// CRDs may have been recreated before this process started. restored says that objects
// exist which were derived from objects that are missing or younger: then every CRD counts
// as recreated. Otherwise a CRD counts as recreated if another of the same call is older by
// more than RestoreTime. Either way the wait began with the CRD's creation, and the
// objects' creation times say when the last one was added.
func (d *Definitions) Follow(ctx context.Context, crds client.Reader, restored bool, sources ...Source) error {
	started, err := d.version(ctx)
	if err != nil {
		return err
	}
	cached := make([]*metav1.PartialObjectMetadata, len(sources))
	var oldest time.Time
	for i, source := range sources {
		var err error
		if cached[i], err = readCRD(ctx, crds, source.CRD); err != nil {
			return err
		}
		if cached[i] == nil || source.OwnWork {
			continue
		}
		if created := cached[i].CreationTimestamp.Time; oldest.IsZero() || created.Before(oldest) {
			oldest = created
		}
	}
	if err := d.followAdditions(ctx, sources); err != nil {
		return err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	for i, source := range sources {
		def := &definition{Source: source, started: started}
		if crd := cached[i]; crd != nil {
			created := crd.CreationTimestamp.Time
			def.uid = crd.UID
			if restored || created.Sub(oldest) > RestoreTime {
				def.await(created)
			}
		}
		def.announced = d.stateOf(def, cached[i])
		d.known[source.CRD] = def
		d.trigger.Enqueue(types.NamespacedName{Name: source.CRD}) // events were ignored until now
	}
	return nil
}

// version returns the present resource version of the API server, which counts the writes of
// all kinds together.
func (d *Definitions) version(ctx context.Context) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, liveTimeout)
	defer cancel()
	one := kube.PartialList(kube.CRDKind)
	if err := d.live.List(ctx, one, client.Limit(1)); err != nil {
		return "", fmt.Errorf("reading the API server's resource version: %w", err)
	}
	return one.ResourceVersion, nil
}

// Lagging names the CRDs whose objects' caches may be older than this process: an API
// server that is cut off from etcd lists what it had before. Then objects missing from the
// cache may exist.
type Lagging []string

// Any reports whether one of the kinds is among them.
func (l Lagging) Any(names ...string) bool {
	return slices.ContainsFunc(names, func(name string) bool { return slices.Contains(l, name) })
}

// Lagging returns which caches may be older than this process. Call it before reading them: what
// was read may be old although the cache has caught up since.
func (d *Definitions) Lagging() Lagging {
	d.mu.Lock()
	defer d.mu.Unlock()
	var lagging Lagging
	for name, def := range d.known {
		if def.caughtUp = def.caughtUp || def.hasReached(def.started); !def.caughtUp {
			lagging = append(lagging, name)
		}
	}
	return lagging
}

// followAdditions records when the objects of some kinds were added, now and from now on.
func (d *Definitions) followAdditions(ctx context.Context, sources []Source) error {
	var noted []toolscache.InformerSynced
	for _, source := range sources {
		objects, ok := source.Informer.(informer)
		if !ok {
			return fmt.Errorf("following %s: the informer cannot tell how far it has come", source.CRD)
		}
		if source.OwnWork {
			continue
		}
		registration, err := objects.AddEventHandler(kube.OnEvent(d.onAddition))
		if err != nil {
			return fmt.Errorf("following %s: %w", source.CRD, err)
		}
		noted = append(noted, registration.HasSynced)
	}
	if len(noted) > 0 && !toolscache.WaitForCacheSync(ctx.Done(), noted...) {
		return context.Cause(ctx)
	}
	return nil
}

// await begins to wait for the objects of a recreated CRD.
func (f *definition) await(since time.Time) {
	f.waiting = !f.OwnWork
	f.since, f.limit = since, since.Add(RestoreLimit)
}

func readCRD(ctx context.Context, reader client.Reader, name string) (*metav1.PartialObjectMetadata, error) {
	return kube.Get(ctx, reader, types.NamespacedName{Name: name}, kube.Partial(kube.CRDKind))
}

// State says how far the cache of a kind can be trusted. crds reads a cache of the
// metadata of CRDs.
func (d *Definitions) State(ctx context.Context, crds client.Reader, name string) (State, error) {
	cached, err := readCRD(ctx, crds, name)
	if err != nil {
		return Unserved, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	def, ok := d.known[name]
	if !ok {
		return Unserved, nil
	}
	return d.stateOf(def, cached), nil
}

// stateOf requires the lock.
func (d *Definitions) stateOf(def *definition, cached *metav1.PartialObjectMetadata) State {
	switch {
	case cached == nil, cached.DeletionTimestamp != nil, cached.UID != def.uid:
		return Unserved
	case d.left(def) > 0:
		return Restoring
	default:
		return Served
	}
}

// left returns the time until missing objects count as missing, provided that none is added
// until then. It requires the lock.
func (d *Definitions) left(def *definition) time.Duration {
	if !def.waiting {
		return 0
	}
	now := d.clock.Now()
	if def.since.After(now) { // the clock was set back
		def.await(now)
	}
	until := def.since
	if d.newest.After(now) { // the same, or the hub's clocks are ahead
		d.newest = now
	}
	if d.newest.After(until) {
		until = d.newest
	}
	left := min(until.Add(RestoreTime).Sub(now), def.limit.Sub(now))
	def.waiting = left > 0
	return max(left, 0)
}

// Left returns the time until objects missing from the caches of some kinds count as
// missing, provided that none is added until then.
func (d *Definitions) Left(names ...string) time.Duration {
	d.mu.Lock()
	defer d.mu.Unlock()
	var left time.Duration
	for _, name := range names {
		if def, ok := d.known[name]; ok {
			left = max(left, d.left(def))
		}
	}
	return left
}

// Confirm reads some CRDs live and returns the name of one that is being deleted, gone or
// not the one the cache knows: then the absence of its objects means nothing. It returns ""
// if there is none. Concurrent callers share their requests.
func (d *Definitions) Confirm(ctx context.Context, names ...string) (doubtful string, err error) {
	return d.confirmAll(ctx, Served, names)
}

// ConfirmPresent is Confirm for objects that exist and are being deleted. Restoring does not
// matter then: these objects are being deleted even if others of their kind are being
// restored.
func (d *Definitions) ConfirmPresent(ctx context.Context, names ...string) (doubtful string, err error) {
	return d.confirmAll(ctx, Restoring, names)
}

func (d *Definitions) confirmAll(ctx context.Context, least State, names []string) (doubtful string, err error) {
	var reads errgroup.Group
	confirmed := make([]bool, len(names))
	for i, name := range names {
		reads.Go(func() (err error) {
			confirmed[i], err = d.confirm(ctx, least, name)
			return err
		})
	}
	if err := reads.Wait(); err != nil {
		return "", err
	}
	for i, name := range names {
		if !confirmed[i] && (doubtful == "" || name < doubtful) {
			doubtful = name
		}
	}
	return doubtful, nil
}

func (d *Definitions) confirm(ctx context.Context, least State, name string) (confirmed bool, err error) {
	d.mu.Lock()
	def, ok := d.known[name]
	d.mu.Unlock()
	if !ok {
		return false, nil
	}
	crd, err := def.reading.read(func() (*metav1.PartialObjectMetadata, error) {
		ctx, cancel := context.WithTimeout(ctx, liveTimeout)
		defer cancel()
		crd := kube.Partial(kube.CRDKind)
		err := d.live.Get(ctx, types.NamespacedName{Name: name}, crd)
		if apierrors.IsNotFound(err) {
			return nil, nil
		}
		return crd, err
	})
	if err != nil {
		return false, fmt.Errorf("reading CustomResourceDefinition %s: %w", name, err)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.stateOf(def, crd) >= least, nil
}

// liveRead shares the reads of one object among concurrent callers: each gets the result of
// a read that began after its call.
type liveRead struct {
	asked atomic.Int64 // number of calls so far

	reading sync.Mutex // held while reading; guards the fields below
	served  int64      // number of calls when the last read began
	found   *metav1.PartialObjectMetadata
	err     error
}

func (r *liveRead) read(
	get func() (*metav1.PartialObjectMetadata, error),
) (*metav1.PartialObjectMetadata, error) {
	turn := r.asked.Add(1)
	r.reading.Lock()
	defer r.reading.Unlock()
	if r.served < turn {
		r.served = r.asked.Load()
		r.found, r.err = get()
	}
	return r.found, r.err
}

// Subscribe has changed called whenever the state of one of these kinds has changed. changed
// returns at once.
func (d *Definitions) Subscribe(changed func(ctx context.Context), crds ...string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, crd := range crds {
		d.subscribers[crd] = append(d.subscribers[crd], changed)
	}
}

// AddTo registers the controller that follows the CRDs and notifies the subscribers. The
// manager's cache must hold the metadata of CustomResourceDefinitions.
func (d *Definitions) AddTo(mgr manager.Manager, controller string) error {
	crd := func(_ context.Context, obj client.Object) []reconcile.Request {
		d.note(obj)
		return []reconcile.Request{{NamespacedName: types.NamespacedName{Name: obj.GetName()}}}
	}
	known := predicate.NewPredicateFuncs(func(obj client.Object) bool {
		d.mu.Lock()
		defer d.mu.Unlock()
		return d.known[obj.GetName()] != nil
	})
	cameOrWent := builder.WithPredicates(known, kube.OnChange(kube.Never))
	return builder.ControllerManagedBy(mgr).
		Named(controller).
		WatchesMetadata(kube.Partial(kube.CRDKind), handler.EnqueueRequestsFromMapFunc(crd), cameOrWent).
		WatchesRawSource(&d.trigger).
		Complete(reconcile.Func(func(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
			again, announce, err := d.Refresh(ctx, mgr.GetCache(), req.Name)
			if announce {
				d.announce(ctx, req.Name)
			}
			return reconcile.Result{RequeueAfter: again}, err
		}))
}

func (d *Definitions) announce(ctx context.Context, crd string) {
	d.mu.Lock()
	subscribers := d.subscribers[crd]
	d.mu.Unlock()
	for _, changed := range subscribers {
		changed(ctx)
	}
}

// note records a recreated CRD as early as possible: the informer must reach the resource
// version that the CRD has now.
func (d *Definitions) note(crd client.Object) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if def, ok := d.known[crd.GetName()]; ok && crd.GetUID() != def.uid && crd.GetUID() != def.next {
		def.next, def.least = crd.GetUID(), crd.GetResourceVersion()
	}
}

// Refresh checks one CRD. It returns how soon to check again, if no event of the CRD will
// trigger that, and whether the kind's state has changed since it was last announced.
func (d *Definitions) Refresh(
	ctx context.Context, crds client.Reader, name string,
) (again time.Duration, announce bool, err error) {
	cached, err := readCRD(ctx, crds, name)
	if err != nil {
		return 0, false, err
	}
	if cached != nil {
		d.note(cached)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	def, ok := d.known[name]
	if !ok {
		return 0, false, nil
	}
	if cached != nil && cached.DeletionTimestamp == nil && cached.UID != def.uid {
		if !def.hasReached(def.least) { // by a list, or by a watch that outlived the old CRD
			again = relistRecheck
		} else {
			now := d.clock.Now()
			def.uid, def.announced = cached.UID, Unserved // as it was since the CRD was noted
			def.await(now)
			d.added(now) // other kinds may be restored after this one
		}
	}
	state := d.stateOf(def, cached)
	switch {
	case state == Restoring:
		again = d.left(def)
	case state == Unserved && !def.OwnWork:
		// Objects that are restored after this kind cannot exist yet.
		d.added(d.clock.Now())
		again = cmp.Or(again, RestoreTime/2)
	}
	announce = state != def.announced
	def.announced = state
	return again, announce, nil
}

// hasReached reports whether the informer's objects have caught up with a resource version. These count the
// writes of all kinds together. The informer's own version (LastSyncResourceVersion) may be ahead of its store:
// it includes events that still wait in the queue.
func (f *definition) hasReached(version string) bool {
	objects, _ := f.Informer.(informer)
	reached := objects.GetStore().LastStoreSyncResourceVersion()
	return reached == version || kube.IsNewer(reached, version)
}

// LastAdded returns when an object of a followed kind was last added; zero if none was.
func (d *Definitions) LastAdded() time.Time {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.newest
}

// added requires the lock.
func (d *Definitions) added(at time.Time) {
	if at.After(d.newest) {
		d.newest = at
	}
}

// onAddition records when an informer's objects were added: existing ones when they were created,
// later ones when they arrive.
func (d *Definitions) onAddition(before, after client.Object, initial bool) {
	if before != nil {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	at := d.clock.Now()
	if initial {
		at = after.GetCreationTimestamp().Time
	}
	d.added(at)
}
