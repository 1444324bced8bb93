package kube

import "github.com/prometheus/client_golang/prometheus"

// BuildInfo returns a metric that is always 1. Its labels say what the program was built
// from.
func BuildInfo(name, help string, labels prometheus.Labels) prometheus.Collector {
	gauge := prometheus.NewGauge(prometheus.GaugeOpts{Name: name, Help: help, ConstLabels: labels})
	gauge.Set(1)
	return gauge
}
