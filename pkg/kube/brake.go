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

	// RepairEvery is how often it is repaired after that.
	RepairEvery = 10 * time.Second
)

// NotAsMeant is the version of an object that differs from what a write was meant to make
// it: the next write counts as a repair, too.
const NotAsMeant = "not as meant"

// Repair is what a controller does to an object that another client has changed.
type Repair int

const (
	// Rewrite writes the object's content again, or recreates the object.
	Rewrite Repair = iota
	// Remove deletes it. Each of the two has an allowance of its own, so that a fight over
	// an object's content does not delay its removal.
	Remove

	repairs
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

// Brake limits how often each object is repaired after another client has changed it: the
// first RepairsAtOnce repairs happen at once, later ones every RepairEvery. So two writers
// that disagree do not keep the API server, and every watcher of the object, busy. It never
// limits writes that no other client interferes with. The zero value is ready to use and
// safe for concurrent use.
//
// A change counts as another client's unless the object is at the version that the
// controller's own last write left; a missing object has the version "". A version may be
// the resourceVersion or, where others own parts of the object, anything that identifies
// the controller's part.
type Brake[K comparable] struct {
	mu     sync.Mutex
	states map[K]*brakeState
	swept  time.Time
}

type brakeState struct {
	own       string             // the version that this process wrote last; "" once it has deleted the object
	rested    [repairs]time.Time // when RepairsAtOnce are allowed again
	contested bool               // a repair had to wait, and the object has not rested since
}

// Check returns a *ContestedError while an object at a version must stay as it is.
func (b *Brake[K]) Check(key K, what Repair, version string, now time.Time) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	s := b.states[key]
	if s == nil || s.own == version {
		return nil
	}
	wait := s.left(what, now) - (RepairsAtOnce-1)*RepairEvery
	if wait <= 0 {
		return nil
	}
	first := !s.contested
	s.contested = true
	return &ContestedError{Wait: wait, First: first}
}

// Wrote records a write of this process that brought an object from one version to another:
// "" if the object is gone, and NotAsMeant if the result differs from what was meant.
func (b *Brake[K]) Wrote(key K, what Repair, before, after string, now time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	s := b.state(key, now)
	s.count(what, before, now)
	s.own = after
}

// Lost records a write that the API server refused because another client had changed the
// object once more.
func (b *Brake[K]) Lost(key K, what Repair, before string, now time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.state(key, now).count(what, before, now)
}

// Contested returns how much longer an object counts as contested if nobody changes it from
// now on. Zero means that it is not contested: no repair ever had to wait, or the object
// has been left alone for long enough.
func (b *Brake[K]) Contested(key K, now time.Time) time.Duration {
	b.mu.Lock()
	defer b.mu.Unlock()
	s := b.states[key]
	if s == nil || !s.contested {
		return 0
	}
	left := max(s.left(Rewrite, now), s.left(Remove, now)) - RepairsAtOnce/2*RepairEvery
	s.contested = left > 0
	return max(left, 0)
}

// left returns the time until RepairsAtOnce are allowed again.
func (s *brakeState) left(what Repair, now time.Time) time.Duration {
	if !s.rested[what].After(now) {
		return 0 // holds for the zero time, too
	}
	if most := now.Add(RepairsAtOnce * RepairEvery); s.rested[what].After(most) {
		s.rested[what] = most // the clock was set back
	}
	return s.rested[what].Sub(now)
}

// count counts a write to an object, unless the object is at the controller's own version.
func (s *brakeState) count(what Repair, version string, now time.Time) {
	if s.own == version {
		return
	}
	if s.rested[what].Before(now) {
		s.rested[what] = now
	}
	s.rested[what] = s.rested[what].Add(RepairEvery)
}

// state returns the state of an object. It requires the lock. States that have rested are
// dropped from time to time: forgetting an own version costs at most one repair.
func (b *Brake[K]) state(key K, now time.Time) *brakeState {
	if b.swept.IsZero() || now.Sub(b.swept) > RepairsAtOnce*RepairEvery {
		for each, s := range b.states {
			if s.left(Rewrite, now) == 0 && s.left(Remove, now) == 0 {
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
