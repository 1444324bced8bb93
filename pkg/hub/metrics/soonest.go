package metrics

import (
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

	mu   sync.Mutex
	ends map[types.NamespacedName]time.Time // by account
}

func newSoonest(clock clock.PassiveClock) *soonest {
	return &soonest{
		desc: prometheus.NewDesc(prefix+"credential_expiry_seconds",
			"Time until the first copied token expires. Missing while no token is copied.", nil, nil),
		clock: clock,
		ends:  map[types.NamespacedName]time.Time{},
	}
}

// set records when an account's token expires; the zero time forgets it.
func (s *soonest) set(account types.NamespacedName, at time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if at.IsZero() {
		delete(s.ends, account)
	} else {
		s.ends[account] = at
	}
}

// Describe implements prometheus.Collector.
func (s *soonest) Describe(into chan<- *prometheus.Desc) { into <- s.desc }

// Collect implements prometheus.Collector.
func (s *soonest) Collect(into chan<- prometheus.Metric) {
	if at := s.first(); !at.IsZero() {
		left := at.Sub(s.clock.Now()).Seconds()
		into <- prometheus.MustNewConstMetric(s.desc, prometheus.GaugeValue, left)
	}
}

// first returns when the first token expires; the zero time if there is none. It looks at every
// account, which is cheap enough for once a scrape.
func (s *soonest) first() time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	var first time.Time
	for _, at := range s.ends {
		if first.IsZero() || at.Before(first) {
			first = at
		}
	}
	return first
}
