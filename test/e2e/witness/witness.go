package witness

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Absence is the time for which one thing was away.
type Absence struct {
	Name string
	// From is when it was seen to go, and Until when it was seen again: zero while it is
	// away.
	From, Until time.Time
}

// Lasted is how long the thing was away, until now if it still is.
func (a Absence) Lasted(now time.Time) time.Duration {
	if a.Until.IsZero() {
		return now.Sub(a.From)
	}
	return a.Until.Sub(a.From)
}

// someNames is how many names an error lists.
const someNames = 3

type arrival struct {
	name string
	at   time.Time
}

// Log is what was seen of one kind of things, by name.
type Log struct {
	now func() time.Time

	mu       sync.Mutex
	present  map[string]types.UID
	away     map[string]int // the place in absences of what has not come back
	absences []Absence
	created  []arrival
	changed  time.Time
}

// NewLog returns an empty log.
func NewLog() *Log {
	return &Log{now: time.Now, present: map[string]types.UID{}, away: map[string]int{}}
}

// came records that the thing is there, as the object with that UID.
func (l *Log) came(name string, uid types.UID) {
	l.mu.Lock()
	defer l.mu.Unlock()
	before, was := l.present[name]
	if was && before == uid {
		return
	}
	if was {
		l.absences = append(l.absences, Absence{Name: name, From: l.now(), Until: l.now()})
	}
	if at, waited := l.away[name]; waited {
		l.absences[at].Until = l.now()
		delete(l.away, name)
	}
	l.present[name], l.changed = uid, l.now()
	l.created = append(l.created, arrival{name: name, at: l.now()})
}

// went records that the thing is no longer there.
func (l *Log) went(name string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if _, was := l.present[name]; !was {
		return
	}
	delete(l.present, name)
	l.away[name], l.changed = len(l.absences), l.now()
	l.absences = append(l.absences, Absence{Name: name, From: l.now()})
}

// Present returns the names of what is there, in order.
func (l *Log) Present() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	names := make([]string, 0, len(l.present))
	for name := range l.present {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// Exactly is an error that says what is there but should not be, and the reverse.
func (l *Log) Exactly(want map[string]bool) error {
	present := l.Present()
	var missing, more []string
	for name := range want {
		if _, found := slices.BinarySearch(present, name); !found {
			missing = append(missing, name)
		}
	}
	for _, name := range present {
		if !want[name] {
			more = append(more, name)
		}
	}
	if len(missing) == 0 && len(more) == 0 {
		return nil
	}
	slices.Sort(missing)
	some := func(names []string) []string { return names[:min(len(names), someNames)] }
	return fmt.Errorf("%d are missing (%v), %d too many (%v)", len(missing), some(missing), len(more), some(more))
}

// Changed is when something came or went last.
func (l *Log) Changed() time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.changed
}

// Since returns the absences of the named things that began after a time; nil names all.
func (l *Log) Since(after time.Time, names map[string]bool) []Absence {
	l.mu.Lock()
	defer l.mu.Unlock()
	var found []Absence
	for _, absence := range l.absences {
		if (names == nil || names[absence.Name]) && absence.From.After(after) {
			found = append(found, absence)
		}
	}
	return found
}

// AwayBefore is the longest time for which a thing had been away without a break before a time.
func (l *Log) AwayBefore(name string, before time.Time) time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	longest := time.Duration(0)
	for _, absence := range l.absences {
		if absence.Name != name {
			continue
		}
		until := before
		if !absence.Until.IsZero() && absence.Until.Before(before) {
			until = absence.Until
		}
		longest = max(longest, until.Sub(absence.From))
	}
	return longest
}

// CreatedSince returns the names of what came after a time, again for each time.
func (l *Log) CreatedSince(after time.Time) []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	var names []string
	for _, came := range l.created {
		if came.at.After(after) {
			names = append(names, came.name)
		}
	}
	return names
}

// Objects follows objects of a kind by their metadata, until ctx ends. The name of each is
// what name returns; false for one that does not concern. An object is away from the moment
// of its deletion, even while finalizers keep it. Objects returns when the first list is
// recorded.
func (l *Log) Objects(
	ctx context.Context, c client.WithWatch, kind schema.GroupVersionKind, namespace string,
	name func(*metav1.PartialObjectMetadata) (string, bool),
) error {
	list := func() client.ObjectList {
		objects := &metav1.PartialObjectMetadataList{}
		objects.APIVersion, objects.Kind = kind.GroupVersion().String(), kind.Kind+"List"
		return objects
	}
	object := &metav1.PartialObjectMetadata{}
	object.APIVersion, object.Kind = kind.GroupVersion().String(), kind.Kind
	return follow(ctx, c, list, object, namespace, func(object any, deleted bool) {
		seen, ok := object.(*metav1.PartialObjectMetadata)
		if !ok {
			return
		}
		named, concerns := name(seen)
		switch {
		case !concerns:
		case deleted || seen.DeletionTimestamp != nil:
			l.went(named)
		default:
			l.came(named, seen.UID)
		}
	})
}

// Entries follows the entries of lists that several objects of a kind hold together: an
// entry is away while none of them has it. read returns the entries of one object.
func (l *Log) Entries(
	ctx context.Context, c client.WithWatch, list func() client.ObjectList, object client.Object, namespace string,
	read func(object any) []string,
) error {
	held := map[types.NamespacedName][]string{}
	return follow(ctx, c, list, object, namespace, func(object any, deleted bool) {
		seen, ok := object.(client.Object)
		if !ok {
			return
		}
		key := client.ObjectKeyFromObject(seen)
		before := held[key]
		delete(held, key)
		if !deleted {
			held[key] = read(seen)
		}
		now := map[string]bool{}
		for _, entries := range held {
			for _, entry := range entries {
				now[entry] = true
			}
		}
		for _, entry := range before {
			if !now[entry] {
				l.went(entry)
			}
		}
		for _, entry := range held[key] {
			l.came(entry, "")
		}
	})
}

// follow calls saw with each object as it comes, changes and goes, never concurrently. A
// watch that ends is resumed.
func follow(
	ctx context.Context, c client.WithWatch, list func() client.ObjectList, object runtime.Object, namespace string,
	saw func(object any, deleted bool),
) error {
	source := &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			objects := list()
			return objects, c.List(ctx, objects, &client.ListOptions{Namespace: namespace, Raw: &options})
		},
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			return c.Watch(ctx, list(), &client.ListOptions{Namespace: namespace, Raw: &options})
		},
	}
	informer := cache.NewSharedIndexInformer(source, object, 0, nil)
	handled, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(object any) { saw(object, false) },
		UpdateFunc: func(_, object any) { saw(object, false) },
		DeleteFunc: func(object any) {
			if last, unknown := object.(cache.DeletedFinalStateUnknown); unknown {
				object = last.Obj
			}
			saw(object, true)
		},
	})
	if err != nil {
		return err
	}
	go informer.RunWithContext(ctx)
	if !cache.WaitForCacheSync(ctx.Done(), handled.HasSynced) {
		return ctx.Err()
	}
	return nil
}
