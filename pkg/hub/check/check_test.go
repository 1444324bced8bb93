package check

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/rest"
)

// A hub that never answers is named as what is missing, and holds the check up no longer than
// its timeout allows.
func TestAHubThatDoesNotAnswerIsReported(t *testing.T) {
	hub := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, req *http.Request) {
		<-req.Context().Done()
	}))
	t.Cleanup(hub.Close)
	var out strings.Builder
	err := Run(t.Context(), &rest.Config{Host: hub.URL}, &out, Options{Namespace: "ns", Timeout: 50 * time.Millisecond})
	const want = "incomplete after 50ms: asking for the resources of cluster.open-cluster-management.io/v1: "
	if err == nil || !strings.HasPrefix(err.Error(), want) {
		t.Errorf("the check ended with %v, want %q...", err, want)
	}
	if !strings.HasPrefix(out.String(), "Waiting:\nasking for the resources of ") {
		t.Errorf("printed %q", out.String())
	}
}
