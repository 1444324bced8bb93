package faults

import (
	"slices"
	"strings"
	"testing"
	"time"

	"open-cluster-management.io/cluster-inventory-addon/test/faults/proxy"
)

func TestOthersAreDoneBeforeSlowWrites(t *testing.T) {
	began := time.Now()
	write := func(object string, code int, done time.Duration) proxy.Write {
		return proxy.Write{
			Key: proxy.Key{Verb: "patch", Resource: secrets, Object: object, N: 1}, Code: code, At: began, Done: began.Add(done),
		}
	}
	slow := write("team-a/c1-reader", 200, proxy.SlowFor[proxy.SlowWebhook])
	waiting := []proxy.Write{
		slow, write("team-b/c1-reader", 200, time.Second), write("team-b/c2-reader", 200, 9*time.Second),
	}
	const waits = "patch secrets team-b/c2-reader 1 was complete only 1s after the slow write into team-a"
	second := write("team-a/c2-reader", 200, time.Minute)
	tests := map[string]struct {
		writes    []proxy.Write
		hasWaited bool
		want      string // part of the finding
	}{
		"the other one is not slow":                {writes: []proxy.Write{slow, write("team-b/c1-reader", 200, time.Second)}},
		"only slow ones":                           {writes: []proxy.Write{slow}},
		"only others":                              {writes: []proxy.Write{write("team-b/c1-reader", 200, time.Minute)}},
		"a cluster's namespace":                    {writes: []proxy.Write{slow, write("c1/cluster-inventory", 200, time.Minute)}},
		"it was refused":                           {writes: []proxy.Write{slow, write("team-b/c1-reader", 409, time.Minute)}},
		"the slow one was not stored":              {writes: []proxy.Write{write("team-a/c1-reader", 0, 0), write("team-b/c1-reader", 200, 1)}},
		"the other one waits":                      {writes: waiting, want: waits},
		"the other one waits for the first of two": {writes: slices.Concat(waiting, []proxy.Write{second}), want: waits},
		"the story waits for the first of two": {
			writes: slices.Concat(waiting, []proxy.Write{second}), hasWaited: true,
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			s, ref, got := good()
			got.waited = test.hasWaited
			got.slow, got.record.Writes, ref.sent = teamA, test.writes, len(test.writes)
			findings := check(s, ref, got)
			if test.want == "" && len(findings) > 0 || test.want != "" && len(findings) != 1 {
				t.Fatalf("got %q", findings)
			}
			if test.want != "" && !strings.HasPrefix(findings[0], ofOrder+": "+test.want) {
				t.Errorf("got %q, want %q", findings[0], test.want)
			}
		})
	}
}

func TestLateCopiesAreReportedOnce(t *testing.T) {
	began := time.Now()
	reports := func(times int, after time.Duration) proxy.Write {
		key := proxy.Key{Verb: "patch", Resource: addonStatus, Object: "c1/cluster-inventory", N: times}
		return proxy.Write{Key: key, At: began.Add(after), Code: 200}
	}
	for times, want := range map[int]bool{3: true, 4: false} { // the write of a run without a fault comes first
		s, ref, got := good()
		got.slow, got.began = teamA, began
		for i := range times {
			got.record.Writes = append(got.record.Writes, reports(i+1, heldBack))
		}
		if isGood := len(check(s, ref, got)) == 0; isGood != want {
			t.Errorf("%d reports are good: %t", times, isGood)
		}
		got.slow, got.api = "", profiles
		if isGood := len(check(s, ref, got)) == 0; isGood != want {
			t.Errorf("%d reports are good while profiles are not served: %t", times, isGood)
		}
		got.began = began.Add(time.Second)
		if len(check(s, ref, got)) == 0 {
			t.Errorf("%d reports are good at once", times)
		}
		got.began, got.api = began, ""
		if len(check(s, ref, got)) == 0 {
			t.Errorf("%d reports are good although nothing is slow", times)
		}
	}
}
