package metrics

import (
	"github.com/prometheus/client_golang/prometheus"

	"open-cluster-management.io/cluster-inventory-addon/pkg/kube"
)

// tally counts things by their present state. Their owner reports each change. It is a
// prometheus.Collector.
type tally struct {
	desc        *prometheus.Desc
	byNamespace bool
	counts      kube.Memory[series, int]
}

// series identifies what is counted together.
type series struct{ namespace, value string }

// newTally returns a tally with a label of these values. They are exported from the start,
// unless there is also a namespace label.
func newTally(name, help, label string, byNamespace bool, values []string) *tally {
	labels := []string{label}
	if byNamespace {
		labels = []string{"namespace", label}
	}
	t := &tally{
		desc:        prometheus.NewDesc(prefix+name, help, labels, nil),
		byNamespace: byNamespace,
	}
	for _, value := range values {
		if !byNamespace {
			t.counts.Set(series{value: value}, 0)
		}
	}
	return t
}

// move counts a thing in another state; "" means not at all.
func (t *tally) move(namespace, before, after string) {
	if before == after {
		return
	}
	if before != "" {
		t.add(namespace, before, -1)
	}
	if after != "" {
		t.add(namespace, after, 1)
	}
}

// add changes a count.
func (t *tally) add(namespace, value string, more int) {
	of := series{value: value}
	if t.byNamespace {
		of.namespace = namespace
	}
	t.counts.Update(of, func(before int, _ bool) (now int, keep bool) {
		now = before + more
		return now, now != 0 || !t.byNamespace // the namespace may be gone
	})
}

// Describe implements prometheus.Collector.
func (t *tally) Describe(into chan<- *prometheus.Desc) { into <- t.desc }

// Collect implements prometheus.Collector.
func (t *tally) Collect(into chan<- prometheus.Metric) {
	for of, count := range t.counts.All() {
		labels := []string{of.value}
		if t.byNamespace {
			labels = []string{of.namespace, of.value}
		}
		into <- prometheus.MustNewConstMetric(t.desc, prometheus.GaugeValue, float64(count), labels...)
	}
}
