package metrics

import (
	"github.com/prometheus/client_golang/prometheus"

	"open-cluster-management.io/cluster-inventory-addon/pkg/kube"
)

// tally counts things by their present labels. Their owner reports each change. It is a
// prometheus.Collector.
type tally struct {
	desc   *prometheus.Desc
	labels int

	// known is true if the labels have known values, so that counts of zero are exported, too.
	known bool

	// shown, unless nil, returns the labels under which a series is exported, possibly with others.
	shown func(series) series

	counts kube.Memory[series, int]
}

// collected is a prometheus.Collector of what each scrape finds.
type collected struct {
	desc *prometheus.Desc
	each func(show func(value float64, labels ...string))
}

// Describe implements prometheus.Collector.
func (c collected) Describe(into chan<- *prometheus.Desc) { into <- c.desc }

// Collect implements prometheus.Collector.
func (c collected) Collect(into chan<- prometheus.Metric) {
	c.each(func(value float64, labels ...string) {
		into <- prometheus.MustNewConstMetric(c.desc, prometheus.GaugeValue, value, labels...)
	})
}

// series is what is counted together: the values of a tally's labels, in their order.
type series [3]string

// newTally returns a tally with these labels, of which there are at most three.
func newTally(name, help string, labels ...string) *tally {
	return &tally{desc: prometheus.NewDesc(prefix+name, help, labels, nil), labels: len(labels)}
}

// newPairTally returns a tally of pairs with a label of these values. They are exported from the
// start, unless there is also a namespace label: the namespace may be gone.
func newPairTally(name, help, label string, byNamespace bool, values []string) *tally {
	if byNamespace {
		return newTally(name, help, "namespace", label)
	}
	return newTally(name, help, label).from(values)
}

// from makes a tally with one label export these values from the start.
func (t *tally) from(values []string) *tally {
	t.known = true
	for _, value := range values {
		t.counts.Set(series{value}, 0)
	}
	return t
}

// move counts a thing with another value of the last label; "" means not at all. The namespace counts
// only if it is a label.
func (t *tally) move(namespace, before, after string) {
	if before == after {
		return
	}
	of := func(value string) series {
		if t.labels == 1 {
			return series{value}
		}
		return series{namespace, value}
	}
	if before != "" {
		t.add(of(before), -1)
	}
	if after != "" {
		t.add(of(after), 1)
	}
}

func (t *tally) add(of series, more int) {
	t.counts.Update(of, func(before int, _ bool) (now int, keep bool) {
		now = before + more
		return now, now != 0 || t.known
	})
}

// Describe implements prometheus.Collector.
func (t *tally) Describe(into chan<- *prometheus.Desc) { into <- t.desc }

// Collect implements prometheus.Collector.
func (t *tally) Collect(into chan<- prometheus.Metric) {
	counts := map[series]int{}
	for of, count := range t.counts.All() {
		if t.shown != nil {
			of = t.shown(of)
		}
		counts[of] += count
	}
	for of, count := range counts {
		into <- prometheus.MustNewConstMetric(t.desc, prometheus.GaugeValue, float64(count), of[:t.labels]...)
	}
}
