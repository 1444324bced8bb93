package proxy

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

func createIn(t *testing.T, c kubernetes.Interface, namespace string) time.Duration {
	t.Helper()
	began := time.Now()
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "x"}}
	if _, err := c.CoreV1().Secrets(namespace).Create(t.Context(), secret, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	return time.Since(began)
}

func TestWritesIntoOneNamespaceAreSlow(t *testing.T) {
	t.Parallel()
	s := &server{}
	p, c := through(t, s)
	p.Begin(Fault{Kind: SlowWebhook, Key: Key{Object: "slow"}}, nil)
	if createIn(t, c, "n"); !p.Record().Fired.IsZero() {
		t.Error("it is recorded before it happens")
	}
	for range 2 {
		done := make(chan time.Duration)
		go func() { done <- createIn(t, c, "slow") }()
		var took time.Duration
		select {
		case took = <-done:
		case <-time.After(SlowFor[SlowWebhook] / 2):
			if time.Since(p.LastWrite()) > SlowFor[SlowWebhook]/4 {
				t.Error("a slow write is forgotten")
			}
			took = <-done
		}
		if took < SlowFor[SlowWebhook] {
			t.Errorf("it took %s", took)
		}
		createIn(t, c, "n")
	}
	writes := ended(t, p)
	if p.Record().Fired.IsZero() || !writes[1].Injected || writes[1].Done.Sub(writes[1].At) < SlowFor[SlowWebhook] || writes[2].Injected {
		t.Errorf("record %+v", p.Record())
	}
	if err := p.Broken(); err != nil {
		t.Error(err)
	}
}

func TestEveryFaultThatLastsHasItsTime(t *testing.T) {
	for _, kind := range OfStarts {
		if LagFor[kind] < time.Second {
			t.Errorf("%s lasts %s", kind, LagFor[kind])
		}
	}
	for _, kind := range OfNamespaces {
		if SlowFor[kind] < time.Second || SlowFor[kind] >= 30*time.Second {
			t.Errorf("%s takes %s; an API server grants a webhook 30 seconds", kind, SlowFor[kind])
		}
	}
}

func TestALaggingServerShowsThePast(t *testing.T) {
	for _, kind := range []Kind{Lagging, Lagging1s} {
		t.Run(string(kind), func(t *testing.T) { testLag(t, kind) })
	}
}

func testLag(t *testing.T, kind Kind) {
	t.Helper()
	t.Parallel()
	var asked []string
	s := &server{events: []string{configMap("ADDED", "new"), configMap("ADDED", "last")}}
	p, c := through(t, s)
	p.transport = recorder{p.transport, &asked}
	p.reverse.Transport = p.transport
	killed := 0
	p.Past("7")
	p.Begin(Fault{Kind: kind}, func() { killed++ })
	list := func(opts metav1.ListOptions) string {
		t.Helper()
		asked = nil
		_, _ = c.CoreV1().ConfigMaps("n").List(t.Context(), opts) // what is asked matters, not the answer
		return fmt.Sprint(asked)
	}
	informers := metav1.ListOptions{ResourceVersion: "0"}
	if got := list(informers); got != "[resourceVersion=0]" || p.Lags() {
		t.Errorf("before the fault: %s", got)
	}
	// The program's first write takes effect, and kills it.
	if err := create(t, c, "x"); err == nil || killed != 1 || len(s.writes) != 1 || !p.Lags() {
		t.Fatalf("%v, killed %d times, writes %v", err, killed, s.writes)
	}
	yes := true
	_, err := c.CoreV1().ConfigMaps("n").Watch(t.Context(), metav1.ListOptions{SendInitialEvents: &yes})
	if !apierrors.IsInvalid(err) {
		t.Errorf("a watch that lists: %v", err)
	}
	if got := list(metav1.ListOptions{}); got != "[]" {
		t.Errorf("a consistent read: %s", got)
	}
	began := time.Now()
	if got := list(informers); got != "[resourceVersion=7&resourceVersionMatch=Exact]" {
		t.Errorf("an informer: %s", got)
	}
	if diff := cmp.Diff([]string{"ADDED new", "ADDED last"}, shownSince(t, c, "7")); diff != "" {
		t.Error(diff)
	}
	if took := time.Since(began); took < LagFor[kind] || p.Lags() {
		t.Errorf("the watch showed something after %s; it lags: %t", took, p.Lags())
	}
	if got := list(informers); got != "[resourceVersion=0]" {
		t.Errorf("after the fault: %s", got)
	}
	if err := create(t, c, "x"); err != nil || killed != 1 {
		t.Errorf("%v, killed %d times", err, killed)
	}
	if err := p.Broken(); err != nil {
		t.Error(err)
	}
}

func TestReadsThatCannotShowThePastAreReported(t *testing.T) {
	t.Parallel()
	p, c := through(t, &server{events: []string{configMap("ADDED", "last")}})
	p.lags()
	if _, err := c.CoreV1().Secrets("n").Get(t.Context(), "x", metav1.GetOptions{}); err != nil || p.Broken() != nil {
		t.Fatalf("a consistent read: %v, %v", err, p.Broken())
	}
	_, err := c.CoreV1().Secrets("n").Get(t.Context(), "x", metav1.GetOptions{ResourceVersion: "0"})
	if err != nil || p.Broken() == nil {
		t.Errorf("got %v, %v", err, p.Broken())
	}
}

// shownSince returns the events of a watch that begins at a resource version.
func shownSince(t *testing.T, c kubernetes.Interface, version string) []string {
	t.Helper()
	w, err := c.CoreV1().ConfigMaps("n").Watch(t.Context(), metav1.ListOptions{ResourceVersion: version})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Stop()
	var events []string
	for e := range w.ResultChan() {
		object, ok := e.Object.(*corev1.ConfigMap)
		if !ok {
			t.Fatalf("event %+v", e)
		}
		if events = append(events, string(e.Type)+" "+object.Name); object.Name == "last" {
			return events
		}
	}
	return append(events, "end")
}

// recorder remembers the queries of lists.
type recorder struct {
	http.RoundTripper
	asked *[]string
}

func (r recorder) RoundTrip(request *http.Request) (*http.Response, error) {
	if request.Method == http.MethodGet && !request.URL.Query().Has("watch") && request.URL.RawQuery != "" {
		*r.asked = append(*r.asked, request.URL.RawQuery)
	}
	return r.RoundTripper.RoundTrip(request)
}
