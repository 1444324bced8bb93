package proxy

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/endpoints/request"
)

// stream is one watch.
type stream struct {
	proxy    *Proxy
	resource string
	began    time.Time
	upstream io.Closer
	to       *io.PipeWriter
	sending  sync.Mutex // one event at a time
	// lag is closed when the API server no longer lags; nil if it did not when the watch began.
	lag chan struct{}

	listing bool        // the events up to a bookmark are a list
	counts  map[Key]int // requires the proxy's lock
}

// event is what a watch sends.
type event struct {
	Type   string                       `json:"type"`
	Object metav1.PartialObjectMetadata `json:"object"`
}

// expired tells a client that its resource version is too old, so that it lists again.
const expired = `{"type":"ERROR","object":{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure",` +
	`"message":"too old resource version (injected)","reason":"Expired","code":410}}` + "\n"

// modify does to an answer of the API server what the program is to see of it.
func (p *Proxy) modify(response *http.Response) error {
	info, err := p.infos.NewRequestInfo(response.Request)
	if err != nil {
		return err
	}
	if info.Verb != "watch" || response.StatusCode != http.StatusOK {
		return p.shiftAnswer(response, info)
	}
	p.followWatch(response, info)
	return nil
}

// followWatch makes the events of a watch pass one by one.
func (p *Proxy) followWatch(response *http.Response, info *request.RequestInfo) {
	from, to := io.Pipe()
	s := &stream{
		proxy: p, resource: resourceOf(info), began: time.Now(), upstream: response.Body, to: to, counts: map[Key]int{},
		lag: p.lagOver(), listing: response.Request.URL.Query().Get("sendInitialEvents") == "true",
	}
	p.mu.Lock()
	p.streams[s] = true
	p.mu.Unlock()
	go s.copy(response.Body)
	response.Body = &watched{PipeReader: from, stream: s}
}

// watched is the body that the program reads.
type watched struct {
	*io.PipeReader
	stream *stream
}

// Close ends the watch.
func (w *watched) Close() error {
	w.stream.end()
	return w.PipeReader.Close()
}

// copy passes the events on until the watch ends. If one was dropped, the watch ends with an error: the client may
// have seen later events, and would go on after these.
func (s *stream) copy(from io.Reader) {
	defer s.end()
	dropped := false
	for events := json.NewDecoder(from); ; {
		var frame json.RawMessage
		if err := events.Decode(&frame); err != nil { // the end of the stream
			if dropped {
				s.expire()
			}
			return
		}
		if s.lag != nil {
			<-s.lag
		}
		var e event
		if err := json.Unmarshal(frame, &e); err != nil {
			s.proxy.breaks(fmt.Errorf("event of %s: %w", s.resource, err))
			return
		}
		if by := s.proxy.shifts(); by != 0 {
			frame = shifted(frame, by)
		}
		fault := s.happens(e)
		dropped = dropped || fault == EventDropped
		if !s.pass(append(frame, '\n'), fault) {
			return
		}
	}
}

// happens records an event and returns the fault that is to happen to it, if any. Each watch that the program had has
// the fault. One that replaces it counts from zero, and has none.
func (s *stream) happens(e event) Kind {
	if e.Type == "BOOKMARK" && e.Object.Annotations[metav1.InitialEventsAnnotationKey] == "true" {
		s.listing = false
	}
	if s.listing || (e.Type != "ADDED" && e.Type != "MODIFIED" && e.Type != "DELETED") {
		return None
	}
	key := Key{Verb: e.Type, Resource: s.resource, Object: e.Object.Name}
	if e.Object.Namespace != "" {
		key.Object = e.Object.Namespace + "/" + key.Object
	}
	p := s.proxy
	p.mu.Lock()
	defer p.mu.Unlock()
	s.counts[key]++
	key.N = s.counts[key]
	if !p.seen[key] {
		p.seen[key] = true
		p.record.Events = append(p.record.Events, key)
	}
	if p.fault.Key != key || !slices.Contains(OfEvents, p.fault.Kind) {
		return None
	}
	if fired := p.record.Fired; !fired.IsZero() && s.began.After(fired) {
		return None
	}
	p.fired()
	return p.fault.Kind
}

// pass sends an event to the program; false if that is gone.
func (s *stream) pass(frame []byte, fault Kind) bool {
	switch fault {
	case EventDropped:
		time.AfterFunc(DropFor, s.expire)
		return true
	case EventDelayed:
		timer := time.NewTimer(DelayFor)
		defer timer.Stop()
		<-timer.C
	case EventDuplicated:
		if !s.send(frame) {
			return false
		}
	}
	return s.send(frame)
}

func (s *stream) send(frame []byte) bool {
	s.sending.Lock()
	defer s.sending.Unlock()
	_, err := s.to.Write(frame)
	return err == nil
}

// expire ends the watch with an error.
func (s *stream) expire() {
	s.send([]byte(expired))
	s.end()
}

// end ends the watch.
func (s *stream) end() {
	s.proxy.mu.Lock()
	delete(s.proxy.streams, s)
	s.proxy.mu.Unlock()
	_ = s.to.Close() // a pipe's never fails
	_ = s.upstream.Close()
}
