package kube

import (
	"runtime/debug"

	"github.com/prometheus/client_golang/prometheus"
)

// BuildInfo returns a metric whose labels say what this program was built from: its
// module's version, the revision of its source and the version of Go. What is not known
// is "unknown".
func BuildInfo(name, help string) prometheus.Collector {
	labels := prometheus.Labels{"version": "unknown", "revision": "unknown", "goversion": "unknown"}
	if info, ok := debug.ReadBuildInfo(); ok {
		set := func(label, value string) {
			if value != "" {
				labels[label] = value
			}
		}
		set("version", info.Main.Version)
		set("goversion", info.GoVersion)
		for _, setting := range info.Settings {
			if setting.Key == "vcs.revision" {
				set("revision", setting.Value)
			}
		}
	}
	gauge := prometheus.NewGauge(prometheus.GaugeOpts{Name: name, Help: help, ConstLabels: labels})
	gauge.Set(1)
	return gauge
}
