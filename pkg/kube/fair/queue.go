package fair

import (
	"cmp"
	"container/heap"
	"container/list"
	"sync"
	"time"

	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

const (
	// RetryFirst is the first retry interval of a failed request; each later one is twice
	// as long.
	RetryFirst = 20 * time.Millisecond

	// RetryMost is the longest retry interval: a raised quota sends no event.
	RetryMost = time.Minute

	// RetryUrgent is the longest retry interval for requests of high priority.
	RetryUrgent = 5 * time.Second

	// DefaultWorkers leaves workers idle for others when several namespaces are slow.
	DefaultWorkers = 64

	// DefaultPerGroup is about the number of writes that one client can make good use of.
	DefaultPerGroup = 16

	// sortAtOnce is how many priorities one worker looks up before each request, so that several
	// workers share a burst.
	sortAtOnce = 64

	// gaugesEvery is how often the metrics of unfinished work are updated.
	gaugesEvery = time.Second
)

// Options say how a controller's requests are queued.
type Options struct {
	// Workers is how many requests may be in progress; 0 means DefaultWorkers.
	Workers int

	// PerGroup is how many of them may be of one namespace and priority; 0 means
	// DefaultPerGroup.
	PerGroup int

	// Priority returns the priority of a request at the time it is about to be handed out
	// or is enqueued again. It must not block, and may be called concurrently. If nil, a
	// request has the highest priority with which it was enqueued.
	Priority func(reconcile.Request) int

	// Clock is the time; nil means the real one.
	Clock clock.WithTicker
}

// Controller returns the options of a controller with such a queue.
func (o Options) Controller() controller.Options {
	o.Workers = cmp.Or(o.Workers, DefaultWorkers)
	o.PerGroup = cmp.Or(o.PerGroup, DefaultPerGroup)
	return controller.Options{
		MaxConcurrentReconciles: o.Workers,
		RateLimiter: workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](
			RetryFirst, RetryMost),
		NewQueue: func(
			name string, limiter workqueue.TypedRateLimiter[reconcile.Request],
		) workqueue.TypedRateLimitingInterface[reconcile.Request] {
			return New(name, limiter, o)
		},
	}
}

// Queue is a work queue; see the package's documentation. It is safe for concurrent
// use.
type Queue struct {
	opts    Options
	limiter workqueue.TypedRateLimiter[reconcile.Request]
	metrics *metrics

	stopped  chan struct{} // closed by ShutDown
	earliest chan struct{} // has an element if the first of waiting has changed

	mu   sync.Mutex
	idle *sync.Cond // workers that have found nothing to do

	isShutDown bool
	entries    map[reconcile.Request]*entry // enqueued and not handed out
	running    map[reconcile.Request]*entry // handed out and not done
	waiting    delayed
	unsorted   []*entry // ready, and their priority must be looked up
	order      *order
}

var _ priorityqueue.PriorityQueue[reconcile.Request] = &Queue{}

type entry struct {
	request reconcile.Request
	group   string
	class   class
	state   state

	readyAt  time.Time // when it becomes, or became, ready
	index    int       // in waiting
	place    *list.Element
	unsorted bool // in Queue.unsorted
	began    time.Time
}

type state int

const (
	added   state = iota
	waiting       // until a time
	held          // ready, but the same request is in progress
	ready
)

// New returns a queue, which must be shut down. Its metrics have the given name.
func New(name string, limiter workqueue.TypedRateLimiter[reconcile.Request], opts Options) *Queue {
	if opts.Clock == nil {
		opts.Clock = clock.RealClock{}
	}
	q := &Queue{
		opts:     opts,
		limiter:  limiter,
		metrics:  newMetrics(name),
		stopped:  make(chan struct{}),
		earliest: make(chan struct{}, 1),
		entries:  map[reconcile.Request]*entry{},
		running:  map[reconcile.Request]*entry{},
		order:    newOrder(opts.Workers, opts.PerGroup),
	}
	q.idle = sync.NewCond(&q.mu)
	go q.run()
	return q
}

// Add implements workqueue.TypedInterface.
func (q *Queue) Add(request reconcile.Request) {
	q.AddWithOpts(priorityqueue.AddOpts{}, request)
}

// AddAfter implements workqueue.TypedDelayingInterface.
func (q *Queue) AddAfter(request reconcile.Request, after time.Duration) {
	q.AddWithOpts(priorityqueue.AddOpts{After: after}, request)
}

// AddRateLimited implements workqueue.TypedRateLimitingInterface.
func (q *Queue) AddRateLimited(request reconcile.Request) {
	q.AddWithOpts(priorityqueue.AddOpts{RateLimited: true}, request)
}

// AddWithOpts implements priorityqueue.PriorityQueue. A request that is queued
// already keeps the higher of its priorities and the shorter of its waits.
func (q *Queue) AddWithOpts(opts priorityqueue.AddOpts, requests ...reconcile.Request) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.isShutDown {
		return
	}
	for _, request := range requests {
		q.add(request, opts)
	}
}

// add requires the lock, as do all of the following but run.
func (q *Queue) add(request reconcile.Request, opts priorityqueue.AddOpts) {
	asked := classOf(ptr.Deref(opts.Priority, 0))
	wait := q.wait(request, asked, opts)
	e := q.entries[request]
	if e == nil {
		e = &entry{request: request, group: request.Namespace, class: low}
		q.entries[request] = e
	}
	if q.opts.Priority == nil {
		q.raise(e, asked)
	}
	if wait <= 0 {
		q.makeReady(e)
		return
	}
	q.metrics.retries.Inc()
	q.delay(e, q.opts.Clock.Now().Add(wait))
}

func (q *Queue) wait(request reconcile.Request, asked class, opts priorityqueue.AddOpts) time.Duration {
	if !opts.RateLimited {
		return opts.After
	}
	wait := q.limiter.When(request)
	if asked == urgent {
		wait = min(wait, RetryUrgent)
	}
	if opts.After > 0 {
		wait = min(wait, opts.After)
	}
	return wait
}

// raise gives an entry a higher class.
func (q *Queue) raise(e *entry, to class) {
	if to >= e.class {
		return
	}
	if e.state != ready {
		e.class = to
		return
	}
	q.order.remove(e)
	q.metrics.depth[e.class].Dec()
	e.class = to
	q.order.push(e)
	q.metrics.depth[e.class].Inc()
}

// delay makes an entry wait that is not ready yet.
func (q *Queue) delay(e *entry, until time.Time) {
	switch {
	case e.state == added:
		e.state, e.readyAt = waiting, until
		heap.Push(&q.waiting, e)
	case e.state == waiting && until.Before(e.readyAt):
		e.readyAt = until
		heap.Fix(&q.waiting, e.index)
	default:
		return
	}
	if e.index == 0 {
		select {
		case q.earliest <- struct{}{}:
		default:
		}
	}
}

// makeReady releases an entry and has its priority looked up.
func (q *Queue) makeReady(e *entry) {
	switch e.state {
	case held:
		return
	case waiting:
		heap.Remove(&q.waiting, e.index)
	case added, ready:
	}
	if e.state != ready {
		q.metrics.adds.Inc()
		e.readyAt = q.opts.Clock.Now()
		if _, busy := q.running[e.request]; busy {
			e.state = held
			return
		}
		q.line(e)
	}
	q.sortLater(e)
	q.idle.Signal()
}

// line puts an entry at the end of its line.
func (q *Queue) line(e *entry) {
	e.state = ready
	q.order.push(e)
	q.metrics.depth[e.class].Inc()
}

func (q *Queue) sortLater(e *entry) {
	if q.opts.Priority != nil && !e.unsorted {
		e.unsorted = true
		q.unsorted = append(q.unsorted, e)
	}
}

// Get implements workqueue.TypedInterface.
func (q *Queue) Get() (reconcile.Request, bool) {
	request, _, isShutDown := q.GetWithPriority()
	return request, isShutDown
}

// GetWithPriority implements priorityqueue.PriorityQueue: it waits until a request is
// ready, or the queue is shut down.
func (q *Queue) GetWithPriority() (request reconcile.Request, priority int, isShutDown bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for {
		if len(q.unsorted) > 0 {
			q.sortSome() // and no more before the next request: there may be new ones all the time
		}
		if q.isShutDown {
			return reconcile.Request{}, 0, true
		}
		if e := q.order.next(); e != nil {
			q.begin(e)
			return e.request, e.class.priority(), false
		}
		if len(q.unsorted) == 0 {
			q.idle.Wait()
		}
	}
}

// sortSome looks up the priorities of some entries, without the lock.
func (q *Queue) sortSome() {
	some := q.unsorted[:min(len(q.unsorted), sortAtOnce)]
	if q.unsorted = q.unsorted[len(some):]; len(q.unsorted) == 0 {
		q.unsorted = nil
	}
	for _, e := range some {
		e.unsorted = false // from now on, a change triggers another lookup
	}
	q.mu.Unlock()
	found := make([]class, len(some))
	for i, e := range some {
		found[i] = classOf(q.opts.Priority(e.request))
	}
	q.mu.Lock()
	for i, e := range some {
		if e.state == ready && q.entries[e.request] == e {
			q.raise(e, found[i])
		}
	}
}

// begin hands out an entry, and wakes another worker if there is more to do: each worker
// that finds work wakes the next.
func (q *Queue) begin(e *entry) {
	q.order.begin(e)
	delete(q.entries, e.request)
	q.running[e.request] = e
	e.began = q.opts.Clock.Now()
	q.metrics.depth[e.class].Dec()
	q.metrics.latency.Observe(e.began.Sub(e.readyAt).Seconds())
	if len(q.unsorted) > 0 || q.order.next() != nil {
		q.idle.Signal()
	}
}

// Done implements workqueue.TypedInterface.
func (q *Queue) Done(request reconcile.Request) {
	q.mu.Lock()
	defer q.mu.Unlock()
	e := q.running[request]
	if e == nil {
		return
	}
	delete(q.running, request)
	q.order.end(e)
	q.metrics.work.Observe(q.opts.Clock.Since(e.began).Seconds())
	if again := q.entries[request]; again != nil && again.state == held {
		q.line(again)
		q.sortLater(again)
	}
	q.idle.Signal()
}

// Forget implements workqueue.TypedRateLimitingInterface.
func (q *Queue) Forget(request reconcile.Request) { q.limiter.Forget(request) }

// NumRequeues implements workqueue.TypedRateLimitingInterface.
func (q *Queue) NumRequeues(request reconcile.Request) int { return q.limiter.NumRequeues(request) }

// Len returns how many requests are ready.
func (q *Queue) Len() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.order.len()
}

// ShuttingDown implements workqueue.TypedInterface.
func (q *Queue) ShuttingDown() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.isShutDown
}

// ShutDown makes every Get return at once. Queued requests are dropped.
func (q *Queue) ShutDown() {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.isShutDown {
		return
	}
	q.isShutDown = true
	close(q.stopped)
	q.idle.Broadcast()
}

// ShutDownWithDrain is ShutDown: controllers wait for their workers themselves.
func (q *Queue) ShutDownWithDrain() { q.ShutDown() }

// run makes requests ready when their time has come, until the queue is shut down.
func (q *Queue) run() {
	gauges := q.opts.Clock.NewTicker(gaugesEvery)
	defer gauges.Stop()
	for {
		next, stop := q.wakeDue()
		select {
		case <-q.stopped:
			stop()
			return
		case <-q.earliest:
		case <-next:
		case <-gauges.C():
			q.measure()
		}
		stop()
	}
}

// wakeDue makes due requests ready, and returns when to check again.
func (q *Queue) wakeDue() (next <-chan time.Time, stop func()) {
	q.mu.Lock()
	defer q.mu.Unlock()
	now := q.opts.Clock.Now()
	for len(q.waiting) > 0 && !q.waiting[0].readyAt.After(now) {
		q.makeReady(q.waiting[0])
	}
	if len(q.waiting) == 0 {
		return nil, func() {}
	}
	timer := q.opts.Clock.NewTimer(q.waiting[0].readyAt.Sub(now))
	return timer.C(), func() { timer.Stop() }
}

// measure updates the metrics of unfinished work.
func (q *Queue) measure() {
	q.mu.Lock()
	defer q.mu.Unlock()
	now := q.opts.Clock.Now()
	var total, longest time.Duration
	for _, e := range q.running {
		age := now.Sub(e.began)
		total += age
		longest = max(longest, age)
	}
	q.metrics.unfinished.Set(total.Seconds())
	q.metrics.longest.Set(longest.Seconds())
}

// delayed is a heap of entries by the time they become ready.
type delayed []*entry

func (d delayed) Len() int           { return len(d) }
func (d delayed) Less(i, j int) bool { return d[i].readyAt.Before(d[j].readyAt) }

func (d delayed) Swap(i, j int) {
	d[i], d[j] = d[j], d[i]
	d[i].index, d[j].index = i, j
}

// Push implements heap.Interface.
func (d *delayed) Push(x any) {
	e := x.(*entry)
	e.index = len(*d)
	*d = append(*d, e)
}

// Pop implements heap.Interface.
func (d *delayed) Pop() any {
	last := len(*d) - 1
	e := (*d)[last]
	(*d)[last] = nil
	*d = (*d)[:last]
	return e
}
