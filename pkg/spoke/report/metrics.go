package report

import (
	"github.com/prometheus/client_golang/prometheus"

	"open-cluster-management.io/cluster-inventory-addon/pkg/kube"
	"open-cluster-management.io/cluster-inventory-addon/pkg/version"
)

// Metrics are the agent's own, as of its last report; docs/metrics.md has their table. It
// is a prometheus.Collector.
type Metrics struct {
	properties *prometheus.GaugeVec
	build      prometheus.Collector
}

// NewMetrics returns metrics that have counted nothing yet.
func NewMetrics() *Metrics {
	m := &Metrics{
		properties: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "cluster_inventory_agent_properties",
			Help: "ClusterProperties of the cluster, by state.",
		}, []string{"state"}),
		build: kube.BuildInfo("cluster_inventory_agent_build_info", "The version of the agent; always 1.",
			version.Get().Labels()),
	}
	m.show(count(observed{}))
	return m
}

// Describe implements prometheus.Collector.
func (m *Metrics) Describe(into chan<- *prometheus.Desc) {
	m.properties.Describe(into)
	m.build.Describe(into)
}

// Collect implements prometheus.Collector.
func (m *Metrics) Collect(into chan<- prometheus.Metric) {
	m.properties.Collect(into)
	m.build.Collect(into)
}

// show sets how many properties are in each state.
func (m *Metrics) show(counts map[string]int) {
	for state, properties := range counts {
		m.properties.WithLabelValues(state).Set(float64(properties))
	}
}

// count returns how many properties are in each state.
func count(seen observed) map[string]int {
	result := compare(seen)
	return map[string]int{
		"Published": result.published - result.cutOff, "CutOff": result.cutOff,
		"SpokeOnly": len(result.spokeOnly), "LeftOut": len(result.leftOut),
	}
}
