package apitest

import (
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
)

// Gather returns the metrics of a collector as they would be scraped.
func Gather(tb testing.TB, collector prometheus.Collector) []*dto.MetricFamily {
	tb.Helper()
	registry := prometheus.NewPedanticRegistry()
	Must(tb, registry.Register(collector))
	families, err := registry.Gather()
	Must(tb, err)
	return families
}

// Shown returns the series of one metric of a collector that are not zero, by the values
// of their labels, in the order of the labels' names. Of histograms it returns how many
// values were observed, and their sum.
func Shown(tb testing.TB, collector prometheus.Collector, name string) map[string]float64 {
	tb.Helper()
	found := map[string]float64{}
	for _, family := range Gather(tb, collector) {
		if family.GetName() != name {
			continue
		}
		for _, metric := range family.GetMetric() {
			var labels []string
			for _, label := range metric.GetLabel() {
				labels = append(labels, label.GetValue())
			}
			of := strings.Join(labels, " ")
			if histogram := metric.GetHistogram(); histogram != nil {
				found[of+"count"] = float64(histogram.GetSampleCount())
				found[of+"sum"] = histogram.GetSampleSum()
			}
			if value := metric.GetGauge().GetValue() + metric.GetCounter().GetValue(); value != 0 {
				found[of] = value
			}
		}
	}
	return found
}
