package kube

import (
	"slices"
	"testing"
	"time"
)

func TestDebounce(t *testing.T) {
	var d Debounce[string]
	start := time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC)
	isSo := func(key string, after, want time.Duration) {
		t.Helper()
		now := start.Add(after)
		if got := d.Left(key, 30*time.Second, now); got != want || d.Lasted(key, 30*time.Second, now) != (want == 0) {
			t.Errorf("%s is so after %s: %s are left, want %s", key, after, got, want)
		}
	}
	isSo("a", 0, 30*time.Second)
	isSo("a", 29*time.Second, time.Second)
	isSo("b", 29*time.Second, 30*time.Second)
	isSo("a", 30*time.Second, 0)
	isSo("b", 31*time.Second, 28*time.Second)
	d.Over("a")
	if since, ok := d.Begun("a"); ok {
		t.Errorf("a has been so since %s, but it is over", since)
	}
	isSo("a", 32*time.Second, 30*time.Second)
	isSo("a", 62*time.Second, 0)
	if since, ok := d.Begun("a"); !ok || !since.Equal(start.Add(32*time.Second)) {
		t.Errorf("a has been so since %s, %t", since, ok)
	}
	isSo("a", 0, 30*time.Second) // the clock was set back
	isSo("a", 30*time.Second, 0)
	d.Over("a", "b", "c")
	if d.Len() > 0 {
		t.Errorf("remembered: %v", d.Keys())
	}
}

func TestDebounceForgets(t *testing.T) {
	var d Debounce[string]
	start := time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC)
	remembers := func(what string, want ...string) {
		t.Helper()
		if got := slices.Sorted(slices.Values(d.Keys())); !slices.Equal(got, want) {
			t.Errorf("%s: %v are remembered, want %v", what, got, want)
		}
	}
	for _, key := range []string{"a", "b", "c"} {
		d.Since(key, start)
	}
	d.Sweep(time.Minute, start.Add(time.Minute-1))
	remembers("no caller has asked for almost as long", "a", "b", "c")
	d.Since("b", start.Add(time.Minute))
	d.Begun("c") // does not count as asking
	d.Sweep(time.Minute, start.Add(time.Minute))
	remembers("a caller asked about one", "b")
	if since, _ := d.Begun("b"); !since.Equal(start) {
		t.Errorf("asking made it begin at %s", since)
	}
	d.Since("c", start)
	d.OverUnless(func(key string) bool { return key == "c" })
	remembers("it is over unless it is c", "c")
}
