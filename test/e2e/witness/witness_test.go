package witness

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// at returns a log whose clock advances by a second at each look.
func at() (*Log, time.Time) {
	l := NewLog()
	began := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	ticks := 0
	l.now = func() time.Time { ticks++; return began.Add(time.Duration(ticks) * time.Second) }
	return l, began
}

func names(absences []Absence) []string {
	found := []string{}
	for _, absence := range absences {
		found = append(found, absence.Name)
	}
	return found
}

func TestWhatIsAwayIsLogged(t *testing.T) {
	all := map[string]bool{"a": true, "b": true}
	tests := map[string]struct {
		happens func(*Log)
		away    []string
		present []string
	}{
		"it stays": {func(l *Log) { l.came("a", "1"); l.came("a", "1") }, []string{}, []string{"a"}},
		"it goes and comes": {
			func(l *Log) { l.came("a", "1"); l.went("a"); l.came("a", "2") }, []string{"a"}, []string{"a"},
		},
		"it is replaced between two looks": {
			func(l *Log) { l.came("a", "1"); l.came("a", "2") }, []string{"a"}, []string{"a"},
		},
		"it is deleted twice: by its time of deletion and at last": {
			func(l *Log) { l.came("a", "1"); l.went("a"); l.went("a") }, []string{"a"}, []string{},
		},
		"it was never there":              {func(l *Log) { l.went("a") }, []string{}, []string{}},
		"another one, which nobody named": {func(l *Log) { l.came("c", "1"); l.went("c") }, []string{}, []string{}},
		"two of them": {
			func(l *Log) { l.came("b", "1"); l.came("a", "1"); l.went("b"); l.went("a"); l.came("a", "1") },
			[]string{"b", "a"}, []string{"a"},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			l, began := at()
			test.happens(l)
			if diff := cmp.Diff(test.away, names(l.Since(began, all))); diff != "" {
				t.Errorf("away (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(test.present, l.Present()); diff != "" {
				t.Errorf("present (-want +got):\n%s", diff)
			}
		})
	}
}

func TestAnAbsenceLastsUntilTheThingIsBack(t *testing.T) {
	l, began := at()
	l.came("a", "1") // two looks at the clock
	l.went("a")
	l.came("a", "2")
	found := l.Since(began, map[string]bool{"a": true})
	if len(found) != 1 || found[0].Until.IsZero() || found[0].Lasted(began) <= 0 {
		t.Fatalf("got %+v", found)
	}
	if later := l.Since(found[0].From, map[string]bool{"a": true}); len(later) > 0 {
		t.Errorf("an earlier absence is found: %+v", later)
	}
}

func TestAwayBeforeATime(t *testing.T) {
	l, began := at()
	l.came("a", "1") // at 1 s and 2 s
	l.went("a")      // at 3 s and 4 s
	l.came("a", "1") // at 5 s, 6 s and 7 s
	l.went("a")      // at 8 s and 9 s
	l.went("b")
	for second, want := range map[int]int{3: 0, 4: 0, 5: 1, 7: 1, 10: 1, 11: 2, 30: 21} {
		if got := l.AwayBefore("a", began.Add(time.Duration(second)*time.Second)); got != time.Duration(want)*time.Second {
			t.Errorf("before second %d: away for %s, want %d s", second, got, want)
		}
	}
	if got := l.AwayBefore("b", began.Add(time.Minute)); got != 0 {
		t.Errorf("what was never there was away for %s", got)
	}
}

func TestExactlyNamesWhatIsMissingAndWhatIsTooMuch(t *testing.T) {
	l, _ := at()
	l.came("a", "1")
	l.came("b", "1")
	if err := l.Exactly(map[string]bool{"a": true, "b": true}); err != nil {
		t.Error(err)
	}
	const want = "1 are missing ([c]), 1 too many ([b])"
	if err := l.Exactly(map[string]bool{"a": true, "c": true}); err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}
