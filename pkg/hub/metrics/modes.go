package metrics

import (
	"github.com/prometheus/client_golang/prometheus"

	"open-cluster-management.io/cluster-inventory-addon/pkg/kube"
)

// Mode says whether one of OCM's own writers is on.
type Mode string

// The modes.
const (
	On      Mode = "On"
	Off     Mode = "Off"
	Unknown Mode = "Unknown"
)

func modes() []Mode { return []Mode{On, Off, Unknown} }

// writerModes knows in which mode each of OCM's own writers is. It is a prometheus.Collector:
// every scrape shows each writer in exactly one mode.
type writerModes struct {
	desc    *prometheus.Desc
	present kube.Memory[string, Mode] // by writer
}

func newWriterModes() *writerModes {
	return &writerModes{
		desc: prometheus.NewDesc(prefix+"upstream_mode",
			"1 for the current mode of one of Open Cluster Management's own writers, 0 for its other modes.",
			[]string{"writer", "mode"}, nil),
	}
}

// Describe implements prometheus.Collector.
func (w *writerModes) Describe(into chan<- *prometheus.Desc) { into <- w.desc }

// Collect implements prometheus.Collector.
func (w *writerModes) Collect(into chan<- prometheus.Metric) {
	for writer, now := range w.present.All() {
		for _, mode := range modes() {
			value := 0.
			if mode == now {
				value = 1
			}
			into <- prometheus.MustNewConstMetric(w.desc, prometheus.GaugeValue, value, writer, string(mode))
		}
	}
}
