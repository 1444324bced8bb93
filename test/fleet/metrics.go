package fleet

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"k8s.io/client-go/kubernetes"
)

var writeVerbs = []string{"POST", "PUT", "PATCH", "APPLY", "DELETE", "DELETECOLLECTION"}

// Writes returns how many writes of the given resources (such as "clusterprofiles") a
// cluster's API server has handled since it started, by "VERB resource" or "VERB
// resource/subresource", from its own metrics. It counts all clients and every outcome: an
// attempt that is refused or changes nothing counts, too. A dry run, which can change nothing,
// does not.
func (f *Fleet) Writes(ctx context.Context, cluster string, resources ...string) (map[string]int, error) {
	cfg, err := f.Cluster(cluster)
	if err != nil {
		return nil, err
	}
	c, err := kubernetes.NewForConfig(cfg)
	if err != nil {
		return nil, err
	}
	stream, err := c.RESTClient().Get().AbsPath("/metrics").Stream(ctx)
	if err != nil {
		return nil, fmt.Errorf("read the API server's metrics: %w", err)
	}
	counts, err := parseWrites(stream, resources)
	return counts, errors.Join(err, stream.Close())
}

func parseWrites(metrics io.Reader, resources []string) (map[string]int, error) {
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(metrics)
	if err != nil {
		return nil, fmt.Errorf("parse the API server's metrics: %w", err)
	}
	counts := map[string]int{}
	for _, metric := range families["apiserver_request_total"].GetMetric() {
		labels := map[string]string{}
		for _, label := range metric.GetLabel() {
			labels[label.GetName()] = label.GetValue()
		}
		if !slices.Contains(writeVerbs, labels["verb"]) || !slices.Contains(resources, labels["resource"]) ||
			labels["dry_run"] != "" {
			continue
		}
		request := labels["verb"] + " " + labels["resource"]
		if labels["subresource"] != "" {
			request += "/" + labels["subresource"]
		}
		counts[request] += int(metric.GetCounter().GetValue())
	}
	return counts, nil
}
