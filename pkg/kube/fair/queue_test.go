package fair

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	dto "github.com/prometheus/client_model/go"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	testingclock "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	controllermetrics "sigs.k8s.io/controller-runtime/pkg/metrics"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"open-cluster-management.io/cluster-inventory-addon/internal/apitest"
)

// subject is a queue under test. Its requests are named "<namespace>/<name>".
type subject struct {
	*Queue
	t     *testing.T
	name  string
	clock *testingclock.FakeClock
}

// names makes the queues' names unique, since metrics outlive their queue.
var names atomic.Int64

func newSubject(t *testing.T, opts Options) *subject {
	t.Helper()
	s := &subject{t: t, clock: testingclock.NewFakeClock(time.Unix(1000, 0))}
	opts.Clock = s.clock
	limiter := opts.Controller().RateLimiter
	s.name = fmt.Sprintf("%s.%d", t.Name(), names.Add(1))
	s.Queue = New(s.name, limiter, opts)
	t.Cleanup(s.ShutDown)
	return s
}

func requestOf(name string) reconcile.Request {
	namespace, name, _ := strings.Cut(name, "/")
	return reconcile.Request{NamespacedName: types.NamespacedName{Namespace: namespace, Name: name}}
}

func (s *subject) add(priority int, names ...string) {
	for _, name := range names {
		s.AddWithOpts(priorityqueue.AddOpts{Priority: &priority}, requestOf(name))
	}
}

func (s *subject) done(names ...string) {
	for _, name := range names {
		s.Done(requestOf(name))
	}
}

// takeAll returns what is handed out now, in order. Nothing of it is done.
func (s *subject) takeAll() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	names := []string{}
	for {
		for len(s.unsorted) > 0 {
			s.sortSome()
		}
		e := s.order.next()
		if e == nil {
			return names
		}
		s.begin(e)
		names = append(names, e.request.String())
	}
}

// takes compares what is handed out now.
func (s *subject) takes(when string, want ...string) {
	s.t.Helper()
	if diff := cmp.Diff(append([]string{}, want...), s.takeAll()); diff != "" {
		s.t.Errorf("handed out %s (-want +got):\n%s", when, diff)
	}
}

// count returns how many of the names are in each namespace.
func count(names []string) map[string]int {
	byNamespace := map[string]int{}
	for _, name := range names {
		namespace, _, _ := strings.Cut(name, "/")
		byNamespace[namespace]++
	}
	return byNamespace
}

func many(namespace string, n int) []string {
	names := make([]string, 0, n)
	for i := range n {
		names = append(names, fmt.Sprintf("%s/%d", namespace, i))
	}
	return names
}

func TestHigherPrioritiesGoFirstAndGroupsTakeTurns(t *testing.T) {
	s := newSubject(t, Options{Workers: 100, PerGroup: 100})
	s.add(-100, "a/new1", "a/new2", "a/new3", "b/new1")
	s.add(0, "a/edit1", "a/edit2", "c/edit1")
	s.add(100, "a/gone1", "a/gone2", "b/gone1")
	s.takes("first", "a/gone1", "b/gone1", "a/gone2", "a/edit1", "c/edit1", "a/edit2",
		"a/new1", "b/new1", "a/new2", "a/new3")
}

func TestAGroupIsBounded(t *testing.T) {
	s := newSubject(t, Options{Workers: 100, PerGroup: 2})
	s.add(0, "slow/1", "slow/2", "slow/3", "slow/4", "other/1")
	s.takes("at first", "slow/1", "other/1", "slow/2")
	s.takes("while these are worked on")
	s.done("slow/2")
	s.takes("when one is done", "slow/3")
}

func TestHigherPrioritiesDoNotWaitForLowerOnesOfTheirGroup(t *testing.T) {
	s := newSubject(t, Options{Workers: 100, PerGroup: 2})
	s.add(-100, many("slow", 10)...)
	s.takes("of first writes", "slow/0", "slow/1")
	s.add(0, "slow/edit1", "slow/edit2", "slow/edit3")
	s.takes("of edits", "slow/edit1", "slow/edit2")
	s.add(100, "slow/gone1", "slow/gone2", "slow/gone3")
	s.takes("of deletions", "slow/gone1", "slow/gone2")
	s.done("slow/0", "slow/edit1")
	s.takes("while deletions and an edit are stuck")
	s.done("slow/gone1")
	s.takes("when a deletion is done", "slow/gone3")
}

func TestSlowGroupsLeaveWorkersToOthers(t *testing.T) {
	const workers, perGroup = 32, 8
	for slow := 1; slow <= 4; slow++ {
		t.Run(fmt.Sprintf("%d groups are slow", slow), func(t *testing.T) {
			s := newSubject(t, Options{Workers: workers, PerGroup: perGroup})
			for i := range slow {
				group := fmt.Sprintf("slow%d", i)
				s.add(-100, many(group, 1000)...)
				s.add(0, many(group+"/edit", 1000)...)
			}
			stuck := s.takeAll()
			for namespace, n := range count(stuck) {
				if n > 2*perGroup {
					t.Errorf("%s has %d requests in flight", namespace, n)
				}
			}
			s.add(0, "other/edit")
			s.add(100, "other/gone")
			if diff := cmp.Diff([]string{"other/gone", "other/edit"}, s.takeAll()); diff != "" {
				t.Errorf("handed out while %d are stuck (-want +got):\n%s", len(stuck), diff)
			}
		})
	}
}

func TestFirstWritesLeaveWorkersToUrgentRequests(t *testing.T) {
	s := newSubject(t, Options{Workers: 16, PerGroup: 4})
	for i := range 100 {
		s.add(-100, many(fmt.Sprintf("ns%d", i), 10)...)
	}
	if got := len(s.takeAll()); got != 12 {
		t.Errorf("%d first writes in flight, want 12 of 16", got)
	}
	for i := range 100 {
		s.add(0, fmt.Sprintf("ns%d/edit", i))
	}
	if got := len(s.takeAll()); got != 2 {
		t.Errorf("%d edits beside them, want 2", got)
	}
	s.add(100, "x/gone", "y/gone", "z/gone")
	s.takes("of deletions", "x/gone", "y/gone")
}

// Deletions may be stuck in many namespaces, or be refused again and again.
func TestUrgentRequestsLeaveWorkersToOthers(t *testing.T) {
	s := newSubject(t, Options{Workers: 16, PerGroup: 4})
	for i := range 100 {
		s.add(100, many(fmt.Sprintf("ns%d", i), 10)...)
	}
	if got := len(s.takeAll()); got != 14 {
		t.Errorf("%d deletions in flight, want 14 of 16", got)
	}
	s.add(-100, "x/first")
	s.add(0, "x/edit", "y/edit")
	s.takes("beside them", "x/edit", "y/edit")
	s.done("y/edit")
	s.takes("then")
	s.done("x/edit")
	s.takes("when the namespace has its turn", "x/first")
	s.done("ns0/0")
	if got := s.takeAll(); len(got) != 1 || !strings.HasPrefix(got[0], "ns") {
		t.Errorf("handed out when a deletion is done: %v, want another one", got)
	}
}

func TestOneWorkerServesEverything(t *testing.T) {
	s := newSubject(t, Options{Workers: 1, PerGroup: 1})
	s.add(-100, "a/1", "b/1")
	s.takes("at first", "a/1")
	s.done("a/1")
	s.takes("then", "b/1")
}

func TestPriorityIsLookedUpAgainAtEveryAdd(t *testing.T) {
	now := map[string]int{"a/1": -100, "a/2": -100, "a/3": -100}
	s := newSubject(t, Options{Workers: 8, PerGroup: 1, Priority: func(request reconcile.Request) int {
		return now[request.String()]
	}})
	s.Add(requestOf("a/1"))
	s.takes("at first", "a/1")
	s.add(100, "a/2") // what it is enqueued with does not count
	s.add(0, "a/3")
	s.takes("beside the first")
	now["a/3"] = 100
	s.takes("before a change is reported")
	s.Add(requestOf("a/3"))
	s.takes("when it has become a deletion", "a/3")
	s.done("a/1", "a/3")
	s.takes("in the end", "a/2")
}

// Events may have the priorities of many requests looked up again all the time.
func TestLookingUpPrioritiesKeepsNoRequestWaiting(t *testing.T) {
	var s *subject
	lookups := 0
	s = newSubject(t, Options{Workers: 4, PerGroup: 4, Priority: func(request reconcile.Request) int {
		if lookups++; lookups < 100*sortAtOnce {
			s.add(0, request.Namespace+"/"+request.Name) // the next event
		}
		return 0
	}})
	for i := range 3 * sortAtOnce {
		s.add(0, fmt.Sprintf("busy/%d", i))
	}
	for range 4 {
		request, _ := s.Get()
		s.Done(request)
	}
	if lookups > 4*sortAtOnce {
		t.Errorf("%d priorities were looked up for 4 requests", lookups)
	}
}

func TestRequestIsProcessedOnceAtATime(t *testing.T) {
	s := newSubject(t, Options{Workers: 8, PerGroup: 8})
	s.add(0, "a/1")
	s.takes("at first", "a/1")
	s.add(0, "a/1")
	s.add(100, "a/1")
	s.takes("while it is worked on")
	s.done("a/1")
	s.takes("when that has ended", "a/1")
	s.done("a/1", "a/1")
	s.takes("at the end")
}

func TestRequestsWait(t *testing.T) {
	s := newSubject(t, Options{Workers: 8, PerGroup: 8})
	s.AddAfter(requestOf("a/late"), time.Hour)
	s.AddAfter(requestOf("a/1"), 3*time.Second)
	s.AddAfter(requestOf("a/2"), 4*time.Second)
	s.AddAfter(requestOf("a/2"), 2*time.Second)
	s.AddAfter(requestOf("a/2"), 5*time.Second)
	s.AddAfter(requestOf("a/3"), time.Hour)
	s.Add(requestOf("a/3"))
	s.AddAfter(requestOf("a/3"), time.Hour)
	s.takes("at once", "a/3")
	s.passes(time.Second)
	s.takes("after 1s")
	s.passes(time.Second)
	s.takes("after 2s", "a/2")
	s.passes(time.Second)
	s.takes("after 3s", "a/1")
}

// passes lets time pass. The queue itself looks at the clock in its own time.
func (s *subject) passes(d time.Duration) {
	s.clock.Step(d)
	_, stop := s.wakeDue()
	stop()
}

func TestTimeWakesAWorker(t *testing.T) {
	s := newSubject(t, Options{Workers: 8, PerGroup: 8})
	got := s.getLater()
	s.AddAfter(requestOf("a/1"), time.Second)
	apitest.Eventually(t, apitest.Patience, "the queue waits for the time", func() string {
		s.clock.Step(time.Second)
		select {
		case name := <-got:
			return cmp.Diff("a/1", name)
		default:
			return "nothing was handed out"
		}
	})
}

// getLater calls Get in the background.
func (s *subject) getLater() <-chan string {
	got := make(chan string, 1)
	go func() {
		request, isShutDown := s.Get()
		if isShutDown {
			got <- "shut down"
			return
		}
		got <- request.String()
	}()
	return got
}

func TestRetries(t *testing.T) {
	const failures = 20 // the wait doubles until it has reached the most
	for name, test := range map[string]struct {
		priority int
		want     time.Duration
	}{
		"a first write": {priority: -100, want: time.Minute},
		"an edit":       {priority: 0, want: time.Minute},
		"a deletion":    {priority: 100, want: 5 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSubject(t, Options{Workers: 8, PerGroup: 8})
			for range failures {
				s.limiter.When(requestOf("a/1"))
			}
			s.AddWithOpts(priorityqueue.AddOpts{RateLimited: true, Priority: &test.priority}, requestOf("a/1"))
			s.passes(test.want - time.Nanosecond)
			s.takes("too early")
			s.passes(time.Nanosecond)
			s.takes("in time", "a/1")
			if got := s.NumRequeues(requestOf("a/1")); got != failures+1 {
				t.Errorf("requeues = %d", got)
			}
			s.Forget(requestOf("a/1"))
			s.done("a/1")
			s.AddWithOpts(priorityqueue.AddOpts{RateLimited: true, Priority: &test.priority}, requestOf("a/1"))
			s.passes(20 * time.Millisecond)
			s.takes("after it had succeeded", "a/1")
		})
	}
}

func TestShutDown(t *testing.T) {
	s := newSubject(t, Options{Workers: 2, PerGroup: 1})
	s.add(0, "a/1", "a/2")
	s.takes("at first", "a/1")
	s.AddAfter(requestOf("a/3"), time.Hour)
	waiting := s.getLater()
	s.ShutDown()
	s.ShutDown()
	if got := <-waiting; got != "shut down" {
		t.Errorf("got %s", got)
	}
	// A worker that was busy ends its work, and asks for more.
	s.done("a/1")
	s.Add(requestOf("a/4"))
	if _, _, isShutDown := s.GetWithPriority(); !isShutDown || !s.ShuttingDown() {
		t.Error("a request was handed out after the shutdown")
	}
}

func TestMetrics(t *testing.T) {
	s := newSubject(t, Options{Workers: 8, PerGroup: 1})
	s.add(-100, "a/1", "a/2", "a/3")
	s.add(0, "a/3")
	s.add(100, "a/4")
	s.AddAfter(requestOf("a/5"), time.Hour)
	s.clock.Step(500 * time.Millisecond)
	s.takes("at first", "a/4")
	s.clock.Step(500 * time.Millisecond)
	s.measure()
	check := func(when string, want map[string]float64) {
		t.Helper()
		if diff := cmp.Diff(want, gathered(t, s.name)); diff != "" {
			t.Errorf("metrics %s (-want +got):\n%s", when, diff)
		}
	}
	check("while one is worked on", map[string]float64{
		"workqueue_depth -100": 2, "workqueue_depth 0": 1, "workqueue_depth 100": 0,
		"workqueue_adds_total": 4, "workqueue_retries_total": 1,
		"workqueue_queue_duration_seconds": 0.5, "workqueue_work_duration_seconds": 0,
		"workqueue_unfinished_work_seconds": 0.5, "workqueue_longest_running_processor_seconds": 0.5,
	})
	s.done("a/4")
	s.measure()
	s.takes("then", "a/3")
	check("when it is done", map[string]float64{
		"workqueue_depth -100": 2, "workqueue_depth 0": 0, "workqueue_depth 100": 0,
		"workqueue_adds_total": 4, "workqueue_retries_total": 1,
		"workqueue_queue_duration_seconds": 1.5, "workqueue_work_duration_seconds": 0.5,
		"workqueue_unfinished_work_seconds": 0, "workqueue_longest_running_processor_seconds": 0,
	})
	if got := s.Len(); got != 2 {
		t.Errorf("length = %d", got)
	}
}

// gathered returns the metrics of a queue as they are scraped; of histograms, the
// sums.
func gathered(t *testing.T, queue string) map[string]float64 {
	t.Helper()
	families, err := controllermetrics.Registry.Gather()
	apitest.Must(t, err)
	found := map[string]float64{}
	for _, family := range families {
		for _, metric := range family.GetMetric() {
			of := map[string]string{}
			for _, label := range metric.GetLabel() {
				of[label.GetName()] = label.GetValue()
			}
			if of["name"] == queue && of["controller"] == queue {
				name := strings.TrimSpace(family.GetName() + " " + of["priority"])
				found[name] = value(metric)
			}
		}
	}
	return found
}

func value(metric *dto.Metric) float64 {
	return metric.GetGauge().GetValue() + metric.GetCounter().GetValue() + metric.GetHistogram().GetSampleSum()
}

// TestNoWorkerSleepsWhileThereIsWork has workers take requests that others enqueue all
// the time. In the end each request has been worked on after it was last enqueued.
func TestNoWorkerSleepsWhileThereIsWork(t *testing.T) {
	const workers, perGroup, groups, rounds = 12, 3, 7, 400
	q := New(t.Name(), workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](time.Microsecond, time.Millisecond),
		Options{Workers: workers, PerGroup: perGroup,
			Priority: func(reconcile.Request) int { return 100 * (rand.IntN(3) - 1) }})
	t.Cleanup(q.ShutDown)

	var mu sync.Mutex
	enqueued, seen := map[string]int{}, map[string]int{}
	inFlight, most := map[string]int{}, 0
	work := func() {
		for {
			request, isShutDown := q.Get()
			if isShutDown {
				return
			}
			mu.Lock()
			seen[request.String()] = enqueued[request.String()]
			inFlight[request.Namespace]++
			most = max(most, inFlight[request.Namespace])
			mu.Unlock()
			if rand.IntN(10) == 0 {
				q.AddWithOpts(priorityqueue.AddOpts{RateLimited: true, Priority: ptr.To(0)}, request)
			}
			mu.Lock()
			inFlight[request.Namespace]--
			mu.Unlock()
			q.Done(request)
		}
	}
	var running sync.WaitGroup
	for range workers {
		running.Go(work)
	}
	var adding sync.WaitGroup
	for i := range groups {
		adding.Go(func() {
			for n := range rounds {
				request := requestOf(fmt.Sprintf("ns%d/%d", i, n%50))
				mu.Lock()
				enqueued[request.String()] = n
				mu.Unlock()
				if n%5 == 0 {
					q.AddAfter(request, time.Duration(n)*time.Microsecond)
				} else {
					q.Add(request)
				}
			}
		})
	}
	adding.Wait()
	apitest.Eventually(t, apitest.Patience, "everything has been worked on", func() string {
		mu.Lock()
		defer mu.Unlock()
		return cmp.Diff(enqueued, maps.Clone(seen))
	})
	q.ShutDown()
	running.Wait()
	if limit := perGroup * int(classes); most > limit {
		t.Errorf("%d requests of a group were in flight, of at most %d", most, limit)
	}
}

func TestOrderForgetsDoneRequests(t *testing.T) {
	s := newSubject(t, Options{Workers: 100, PerGroup: 100})
	for i := range 50 {
		s.add(100*(i%3-1), many(fmt.Sprintf("ns%d", i), 3)...)
	}
	taken := s.takeAll()
	for len(taken) > 0 {
		s.done(taken...)
		taken = s.takeAll()
	}
	lines := 0
	for class := range classes {
		lines += len(s.order.rings[class].lines) + s.order.rings[class].turns.Len()
	}
	if left := []int{len(s.entries), len(s.running), len(s.order.inFlight), s.order.busy, lines}; slices.Max(left) > 0 {
		t.Errorf("left in memory: %v", left)
	}
}
