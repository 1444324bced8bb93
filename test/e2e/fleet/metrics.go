package fleet

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// Write is a kind of request that changes something.
type Write struct {
	// Resource is the plural name with its group, such as
	// "clusterprofiles.multicluster.x-k8s.io"; a core one has no group.
	Resource string
	// Subresource is "status" or the like, or "".
	Subresource string
	// Verb is POST, PUT, PATCH, APPLY, DELETE or DELETECOLLECTION.
	Verb string
}

func (w Write) String() string {
	if w.Subresource == "" {
		return w.Verb + " " + w.Resource
	}
	return w.Verb + " " + w.Resource + "/" + w.Subresource
}

var writeVerbs = []string{"POST", "PUT", "PATCH", "APPLY", "DELETE", "DELETECOLLECTION"}

// WriteCounts reads from an API server's own metrics how many writes of the
// given resources it has answered since it started, by whomever and with
// whatever outcome: an attempt that is refused or changes nothing counts too.
func WriteCounts(ctx context.Context, cfg *rest.Config, resources ...string) (map[Write]int, error) {
	c, err := kubernetes.NewForConfig(cfg)
	if err != nil {
		return nil, err
	}
	stream, err := c.RESTClient().Get().AbsPath("/metrics").Stream(ctx)
	if err != nil {
		return nil, fmt.Errorf("read the API server's metrics: %w", err)
	}
	counts, err := parseWriteCounts(stream, resources)
	if closeErr := stream.Close(); err == nil {
		err = closeErr
	}
	return counts, err
}

func parseWriteCounts(metrics io.Reader, resources []string) (map[Write]int, error) {
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(metrics)
	if err != nil {
		return nil, fmt.Errorf("parse the API server's metrics: %w", err)
	}
	counts := map[Write]int{}
	for _, metric := range families["apiserver_request_total"].GetMetric() {
		labels := map[string]string{}
		for _, label := range metric.GetLabel() {
			labels[label.GetName()] = label.GetValue()
		}
		w := Write{
			Resource:    strings.TrimSuffix(labels["resource"]+"."+labels["group"], "."),
			Subresource: labels["subresource"],
			Verb:        labels["verb"],
		}
		if slices.Contains(writeVerbs, w.Verb) && slices.Contains(resources, w.Resource) {
			counts[w] += int(metric.GetCounter().GetValue())
		}
	}
	return counts, nil
}

// WritesBetween is what was written after the first count and till the second;
// it is empty when nothing was.
func WritesBetween(before, after map[Write]int) map[Write]int {
	between := map[Write]int{}
	for w, n := range after {
		if n != before[w] {
			between[w] = n - before[w]
		}
	}
	return between
}
