package proxy

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"open-cluster-management.io/cluster-inventory-addon/internal/apitest"
)

// server answers writes with what they contain, and a watch with the events of a test.
type server struct {
	writes []string
	events []string
	ends   bool          // watches end after the events
	hold   chan struct{} // keeps watches open
}

func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	if r.URL.Query().Has("watch") {
		for _, e := range s.events {
			fmt.Fprintln(w, e)
		}
		_ = http.NewResponseController(w).Flush()
		if s.ends {
			return
		}
		select {
		case <-s.hold:
		case <-r.Context().Done():
		}
		return
	}
	if r.Method != http.MethodGet {
		s.writes = append(s.writes, r.Method+" "+r.URL.Path)
	}
	if !strings.Contains(r.Header.Get("Accept"), "json") || strings.Contains(r.Header.Get("Accept"), "protobuf") {
		http.Error(w, "only JSON", http.StatusNotAcceptable)
		return
	}
	_ = json.NewEncoder(w).Encode(&corev1.Secret{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"}, ObjectMeta: metav1.ObjectMeta{Name: "answer"},
	})
}

func configMap(eventType, name string) string {
	return fmt.Sprintf(`{"type":%q,"object":{"apiVersion":"v1","kind":"ConfigMap","metadata":{"namespace":"n","name":%q}}}`,
		eventType, name)
}

// through returns a proxy in front of the server, and a client that speaks protobuf.
func through(t *testing.T, s *server) (*Proxy, kubernetes.Interface) {
	t.Helper()
	s.hold = make(chan struct{})
	behind := httptest.NewServer(s)
	p, err := New(&rest.Config{Host: behind.URL})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { close(s.hold); p.Close(); behind.Close() })
	cfg, err := p.Config()
	if err != nil {
		t.Fatal(err)
	}
	cfg.ContentType, cfg.AcceptContentTypes = "application/vnd.kubernetes.protobuf", "application/vnd.kubernetes.protobuf"
	c, err := kubernetes.NewForConfig(cfg)
	if err != nil {
		t.Fatal(err)
	}
	p.Begin(Fault{Kind: None}, nil)
	return p, c
}

func create(t *testing.T, c kubernetes.Interface, name string) error {
	t.Helper()
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: name}}
	_, err := c.CoreV1().Secrets("n").Create(t.Context(), secret, metav1.CreateOptions{})
	return err
}

// ended returns the writes when all have ended: a client may have its response before that is recorded.
func ended(t *testing.T, p *Proxy) []Write {
	t.Helper()
	apitest.Eventually(t, 5*time.Second, "the ends of writes are recorded", func() string {
		if slices.ContainsFunc(p.Record().Writes, func(w Write) bool { return w.Done.IsZero() }) {
			return fmt.Sprintf("%+v", p.Record().Writes)
		}
		return ""
	})
	return p.Record().Writes
}

func TestWritesAreRecordedByName(t *testing.T) {
	p, c := through(t, &server{})
	for range 2 {
		if err := create(t, c, "x"); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := c.CoreV1().Secrets("n").Get(t.Context(), "x", metav1.GetOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := c.RbacV1().ClusterRoles().Delete(t.Context(), "r", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, write := range ended(t, p) {
		got = append(got, fmt.Sprint(write.Key, " ", write.Code))
	}
	want := []string{
		"create secrets n/x 1 200", "create secrets n/x 2 200", "delete clusterroles.rbac.authorization.k8s.io r 1 200",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if err := p.Broken(); err != nil {
		t.Error(err)
	}
}

func TestFaultsOfAWrite(t *testing.T) {
	failsWith := func(reason metav1.StatusReason) func(error) bool {
		return func(err error) bool { return apierrors.ReasonForError(err) == reason }
	}
	noAnswer := func(err error) bool { return err != nil && apierrors.ReasonForError(err) == metav1.StatusReasonUnknown }
	tests := map[Kind]struct {
		is      func(error) bool
		reaches bool
		kills   int
	}{
		KillBefore: {is: noAnswer, kills: 1},
		KillAfter:  {is: noAnswer, reaches: true, kills: 1},
		Lost:       {is: noAnswer, reaches: true},
		Status409:  {is: failsWith(metav1.StatusReasonConflict)},
		Status422:  {is: failsWith(metav1.StatusReasonInvalid)},
		Status500:  {is: failsWith(metav1.StatusReasonInternalError)},
		Status503:  {is: failsWith(metav1.StatusReasonServiceUnavailable)},
		Status504:  {is: failsWith(metav1.StatusReasonTimeout)},
	}
	for kind, test := range tests {
		t.Run(string(kind), func(t *testing.T) {
			s := &server{}
			p, c := through(t, s)
			kills := 0
			key := Key{Verb: "create", Resource: "secrets", Object: "n/x", N: 2}
			p.Begin(Fault{Kind: kind, Key: key}, func() { kills++ })
			for _, name := range []string{"x", "y"} {
				if err := create(t, c, name); err != nil {
					t.Fatal(err)
				}
			}
			before := len(s.writes)
			if err := create(t, c, "x"); !test.is(err) {
				t.Errorf("got %v", err)
			}
			if reached := len(s.writes) > before; reached != test.reaches || kills != test.kills {
				t.Errorf("it reached the server: %t, kills: %d", reached, kills)
			}
			if record := p.Record(); record.Fired.IsZero() || !record.Writes[2].Injected {
				t.Errorf("record %+v", record)
			}
			// Only once.
			if err := create(t, c, "x"); err != nil {
				t.Error(err)
			}
			if err := p.Broken(); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestTooManyRequestsAreRetriedLater(t *testing.T) {
	p, c := through(t, &server{})
	p.Begin(Fault{Kind: Status429, Key: Key{Verb: "create", Resource: "secrets", Object: "n/x", N: 1}}, nil)
	began := time.Now()
	if err := create(t, c, "x"); err != nil { // client-go retries by itself
		t.Fatal(err)
	}
	if took := time.Since(began); took < time.Second || len(p.Record().Writes) != 2 {
		t.Errorf("after %s: %+v", took, p.Record())
	}
}

// shown returns the events of a watch of ConfigMaps until it ends or nothing more comes. It calls
// functions after the first.
func shown(t *testing.T, c kubernetes.Interface, first ...func()) []string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), DelayFor+5*time.Second)
	defer cancel()
	w, err := c.CoreV1().ConfigMaps("n").Watch(ctx, metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Stop()
	events := []string{}
	for e := range w.ResultChan() {
		switch object := e.Object.(type) {
		case *corev1.ConfigMap:
			if events = append(events, string(e.Type)+" "+object.Name); len(events) == 1 {
				for _, call := range first {
					call()
				}
			}
			if object.Name == "last" {
				return events
			}
		case *metav1.Status:
			events = append(events, string(e.Type)+" "+string(object.Reason))
		}
		if e.Type == watch.Error {
			return events
		}
	}
	return append(events, "end")
}

func TestFaultsOfEvents(t *testing.T) {
	key := Key{Verb: "MODIFIED", Resource: "configmaps", Object: "n/x", N: 1}
	tests := map[Kind][]string{
		None:            {"ADDED x", "MODIFIED x", "ADDED last"},
		EventDelayed:    {"ADDED x", "MODIFIED x", "ADDED last"},
		EventDuplicated: {"ADDED x", "MODIFIED x", "MODIFIED x", "ADDED last"},
		EventDropped:    {"ADDED x", "ADDED last"},
	}
	for kind, want := range tests {
		t.Run(string(kind), func(t *testing.T) {
			p, c := through(t, &server{events: []string{
				configMap("ADDED", "x"), configMap("MODIFIED", "x"), configMap("ADDED", "last"),
			}})
			p.Begin(Fault{Kind: kind, Key: key}, nil)
			began := time.Now()
			if diff := cmp.Diff(want, shown(t, c)); diff != "" {
				t.Error(diff)
			}
			if late := time.Since(began) >= DelayFor; late != (kind == EventDelayed) {
				t.Errorf("it took %s", time.Since(began))
			}
			if fired := !p.Record().Fired.IsZero(); fired != (kind != None) {
				t.Errorf("fired: %t", fired)
			}
			if err := p.Broken(); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestADroppedEventEndsWithAList(t *testing.T) {
	p, c := through(t, &server{events: []string{configMap("MODIFIED", "x")}})
	p.Begin(Fault{Kind: EventDropped, Key: Key{Verb: "MODIFIED", Resource: "configmaps", Object: "n/x", N: 1}}, nil)
	if diff := cmp.Diff([]string{"ERROR Expired"}, shown(t, c)); diff != "" {
		t.Error(diff)
	}
}

func TestAWatchThatEndsWithoutADroppedEventIsNotContinued(t *testing.T) {
	p, c := through(t, &server{ends: true, events: []string{configMap("MODIFIED", "x"), configMap("ADDED", "y")}})
	p.Begin(Fault{Kind: EventDropped, Key: Key{Verb: "MODIFIED", Resource: "configmaps", Object: "n/x", N: 1}}, nil)
	for _, want := range [][]string{{"ADDED y", "ERROR Expired"}, {"MODIFIED x", "ADDED y", "end"}} {
		if diff := cmp.Diff(want, shown(t, c)); diff != "" {
			t.Error(diff)
		}
	}
}

func TestAnEventIsDroppedOnlyOnce(t *testing.T) {
	p, c := through(t, &server{events: []string{configMap("MODIFIED", "x"), configMap("ADDED", "last")}})
	p.Begin(Fault{Kind: EventDropped, Key: Key{Verb: "MODIFIED", Resource: "configmaps", Object: "n/x", N: 1}}, nil)
	for _, want := range [][]string{{"ADDED last"}, {"MODIFIED x", "ADDED last"}} {
		if diff := cmp.Diff(want, shown(t, c)); diff != "" {
			t.Error(diff)
		}
	}
}

func TestFaultsOfWatches(t *testing.T) {
	for kind, want := range map[Kind][]string{
		WatchClosed: {"ADDED x", "end"}, WatchExpired: {"ADDED x", "ERROR Expired"},
	} {
		t.Run(string(kind), func(t *testing.T) {
			p, c := through(t, &server{events: []string{configMap("ADDED", "x")}})
			begin := func() { p.Begin(Fault{Kind: kind, Key: Key{Resource: "configmaps"}}, nil) }
			if diff := cmp.Diff(want, shown(t, c, begin)); diff != "" {
				t.Error(diff)
			}
			if p.Record().Fired.IsZero() {
				t.Error("it is not recorded")
			}
		})
	}
}

func TestListsAreNoEvents(t *testing.T) {
	listed := `{"type":"BOOKMARK","object":{"apiVersion":"v1","kind":"ConfigMap","metadata":{"annotations":` +
		`{"k8s.io/initial-events-end":"true"}}}}`
	p, c := through(t, &server{events: []string{
		configMap("ADDED", "x"), listed, configMap("ADDED", "y"), configMap("ADDED", "last"),
	}})
	yes := true
	w, err := c.CoreV1().ConfigMaps("n").Watch(t.Context(), metav1.ListOptions{SendInitialEvents: &yes})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Stop()
	for e := range w.ResultChan() {
		if object, ok := e.Object.(*corev1.ConfigMap); ok && object.Name == "last" {
			break
		}
	}
	want := []Key{
		{Verb: "ADDED", Resource: "configmaps", Object: "n/y", N: 1},
		{Verb: "ADDED", Resource: "configmaps", Object: "n/last", N: 1},
	}
	if diff := cmp.Diff(want, p.Record().Events); diff != "" {
		t.Error(diff)
	}
}

func TestItsOwnErrorsAreReported(t *testing.T) {
	p, err := New(&rest.Config{Host: "http://127.0.0.1:1"}) // no server listens there
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	cfg, err := p.Config()
	if err != nil {
		t.Fatal(err)
	}
	c, err := kubernetes.NewForConfig(cfg)
	if err != nil {
		t.Fatal(err)
	}
	p.Outage(true)
	if err := create(t, c, "x"); err == nil || p.Broken() != nil {
		t.Errorf("while the API server is away: %v, %v", err, p.Broken())
	}
	p.Outage(false)
	if err := create(t, c, "x"); err == nil || p.Broken() == nil {
		t.Errorf("got %v, %v", err, p.Broken())
	}
}

func TestKeysAreReadAsTheyAreWritten(t *testing.T) {
	key := Key{Verb: "patch", Resource: "clusterprofiles.multicluster.x-k8s.io/status", Object: "n/x:y", N: 3}
	got, err := ParseKey(key.String())
	if err != nil || got != key {
		t.Errorf("got %+v, %v", got, err)
	}
	for _, text := range []string{"", "patch secrets x", "patch secrets x 0", "patch secrets x y", "a b c d 1"} {
		if _, err := ParseKey(text); err == nil {
			t.Errorf("%q is accepted", text)
		}
	}
}
