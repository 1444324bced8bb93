package metrics

import (
	"bufio"
	"bytes"
	"io"
	"net/http"
	"slices"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/client-go/rest"
)

// CountWrites returns a copy of a configuration whose clients' writes are counted by the
// API server's responses.
func (m *Metrics) CountWrites(cfg *rest.Config) *rest.Config {
	cfg = rest.CopyConfig(cfg)
	cfg.Wrap(func(next http.RoundTripper) http.RoundTripper { return countedWrites{next, m.writes} })
	return cfg
}

type countedWrites struct {
	next   http.RoundTripper
	writes *prometheus.CounterVec
}

// RoundTrip implements http.RoundTripper.
func (c countedWrites) RoundTrip(req *http.Request) (*http.Response, error) {
	resp, err := c.next.RoundTrip(req)
	if verb, isWrite := writeVerbs[req.Method]; isWrite && !req.URL.Query().Has("dryRun") {
		if resource := resourceOf(req.URL.Path); resource != "" {
			c.writes.WithLabelValues(resource, verb, outcomeOf(resp, err)).Inc()
		}
	}
	return resp, err
}

var writeVerbs = map[string]string{
	http.MethodPost: "create", http.MethodPut: "update", http.MethodPatch: "patch", http.MethodDelete: "delete",
}

// otherResource stands for every resource that the manager is not known to write, so that
// no name can become a label.
const otherResource = "other"

// writtenResources are the resources that the manager writes.
var writtenResources = []string{
	"certificatesigningrequests/approval", "clustermanagementaddons/status", "clusterprofiles", "clusterprofiles/status",
	"configmaps", "events", "leases", "managedclusteraddons", "managedclusteraddons/status", "manifestworks",
	"placementdecisions", "rolebindings", "secrets",
}

// resourceOf returns the resource, and its subresource, in the path of a request; "" for
// reviews, which write nothing.
func resourceOf(path string) string {
	parts := strings.Split(strings.Trim(path, "/"), "/")
	switch at := slices.IndexFunc(parts, func(part string) bool { return part == "api" || part == "apis" }); {
	case at < 0:
		return otherResource
	case parts[at] == "api": // api/v1
		parts = parts[min(at+2, len(parts)):]
	default: // apis/group/version
		parts = parts[min(at+3, len(parts)):]
	}
	if len(parts) > 2 && parts[0] == "namespaces" {
		parts = parts[2:]
	}
	if len(parts) == 0 {
		return otherResource
	}
	resource := parts[0]
	if strings.HasSuffix(resource, "reviews") {
		return ""
	}
	if len(parts) > 2 {
		resource += "/" + parts[2]
	}
	if !slices.Contains(writtenResources, resource) {
		return otherResource
	}
	return resource
}

// Outcomes of a write.
const (
	outcomeSuccess  = "Success"
	outcomeConflict = "Conflict" // it is recomputed
	outcomeDenied   = "Denied"   // by a ValidatingAdmissionPolicy
	outcomeRefused  = "Refused"
	outcomeFailed   = "Failed" // no response, or a server error
)

func outcomeOf(resp *http.Response, err error) string {
	switch {
	case err != nil, resp.StatusCode >= http.StatusInternalServerError, resp.StatusCode == http.StatusTooManyRequests:
		return outcomeFailed
	case resp.StatusCode == http.StatusConflict:
		return outcomeConflict
	case resp.StatusCode >= http.StatusBadRequest && isDenied(resp):
		return outcomeDenied
	case resp.StatusCode >= http.StatusBadRequest:
		return outcomeRefused
	default:
		return outcomeSuccess
	}
}

// isDenied reports whether a refusal names a ValidatingAdmissionPolicy. Its message is at the
// beginning of the body, in each encoding, and nothing else shows it. The body stays readable.
func isDenied(resp *http.Response) bool {
	body := bufio.NewReader(resp.Body)
	resp.Body = struct {
		io.Reader
		io.Closer
	}{body, resp.Body}
	beginning, _ := body.Peek(body.Size()) // as much as there is
	return bytes.Contains(beginning, []byte("ValidatingAdmissionPolicy '"))
}
