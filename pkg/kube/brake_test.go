package kube

import (
	"errors"
	"strconv"
	"testing"
	"time"
)

// contention is that between another client, which changes an object, and a controller that
// repairs it.
type contention struct {
	*testing.T
	brake   Brake[string]
	now     time.Time
	version int // 0: there is no object
	last    int
	writes  int
}

func newContention(t *testing.T) *contention {
	return &contention{T: t, now: time.Unix(1_000_000, 0), version: 1, last: 1}
}

func (f *contention) at() string {
	if f.version == 0 {
		return ""
	}
	return strconv.Itoa(f.version)
}

// foreign is a change by another client.
func (f *contention) foreign() { f.change() }

func (f *contention) change() {
	f.last++
	f.version = f.last
}

// own is an attempt to write. It returns how long to wait instead.
func (f *contention) own(what Write) time.Duration {
	f.Helper()
	var contested *ContestedError
	if err := f.brake.Check("object", what, f.at(), f.now); errors.As(err, &contested) {
		return contested.Wait
	}
	before := f.at()
	f.change()
	f.writes++
	f.brake.Wrote("object", what, before, f.at(), f.now)
	return 0
}

func TestBrake(t *testing.T) {
	for name, test := range map[string]struct {
		during func(f *contention)
		writes int
		wait   time.Duration // of one more repair
	}{
		"own writes are never bounded": {
			during: func(f *contention) {
				for range 1000 {
					f.own(Rewrite)
				}
			},
			writes: 1000,
		},
		"ten repairs are not either": {
			during: func(f *contention) {
				for range 10 {
					f.foreign()
					f.own(Rewrite)
				}
			},
			writes: 10, wait: 10 * time.Second,
		},
		"of a minute's changes, 50 in each second, ten are repaired at once and then one in ten seconds": {
			during: func(f *contention) {
				for range 60 * 50 {
					f.foreign()
					f.own(Rewrite)
					f.now = f.now.Add(20 * time.Millisecond)
				}
			},
			writes: 10 + 5,
		},
		"a late attempt counts": {
			during: func(f *contention) {
				for range 10 {
					f.foreign()
					f.brake.Lost("object", Rewrite, f.at(), f.now)
				}
			},
			wait: 10 * time.Second,
		},
		"a slow change is always repaired": {
			during: func(f *contention) {
				for range 100 {
					f.foreign()
					f.own(Rewrite)
					f.now = f.now.Add(RepairEvery)
				}
			},
			writes: 100,
		},
		"a removal has its own allowance": {
			during: func(f *contention) {
				for range 20 {
					f.foreign()
					f.own(Rewrite)
				}
				if wait := f.own(Remove); wait > 0 {
					f.Errorf("a removal waits for %s", wait)
				}
			},
			writes: 11, wait: 10 * time.Second,
		},
		"an object that another client deletes again and again": {
			during: func(f *contention) {
				for range 20 {
					f.version = 0
					f.own(Rewrite)
				}
			},
			writes: 10 + 1, // the first is no repair
			wait:   10 * time.Second,
		},
		"an object that this process deletes and creates": {
			during: func(f *contention) {
				for range 20 {
					f.own(Rewrite)
					f.brake.Wrote("object", Remove, f.at(), "", f.now)
					f.version = 0
				}
			},
			writes: 20,
		},
		"a webhook that changes each write": {
			during: func(f *contention) {
				for range 20 {
					if f.brake.Check("object", Rewrite, f.at(), f.now) == nil {
						before := f.at()
						f.change()
						f.writes++
						f.brake.Wrote("object", Rewrite, before, "", f.now)
					}
				}
			},
			writes: 10, wait: 10 * time.Second,
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := newContention(t)
			test.during(f)
			if f.writes != test.writes {
				t.Errorf("%d writes, want %d", f.writes, test.writes)
			}
			f.foreign()
			if wait := f.own(Rewrite); wait != test.wait {
				t.Errorf("one more repair waits for %s, want %s", wait, test.wait)
			}
		})
	}
}

func TestBrakeReportsContentionOnceUntilItEnds(t *testing.T) {
	f := newContention(t)
	for range RepairsAtOnce {
		f.foreign()
		f.own(Rewrite)
	}
	if left := f.brake.Contested("object", f.now); left != 0 {
		t.Errorf("contested for %s before anything had to wait", left)
	}
	f.foreign()
	for i := range 3 {
		var contested *ContestedError
		err := f.brake.Check("object", Rewrite, f.at(), f.now)
		if !errors.As(err, &contested) || contested.First != (i == 0) || contested.Error() == "" {
			t.Errorf("check %d: %+v", i, err)
		}
	}
	calm := f.brake.Contested("object", f.now)
	if calm != 50*time.Second {
		t.Errorf("contested for %s, want 50s", calm)
	}
	f.now = f.now.Add(RepairEvery)
	if wait := f.own(Rewrite); wait != 0 {
		t.Errorf("the last repair waits for %s", wait)
	}
	f.now = f.now.Add(f.brake.Contested("object", f.now))
	if left := f.brake.Contested("object", f.now); left != 0 {
		t.Errorf("contested for %s after the calm", left)
	}
}

func TestBrakeForgetsRestedStates(t *testing.T) {
	f := newContention(t)
	for i := range 1000 {
		f.brake.Wrote(strconv.Itoa(i), Rewrite, "", "1", f.now)
	}
	f.now = f.now.Add(2 * RepairsAtOnce * RepairEvery)
	f.own(Rewrite)
	if got := len(f.brake.states); got != 1 {
		t.Errorf("%d objects are remembered, want 1", got)
	}
}

// change tries, as a controller does, to write a change that needs some requests. It returns
// how long to wait instead.
func (f *contention) changes(requests int) time.Duration {
	f.Helper()
	var held *HeldBackError
	if err := f.brake.CheckBudget("object", f.at(), f.now); errors.As(err, &held) {
		if held.Every != f.brake.Every || held.Error() == "" {
			f.Errorf("held back with %+v", held)
		}
		return held.Wait
	}
	for range requests {
		f.own(Rewrite)
	}
	return 0
}

func TestABudgetForEachObject(t *testing.T) {
	const every = 5 * time.Second
	for name, test := range map[string]struct {
		during func(f *contention)
		writes int
		wait   time.Duration // of one more change
	}{
		"ten changes are written at once": {
			during: func(f *contention) {
				for range 10 {
					f.changes(1)
				}
			},
			writes: 10, wait: every,
		},
		"of a minute's changes, 50 in each second, ten are written at once and then one in each interval": {
			during: func(f *contention) {
				for range 60 * 50 {
					f.changes(1)
					f.now = f.now.Add(20 * time.Millisecond)
				}
			},
			writes: 10 + 11,
		},
		"a change of two requests takes two turns, but is not cut in two": {
			during: func(f *contention) {
				for range 60 * 50 {
					f.changes(2)
					f.now = f.now.Add(20 * time.Millisecond)
				}
			},
			writes: 10 + 12, wait: every,
		},
		"a slow change is always written": {
			during: func(f *contention) {
				for range 100 {
					f.changes(1)
					f.now = f.now.Add(every)
				}
			},
			writes: 100,
		},
		"an urgent change neither waits nor counts": {
			during: func(f *contention) {
				for range 100 {
					f.own(Urgent)
				}
			},
			writes: 100,
		},
		"nor does a removal, though the next creation counts": {
			during: func(f *contention) {
				for range 5 {
					f.changes(1)
					f.brake.Wrote("object", Remove, f.at(), "", f.now)
					f.version = 0
				}
			},
			writes: 5,
		},
		"nor does a repair, which has its own allowance": {
			during: func(f *contention) {
				for range 10 {
					f.changes(1)
				}
				for range 9 {
					f.foreign()
					if wait := f.changes(1); wait > 0 {
						f.Errorf("a repair waits for %s", wait)
					}
				}
			},
			writes: 10 + 9, wait: every,
		},
		"no long wait after the clock was set back": {
			during: func(f *contention) {
				for range 10 {
					f.changes(1)
				}
				f.now = f.now.Add(-time.Hour)
			},
			writes: 10, wait: 2 * every,
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := newContention(t)
			f.brake.Every = every
			f.brake.Wrote("object", Urgent, "", f.at(), f.now) // what follows is no repair
			test.during(f)
			if f.writes != test.writes {
				t.Errorf("%d writes, want %d", f.writes, test.writes)
			}
			if wait := f.changes(1); wait != test.wait {
				t.Errorf("one more change waits for %s, want %s", wait, test.wait)
			}
		})
	}
}

// While changes come too often, they are held back, which is over soon after. What came all at
// once is never held back for longer than the budget takes.
func TestHowLongAnObjectIsHeldBack(t *testing.T) {
	for name, every := range map[string]time.Duration{"1s": time.Second, "30s": 30 * time.Second} {
		t.Run(name, func(t *testing.T) {
			f := newContention(t)
			f.brake.Every = every
			f.brake.Wrote("object", Urgent, "", f.at(), f.now)
			for range 30 {
				f.changes(1)
			}
			f.now = f.now.Add(every)
			if wait := f.changes(1); wait != 0 {
				t.Fatalf("the last value waits for %s more", wait)
			}
			if lasted, again := f.brake.HeldBack("object", f.now); lasted > every || again <= 0 {
				t.Errorf("a burst is held back for %s, to be looked at after %s", lasted, again)
			}
			f.now = f.now.Add(3 * every)
			if lasted, again := f.brake.HeldBack("object", f.now); lasted != 0 || again != 0 {
				t.Errorf("long after a burst: %s, %s", lasted, again)
			}
			for range 2 * 60 * 10 { // two minutes
				f.changes(1)
				f.now = f.now.Add(100 * time.Millisecond)
			}
			lasted, again := f.brake.HeldBack("object", f.now)
			if lasted <= 90*time.Second || lasted > 2*time.Minute {
				t.Errorf("two minutes of changes were held back for %s", lasted)
			}
			f.now = f.now.Add(again)
			if lasted, again = f.brake.HeldBack("object", f.now); lasted != 0 || again != 0 {
				t.Errorf("when it is over: %s, %s", lasted, again)
			}
		})
	}
}

// Ten thousand clusters in ten namespaces change now and then.
func TestABrakeForgetsObjectsWithFullBudgets(t *testing.T) {
	f := newContention(t)
	f.brake.Every = 30 * time.Second
	for i := range 100_000 {
		f.brake.Wrote(strconv.Itoa(i), Rewrite, "", "1", f.now)
	}
	f.now = f.now.Add(f.brake.Every / 2)
	f.own(Rewrite)
	f.now = f.now.Add(2 * RepairsAtOnce * RepairEvery)
	f.own(Rewrite)
	if got := len(f.brake.states); got != 1 {
		t.Errorf("%d objects are remembered, want 1", got)
	}
}
