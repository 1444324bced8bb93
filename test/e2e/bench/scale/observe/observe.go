// Package observe records when the effects of a benchmark become visible to a consumer. One
// informer follows all objects of a kind, so that waiting for an effect sends no requests.
package observe

import (
	"context"
	"fmt"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/cache"

	"open-cluster-management.io/cluster-inventory-addon/test/e2e/bench/stats"
)

// Key is one object.
type Key struct{ Namespace, Name string }

// Incomplete is the serial of an object that lacks a part of what it should have.
const Incomplete = -1

// Read returns what an object shows: a serial number that grows with each edit, or
// Incomplete; false for an object that does not concern the benchmark.
type Read func(object any) (Key, int, bool)

// Board holds what is visible now, and the waits.
type Board struct {
	now func() time.Time

	mu      sync.Mutex
	shown   map[Key]int
	waits   map[*Wait]bool
	edits   map[Key][]edit
	latency stats.Sample
}

// NewBoard returns an empty board.
func NewBoard() *Board {
	return &Board{now: time.Now, shown: map[Key]int{}, waits: map[*Wait]bool{}, edits: map[Key][]edit{}}
}

type edit struct {
	serial int
	at     time.Time
}

// Follow records what a source of objects of one kind shows, from now until ctx ends. A
// watch that ends is resumed, and what it missed is listed. Follow returns when the first
// list is recorded.
func (b *Board) Follow(ctx context.Context, source cache.ListerWatcher, kind runtime.Object, read Read) error {
	informer := cache.NewSharedIndexInformer(source, kind, 0, nil)
	saw := func(object any) {
		if key, serial, concerns := read(object); concerns {
			b.Saw(key, serial)
		}
	}
	noted, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    saw,
		UpdateFunc: func(_, object any) { saw(object) },
		DeleteFunc: func(object any) {
			if last, unknown := object.(cache.DeletedFinalStateUnknown); unknown {
				object = last.Obj
			}
			if key, _, concerns := read(object); concerns {
				b.Gone(key)
			}
		},
	})
	if err != nil {
		return err
	}
	go informer.RunWithContext(ctx)
	if !cache.WaitForCacheSync(ctx.Done(), noted.HasSynced) {
		return ctx.Err()
	}
	return nil
}

// Saw records that an object exists and what it shows.
func (b *Board) Saw(key Key, serial int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	at := b.now()
	before, existed := b.shown[key]
	b.shown[key] = serial
	b.settleEdits(key, serial, at)
	for w := range b.waits {
		w.change(existed && w.counts(key, before), w.counts(key, serial))
	}
	b.tell(at)
}

// Gone records that an object was deleted.
func (b *Board) Gone(key Key) {
	b.mu.Lock()
	defer b.mu.Unlock()
	before, existed := b.shown[key]
	if !existed {
		return
	}
	delete(b.shown, key)
	for w := range b.waits {
		w.change(w.counts(key, before), false)
	}
	b.tell(b.now())
}

// tell ends the waits that are fulfilled.
func (b *Board) tell(at time.Time) {
	for w := range b.waits {
		if w.count == w.want {
			w.at = at
			close(w.over)
			delete(b.waits, w)
		}
	}
}

func (b *Board) settleEdits(key Key, serial int, at time.Time) {
	pending := b.edits[key]
	for len(pending) > 0 && pending[0].serial <= serial {
		b.latency = append(b.latency, at.Sub(pending[0].at))
		pending = pending[1:]
	}
	b.edits[key] = pending
}

// Editing records that an edit begins now after which the object shows this serial, or a
// greater one. Serials of one object must grow.
func (b *Board) Editing(key Key, serial int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.edits[key] = append(b.edits[key], edit{serial: serial, at: b.now()})
}

// Edits returns how long each edit since the last call took to become visible, and how many
// did not. It forgets all of them.
func (b *Board) Edits() (seen stats.Sample, lost int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	seen = b.latency
	for _, pending := range b.edits {
		lost += len(pending)
	}
	b.latency, b.edits = nil, map[Key][]edit{}
	return seen, lost
}

// PendingEdits returns how many edits are not visible yet.
func (b *Board) PendingEdits() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	pending := 0
	for _, edits := range b.edits {
		pending += len(edits)
	}
	return pending
}

// Count returns how many objects count now.
func (b *Board) Count(counts func(Key, int) bool) int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.count(counts)
}

func (b *Board) count(counts func(Key, int) bool) int {
	n := 0
	for key, serial := range b.shown {
		if counts(key, serial) {
			n++
		}
	}
	return n
}

// Expect waits for the moment at which exactly that many objects count.
func (b *Board) Expect(want int, counts func(Key, int) bool) *Wait {
	b.mu.Lock()
	defer b.mu.Unlock()
	w := &Wait{board: b, want: want, counts: counts, count: b.count(counts), over: make(chan struct{})}
	b.waits[w] = true
	b.tell(b.now())
	return w
}

// Wait waits for one moment.
type Wait struct {
	board  *Board
	want   int
	counts func(Key, int) bool
	count  int
	at     time.Time
	over   chan struct{}
}

func (w *Wait) change(before, after bool) {
	switch {
	case before && !after:
		w.count--
	case !before && after:
		w.count++
	}
}

// Until returns the moment, or an error with the number of objects that counted when ctx
// ended.
func (w *Wait) Until(ctx context.Context) (time.Time, error) {
	select {
	case <-w.over:
	case <-ctx.Done():
	}
	w.board.mu.Lock()
	defer w.board.mu.Unlock()
	delete(w.board.waits, w)
	if !w.at.IsZero() {
		return w.at, nil
	}
	return time.Time{}, fmt.Errorf("%d of %d: %w", w.count, w.want, ctx.Err())
}
