package bench

import (
	"sync"
	"time"
)

// board is where the consumer notes what it sees.
type board struct {
	mu       sync.Mutex
	expected map[string]expectation
}

type expectation struct {
	value string
	seen  chan time.Time
}

func newBoard() *board { return &board{expected: map[string]expectation{}} }

// expect returns where the time will arrive at which the profile shows the value.
func (b *board) expect(profile, value string) <-chan time.Time {
	b.mu.Lock()
	defer b.mu.Unlock()
	seen := make(chan time.Time, 1)
	b.expected[profile] = expectation{value: value, seen: seen}
	return seen
}

// expectInstead changes the value that is waited for, if one is.
func (b *board) expectInstead(profile, value string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if e, ok := b.expected[profile]; ok {
		e.value = value
		b.expected[profile] = e
	}
}

// saw notes that the profile shows the value now.
func (b *board) saw(profile, value string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if e, ok := b.expected[profile]; ok && e.value == value {
		e.seen <- time.Now()
		delete(b.expected, profile)
	}
}
