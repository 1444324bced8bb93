package proxy

import (
	"bytes"
	"context"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
)

// Write is a write that the program sent.
type Write struct {
	Key Key
	At  time.Time
	// Done is when the answer came; zero if none did.
	Done time.Time
	// Code is the HTTP status of the answer; 0 if the program got none.
	Code int
	// Injected is true if the fault happened to this write.
	Injected bool
}

// Record is what passed the proxy since Begin.
type Record struct {
	Writes []Write
	// Events are those of all watches, without those of lists; what several watches of a
	// kind show is recorded once.
	Events []Key
	// Fired is when the fault happened; zero if it has not.
	Fired time.Time
}

// Body is what a request sent.
type Body struct {
	What    string // method and path
	Content []byte
}

// Proxy is one program's way to the API server. It is safe for concurrent use.
type Proxy struct {
	server    *httptest.Server
	reverse   *httputil.ReverseProxy
	transport http.RoundTripper
	infos     request.RequestInfoFactory

	mu      sync.Mutex
	fault   Fault
	kill    func()
	stop    context.CancelFunc // of what Begin started
	counts  map[Key]int        // of writes, by key without number
	seen    map[Key]bool       // events
	writes  []*Write
	bodies  []Body
	record  Record // without Writes
	streams map[*stream]bool
	last    time.Time // of the last write that is recorded
	slow    int       // the writes that are held
	lag     lag
	shift   time.Duration
	outage  bool
	broken  []error
}

// New returns a proxy on loopback that forwards requests as the user of a configuration.
func New(cfg *rest.Config) (*Proxy, error) {
	transport, err := rest.TransportFor(cfg)
	if err != nil {
		return nil, err
	}
	target, err := url.Parse(cfg.Host)
	if err != nil {
		return nil, err
	}
	p := &Proxy{
		transport: transport,
		infos: request.RequestInfoFactory{
			APIPrefixes: sets.NewString("api", "apis"), GrouplessAPIPrefixes: sets.NewString("api"),
		},
		stop: func() {}, counts: map[Key]int{}, seen: map[Key]bool{}, streams: map[*stream]bool{},
	}
	p.reverse = &httputil.ReverseProxy{
		Transport: transport,
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(target)
			r.Out.Header.Del("Authorization")
			r.Out.Header.Del("Accept-Encoding")
			r.Out.Header.Set("Accept", onlyJSON(r.In.Header.Get("Accept")))
		},
		FlushInterval:  -1, // watches
		ModifyResponse: p.modify,
		ErrorHandler:   p.failed,
		ErrorLog:       log.New(io.Discard, "", 0), // clients that went away
	}
	p.server = httptest.NewUnstartedServer(p)
	p.server.Config.ErrorLog = log.New(io.Discard, "", 0) // likewise
	p.server.StartTLS()
	return p, nil
}

// Config returns the configuration of a program that uses the proxy. Its certificate is the
// proxy's own, because programs refuse a kubeconfig without one.
func (p *Proxy) Config() (*rest.Config, error) {
	certificate := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: p.server.Certificate().Raw})
	key, err := x509.MarshalPKCS8PrivateKey(p.server.TLS.Certificates[0].PrivateKey)
	if err != nil {
		return nil, err
	}
	return &rest.Config{Host: p.server.URL, QPS: -1, TLSClientConfig: rest.TLSClientConfig{
		CAData: certificate, CertData: certificate, KeyData: pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: key}),
	}}, nil
}

// Close ends all connections.
func (p *Proxy) Close() {
	p.Begin(Fault{Kind: None}, nil)
	p.Disconnect()
	p.server.Close()
}

// Disconnect ends the connections that a killed program has left.
func (p *Proxy) Disconnect() { p.server.CloseClientConnections() }

// Begin forgets what was recorded and injects a fault from now on, once. kill ends the program
// and returns when it has ended; only faults that kill need it.
func (p *Proxy) Begin(fault Fault, kill func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.stop()
	p.lag.end()
	var ctx context.Context
	ctx, p.stop = context.WithCancel(context.Background())
	p.fault, p.kill = fault, kill
	p.counts, p.seen, p.writes, p.bodies, p.record = map[Key]int{}, map[Key]bool{}, nil, nil, Record{}
	switch fault.Kind {
	case WatchClosed:
		go p.closeEvery(ctx, fault.Key.Resource)
	case WatchExpired:
		for s := range p.streams {
			if s.resource == fault.Key.Resource {
				p.fired()
				go s.expire()
			}
		}
	}
	for s := range p.streams {
		s.counts = map[Key]int{}
	}
}

// closeEvery closes the watches of a kind again and again.
func (p *Proxy) closeEvery(ctx context.Context, resource string) {
	tick := time.NewTicker(CloseEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		p.mu.Lock()
		for s := range p.streams {
			if s.resource == resource {
				p.fired()
				go s.end()
			}
		}
		p.mu.Unlock()
	}
}

// Record returns what was recorded since Begin.
func (p *Proxy) Record() Record {
	p.mu.Lock()
	defer p.mu.Unlock()
	record := Record{Events: slices.Clone(p.record.Events), Fired: p.record.Fired}
	for _, write := range p.writes {
		record.Writes = append(record.Writes, *write)
	}
	return record
}

// Bodies returns what was sent since Begin to anything but Secrets and Leases.
func (p *Proxy) Bodies() []Body {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.bodies)
}

// LastWrite is when the program last began or ended a write, of those that are recorded; zero
// if it never did. It is now while a write is slow.
func (p *Proxy) LastWrite() time.Time {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.slow > 0 {
		return time.Now()
	}
	return p.last
}

// Outage says that the API server is about to be away, or is back: until then, requests that
// do not reach it are no error of the proxy.
func (p *Proxy) Outage(on bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.outage = on
}

// Broken returns what went wrong in the proxy itself.
func (p *Proxy) Broken() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return errors.Join(p.broken...)
}

func (p *Proxy) breaks(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.broken = append(p.broken, err)
}

// fired requires the lock.
func (p *Proxy) fired() {
	if p.record.Fired.IsZero() {
		p.record.Fired = time.Now()
	}
}

// failed ends the connection, as if the API server had.
func (p *Proxy) failed(_ http.ResponseWriter, r *http.Request, err error) {
	p.mu.Lock()
	if r.Context().Err() == nil && !p.outage {
		p.broken = append(p.broken, fmt.Errorf("%s %s: %w", r.Method, r.URL.Path, err))
	}
	p.mu.Unlock()
	panic(http.ErrAbortHandler)
}

// ServeHTTP implements http.Handler.
func (p *Proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	info, err := p.infos.NewRequestInfo(r)
	if err != nil {
		p.breaks(err)
		panic(http.ErrAbortHandler)
	}
	if err := p.shiftRequest(r); err != nil { // the program was killed meanwhile
		panic(http.ErrAbortHandler)
	}
	body, err := io.ReadAll(r.Body)
	if err != nil { // the program was killed meanwhile
		panic(http.ErrAbortHandler)
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	if len(body) > 0 && !slices.Contains(unsearched, resourceOf(info)) {
		p.mu.Lock()
		p.bodies = append(p.bodies, Body{What: r.Method + " " + r.URL.Path, Content: body})
		p.mu.Unlock()
	}
	if !isWrite(info, r) {
		if p.showPast(w, r, info) {
			return
		}
		p.reverse.ServeHTTP(w, r)
		return
	}
	object := info.Name
	if object == "" {
		if object, err = nameIn(body); err != nil {
			p.breaks(fmt.Errorf("%s %s: %w", r.Method, r.URL.Path, err))
		}
	}
	if info.Namespace != "" {
		object = info.Namespace + "/" + object
	}
	p.write(w, r, Key{Verb: info.Verb, Resource: resourceOf(info), Object: object})
}

// unrecorded are kinds whose writes change nothing that other clients act on, or come at any time.
var unrecorded = []string{
	"events", "events.events.k8s.io", "leases.coordination.k8s.io", "serviceaccounts/token",
}

// unsearched are kinds of which no Body is kept: those that hold tokens, and those that come all the time.
var unsearched = []string{"secrets", "leases.coordination.k8s.io"}

func isWrite(info *request.RequestInfo, r *http.Request) bool {
	return info.IsResourceRequest && r.Method != http.MethodGet && !strings.HasSuffix(info.Resource, "reviews") &&
		!r.URL.Query().Has("dryRun") && !slices.Contains(unrecorded, resourceOf(info))
}

func resourceOf(info *request.RequestInfo) string {
	resource := schema.GroupResource{Group: info.APIGroup, Resource: info.Resource}.String()
	if info.Subresource != "" {
		resource += "/" + info.Subresource
	}
	return resource
}

// nameIn returns the name of the object in the body of a create. One that the API server is to
// complete ends with a star.
func nameIn(body []byte) (string, error) {
	object := &metav1.PartialObjectMetadata{}
	var named metav1.Object = object
	if err := json.Unmarshal(body, object); err != nil {
		decoded, _, err := scheme.Codecs.UniversalDeserializer().Decode(body, nil, nil) // protobuf
		if err != nil {
			return "?", fmt.Errorf("reading a created object: %w", err)
		}
		if named, err = apimeta.Accessor(decoded); err != nil {
			return "?", err
		}
	}
	if named.GetName() == "" {
		return named.GetGenerateName() + "*", nil
	}
	return named.GetName(), nil
}

// write forwards a write, or does to it what the fault says.
func (p *Proxy) write(w http.ResponseWriter, r *http.Request, key Key) {
	write, fault := p.begin(key)
	done := func(code int) { p.end(write, code) }
	forward := func(to http.ResponseWriter) {
		answer := &answered{ResponseWriter: to}
		defer func() { done(answer.code) }() // also when the connection ends
		p.reverse.ServeHTTP(answer, r)
	}
	switch fault {
	case KillBefore:
		p.killProgram()
		panic(http.ErrAbortHandler)
	case KillAfter, Lost:
		forward(httptest.NewRecorder())
		if fault == KillAfter {
			p.killProgram()
		}
		panic(http.ErrAbortHandler)
	case Hang:
		timer := time.NewTimer(HangFor)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-r.Context().Done():
			panic(http.ErrAbortHandler)
		}
		forward(w)
	case SlowWebhook, SlowWebhook29s:
		defer p.holds()()
		timer := time.NewTimer(SlowFor[fault])
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-r.Context().Done():
			panic(http.ErrAbortHandler)
		}
		forward(w)
	case Lagging, Lagging1s, Lagging60s:
		forward(httptest.NewRecorder())
		p.lags()
		p.killProgram()
		panic(http.ErrAbortHandler)
	case Status409, Status422, Status429, Status500, Status503, Status504:
		status := statuses[fault]
		if fault == Status429 {
			w.Header().Set("Retry-After", "1")
		}
		answer(w, fault)
		done(status.code)
	default:
		forward(w)
	}
}

// answer answers a request with the status of a fault.
func answer(w http.ResponseWriter, fault Kind) {
	status := statuses[fault]
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status.code)
	_ = json.NewEncoder(w).Encode(metav1.Status{ // a client that went away does not matter
		TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: metav1.StatusFailure,
		Reason: metav1.StatusReason(status.reason), Message: status.message, Code: int32(status.code), //nolint:gosec // HTTP
	})
}

// begin records a write, and returns the fault that is to happen to it, if any.
func (p *Proxy) begin(key Key) (write *Write, fault Kind) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.counts[key]++ // its N is zero
	key.N = p.counts[key]
	write = &Write{Key: key, At: time.Now()}
	isFirst := p.record.Fired.IsZero()
	namespace, _, _ := strings.Cut(key.Object, "/")
	if slices.Contains(OfWrites, p.fault.Kind) && p.fault.Key == key && isFirst ||
		slices.Contains(OfStarts, p.fault.Kind) && isFirst ||
		slices.Contains(OfNamespaces, p.fault.Kind) && p.fault.Key.Object == namespace {
		write.Injected, fault = true, p.fault.Kind
		p.fired()
	}
	p.last = write.At
	p.writes = append(p.writes, write)
	return write, fault
}

// end records the answer to a write.
func (p *Proxy) end(write *Write, code int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.last = time.Now()
	write.Code, write.Done = code, p.last
}

// holds counts a write that is slow, until the returned function is called.
func (p *Proxy) holds() (done func()) {
	add := func(n int) {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.slow += n
	}
	add(1)
	return func() { add(-1) }
}

func (p *Proxy) killProgram() {
	p.mu.Lock()
	kill := p.kill
	p.mu.Unlock()
	kill()
}

// answered remembers the status of an answer.
type answered struct {
	http.ResponseWriter
	code int
}

// WriteHeader implements http.ResponseWriter.
func (a *answered) WriteHeader(code int) {
	a.code = code
	a.ResponseWriter.WriteHeader(code)
}

// Unwrap is for http.ResponseController.
func (a *answered) Unwrap() http.ResponseWriter { return a.ResponseWriter }

// onlyJSON leaves other encodings out of what a client accepts.
func onlyJSON(accept string) string {
	var kept []string
	for _, one := range strings.Split(accept, ",") {
		if one = strings.TrimSpace(one); strings.HasPrefix(one, "application/json") {
			kept = append(kept, one)
		}
	}
	if len(kept) == 0 {
		return "application/json"
	}
	return strings.Join(kept, ",")
}
