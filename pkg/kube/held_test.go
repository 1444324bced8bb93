package kube

import (
	"testing"
	"time"
)

func TestAbsenceCountsOnceItHasLasted(t *testing.T) {
	const nothing = ""
	// step is what is found after that time, and what counts then.
	type step struct {
		after  time.Duration
		found  string
		counts string
		wait   time.Duration
	}
	tests := map[string][]step{
		"there, changed: followed at once": {
			{0, "a", "a", 0},
			{time.Second, "b", "b", 0},
		},
		"gone permanently: its last value counts for a while": {
			{0, "a", "a", 0},
			{time.Hour, nothing, "a", 10 * time.Second},
			{9 * time.Second, nothing, "a", time.Second},
			{time.Second, nothing, nothing, 0},
			{time.Hour, nothing, nothing, 0},
		},
		"replaced within a moment": {
			{0, "a", "a", 0},
			{time.Second, nothing, "a", 10 * time.Second},
			{300 * time.Millisecond, "b", "b", 0},
		},
		"deleted and created in turns: each absence starts over": {
			{0, "a", "a", 0},
			{0, nothing, "a", 10 * time.Second},
			{9 * time.Second, "a", "a", 0},
			{time.Second, nothing, "a", 10 * time.Second},
			{9 * time.Second, nothing, "a", time.Second},
		},
		"missing from the first: not known before it has lasted": {
			{0, nothing, nothing, 10 * time.Second},
			{10*time.Second - 1, nothing, nothing, 1},
			{1, nothing, nothing, 0},
		},
		"missing from the first, and there in time": {
			{0, nothing, nothing, 10 * time.Second},
			{time.Second, "a", "a", 0},
		},
		"back after its absence counted, gone again": {
			{0, "a", "a", 0},
			{0, nothing, "a", 10 * time.Second},
			{time.Minute, nothing, nothing, 0},
			{time.Minute, "a", "a", 0},
			{time.Minute, nothing, "a", 10 * time.Second},
		},
		"the clock was set back: never longer than a whole while": {
			{0, "a", "a", 0},
			{0, nothing, "a", 10 * time.Second},
			{-time.Hour, nothing, "a", 10 * time.Second},
		},
	}
	for name, steps := range tests {
		t.Run(name, func(t *testing.T) {
			h, now := Held[string]{}, time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
			for i, s := range steps {
				now = now.Add(s.after)
				if counts, wait := h.Settle(s.found, now); counts != s.counts || wait != s.wait {
					t.Errorf("step %d: %q counts, and waits %s; want %q and %s", i+1, counts, wait, s.counts, s.wait)
				}
			}
		})
	}
}

func TestUnknownIsNotAbsent(t *testing.T) {
	h, now := Held[string]{}, time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	h.Settle("a", now)
	h.Settle("", now)
	if got := h.Unknown(); got != "a" {
		t.Errorf("while unknown %q counts", got)
	}
	now = now.Add(time.Hour)
	if counts, wait := h.Settle("", now); counts != "a" || wait != AbsenceCounts {
		t.Errorf("found gone after that, %q counts for %s; want its absence to start over", counts, wait)
	}
	now = now.Add(AbsenceCounts)
	h.Settle("", now)
	h.Unknown()
	if counts, wait := h.Settle("", now); counts != "" || wait != 0 {
		t.Errorf("%q counts for %s although it was gone permanently before it was unknown", counts, wait)
	}
}
