package kube

import (
	"testing"
	"time"
)

func TestLasting(t *testing.T) {
	var l Lasting[string]
	start := time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC)
	failed := func(key string, after time.Duration, want bool) {
		t.Helper()
		if got := l.Failed(key, start.Add(after)); got != want {
			t.Errorf("%s failed after %s: it has lasted is %t, want %t", key, after, got, want)
		}
	}
	failed("a", 0, false)
	failed("a", 29*time.Second, false)
	failed("b", 29*time.Second, false)
	failed("a", 30*time.Second, true)
	failed("b", 31*time.Second, false)
	l.Over("a")
	failed("a", 32*time.Second, false)
	failed("a", 62*time.Second, true)
	failed("a", 0, false) // the clock was put back
	failed("a", 30*time.Second, true)
	l.Over("a")
	l.Over("b")
	if len(l.since) > 0 {
		t.Errorf("remembered: %v", l.since)
	}
}
