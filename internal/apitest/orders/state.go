package orders

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// birth counts how often an object has been created.
type birth struct {
	kind Kind
	key  types.NamespacedName
}

// State is one state of the world. Its maps and slices are never changed, only replaced, so
// that copying the struct copies the state; only Memory must be copied deeply.
type State struct {
	hub, cached [kinds]store
	queue       [kinds][]event
	versions    [kinds]int // the last resource version of each kind
	births      map[birth]int

	// passed is how long the world has existed; ticks how often time has passed.
	passed time.Duration
	ticks  int

	done    uint64 // changes, by their bit
	crashes int    // how often the manager has crashed
	losses  int    // how many answers were lost

	pending map[types.NamespacedName]write // of profiles, by pair

	// Memory is what the manager remembers. It is copied before each step.
	Memory map[string]any

	// definitions are the CRDs that can be deleted, and exclusiveOnly is that of the rule. Both never change.
	definitions   []string
	exclusiveOnly bool

	// moving are the pairs whose cluster is in no slice because not all of these have been written.
	moving map[types.NamespacedName]bool

	// seen is what the truth has said about each pair since the caches last showed all of it.
	seen map[types.NamespacedName]sighting

	// Extra is the part of the state that another package adds. It is never changed, only
	// replaced.
	Extra any
}

// sighting is what the truth has said about a pair, and what the caches have shown.
type sighting struct {
	yes, no bool

	// stirred is the tick in which the caches last showed anything but a No.
	stirred int

	// narrowed is the tick in which a publishing Placement vanished from the caches.
	narrowed int
}

// Time returns the time of the world.
func (s *State) Time() time.Time { return noon.Add(s.passed) }

// Ticks returns how often time has passed.
func (s *State) Ticks() int { return s.ticks }

// copy returns a state with which a step may begin.
func (s *State) copy() *State {
	next := *s
	next.Memory = Clone(s.Memory)
	return &next
}

// deliver shows the manager's cache the next event of a kind, and returns what it showed before.
func (s *State) deliver(kind Kind) (next event, before client.Object) {
	next = s.queue[kind][0]
	if last := s.cached[kind][next.key]; last != nil {
		before = last.Object
	}
	s.queue[kind] = s.queue[kind][1:]
	s.cached[kind] = s.cached[kind].with(next.key, next.obj)
	return next, before
}

// isDelivered reports whether the caches show all that is on the hub.
func (s *State) isDelivered() bool {
	for kind := range kinds {
		if len(s.queue[kind]) > 0 {
			return false
		}
	}
	return true
}

// Delivering reports whether events of a kind are on their way.
func (s *State) Delivering(kind Kind) bool { return len(s.queue[kind]) > 0 }

func (s *State) isIdle() bool { return s.isDelivered() && len(s.pending) == 0 }

// update changes what is known about each pair.
func (s *State) update(change func(pair types.NamespacedName, now *sighting)) {
	next := maps.Clone(s.seen)
	for pair, now := range next {
		change(pair, &now)
		next[pair] = now
	}
	s.seen = next
}

// vanished records in which tick a publishing Placement has vanished from the caches.
func (s *State) vanished(namespace string, tick int) {
	s.update(func(pair types.NamespacedName, now *sighting) {
		if pair.Namespace == namespace {
			now.narrowed = tick
		}
	})
}

// relist makes the caches show what is on the hub.
func (s *State) relist() {
	for kind := range kinds {
		s.cached[kind], s.queue[kind] = s.hub[kind], nil
	}
}

// registered forgets what a cluster was entitled to that had the name before.
func (s *State) registered(cluster string) {
	s.update(func(pair types.NamespacedName, now *sighting) {
		now.yes = now.yes && pair.Name != cluster
	})
}

// witness records what the truth says about each pair.
func (s *State) witness() {
	if s.seen == nil {
		return // the world is being made
	}
	s.note(false)
}

// note records what truth and caches say. afresh forgets what the truth said before.
func (s *State) note(afresh bool) {
	s.update(func(pair types.NamespacedName, now *sighting) {
		if afresh {
			now.yes, now.no = false, false
		}
		switch s.truth(pair) {
		case yes:
			now.yes = true
		case no:
			now.no = true
		default:
			now.no = now.no || !s.moving[pair] && s.onHub().denies(pair)
		}
		if s.shown(pair) != no {
			now.stirred = s.ticks
		}
	})
}

// begin makes a state, of which everything on the hub has been delivered, the first.
func (s *State) begin(pairs []types.NamespacedName) {
	s.relist()
	for _, key := range s.hub[Definitions].keys() {
		s.definitions = append(s.definitions, key.Name)
	}
	s.seen = map[types.NamespacedName]sighting{}
	for _, pair := range pairs {
		s.seen[pair] = sighting{stirred: -1, narrowed: -1}
	}
	s.note(true)
}

// dump appends everything that distinguishes the state from others.
func (s *State) dump(to []byte) []byte {
	for kind := range kinds {
		for _, all := range []store{s.hub[kind], s.cached[kind]} {
			to = append(to, '|')
			for _, key := range all.keys() {
				to = fmt.Appendf(to, "%d,", all[key].id)
			}
		}
		for _, e := range s.queue[kind] {
			to = append(to, e.key.Namespace...)
			to = append(to, '/')
			to = append(to, e.key.Name...)
			if e.obj != nil {
				to = fmt.Appendf(to, "=%d;", e.obj.id)
			}
		}
		to = fmt.Appendf(to, "#%d", s.versions[kind])
	}
	to = fmt.Appendf(to, "t%d,%d,%d,%d,%d", s.passed, s.ticks, s.done, s.crashes, s.losses)
	to = Dump(to, s.births)
	to = Dump(to, s.pending)
	to = Dump(to, s.seen)
	to = Dump(to, s.moving)
	to = Dump(to, s.Memory)
	return Dump(to, s.Extra)
}

// Pairs returns the pairs that the world is about, sorted.
func (s *State) Pairs() []types.NamespacedName {
	return slices.SortedFunc(maps.Keys(s.seen), func(a, b types.NamespacedName) int {
		if a.String() < b.String() {
			return -1
		}
		return 1
	})
}

// Keys returns the keys of the hub's objects of a kind, sorted.
func (s *State) Keys(kind Kind) []types.NamespacedName { return s.hub[kind].keys() }

// Shown reports whether the caches entitle a pair, and whether they deny it.
func (s *State) Shown(pair types.NamespacedName) (isEntitled, isDenied bool) {
	shown := s.shown(pair)
	return shown == yes, shown == no
}

// Said reports whether the truth entitles a pair, and whether it denies it.
func (s *State) Said(pair types.NamespacedName) (isEntitled, isDenied bool) {
	truth := s.truth(pair)
	return truth == yes, truth == no
}
