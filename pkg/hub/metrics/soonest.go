package metrics

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	"open-cluster-management.io/cluster-inventory-addon/pkg/kube"
)

// soonest knows when the first of many tokens expires. It is a prometheus.Collector.
type soonest struct {
	desc  *prometheus.Desc
	clock clock.PassiveClock
	ends  kube.Memory[types.NamespacedName, time.Time] // by account
}

func newSoonest(clock clock.PassiveClock) *soonest {
	return &soonest{
		desc: prometheus.NewDesc(prefix+"credential_expiry_seconds",
			"Time until the first copied token expires. Missing while no token is copied.", nil, nil),
		clock: clock,
	}
}

// set records when an account's token expires; the zero time forgets it.
func (s *soonest) set(account types.NamespacedName, at time.Time) {
	if at.IsZero() {
		s.ends.Forget(account)
	} else {
		s.ends.Set(account, at)
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
	var first time.Time
	for _, at := range s.ends.All() {
		if first.IsZero() || at.Before(first) {
			first = at
		}
	}
	return first
}
