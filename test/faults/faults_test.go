package faults

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"open-cluster-management.io/cluster-inventory-addon/internal/apitest"
	"open-cluster-management.io/cluster-inventory-addon/internal/apitest/hubtest"
	"open-cluster-management.io/cluster-inventory-addon/test/faults/proxy"
)

var (
	planFlag  = flag.String("plan", "", "TestRobust runs only this plan")
	storyFlag = flag.String("story", "", "TestRobust runs only plans of these stories, with commas between them")
	timeFlag  = flag.Duration("time", 0, "TestRobust begins no plan after this time; 0 skips it")
	fileFlag  = flag.String("results", "", "file of TestRobust's results, by which it resumes")
	seedFlag  = flag.Uint64("seed", 1, "what decides which plans run, and in which order")
	laneFlag  = flag.Int("lanes", 4, "how many hubs there are, each with one plan at a time")
	nameFlag  = flag.String("writer", "", "whose programs get the faults: this addon's manager, its agent, or upstream's own")
	fromFlag  = flag.String("upstream", "", "folder with upstream's programs and their rights")
	someFlag  = flag.Int("plans", 0, "how many plans TestSeeded runs; 0 skips it")
)

// slow are faults that TestSeeded leaves out, because their plans take long.
var slow = slices.Concat(ofProcesses, ofClocks, ofUpdates, ofRecreated, proxy.OfNamespaces,
	[]proxy.Kind{proxy.Lagging60s})

// open are plans with a finding that docs/reliability-findings.md calls open, or that stays. TestSeeded leaves them
// out, too.
var open = []string{
	"place hang patch placementdecisions.multicluster.x-k8s.io team-a/view-profiles-0 1",
}

// lasting is how long nothing may be written after one in so many of TestRobust's plans.
const lasting, oneInSoMany = time.Minute, 100

func TestMain(m *testing.M) {
	apitest.Main(m)
	hubtest.RemoveProgram()
	removePatched()
}

// TestSeeded runs some plans, chosen by a seed, and a story of many clusters without a fault. CI does that, too, so a
// plan fails it only twice.
func TestSeeded(t *testing.T) {
	if *someFlag == 0 {
		t.Skip("make robust PLANS=40 runs it")
	}
	s := newSuite(t, *nameFlag, "")
	of := slices.DeleteFunc(slices.Clone(s.writer.stories), func(s story) bool {
		return s.large || len(s.components) > 0
	})
	s.twice = true
	s.seeded(*someFlag, chooseStories(of, *someFlag, *seedFlag), s.named(manyPrefix+strconv.Itoa(tokenEvery)))
	const most = 10 // one in ten
	if n := s.results.count(notReached); n > *someFlag/most {
		t.Errorf("%d of %d plans were not reached", n, *someFlag)
	}
}

// TestRobust runs all plans that have not run yet, or one.
func TestRobust(t *testing.T) {
	if *timeFlag == 0 && *planFlag == "" {
		t.Skip("make robust runs it")
	}
	if *planFlag != "" {
		s := newSuite(t, *nameFlag, "")
		p, err := parsePlan(s.writer.stories, *planFlag)
		apitest.Must(t, err)
		s.start(1, s.named(p.story))
		s.run([]plan{p}, time.Hour)
		if s.results.count(notReached) > 0 {
			t.Errorf("%s: its write or event did not come, so nothing was injected", p)
		}
		return
	}
	s := newSuite(t, *nameFlag, *fileFlag)
	of := s.writer.stories
	if *storyFlag != "" {
		of = nil
		for name := range strings.SplitSeq(*storyFlag, ",") {
			found := s.named(name)
			if len(found) == 0 {
				t.Fatalf("there is no story %q of this writer", name)
			}
			of = append(of, found...)
		}
	}
	s.start(*laneFlag, of)
	var left []plan
	for _, p := range choose(s.all, len(s.all), *seedFlag, 0) {
		if !s.results.done(p) {
			left = append(left, p)
		}
	}
	slices.SortStableFunc(left, func(a, b plan) int { return s.turn(a) - s.turn(b) })
	t.Logf("%d of %d plans are left, in the order of -seed=%d", len(left), len(s.all), *seedFlag)
	s.run(left, *timeFlag)
	if n := s.results.count(finding); n > 0 {
		t.Errorf("%d plans have a finding, of this run or of an earlier one", n)
	}
}

// suite runs plans on several hubs.
type suite struct {
	*testing.T
	writer  writer
	began   time.Time
	results *results
	lanes   []*lane
	// starts limits how many hubs start at the same time.
	starts chan struct{}
	// twice is true if a plan must fail twice to count.
	twice bool
	// certificate is that of cluster-proxy on all hubs.
	certificate []byte

	mu         sync.Mutex // guards the rest while the lanes run
	references map[string]reference
	all        []plan      // of these stories
	ended      []time.Time // the start, and the end of each plan
}

func newSuite(t *testing.T, name, file string) *suite {
	t.Helper()
	of := writerNamed(t, name, *fromFlag)
	self, err := os.Executable() // results of another suite do not count, either
	apitest.Must(t, err)
	program, err := digest(append(of.programs(t), self)...)
	apitest.Must(t, err)
	r, err := openResults(file, of.name, program)
	apitest.Must(t, err)
	const eachCPU = 3 // starting a hub takes mostly CPU time, so with more, all of them would be ready late
	return &suite{
		T: t, writer: of, began: time.Now(), results: r, references: map[string]reference{},
		starts: make(chan struct{}, eachCPU*runtime.NumCPU()),
	}
}

// start starts the hubs, records the references of some stories, and lists their plans.
func (s *suite) start(lanes int, of []story) {
	s.Helper()
	s.prepare(lanes)
	s.share(len(of), func(l **lane, i int) { s.record(l, of[i]) })
	if s.Failed() {
		s.FailNow()
	}
	for _, story := range of {
		s.all = append(s.all, s.plans(story)...)
	}
}

// prepare makes lanes, whose hubs start when they are used.
func (s *suite) prepare(lanes int) {
	s.Helper()
	s.certificate = servingCertificate(s)
	s.lanes = make([]*lane, lanes)
}

// hub starts the hub of a lane, if it has none.
func (s *suite) hub(l **lane) {
	if *l == nil {
		s.starts <- struct{}{}
		defer func() { <-s.starts }()
		*l = newLane(s, s.writer, s.certificate)
	}
}

// record records the reference of a story as a subtest.
func (s *suite) record(l **lane, of story) {
	s.hub(l)
	ended := s.Run("reference of "+of.name, func(t *testing.T) {
		began := time.Now()
		ref, problems := (*l).reference(t, of)
		if len(problems) > 0 {
			if !s.writer.mayLackReference {
				t.Fatal(strings.Join(problems, "\n"))
			}
			t.Logf("no reference: %s", strings.Join(problems, "\n"))
			p := plan{story: of.name, fault: proxy.Fault{Kind: proxy.None}}
			apitest.Must(t, s.results.add(outcome{
				Plan: p.String(), Verdict: noReference, Findings: problems,
				Seconds: time.Since(began).Seconds(), Loaded: cpuPressure(),
			}))
			return
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		s.references[of.name] = ref
		switch {
		case of.large:
			t.Logf("%d writes and events are not in every run without a fault", len(ref.masked))
		case len(ref.masked) > 0:
			t.Logf("not in every run without a fault: %v", ref.masked)
		}
	})
	if !ended {
		(*l).discard()
	}
}

// reference is that of a story, if it has one.
func (s *suite) reference(name string) (reference, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	ref, has := s.references[name]
	return ref, has
}

// plans are all of a story; none without a reference.
func (s *suite) plans(of story) []plan {
	ref, has := s.reference(of.name)
	if !has {
		return nil
	}
	return slices.DeleteFunc(plansOf(of, ref, s.writer.apis...), func(p plan) bool {
		return slices.Contains(slices.Concat(s.writer.without, of.without), p.fault.Kind) ||
			slices.Contains(of.impossible, strings.TrimPrefix(p.String(), of.name+" "))
	})
}

// inLanes calls a function for all lanes at the same time.
func (s *suite) inLanes(do func(l **lane)) {
	var group sync.WaitGroup
	for at := range s.lanes {
		group.Go(func() {
			ended := false
			defer func() {
				if !ended { // by a failure of the suite, such as a hub that does not start
					fmt.Fprintf(os.Stderr, "hub %d of %d is not used any more\n", at+1, len(s.lanes))
				}
			}()
			do(&s.lanes[at])
			ended = true
		})
	}
	group.Wait()
}

// share gives the numbers below n to the lanes, each one at a time.
func (s *suite) share(n int, do func(l **lane, i int)) {
	var next atomic.Int64
	s.inLanes(func(l **lane) {
		for i := int(next.Add(1)) - 1; i < n; i = int(next.Add(1)) - 1 {
			do(l, i)
		}
	})
}

// run runs plans, and begins none after a time.
func (s *suite) run(plans []plan, limit time.Duration) {
	s.Helper()
	s.Logf("recorded the references in %s", time.Since(s.began).Round(time.Second))
	one := s.runner(len(plans), limit)
	s.share(len(plans), func(l **lane, i int) { one(l, plans[i]) })
	s.summary()
}

// seeded runs n plans of some stories, those of each as soon as its reference is recorded. Of others, it records
// only the reference, at first, because that takes long.
func (s *suite) seeded(n int, of, others []story) {
	s.Helper()
	s.prepare(*laneFlag)
	of = slices.SortedStableFunc(slices.Values(of), func(a, b story) int { return cmp.Compare(b.calm, a.calm) })
	plans := newReady(len(of))
	first := make(chan func(l **lane), len(others)+len(of))
	for _, other := range others {
		first <- func(l **lane) { s.record(l, other) }
	}
	for i, story := range of {
		from, to := i*n/len(of), (i+1)*n/len(of)
		first <- func(l **lane) {
			var some []plan
			defer func() { plans.add(some) }() // also if the hub does not start
			s.record(l, story)
			some = s.some(story, to-from, from)
		}
	}
	close(first)
	one := s.runner(n, time.Hour)
	s.inLanes(func(l **lane) {
		for record := range first {
			record(l)
		}
		s.hub(l) // also where there was no story
		for p, has := plans.next(); has; p, has = plans.next() {
			one(l, p)
		}
	})
	s.Logf("%d stories, chosen by -seed=%d; their references were recorded after %s",
		len(of), *seedFlag, plans.at.Sub(s.began).Round(time.Second))
	s.summary()
}

// some chooses n plans of a story, as choose does.
func (s *suite) some(of story, n, from int) []plan {
	all := slices.DeleteFunc(s.plans(of), func(p plan) bool { return slices.Contains(open, p.String()) })
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all = append(s.all, all...)
	return choose(all, n, *seedFlag, from, slow...)
}

// ready are the plans of stories whose references have been recorded.
type ready struct {
	mu      sync.Mutex
	changed sync.Cond // of left
	plans   []plan
	left    int       // stories without a reference
	at      time.Time // when the last one was recorded
}

func newReady(stories int) *ready {
	r := &ready{left: stories}
	r.changed.L = &r.mu
	return r
}

// add adds the plans of a story.
func (r *ready) add(plans []plan) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.plans = append(r.plans, plans...)
	r.left, r.at = r.left-1, time.Now()
	r.changed.Broadcast()
}

// next waits for a plan. Those that were added last come first: their stories take longest, and what is short
// should be left for the end, when other lanes have nothing to do.
func (r *ready) next() (plan, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for len(r.plans) == 0 && r.left > 0 {
		r.changed.Wait()
	}
	last := len(r.plans) - 1
	if last < 0 {
		return plan{}, false
	}
	p := r.plans[last]
	r.plans = r.plans[:last]
	return p, true
}

// runner returns what runs one of n plans in a lane, but begins none after a time or an interrupt.
func (s *suite) runner(n int, limit time.Duration) func(l **lane, p plan) {
	s.Helper()
	interrupted, stop := signal.NotifyContext(s.Context(), os.Interrupt)
	s.Cleanup(stop)
	context.AfterFunc(interrupted, stop) // a second interrupt ends the process
	s.ended = []time.Time{time.Now()}
	var begun atomic.Int64
	return func(l **lane, p plan) {
		if time.Since(s.began) > limit || interrupted.Err() != nil {
			return
		}
		s.hub(l) // there may be fewer stories than lanes
		calm := quiet
		if i := begun.Add(1) - 1; n > oneInSoMany && i%oneInSoMany == 0 {
			calm = lasting
		}
		s.one(*l, p, calm)
		s.mu.Lock()
		defer s.mu.Unlock()
		s.ended = append(s.ended, time.Now())
		fmt.Fprintf(os.Stderr, "%d of %d plans, %s left\n", len(s.ended)-1, n, remaining(s.ended, n).Round(time.Second))
	}
}

// summary logs what all plans resulted in.
func (s *suite) summary() {
	s.Helper()
	var text strings.Builder
	s.results.summary(&text, s.all)
	s.Log(text.String())
}

// one runs a plan as a subtest. One that was not reached runs again: what is not in every run comes in some. For
// TestSeeded, a plan with a violation that a busy machine may cause runs again with a fresh manager, and the second
// outcome counts.
func (s *suite) one(l *lane, p plan, calm time.Duration) {
	ref, has := s.reference(p.story)
	if !has {
		return // record has said why
	}
	s.Run(p.String(), func(t *testing.T) {
		o := outcome{Plan: p.String(), Verdict: broken}
		defer func() { // also if the test was ended
			apitest.Must(t, s.results.add(o))
			if o.failed() {
				t.Errorf("%s (CPU pressure %.0f %%); repeat it with make robust %s\n%s",
					o.Verdict, o.Loaded, s.results.selects(p.String()), strings.Join(o.Findings, "\n"))
			}
		}()
		o = s.attempt(t, l, p, &ref, calm)
		if s.twice && o.mayRepeat() || o.Verdict == notReached {
			t.Logf("%s, at first:\n%s", o.Verdict, strings.Join(o.Findings, "\n"))
			o = s.attempt(t, l, p, &ref, calm)
		}
	})
}

// attempt runs a plan once.
func (s *suite) attempt(t *testing.T, l *lane, p plan, ref *reference, calm time.Duration) outcome {
	t.Helper()
	began := time.Now()
	of := s.story(p)
	o := outcome{Plan: p.String(), Verdict: passed}
	got, err := l.run(t, of, p.fault, ref, calm)
	o.Seconds, o.Loaded = time.Since(began).Seconds(), cpuPressure()
	if err != nil {
		o.Verdict, o.Findings = broken, []string{err.Error()}
		if errors.Is(err, errNotReached) { // before the fault
			o.Verdict, o.Findings = finding, prefixed(ofEffect, err.Error())
		}
		l.discard()
		return o
	}
	o.Findings = check(of, *ref, got)
	if of.large {
		t.Log(got.costs())
	}
	switch {
	case len(o.Findings) > 0:
		o.Verdict = finding
		o.Findings = append(o.Findings, got.logs)
		l.discard()
	case got.record.Fired.IsZero() && p.fault.Kind != proxy.None:
		o.Verdict = notReached
	}
	return o
}

// remaining estimates how long the other plans take, from the pace of the last ones: the first plans are of all kinds,
// also of those that need a new hub. ended has the start of the run, and then the end of each plan, at least of one.
func remaining(ended []time.Time, plans int) time.Duration {
	const recent = 50
	last := len(ended) - 1
	first := max(0, last-recent)
	return ended[last].Sub(ended[first]) / time.Duration(last-first) * time.Duration(plans-last)
}

// named is the story of a name, if it concerns the writer. It may be one of fewer clusters than in
// stories.
func (s *suite) named(name string) []story {
	of, known := storyNamed(s.writer.stories, name)
	if !known {
		return nil
	}
	if !slices.ContainsFunc(s.writer.stories, func(of story) bool { return of.name == name }) {
		s.writer.stories = append(slices.Clone(s.writer.stories), of)
	}
	return []story{of}
}

// turn is when a plan runs, from 0.
func (s *suite) turn(p plan) int { return turnOf(s.story(p), p.fault) }

// story is that of a plan.
func (s *suite) story(p plan) story {
	all := s.writer.stories
	return all[slices.IndexFunc(all, func(s story) bool { return s.name == p.story })]
}
