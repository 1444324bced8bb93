package meter

import (
	"context"
	"errors"
	"fmt"
	"io"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"k8s.io/client-go/rest"
)

// Counters are an API server's counters since its start.
type Counters struct {
	// Requests by "VERB resource" or "VERB resource/subresource"; refused ones have the
	// code as a third word. They include all clients'.
	Requests map[string]int
	// Bytes by direction: "request bodies", "responses", "watch events".
	Bytes map[string]int64
}

// Server reads the API server's own metrics.
func Server(ctx context.Context, client rest.Interface) (_ Counters, err error) {
	stream, err := client.Get().AbsPath("/metrics").Stream(ctx)
	if err != nil {
		return Counters{}, fmt.Errorf("read the API server's metrics: %w", err)
	}
	defer func() { err = errors.Join(err, stream.Close()) }()
	return parseCounters(stream)
}

// sizes are the histograms whose sum is used.
var sizes = map[string]string{
	"apiserver_request_body_size_bytes": "request bodies",
	"apiserver_response_sizes":          "responses",
	"apiserver_watch_events_sizes":      "watch events",
}

func parseCounters(metrics io.Reader) (Counters, error) {
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(metrics)
	if err != nil {
		return Counters{}, fmt.Errorf("parse the API server's metrics: %w", err)
	}
	counters := Counters{Requests: map[string]int{}, Bytes: map[string]int64{}}
	for _, metric := range families["apiserver_request_total"].GetMetric() {
		if request := requestOf(metric); request != "" {
			counters.Requests[request] += int(metric.GetCounter().GetValue())
		}
	}
	for family, name := range sizes {
		for _, metric := range families[family].GetMetric() {
			counters.Bytes[name] += int64(metric.GetHistogram().GetSampleSum())
		}
	}
	return counters, nil
}

// requestOf names a kind of requests, or "" for requests without a resource and for dry runs, which store
// nothing: the manager tries at each start what its admission policies must refuse.
func requestOf(metric *dto.Metric) string {
	labels := map[string]string{}
	for _, label := range metric.GetLabel() {
		labels[label.GetName()] = label.GetValue()
	}
	if labels["resource"] == "" || labels["dry_run"] != "" {
		return ""
	}
	request := labels["verb"] + " " + labels["resource"]
	if labels["subresource"] != "" {
		request += "/" + labels["subresource"]
	}
	if code := labels["code"]; code >= "400" {
		request += " " + code
	}
	return request
}

// since returns the difference between two readings, without zeros.
func (c Counters) since(before Counters) Counters {
	difference := Counters{Requests: map[string]int{}, Bytes: map[string]int64{}}
	for request, count := range c.Requests {
		if more := count - before.Requests[request]; more > 0 {
			difference.Requests[request] = more
		}
	}
	for where, count := range c.Bytes {
		difference.Bytes[where] = count - before.Bytes[where]
	}
	return difference
}
