package proxy

import (
	"bytes"
	"io"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"time"

	"k8s.io/apiserver/pkg/endpoints/request"
)

// stamps are fields of Kubernetes' objects that have a time, and the time up to its seconds: those of
// metadata, conditions and properties, and what accounts say about their tokens.
var stamps = regexp.MustCompile(
	`("(?:[A-Za-z]*Timestamp|[A-Za-z]+Time|time)":\s*")(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)((?:\.\d+)?Z")`)

const seconds = "2006-01-02T15:04:05"

// shifted returns JSON with all times later by a duration of whole seconds, or earlier.
func shifted(body []byte, by time.Duration) []byte {
	return stamps.ReplaceAllFunc(body, func(field []byte) []byte {
		parts := stamps.FindSubmatch(field)
		at, err := time.Parse(seconds, string(parts[2]))
		if err != nil {
			return field // no time, but in its form
		}
		return bytes.Join([][]byte{parts[1], at.Add(by).AppendFormat(nil, seconds), parts[3]}, nil)
	})
}

// Shift makes all times that the program reads from the API server later by a duration of whole seconds,
// or earlier, and those that it writes the other way round. So it sees again what it wrote. Call it
// before the program starts.
func (p *Proxy) Shift(by time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.shift = by
}

// shifts is how much later the times are that the program reads.
func (p *Proxy) shifts() time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.shift
}

// shiftRequest shifts the times of what the program sends. In protobuf it creates objects of Kubernetes'
// own kinds, to which the API server gives their times.
func (p *Proxy) shiftRequest(r *http.Request) error {
	by := p.shifts()
	if by == 0 || r.Body == nil || !strings.Contains(r.Header.Get("Content-Type"), "json") {
		return nil
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return err
	}
	body = shifted(body, -by)
	r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	return nil
}

// shiftAnswer shifts the times of what the program gets, but for the events of a watch.
func (p *Proxy) shiftAnswer(response *http.Response, info *request.RequestInfo) error {
	by := p.shifts()
	if by == 0 || !info.IsResourceRequest {
		return nil
	}
	body, err := io.ReadAll(response.Body)
	if err != nil {
		return err
	}
	_ = response.Body.Close() // it has been read
	body = shifted(body, by)
	response.Body, response.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	response.Header.Set("Content-Length", strconv.Itoa(len(body)))
	return nil
}
