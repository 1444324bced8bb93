package fleet

import (
	"context"
	"crypto/tls"
	"fmt"
	"net/http"
	"time"
)

// probes asks health endpoints, whose certificates are often self-signed.
var probes = &http.Client{
	Timeout: 3 * time.Second,
	Transport: &http.Transport{
		TLSClientConfig:   &tls.Config{InsecureSkipVerify: true}, //nolint:gosec // only ever loopback, and only the status is read
		DisableKeepAlives: true,
	},
}

// ready tells whether the process answers its probe.
func (p Process) ready(ctx context.Context) bool {
	if p.Probe == "" {
		return true
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, p.Probe, nil)
	if err != nil {
		return false
	}
	response, err := probes.Do(request)
	if err != nil {
		return false
	}
	return response.Body.Close() == nil && response.StatusCode == http.StatusOK
}

// wait asks again and again till the answer is yes; an error of the question
// is remembered, and told when time runs out.
func wait(ctx context.Context, what string, every time.Duration, ask func(context.Context) (bool, error)) error {
	ticker := time.NewTicker(every)
	defer ticker.Stop()
	for {
		yes, err := ask(ctx)
		if yes && err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			if err != nil {
				return fmt.Errorf("waited in vain for %s: %w (%w)", what, ctx.Err(), err)
			}
			return fmt.Errorf("waited in vain for %s: %w", what, ctx.Err())
		case <-ticker.C:
		}
	}
}
