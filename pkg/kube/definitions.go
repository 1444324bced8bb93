package kube

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

const (
	// RestoreTime is how long the objects of a CRD that was created anew may be
	// missing before that means anything: who restores a backup creates the CRD first.
	RestoreTime = time.Minute

	// relistRecheck is how soon to look again whether an informer has caught up with
	// a CRD that was created anew; no event tells.
	relistRecheck = time.Second

	// liveTimeout bounds the reading of one CRD.
	liveTimeout = 10 * time.Second
)

// Standing says what a cache of custom resources is worth.
type Standing int

const (
	// Unserved means that the kind is not served, or the cache has not caught up with a
	// CRD that was created anew. What the cache holds or lacks says nothing.
	Unserved Standing = iota

	// Restoring means that the CRD was deleted and created anew, so that what is missing
	// may be about to be restored. What is there counts.
	Restoring

	// Young means that the CRD is so new that the same may be true. It was new when this
	// process began, together with the others.
	Young

	// Served means that what the cache lacks does not exist.
	Served
)

// Source is a kind whose objects somebody takes for complete.
type Source struct {
	// CRD is the name of the kind's CustomResourceDefinition.
	CRD string

	// Informer holds the objects. It must be able to tell how far it has come, as
	// those of client-go are.
	Informer any

	// OwnWork is true when nobody but this process makes the objects: nothing needs to
	// be waited for after the CRD was created anew.
	OwnWork bool
}

// progress is the part of an informer that tells how far it has come.
type progress interface{ LastSyncResourceVersion() string }

// Definitions tells objects that vanished with their CustomResourceDefinition from
// objects that somebody deleted. The API server deletes the objects first and the CRD
// last, so watches see one deletion after the other, which look like anybody's; and
// who restores the objects must create another CRD before.
//
// Caches may be behind: a cached CRD may look healthy although its objects are being
// deleted. So Confirm reads it live, which is needed before something is done because
// an object is missing. It is safe for concurrent use.
type Definitions struct {
	live  client.Reader
	clock clock.PassiveClock

	mu    sync.Mutex
	known map[string]*definition // by the name of the CRD
}

// definition is what is known of one CRD.
type definition struct {
	Source

	// uid is that of the CRD which the informer has listed under; until is when
	// missing objects begin to mean something.
	uid      types.UID
	until    time.Time
	replaced bool // whether an earlier CRD is known of

	// next is a CRD created anew that the informer may not have listed under yet.
	// least is the resource version that tells.
	next  types.UID
	least string

	announced Standing // what was announced last

	reading liveRead
}

// NewDefinitions returns Definitions that know of no kind. live reads past every
// cache.
func NewDefinitions(live client.Reader, clock clock.PassiveClock) *Definitions {
	return &Definitions{live: live, clock: clock, known: map[string]*definition{}}
}

// Follow begins to follow kinds, whose informers must have synced. crds reads a cache
// of the metadata of CRDs.
//
// A CRD that is younger than RestoreTime may have been created anew before this
// process began. If another of the same call is older than it by more than that, it
// was. Otherwise this is a new hub, unless there is something that was made when the
// objects were there: fresh says that there is nothing.
func (d *Definitions) Follow(ctx context.Context, crds client.Reader, fresh bool, sources ...Source) error {
	cached := make([]*metav1.PartialObjectMetadata, len(sources))
	var oldest time.Time
	for i, source := range sources {
		var err error
		if cached[i], err = readCRD(ctx, crds, source.CRD); err != nil {
			return err
		}
		if cached[i] != nil && (oldest.IsZero() || cached[i].CreationTimestamp.Time.Before(oldest)) {
			oldest = cached[i].CreationTimestamp.Time
		}
		if _, ok := source.Informer.(progress); !ok {
			return fmt.Errorf("following %s: the informer cannot tell how far it has come", source.CRD)
		}
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	now := d.clock.Now()
	for i, source := range sources {
		def := &definition{Source: source}
		if crd := cached[i]; crd != nil {
			def.uid = crd.UID
			def.replaced = crd.CreationTimestamp.Sub(oldest) > RestoreTime
			if !source.OwnWork && (def.replaced || !fresh) {
				def.until = now.Add(min(crd.CreationTimestamp.Add(RestoreTime).Sub(now), RestoreTime))
			}
		}
		def.announced = def.standing(cached[i], now)
		d.known[source.CRD] = def
	}
	return nil
}

func readCRD(ctx context.Context, reader client.Reader, name string) (*metav1.PartialObjectMetadata, error) {
	return Get(ctx, reader, types.NamespacedName{Name: name}, Partial(CRDKind))
}

// Standing says what the cache of a kind is worth. crds reads a cache of the metadata
// of CRDs.
func (d *Definitions) Standing(ctx context.Context, crds client.Reader, name string) (Standing, error) {
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
	return def.standing(cached, d.clock.Now()), nil
}

func (f *definition) standing(cached *metav1.PartialObjectMetadata, now time.Time) Standing {
	switch {
	case cached == nil, cached.DeletionTimestamp != nil, cached.UID != f.uid:
		return Unserved
	case !now.Before(f.until):
		return Served
	case f.replaced:
		return Restoring
	default:
		return Young
	}
}

// Left returns how long it takes until what the caches of some kinds lack means
// something, provided that nothing happens until then.
func (d *Definitions) Left(names ...string) time.Duration {
	d.mu.Lock()
	defer d.mu.Unlock()
	var left time.Duration
	for _, name := range names {
		if def, ok := d.known[name]; ok {
			left = max(left, def.until.Sub(d.clock.Now()))
		}
	}
	return left
}

// Confirm returns the name of one of some CRDs that turns out, read live, to be going, gone
// or another than the cache knows: the absence of its objects means nothing. It
// returns "" if there is none. Callers share their requests.
func (d *Definitions) Confirm(ctx context.Context, names ...string) (doubtful string, err error) {
	type verdict struct {
		name      string
		confirmed bool
		err       error
	}
	verdicts := make(chan verdict, len(names))
	for _, name := range names {
		go func() {
			confirmed, err := d.confirm(ctx, name)
			verdicts <- verdict{name, confirmed, err}
		}()
	}
	for range names {
		v := <-verdicts
		if v.err != nil {
			return "", v.err
		}
		if !v.confirmed && (doubtful == "" || v.name < doubtful) {
			doubtful = v.name
		}
	}
	return doubtful, nil
}

func (d *Definitions) confirm(ctx context.Context, name string) (confirmed bool, err error) {
	d.mu.Lock()
	def, ok := d.known[name]
	d.mu.Unlock()
	if !ok {
		return false, nil
	}
	crd, err := def.reading.read(func() (*metav1.PartialObjectMetadata, error) {
		ctx, cancel := context.WithTimeout(ctx, liveTimeout)
		defer cancel()
		crd := Partial(CRDKind)
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
	return def.standing(crd, d.clock.Now()) == Served, nil
}

// liveRead shares the reads of one object among those who ask at the same time: each
// gets what a read that began after they asked has found.
type liveRead struct {
	mu    sync.Mutex
	asked int // how many have asked

	reading sync.Mutex // held while reading; guards what follows
	served  int        // how many had asked when the last read began
	found   *metav1.PartialObjectMetadata
	err     error
}

func (r *liveRead) read(
	get func() (*metav1.PartialObjectMetadata, error),
) (*metav1.PartialObjectMetadata, error) {
	r.mu.Lock()
	r.asked++
	turn := r.asked
	r.mu.Unlock()
	r.reading.Lock()
	defer r.reading.Unlock()
	if r.served < turn {
		r.mu.Lock()
		r.served = r.asked
		r.mu.Unlock()
		r.found, r.err = get()
	}
	return r.found, r.err
}

// AddTo registers the controller that follows the CRDs, after Follow. It calls
// changed whenever the standing of a kind has changed. The manager's cache must hold
// the metadata of CustomResourceDefinitions.
func (d *Definitions) AddTo(mgr manager.Manager, controller string, changed func(ctx context.Context)) error {
	crd := func(_ context.Context, obj client.Object) []reconcile.Request {
		d.note(obj)
		return []reconcile.Request{{NamespacedName: types.NamespacedName{Name: obj.GetName()}}}
	}
	d.mu.Lock()
	names := slices.Collect(maps.Keys(d.known))
	d.mu.Unlock()
	cameOrWent := builder.WithPredicates(Named(names...), OnChange(Never))
	return builder.ControllerManagedBy(mgr).
		Named(controller).
		WatchesMetadata(Partial(CRDKind), handler.EnqueueRequestsFromMapFunc(crd), cameOrWent).
		Complete(reconcile.Func(func(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
			again, announce, err := d.Refresh(ctx, mgr.GetCache(), req.Name)
			if announce {
				changed(ctx)
			}
			return reconcile.Result{RequeueAfter: again}, err
		}))
}

// note takes note of a CRD that was created anew, as early as possible: its resource
// version then is what the informer must reach.
func (d *Definitions) note(crd client.Object) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if def, ok := d.known[crd.GetName()]; ok && crd.GetUID() != def.uid && crd.GetUID() != def.next {
		def.next, def.least = crd.GetUID(), crd.GetResourceVersion()
	}
}

// Refresh looks at one CRD. It returns how soon to look again, if no event of the CRD
// will tell, and whether the kind's standing has changed since it was last announced.
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
	now := d.clock.Now()
	if cached != nil && cached.DeletionTimestamp == nil && cached.UID != def.uid {
		if !def.hasListed() {
			again = relistRecheck
		} else {
			def.uid, def.replaced, def.until = cached.UID, true, now
			if !def.OwnWork {
				def.until = now.Add(RestoreTime)
			}
		}
	}
	standing := def.standing(cached, now)
	if standing == Restoring || standing == Young {
		again = def.until.Sub(now)
	}
	announce = standing != def.announced
	def.announced = standing
	return again, announce, nil
}

// hasListed reports whether the informer has come as far as the CRD that was created
// anew: by a list, or by a watch that outlived the old CRD. Resource versions count
// the writes of all kinds together.
func (f *definition) hasListed() bool {
	informer, _ := f.Informer.(progress)
	reached := informer.LastSyncResourceVersion()
	return reached == f.least || IsNewer(reached, f.least)
}
