package hub

import (
	"context"
	"io"
	"net/http"
	"time"

	"k8s.io/client-go/rest"
)

// writeTimeout exceeds the 30 seconds that an API server grants a webhook. A write that
// takes longer will not be answered.
const writeTimeout = 35 * time.Second

// boundWrites returns a copy of a configuration whose clients give up a write after a
// timeout. The write may have been carried out all the same. Reads are not bounded, since a
// watch lasts.
func boundWrites(cfg *rest.Config, timeout time.Duration) *rest.Config {
	cfg = rest.CopyConfig(cfg)
	cfg.Wrap(func(next http.RoundTripper) http.RoundTripper { return boundedWrites{next, timeout} })
	return cfg
}

type boundedWrites struct {
	next    http.RoundTripper
	timeout time.Duration
}

// RoundTrip implements http.RoundTripper.
func (b boundedWrites) RoundTrip(req *http.Request) (*http.Response, error) {
	if req.Method == http.MethodGet {
		return b.next.RoundTrip(req)
	}
	ctx, cancel := context.WithTimeout(req.Context(), b.timeout)
	resp, err := b.next.RoundTrip(req.WithContext(ctx))
	if err != nil {
		cancel()
		return nil, err
	}
	resp.Body = &cancelingBody{ReadCloser: resp.Body, cancel: cancel}
	return resp, nil
}

// cancelingBody cancels a request's context after its response has been read.
type cancelingBody struct {
	io.ReadCloser
	cancel context.CancelFunc
}

// Close implements io.Closer.
func (b *cancelingBody) Close() error {
	defer b.cancel()
	return b.ReadCloser.Close()
}
