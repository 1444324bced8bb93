package proxy

import (
	"fmt"
	"net/http"
	"time"

	"k8s.io/apiserver/pkg/endpoints/request"
)

// lag is that of an API server. The proxy's lock guards it.
type lag struct {
	// version is the resource version that lists show.
	version string
	// over is closed when the lag ends; nil if there is none.
	over  chan struct{}
	timer *time.Timer // runs once a list showed the past
}

// end requires the lock.
func (l *lag) end() {
	if l.over != nil {
		close(l.over)
		l.over = nil
	}
	if l.timer != nil {
		l.timer.Stop()
		l.timer = nil
	}
}

// Past is the resource version that lists show while the API server lags.
func (p *Proxy) Past(version string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.lag.version = version
}

// Lags reports whether the API server lags.
func (p *Proxy) Lags() bool { return p.lagOver() != nil }

// lagOver returns what is closed when the lag ends, or nil if there is none.
func (p *Proxy) lagOver() chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.lag.over
}

// lags makes the API server lag.
func (p *Proxy) lags() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.lag.end()
	p.lag.over = make(chan struct{})
}

// showPast makes a read that the API server's cache answers one of the past, if that lags. It
// returns true if it has answered the request.
//
// Informers ask the cache: by a list with a resource version or by a watch that begins with what
// exists. That watch is refused, as by a server that does not know it, because no request makes it
// begin with the past; then client-go lists and watches. Other lists and gets are consistent reads.
func (p *Proxy) showPast(w http.ResponseWriter, r *http.Request, info *request.RequestInfo) (answered bool) {
	over := p.lagOver()
	query := r.URL.Query()
	version := query.Get("resourceVersion")
	switch {
	case over == nil || !info.IsResourceRequest:
	case info.Verb == "watch" && query.Get("sendInitialEvents") == "true":
		answer(w, Status422)
		return true
	case info.Verb == "watch" && (version == "" || version == "0"), info.Verb == "get" && version != "":
		p.breaks(fmt.Errorf("%s cannot show the past", r.URL))
	case info.Verb == "list" && version != "":
		p.mu.Lock()
		if p.lag.timer == nil {
			p.lag.timer = time.AfterFunc(LagFor[p.fault.Kind], func() {
				p.mu.Lock()
				defer p.mu.Unlock()
				if p.lag.over == over {
					p.lag.end()
				}
			})
		}
		query.Set("resourceVersion", p.lag.version)
		query.Set("resourceVersionMatch", "Exact")
		p.mu.Unlock()
		r.URL.RawQuery = query.Encode()
	}
	return false
}
