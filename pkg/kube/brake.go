package kube

import (
	"fmt"
	"sync"
	"time"
)

const (
	// RepairsAtOnce is how often an object that somebody else keeps changing is put right
	// without a pause.
	RepairsAtOnce = 10

	// RepairEvery is how often it is put right after that.
	RepairEvery = 10 * time.Second
)

// NotAsMeant is the version of an object that is not what a write was meant to make it: the
// next write counts as a repair, too.
const NotAsMeant = "not as meant"

// Repair is what a controller does about an object that somebody else has changed.
type Repair int

const (
	// Rewrite makes the object what it should be, or creates it again.
	Rewrite Repair = iota
	// Remove deletes it. Each of the two has an allowance of its own, so that a fight
	// about what an object contains does not delay its removal.
	Remove

	repairs
)

// ContestedError says that an object stays as it is for a while, because somebody else
// keeps changing it.
type ContestedError struct {
	// Wait is how long.
	Wait time.Duration

	// News is true for the first of several in a row.
	News bool
}

// Error implements error.
func (e *ContestedError) Error() string {
	return fmt.Sprintf("somebody else keeps changing it, so it is put right every %s at most", RepairEvery)
}

// Brake bounds how often each object is put right after somebody else has changed it: as
// often as that happens, but after RepairsAtOnce only every RepairEvery. So two writers
// that disagree do not keep the API server, and everybody who watches the object, busy.
// Writes of a controller that nobody interferes with are not bounded, however many there
// are. The zero value is ready, and it is safe for concurrent use.
//
// An object counts as changed by somebody else unless it is at the version that the
// controller's own last write left; a missing one has the version "". A version may be the
// resourceVersion or, where others write parts of the object that are their own, anything
// that identifies the controller's part of it.
type Brake[K comparable] struct {
	mu     sync.Mutex
	states map[K]*brakeState
	swept  time.Time
}

type brakeState struct {
	own       string             // the version that this process wrote last; "" once it has deleted the object
	rested    [repairs]time.Time // when RepairsAtOnce are allowed again
	contested bool               // a repair had to wait, and there was no calm since
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
	news := !s.contested
	s.contested = true
	return &ContestedError{Wait: wait, News: news}
}

// Wrote records a write of this process that brought an object from one version to
// another: "" if the object is gone, and NotAsMeant if it is not what it was meant to become.
func (b *Brake[K]) Wrote(key K, what Repair, before, after string, now time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	s := b.state(key, now)
	s.count(what, before, now)
	s.own = after
}

// Lost records a write that the API server refused, because somebody else had changed
// the object once more.
func (b *Brake[K]) Lost(key K, what Repair, before string, now time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.state(key, now).count(what, before, now)
}

// Contested returns how long an object will still count as one that somebody else keeps
// changing, if that stops now. Zero means that it does not: it never had to wait, or has
// been left alone since for long enough.
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

// left is how long it is until RepairsAtOnce are allowed again.
func (s *brakeState) left(what Repair, now time.Time) time.Duration {
	if !s.rested[what].After(now) {
		return 0 // also of the zero time
	}
	if most := now.Add(RepairsAtOnce * RepairEvery); s.rested[what].After(most) {
		s.rested[what] = most // the clock was put back
	}
	return s.rested[what].Sub(now)
}

// count counts a write of an object at a version, if that is not the own one.
func (s *brakeState) count(what Repair, version string, now time.Time) {
	if s.own == version {
		return
	}
	if s.rested[what].Before(now) {
		s.rested[what] = now
	}
	s.rested[what] = s.rested[what].Add(RepairEvery)
}

// state returns the state of an object. The lock is held. What has rested is forgotten
// from time to time: forgetting an own version costs one repair at most.
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
