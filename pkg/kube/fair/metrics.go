package fair

import (
	"errors"
	"strconv"

	"github.com/prometheus/client_golang/prometheus"
	controllermetrics "sigs.k8s.io/controller-runtime/pkg/metrics"
)

// metrics are those of one queue. controller-runtime keeps its own queues' metrics
// unexported. Registering them again, with the same names, help texts and labels, returns the
// existing ones.
type metrics struct {
	depth               [classes]prometheus.Gauge
	adds, retries       prometheus.Counter
	latency, work       prometheus.Observer
	unfinished, longest prometheus.Gauge // in seconds, as latency and work
}

func newMetrics(queue string) *metrics {
	depth := gauges(controllermetrics.DepthKey,
		"Current depth of workqueue by workqueue and priority", "priority")
	m := &metrics{
		adds: counter(queue, controllermetrics.AddsKey, "Total number of adds handled by workqueue"),
		retries: counter(queue, controllermetrics.RetriesKey, "Total number of items added to the workqueue "+
			"with a non-zero delay (rate-limited requeues, explicit RequeueAfter or AddAfter calls)"),
		latency: histogram(queue, controllermetrics.QueueLatencyKey,
			"How long in seconds an item stays in workqueue before being requested"),
		work: histogram(queue, controllermetrics.WorkDurationKey,
			"How long in seconds processing an item from workqueue takes."),
		unfinished: gauges(controllermetrics.UnfinishedWorkKey, "How many seconds of work has been done that "+
			"is in progress and hasn't been observed by work_duration. Large values indicate stuck threads. "+
			"One can deduce the number of stuck threads by observing the rate at which this increases.",
		).WithLabelValues(queue, queue),
		longest: gauges(controllermetrics.LongestRunningProcessorKey,
			"How many seconds has the longest running processor for workqueue been running.",
		).WithLabelValues(queue, queue),
	}
	for class := range classes {
		m.depth[class] = depth.WithLabelValues(queue, queue, strconv.Itoa(class.priority()))
	}
	return m
}

func labels(more ...string) []string { return append([]string{"name", "controller"}, more...) }

func gauges(key, help string, more ...string) *prometheus.GaugeVec {
	return registered(prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Subsystem: controllermetrics.WorkQueueSubsystem, Name: key, Help: help,
	}, labels(more...)))
}

func counter(queue, key, help string) prometheus.Counter {
	return registered(prometheus.NewCounterVec(prometheus.CounterOpts{
		Subsystem: controllermetrics.WorkQueueSubsystem, Name: key, Help: help,
	}, labels())).WithLabelValues(queue, queue)
}

func histogram(queue, key, help string) prometheus.Observer {
	return registered(prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Subsystem: controllermetrics.WorkQueueSubsystem, Name: key, Help: help,
	}, labels())).WithLabelValues(queue, queue)
}

// registered returns the metric that controller-runtime has registered. If there is no
// longer an equal one, the new one counts without being exported.
func registered[C prometheus.Collector](metric C) C {
	var already prometheus.AlreadyRegisteredError
	if errors.As(controllermetrics.Registry.Register(metric), &already) {
		if existing, ok := already.ExistingCollector.(C); ok {
			return existing
		}
	}
	return metric
}
