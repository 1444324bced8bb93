package access

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// addons is a history of one hub's addons of cluster-proxy.
type addons struct {
	*testing.T
	*proxied
	now time.Time
}

func newAddons(t *testing.T) *addons {
	return &addons{T: t, proxied: newProxied(), now: time.Unix(1_000_000, 0)}
}

// says compares what a cluster counts as: "has", "has not" or "unknown".
func (a *addons) says(cluster, want string) {
	a.Helper()
	has, known := a.of(cluster, false)
	got := "unknown"
	if known {
		got = map[bool]string{true: "has", false: "has not"}[has]
	}
	if got != want {
		a.Errorf("%s: %s it, want %s", cluster, got, want)
	}
}

// later lets time pass and compares which clusters are without the addon from then on, and
// how long it waits for more.
func (a *addons) later(pass, wait time.Duration, without ...string) {
	a.Helper()
	a.now = a.now.Add(pass)
	got, left := a.settle(true, a.now)
	slices.Sort(got)
	if diff := cmp.Diff(without, got); diff != "" {
		a.Errorf("without it from now on (-want +got):\n%s", diff)
	}
	if left != wait {
		a.Errorf("waits %s, want %s", left, wait)
	}
}

func TestClusterLacksTheAddonOnceAbsenceLasted(t *testing.T) {
	a := newAddons(t)
	a.came("c1", "c2")
	a.later(0, 10*time.Second)
	a.later(10*time.Second, 0)
	a.says("c1", "has")
	if !a.went("c1", a.now) {
		t.Error("no wait for the first absence")
	}
	a.later(0, 10*time.Second)
	a.now = a.now.Add(4 * time.Second)
	if a.went("c2", a.now) {
		t.Error("the second absence is timed with the first")
	}
	a.later(0, 6*time.Second)
	a.says("c1", "has")
	a.later(6*time.Second, 4*time.Second, "c1")
	a.says("c1", "has not")
	a.says("c2", "has")
	a.later(4*time.Second, 0, "c2")
	if len(a.has)+a.lost.Len()+len(a.requested) > 0 {
		t.Errorf("something is remembered of clusters without the addon: %v %v %v", a.has, a.lost.Keys(), a.requested)
	}
}

func TestReplacedAddonIsNotAnnounced(t *testing.T) {
	a := newAddons(t)
	if !a.came("c1") {
		t.Error("the first addon is no news")
	}
	a.later(0, 10*time.Second)
	a.later(10*time.Second, 0)
	for range 3 { // each absence starts over
		a.went("c1", a.now)
		a.later(9*time.Second, time.Second)
		a.says("c1", "has")
		if a.came("c1") {
			t.Error("that the addon is back is news")
		}
		a.later(time.Second, 0)
	}
	a.went("c1", a.now)
	a.later(10*time.Second, 0, "c1")
	if !a.came("c1") {
		t.Error("that the addon is back after its absence counted is no news")
	}
}

func TestCacheCountsBeforeItsEvent(t *testing.T) {
	a := newAddons(t)
	if has, known := a.of("c1", true); !has || !known {
		t.Error("a cluster has the addon in the cache, but does not count as having it")
	}
}

func TestClustersWithoutTheAddonAreUnknownAfterStart(t *testing.T) {
	a := newAddons(t)
	if without, wait := a.settle(false, a.now); len(without) > 0 || wait > 0 {
		t.Errorf("%v and %s although the addons are not known", without, wait)
	}
	a.says("early", "unknown")
	a.later(time.Hour, 10*time.Second)
	a.came("c1")
	for _, cluster := range []string{"c2", "c3"} {
		a.says(cluster, "unknown")
	}
	a.says("c1", "has")
	a.came("c3")
	a.later(9*time.Second, time.Second)
	a.later(time.Second, 0, "c2", "early")
	a.says("c2", "has not")
	a.says("never asked", "has not")
	if len(a.requested) > 0 {
		t.Errorf("clusters are remembered for having been asked about: %v", a.requested)
	}
}

// A whole fleet that loses cluster-proxy within seconds is processed in a few steps.
func TestManyAbsencesAreTimedTogether(t *testing.T) {
	a := newAddons(t)
	a.later(0, 10*time.Second)
	a.later(10*time.Second, 0)
	timed := 0
	for i := range 5000 {
		cluster := fmt.Sprintf("c%d", i)
		a.came(cluster)
		if a.went(cluster, a.now.Add(time.Duration(i)*time.Millisecond)) {
			timed++
		}
	}
	counted := 0
	for wait := time.Nanosecond; wait > 0; timed++ {
		var without []string
		a.now = a.now.Add(wait)
		without, wait = a.settle(true, a.now)
		counted += len(without)
	}
	if counted != 5000 || timed > 10 {
		t.Errorf("%d absences counted, looked at %d times", counted, timed)
	}
}
