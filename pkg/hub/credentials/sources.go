package credentials

import (
	"math/rand/v2"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

const (
	// checkEvery is about how often every source is read though its account says
	// nothing new: that finds one that was deleted or changed behind the account's
	// back. Each check is put off by up to half as much again, so that they spread.
	checkEvery = 4 * time.Minute

	// problemEvery is the same for a source that holds nothing to copy: somebody may
	// be mending it.
	problemEvery = 20 * time.Second

	// secondLook is when a token that was made just now is read once more: times in an
	// account's status have a resolution of a second, so two tokens made within one
	// are not told apart, and managed-serviceaccount's agent makes two when its cache
	// is behind.
	secondLook = 2 * time.Second

	// missingLook is when a source that is not there is looked for once more before
	// anything is taken back: its agent, which may be far away, makes a Secret that was
	// deleted anew. The token is as good as it was meanwhile.
	missingLook = 5 * time.Second

	// justNow is how long ago "just now" may be, by the spoke's clock.
	justNow = time.Minute

	// foreignEvery is how often it is looked whether a foreign Secret is still in
	// the way; it has none of the labels that are watched.
	foreignEvery = 20 * time.Second
)

// sources remembers of each account's token what was found when it was read last:
// a digest, never the token.
type sources struct {
	every time.Duration

	mu    sync.Mutex
	found map[types.NamespacedName]finding
}

// finding is what a read of a source found.
type finding struct {
	reference reference // by which it was read
	content   digest
	expires   time.Time
	problem   string    // why it cannot be copied, or ""
	missing   bool      // at the last look it was not there
	next      time.Time // when to look again
}

func newSources(every time.Duration) *sources {
	return &sources{every: every, found: map[types.NamespacedName]finding{}}
}

// current returns what was found by this reference, unless it is time to read
// again.
func (s *sources) current(account types.NamespacedName, ref reference, now time.Time) (finding, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f, ok := s.found[account]
	return f, ok && f.reference == ref && now.Before(f.next)
}

// record keeps a finding until the next check.
func (s *sources) record(account types.NamespacedName, f finding, now time.Time) finding {
	s.mu.Lock()
	defer s.mu.Unlock()
	every := s.every
	if f.problem != "" {
		every = min(every, problemEvery)
	}
	f.next = now.Add(every + rand.N(every/2)) //nolint:gosec // when to look is no secret
	before, known := s.found[account]
	switch first := !known || before.reference != f.reference; {
	case first && now.Sub(f.reference.refreshed).Abs() < justNow:
		f.next = now.Add(min(secondLook, every))
	case !first && now.Before(before.next) && before.next.Before(f.next):
		f.next = before.next // a read for another reason puts no look off
	}
	s.found[account] = f
	return f
}

// missing notes that a source is not there. What was found before by the same
// reference counts until it has been missing for a while.
func (s *sources) missing(account types.NamespacedName, f finding, now time.Time) finding {
	if before, ok := s.await(account, f.reference, now); ok {
		return before
	}
	return s.record(account, f, now)
}

// await returns what counts while a source that is missing may come back.
func (s *sources) await(account types.NamespacedName, ref reference, now time.Time) (finding, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	before, known := s.found[account]
	if !known || before.reference != ref || before.problem != "" {
		return finding{}, false
	}
	if !before.missing {
		before.missing, before.next = true, now.Add(missingLook)
		s.found[account] = before
	}
	return before, now.Before(before.next)
}

// forget drops an account of which nothing is to be copied.
func (s *sources) forget(account types.NamespacedName) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.found, account)
}
