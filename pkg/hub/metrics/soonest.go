package metrics

import (
	"container/heap"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
)

// soonest knows when the first of many tokens expires. It is a prometheus.Collector.
type soonest struct {
	desc  *prometheus.Desc
	clock clock.PassiveClock

	mu       sync.Mutex
	ends     ends
	accounts map[types.NamespacedName]*end
}

// end is when the token of an account expires.
type end struct {
	at    time.Time
	place int // in the heap
}

func newSoonest(clock clock.PassiveClock) *soonest {
	return &soonest{
		desc: prometheus.NewDesc(prefix+"credential_expiry_seconds",
			"Time until the first copied token expires. Missing while no token is copied.", nil, nil),
		clock:    clock,
		accounts: map[types.NamespacedName]*end{},
	}
}

// set records when an account's token expires; the zero time forgets it.
func (s *soonest) set(account types.NamespacedName, at time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	known := s.accounts[account]
	switch {
	case at.IsZero() && known == nil:
	case at.IsZero():
		heap.Remove(&s.ends, known.place)
		delete(s.accounts, account)
	case known == nil:
		known = &end{at: at}
		heap.Push(&s.ends, known)
		s.accounts[account] = known
	case !known.at.Equal(at):
		known.at = at
		heap.Fix(&s.ends, known.place)
	}
}

// Describe implements prometheus.Collector.
func (s *soonest) Describe(into chan<- *prometheus.Desc) { into <- s.desc }

// Collect implements prometheus.Collector.
func (s *soonest) Collect(into chan<- prometheus.Metric) {
	if at, ok := s.first(); ok {
		left := at.Sub(s.clock.Now()).Seconds()
		into <- prometheus.MustNewConstMetric(s.desc, prometheus.GaugeValue, left)
	}
}

func (s *soonest) first() (at time.Time, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.ends) == 0 {
		return time.Time{}, false
	}
	return s.ends[0].at, true
}

// ends is a heap, with the first end on top.
type ends []*end

// Len implements heap.Interface.
func (e ends) Len() int { return len(e) }

// Less implements heap.Interface.
func (e ends) Less(i, j int) bool { return e[i].at.Before(e[j].at) }

// Swap implements heap.Interface.
func (e ends) Swap(i, j int) {
	e[i], e[j] = e[j], e[i]
	e[i].place, e[j].place = i, j
}

// Push implements heap.Interface.
func (e *ends) Push(added any) {
	one := added.(*end)
	one.place = len(*e)
	*e = append(*e, one)
}

// Pop implements heap.Interface.
func (e *ends) Pop() any {
	last := len(*e) - 1
	one := (*e)[last]
	(*e)[last] = nil
	*e = (*e)[:last]
	return one
}
