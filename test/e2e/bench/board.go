package bench

import (
	"sync"
	"time"
)

// board records what the consumer sees.
type board struct {
	mu       sync.Mutex
	expected map[string]expectation
}

type expectation struct {
	value string
	seen  chan time.Time
}

func newBoard() *board { return &board{expected: map[string]expectation{}} }

// expect returns a channel that receives the time at which the profile shows the value.
func (b *board) expect(profile, value string) <-chan time.Time {
	b.mu.Lock()
	defer b.mu.Unlock()
	seen := make(chan time.Time, 1)
	b.expected[profile] = expectation{value: value, seen: seen}
	return seen
}

// expectInstead replaces the expected value, if there is one.
func (b *board) expectInstead(profile, value string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if e, ok := b.expected[profile]; ok {
		e.value = value
		b.expected[profile] = e
	}
}

// saw records that the profile shows the value now.
func (b *board) saw(profile, value string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if e, ok := b.expected[profile]; ok && e.value == value {
		e.seen <- time.Now()
		delete(b.expected, profile)
	}
}
