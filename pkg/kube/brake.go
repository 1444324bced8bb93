package kube

import (
	"fmt"
	"sync"
	"time"
)

const (
	// RepairsAtOnce is how many times in a row an object that another client keeps changing
	// is repaired without a pause.
	RepairsAtOnce = 10

	// RepairEvery is how often an object that another client keeps changing is repaired after that.
	RepairEvery = 10 * time.Second

	// WritesAtOnce is how many times in a row an object with a budget is written without a
	// pause (the burst of KEP-4322).
	WritesAtOnce = 10
)

// heldPauses is after how many periods without a waiting change an object no longer counts as
// held back: while a cause changes too often, some change waits in almost every period.
const heldPauses = 3

// NotAsMeant is the version of an object that differs from what a write was meant to make
// it: the next write counts as a repair, too.
const NotAsMeant = "not as meant"

// Write is the kind of a write. An object has an allowance of repairs for its content and
// another one for its removal, so that contention over its content does not delay its
// removal.
type Write int

const (
	// Rewrite writes the object's content, or recreates the object.
	Rewrite Write = iota
	// Urgent writes content that does not wait for the object's budget. As a repair it
	// counts like Rewrite.
	Urgent
	// Remove deletes it, which does not wait for the budget either.
	Remove
)

// ContestedError says that an object stays as it is for a while, because another client
// keeps changing it.
type ContestedError struct {
	// Wait is how long.
	Wait time.Duration

	// First is true for the first of several in a row.
	First bool
}

// Error implements error.
func (e *ContestedError) Error() string {
	return fmt.Sprintf("another client keeps changing it, so it is repaired at most every %s", RepairEvery)
}

// HeldBackError says that a change waits, for instance because the object has used up its budget.
type HeldBackError struct {
	// Wait is how long.
	Wait time.Duration

	// Every is how often the object is written in the meantime.
	Every time.Duration
}

// Error implements error.
func (e *HeldBackError) Error() string {
	return fmt.Sprintf("it is written at most every %s, after %d writes in a row", e.Every, WritesAtOnce)
}

// Brake limits how often each object is written. The zero value limits repairs only; it is
// ready to use. A Brake is safe for concurrent use.
//
// A repair is a write after another client has changed the object: the first RepairsAtOnce
// happen at once, later ones every RepairEvery. So two writers that disagree do not keep the
// API server, and every watcher of the object, busy. Check and Contested are about repairs.
//
// With a budget (Every), every other Rewrite counts against that: the first WritesAtOnce
// happen at once, later ones every Every. So a cause that changes all the time does not keep
// the watchers busy. CheckBudget and HeldBack are about that.
//
// A change counts as another client's unless the object is at the version that the
// controller's own last write left; a missing object has the version "". A version may be
// the resourceVersion or, where others own parts of the object, anything that identifies
// the controller's part.
type Brake[K comparable] struct {
	// Every is how often an object is written once it was written WritesAtOnce times in a
	// row. Zero means that objects have no budget. It must not change after the first use.
	Every time.Duration

	mu     sync.Mutex
	states map[K]*brakeState
	swept  time.Time
}

type brakeState struct {
	own       string // the version that this process wrote last; "" once it has deleted the object
	content   bucket // repairs of the content
	removal   bucket // repeated removals
	writes    bucket // the budget
	contested bool   // a repair had to wait, and the object has not rested since

	// held is when the budget made a change wait for the first and for the last time, with
	// no long pause between.
	held struct{ first, last time.Time }
}

// Check returns a *ContestedError while an object at a version must stay as it is.
func (b *Brake[K]) Check(key K, what Write, version string, now time.Time) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	s := b.states[key]
	if s == nil || s.own == version {
		return nil
	}
	wait := s.repairs(what).wait(now, RepairsAtOnce, RepairEvery)
	if wait == 0 {
		return nil
	}
	first := !s.contested
	s.contested = true
	return &ContestedError{Wait: wait, First: first}
}

// Wrote records a write of this process that brought an object from one version to another:
// "" if the object is gone, and NotAsMeant if the result differs from what was meant.
func (b *Brake[K]) Wrote(key K, what Write, before, after string, now time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	s := b.state(key, now)
	isRepair := s.count(what, before, now)
	if what == Rewrite && !isRepair {
		s.writes.take(now, WritesAtOnce, b.Every)
	}
	s.own = after
}

// Lost records a write that the API server refused because another client had changed the
// object again. The budget is for writes that watchers see, so it is none of these.
func (b *Brake[K]) Lost(key K, what Write, before string, now time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.state(key, now).count(what, before, now)
}

// Contested returns how much longer an object counts as contested if no client changes it
// from now on. Zero means that it is not contested: no repair ever had to wait, or the object
// has been left alone for long enough.
func (b *Brake[K]) Contested(key K, now time.Time) time.Duration {
	b.mu.Lock()
	defer b.mu.Unlock()
	s := b.states[key]
	if s == nil || !s.contested {
		return 0
	}
	rest := max(s.content.left(now, RepairsAtOnce, RepairEvery), s.removal.left(now, RepairsAtOnce, RepairEvery))
	left := rest - RepairsAtOnce/2*RepairEvery
	s.contested = left > 0
	return max(left, 0)
}

// CheckBudget returns a *HeldBackError while a change of an object at a version must wait,
// unless it is a repair. Who makes a change in several requests asks once before the first,
// so that one kind of request cannot take every turn, and records each.
func (b *Brake[K]) CheckBudget(key K, version string, now time.Time) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	s := b.states[key]
	if s == nil || s.own != version {
		return nil
	}
	wait := s.writes.wait(now, WritesAtOnce, b.Every)
	if wait == 0 {
		return nil
	}
	if s.held.first.IsZero() || b.heldFor(s, now) == 0 {
		s.held.first = now
	}
	s.held.last = now
	return &HeldBackError{Wait: wait, Every: b.Every}
}

// HeldBack returns for how long changes of an object have had to wait for its budget, one
// after the other, and when to ask again even if nothing changes. Zero means that none has
// had to wait lately.
func (b *Brake[K]) HeldBack(key K, now time.Time) (lasted, again time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	s := b.states[key]
	if s == nil {
		return 0, 0
	}
	again = b.heldFor(s, now)
	if again == 0 {
		return 0, 0
	}
	return s.held.last.Sub(s.held.first), again
}

// heldFor returns how much longer an object counts as held back if no change has to wait
// from now on.
func (b *Brake[K]) heldFor(s *brakeState, now time.Time) time.Duration {
	if s.held.last.IsZero() || s.held.last.After(now) { // the clock was set back
		return 0
	}
	return max(0, s.held.last.Add(heldPauses*b.Every).Sub(now))
}

func (s *brakeState) repairs(what Write) *bucket {
	if what == Remove {
		return &s.removal
	}
	return &s.content
}

// count counts a write to an object as a repair, unless the object is at the controller's
// own version.
func (s *brakeState) count(what Write, version string, now time.Time) (isRepair bool) {
	if s.own == version {
		return false
	}
	s.repairs(what).take(now, RepairsAtOnce, RepairEvery)
	return true
}

// hasRested reports whether nothing limits the next writes.
func (s *brakeState) hasRested(now time.Time, every time.Duration) bool {
	return s.content.left(now, RepairsAtOnce, RepairEvery) == 0 && s.removal.left(now, RepairsAtOnce, RepairEvery) == 0 &&
		s.writes.left(now, WritesAtOnce, every) == 0
}

// state returns the state of an object. It requires the lock. States that have rested are
// dropped from time to time: forgetting an own version costs at most one repair.
func (b *Brake[K]) state(key K, now time.Time) *brakeState {
	if b.swept.IsZero() || now.Sub(b.swept) > RepairsAtOnce*RepairEvery {
		for each, s := range b.states {
			if s.hasRested(now, b.Every) {
				delete(b.states, each)
			}
		}
		b.swept = now
	}
	s := b.states[key]
	if s == nil {
		if b.states == nil {
			b.states = map[K]*brakeState{}
		}
		s = &brakeState{}
		b.states[key] = s
	}
	return s
}

// bucket is a token bucket of some tokens. Each takes a time to refill. It says when it is
// full again; the zero value is full. In contrast to a rate.Limiter it is exact, needs no
// lock and is as small as a time: there is one for each object.
type bucket struct{ full time.Time }

// left returns the time until the bucket is full.
func (b *bucket) left(now time.Time, tokens int, every time.Duration) time.Duration {
	if !b.full.After(now) {
		return 0 // holds for the zero time, too
	}
	// One token may be owed: see CheckBudget.
	if most := now.Add(time.Duration(tokens+1) * every); b.full.After(most) {
		b.full = most // the clock was set back, or more was owed
	}
	return b.full.Sub(now)
}

// wait returns the time until there is a token.
func (b *bucket) wait(now time.Time, tokens int, every time.Duration) time.Duration {
	return max(0, b.left(now, tokens, every)-time.Duration(tokens-1)*every)
}

// take takes a token, even if there is none.
func (b *bucket) take(now time.Time, tokens int, every time.Duration) {
	b.full = now.Add(b.left(now, tokens, every) + every)
}
