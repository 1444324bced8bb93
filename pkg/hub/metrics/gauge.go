package metrics

import (
	"github.com/prometheus/client_golang/prometheus"

	"open-cluster-management.io/cluster-inventory-addon/pkg/kube"
)

// gauge counts things by their present labels. Their owner reports each change. It is a
// prometheus.Collector.
type gauge struct {
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

// series is what is counted together: the values of a gauge's labels, in their order.
type series [3]string

// newGauge returns a gauge with these labels, of which there are at most three.
func newGauge(name, help string, labels ...string) *gauge {
	return &gauge{desc: prometheus.NewDesc(prefix+name, help, labels, nil), labels: len(labels)}
}

// newPairGauge returns a gauge of pairs with a label of these values. They are exported from the
// start, unless there is also a namespace label: the namespace may be gone.
func newPairGauge(name, help, label string, byNamespace bool, values []string) *gauge {
	if byNamespace {
		return newGauge(name, help, "namespace", label)
	}
	return newGauge(name, help, label).from(values)
}

// from makes a gauge with one label export these values from the start.
func (g *gauge) from(values []string) *gauge {
	g.known = true
	for _, value := range values {
		g.counts.Set(series{value}, 0)
	}
	return g
}

// move counts a thing with another value of the last label; "" means not at all. The namespace counts
// only if it is a label.
func (g *gauge) move(namespace, before, after string) {
	if before == after {
		return
	}
	of := func(value string) series {
		if g.labels == 1 {
			return series{value}
		}
		return series{namespace, value}
	}
	if before != "" {
		g.add(of(before), -1)
	}
	if after != "" {
		g.add(of(after), 1)
	}
}

func (g *gauge) add(of series, more int) {
	g.counts.Update(of, func(before int, _ bool) (now int, keep bool) {
		now = before + more
		return now, now != 0 || g.known
	})
}

// Describe implements prometheus.Collector.
func (g *gauge) Describe(into chan<- *prometheus.Desc) { into <- g.desc }

// Collect implements prometheus.Collector.
func (g *gauge) Collect(into chan<- prometheus.Metric) {
	counts := map[series]int{}
	for of, count := range g.counts.All() {
		if g.shown != nil {
			of = g.shown(of)
		}
		counts[of] += count
	}
	for of, count := range counts {
		into <- prometheus.MustNewConstMetric(g.desc, prometheus.GaugeValue, float64(count), of[:g.labels]...)
	}
}
