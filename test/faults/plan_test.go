package faults

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/utils/ptr"

	"open-cluster-management.io/cluster-inventory-addon/internal/apitest"
	"open-cluster-management.io/cluster-inventory-addon/test/faults/proxy"
)

// some are plans of two stories that have none of the longest faults nor of the manager's clock.
func some() []plan { return plansOfTwo("edit", "disable") }

// plansOfTwo are those of two stories with the same writes and events.
func plansOfTwo(one, other string) []plan {
	key := func(verb string, n int) proxy.Key {
		return proxy.Key{Verb: verb, Resource: profiles + "/status", Object: "team-a/c1", N: n}
	}
	ref := reference{
		writes: []proxy.Key{key("patch", 1), key("patch", 2)}, events: []proxy.Key{key("MODIFIED", 1), key("MODIFIED", 2)},
	}
	return slices.Concat(plansOf(story{name: one}, ref), plansOf(story{name: other}, ref))
}

// ofRuns are faults of which each story has one plan, but for the longest ones.
var ofRuns = slices.Concat(ofProcesses, ofTimestamps, proxy.OfStarts, proxy.OfNamespaces)

func TestEveryWriteAndEventHasItsPlans(t *testing.T) {
	each := 2*len(proxy.OfWrites) + 2*len(proxy.OfEvents) + len(proxy.OfWatches) + len(ofRuns)
	if all := some(); len(all) != 2*(each-len(longest)) {
		t.Errorf("%d plans, want %d", len(all), 2*(each-len(longest)))
	}
	all := plansOfTwo("unbind", "rotate")
	all = slices.DeleteFunc(all, func(p plan) bool { return slices.Contains(ofClocks, p.fault.Kind) })
	if len(all) != 2*each {
		t.Errorf("%d plans of stories with the longest faults, want %d", len(all), 2*each)
	}
	names := map[string]bool{}
	for _, p := range all {
		names[p.String()] = true
		parsed, err := parsePlan(stories, p.String())
		if err != nil || parsed != p {
			t.Errorf("%s is read as %s, %v", p, parsed, err)
		}
	}
	if len(names) != len(all) {
		t.Error("two plans have one name")
	}
}

func TestEveryWriteOfAComponentHasItsPlans(t *testing.T) {
	slice := proxy.Key{
		Verb: "patch", Resource: "placementdecisions.cluster.open-cluster-management.io/status",
		Object: "team-a/view-decision-2", N: 1,
	}
	created := proxy.Key{
		Verb: "create", Resource: "managedclusteraddons.addon.open-cluster-management.io",
		Object: "c1/cluster-inventory", N: 1,
	}
	for of, test := range map[*story]struct {
		writes map[string][]proxy.Key
		want   map[string]proxy.Key // by the prefix
	}{
		ptr.To(spread()): {
			writes: map[string][]proxy.Key{"placement": {slice}, "addon": {created}}, // which does not run
			want:   map[string]proxy.Key{"placement": slice},
		},
		ptr.To(install()): {
			writes: map[string][]proxy.Key{"placement": {slice}, "addon": {created}, "registration": nil},
			want:   map[string]proxy.Key{"placement": slice, "addon": created},
		},
	} {
		all := slices.DeleteFunc(plansOf(*of, reference{ofComponents: test.writes}), func(p plan) bool {
			return slices.Contains(withoutTarget, p.fault.Kind)
		})
		want := map[plan]proxy.Kind{}
		for prefix, key := range test.want {
			kinds := proxy.OfWrites
			if prefix == "addon" {
				kinds = []proxy.Kind{"kill-before", "kill-after", "hang", "500"}
			}
			for _, kind := range kinds {
				want[plan{story: of.name, fault: proxy.Fault{Kind: proxy.Kind(prefix) + ":" + kind, Key: key}}] = kind
			}
		}
		if len(all) != len(want) {
			t.Errorf("%s has %d plans, want %d", of.name, len(all), len(want))
		}
		for _, p := range all {
			prefix, itself := divided(p.fault)
			if itself != (proxy.Fault{Kind: want[p], Key: test.want[prefix]}) || prefix == "" {
				t.Errorf("%s is %v of %q", p, itself, prefix)
			}
			if parsed, err := parsePlan(stories, p.String()); err != nil || parsed != p {
				t.Errorf("%s is read as %s, %v", p, parsed, err)
			}
		}
	}
	ours := proxy.Fault{Kind: proxy.Hang, Key: slice}
	if prefix, itself := divided(ours); prefix != "" || itself != ours {
		t.Errorf("a fault of the manager's is %v of %q", itself, prefix)
	}
}

// Only small stories have plans of the kinds that apply to a whole run.
func TestStoriesOfManyClustersHaveFewerKindsOfPlans(t *testing.T) {
	lagging := func(s story) bool {
		return slices.ContainsFunc(plansOf(s, reference{}), func(p plan) bool { return p.fault.Kind == proxy.Lagging })
	}
	if lagging(spread()) || !lagging(install()) {
		t.Errorf("lagging: spread %t, install %t", lagging(spread()), lagging(install()))
	}
}

// Plans that need the same hub run one after the other, those of the addon manager after them, and those
// that take long at the end.
func TestPlansTakeTurns(t *testing.T) {
	got := map[string]int{}
	for _, text := range []string{
		"edit none", "install none", "rollback none", "install placement:409 patch x y 1", "install addon:500 patch x y 1",
		"rollback registration:500 patch x y 1", "spread none",
	} {
		p, err := parsePlan(stories, text)
		apitest.Must(t, err)
		s, _ := storyNamed(stories, p.story)
		got[text] = turnOf(s, p.fault)
	}
	want := map[string]int{
		"edit none": 0, "install none": 1, "rollback none": 1, "install placement:409 patch x y 1": 1,
		"install addon:500 patch x y 1": 2, "rollback registration:500 patch x y 1": 2, "spread none": 3,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestOtherPlansAreRefused(t *testing.T) {
	for _, text := range []string{
		"", "edit", "nothing none", "edit nothing", "edit none x", "edit 409", "edit 409 patch x y", "edit watch-closed",
		"edit watch-closed a b", "edit hub-restarted x", "spread placement:409", "spread placement:hub-restarted",
		"spread placement:event-delayed ADDED x y 1", "edit placement:409 patch x y 1", "spread addon:409 patch x y 1",
		"install addon:hub-restarted", "install :409 patch x y 1", "install addon:409 patch x y 1",
		"rollback registration:lost patch x y 1",
		"edit lagging x", "edit clock-ahead x", "edit timestamps-behind x", "edit lagging-60s x", "edit lagging-2s", "edit leader-paused-60s x", "edit leader-paused-3s",
		"edit slow-webhook-29s", "edit slow-webhook-29s x",
		"edit slow-webhook", "edit slow-webhook x", "edit unserved", "edit unserved a b", "edit new-version", "edit new-field a b",
	} {
		if p, err := parsePlan(stories, text); err == nil {
			t.Errorf("%q is read as %s", text, p)
		}
	}
}

func TestTheSeedDecides(t *testing.T) {
	all := some()
	one := choose(all, len(all), 1, 0)
	if diff := cmp.Diff(fmt.Sprint(one), fmt.Sprint(choose(all, len(all), 1, 0))); diff != "" {
		t.Error(diff)
	}
	if fmt.Sprint(one) == fmt.Sprint(choose(all, len(all), 2, 0)) {
		t.Error("two seeds choose alike")
	}
	names := func(few []story) (names []string) {
		for _, s := range few {
			names = append(names, s.name)
		}
		return names
	}
	few := names(chooseStories(stories, 40, 1))
	if diff := cmp.Diff(few, names(chooseStories(stories, 40, 1))); diff != "" || len(few) != 5 {
		t.Errorf("%d stories: %s", len(few), diff)
	}
	if slices.Equal(few, names(chooseStories(stories, 40, 2))) {
		t.Error("two seeds choose the same stories")
	}
	if got := chooseStories(stories, 1000, 1); len(got) != len(stories) {
		t.Errorf("%d plans have only %d stories", 1000, len(got))
	}
	// Plans that are chosen from one story after the other are of different kinds.
	const each = 4
	first, second := choose(all, each, 1, 0), choose(all, each, 1, each)
	for _, p := range second {
		if slices.ContainsFunc(first, func(other plan) bool { return other.fault.Kind == p.fault.Kind }) {
			t.Errorf("both have a plan of %s", p.fault.Kind)
		}
	}
	sorted := func(plans []plan) []string {
		var names []string
		for _, p := range plans {
			names = append(names, p.String())
		}
		slices.Sort(names)
		return names
	}
	if diff := cmp.Diff(sorted(all), sorted(one)); diff != "" {
		t.Error(diff)
	}
	// Few plans are of all kinds, but for those left out.
	kinds := map[proxy.Kind]bool{}
	want := slices.Concat(proxy.OfWrites, proxy.OfEvents, proxy.OfWatches, ofTimestamps,
		[]proxy.Kind{proxy.Lagging, proxy.Lagging1s, proxy.SlowWebhook})
	for _, p := range choose(all, len(want), 3, 0, ofProcesses...) {
		kinds[p.fault.Kind] = true
	}
	for _, kind := range want {
		if !kinds[kind] {
			t.Errorf("no plan of %s is chosen", kind)
		}
	}
	for _, kind := range ofProcesses {
		if kinds[kind] {
			t.Errorf("a plan of %s is chosen", kind)
		}
	}
}

func TestResultsOfAnInterruptedRunCount(t *testing.T) {
	path := filepath.Join(t.TempDir(), "of", "results.jsonl")
	open := func(writer, manager string) *results {
		t.Helper()
		r, err := openResults(path, writer, manager)
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	all := some()
	r := open("", "one")
	for i, v := range []verdict{passed, finding, notReached, broken} {
		texts := []string{ofState + ": it differs", ofOrder + ": one", ofOrder + ": two", "the manager logged: much"}
		if err := r.add(outcome{Plan: all[i].String(), Verdict: v, Findings: texts}); err != nil {
			t.Fatal(err)
		}
	}
	file, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := file.WriteString(`{"plan":"edit no`); err != nil { // the run was interrupted here
		t.Fatal(err)
	}
	if err := file.Close(); err != nil {
		t.Fatal(err)
	}
	r = open("", "one")
	for i, want := range []bool{true, true, true, false, false} {
		if got := r.done(all[i]); got != want {
			t.Errorf("plan %d is done: %t", i, got)
		}
	}
	var text bytes.Buffer
	r.summary(&text, all)
	for _, want := range []string{
		"| all | 4 | 1 | 1 | 1 | 1 | 0 |", "2 of ", "finding: PLAN='" + all[1].String(),
		"| end state | 1 |", "| order | 1 |", "| tokens | 0 |",
	} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("%q is not in\n%s", want, &text)
		}
	}
	if open("", "another").done(all[0]) {
		t.Error("results of another manager count")
	}
	if open("upstream", "one").done(all[0]) {
		t.Error("results of another writer count")
	}
}

func TestStoryWithoutReferenceIsAResult(t *testing.T) {
	r, err := openResults(filepath.Join(t.TempDir(), "results.jsonl"), upstreamName, "one")
	if err != nil {
		t.Fatal(err)
	}
	if err := r.add(outcome{Plan: "unbind none", Verdict: noReference, Findings: []string{"why"}}); err != nil {
		t.Fatal(err)
	}
	var text bytes.Buffer
	r.summary(&text, []plan{{story: "unbind", fault: proxy.Fault{Kind: proxy.None}}})
	for _, want := range []string{
		"| all | 0 | 0 | 0 | 0 | 0 | 1 |", "0 of 1 plans", "no reference: WRITER=upstream PLAN='unbind none'\n  why",
	} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("%q is not in\n%s", want, &text)
		}
	}
}

func TestRemainingTimeFollowsThePaceOfTheLastPlans(t *testing.T) {
	ended := []time.Time{time.Now()}
	then := func(plans int, each time.Duration) {
		for range plans {
			ended = append(ended, ended[len(ended)-1].Add(each))
		}
	}
	then(2, 3*time.Minute)
	if got := remaining(ended, 200); got != 198*3*time.Minute {
		t.Errorf("after two slow plans: %s", got)
	}
	then(98, time.Second)
	if got := remaining(ended, 200); got != 100*time.Second {
		t.Errorf("after many fast ones: %s", got)
	}
}

// Lanes wait for the plans of stories whose references are not there yet, and begin with those that came last.
func TestPlansAreTakenAsSoonAsTheyAreReady(t *testing.T) {
	r := newReady(2)
	taken := make(chan plan)
	go func() {
		defer close(taken)
		for p, has := r.next(); has; p, has = r.next() {
			taken <- p
		}
	}()
	r.add([]plan{{story: "bind"}, {story: "edit"}})
	got := []string{(<-taken).story}
	r.add([]plan{{story: "move"}})
	for p := range taken {
		got = append(got, p.story)
	}
	slices.Sort(got[1:]) // the second was perhaps taken before the last came
	if diff := cmp.Diff([]string{"edit", "bind", "move"}, got); diff != "" {
		t.Error(diff)
	}
}
