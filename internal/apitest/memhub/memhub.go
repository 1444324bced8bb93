// Package memhub serves the objects of a hub from memory, page by page, to readers: for tests with
// more objects than an API server takes in a minute, and with some that none would take.
package memhub

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"open-cluster-management.io/cluster-inventory-addon/internal/apitest"
)

// Hub serves lists and single objects. It knows no rights, validates nothing, and answers reviews of
// rights with yes. A list of a resource without objects is empty.
type Hub struct {
	server  *httptest.Server
	scheme  *runtime.Scheme
	objects map[string][]object // by resource

	mu    sync.Mutex
	lists map[string]int // how many lists were read, by resource

	// Fault, unless nil, returns the HTTP status with which a request fails, 0 if it does not, and
	// HangUp to end the connection in the middle of the answer.
	Fault func(*http.Request) int
}

// HangUp is no HTTP status.
const HangUp = -1

type object struct {
	namespace, name string
	kind            string
	fields          fields.Set
	labels          labels.Set
	content         []byte
}

// Start starts a hub, until the test ends.
func Start(tb testing.TB, scheme *runtime.Scheme) *Hub {
	tb.Helper()
	h := &Hub{scheme: scheme, objects: map[string][]object{}, lists: map[string]int{}}
	h.server = httptest.NewServer(http.HandlerFunc(h.serve))
	tb.Cleanup(h.server.Close)
	return h
}

// Config is the configuration of its clients.
func (h *Hub) Config() *rest.Config { return &rest.Config{Host: h.server.URL} }

// Add adds objects of a resource, such as "managedclusters".
func (h *Hub) Add(tb testing.TB, resource string, objects ...client.Object) {
	tb.Helper()
	for _, o := range objects {
		kind, err := apiutil.GVKForObject(o, h.scheme)
		apitest.Must(tb, err)
		o.GetObjectKind().SetGroupVersionKind(kind)
		content, err := json.Marshal(o)
		apitest.Must(tb, err)
		selectable := fields.Set{metav1.ObjectNameField: o.GetName()}
		var event struct {
			Controller string `json:"reportingController"`
		}
		apitest.Must(tb, json.Unmarshal(content, &event))
		selectable["reportingController"] = event.Controller
		h.objects[resource] = append(h.objects[resource], object{
			namespace: o.GetNamespace(), name: o.GetName(), kind: kind.Kind, fields: selectable, labels: o.GetLabels(),
			content: content,
		})
	}
}

// Lists returns how many lists, that is pages, were read since the last call, by resource.
func (h *Hub) Lists() map[string]int {
	h.mu.Lock()
	defer h.mu.Unlock()
	lists := h.lists
	h.lists = map[string]int{}
	return lists
}

func (h *Hub) serve(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", runtime.ContentTypeJSON)
	if h.Fault != nil {
		switch code := h.Fault(r); code {
		case 0:
		case HangUp:
			_, _ = w.Write([]byte(`{"kind": `))
			_ = http.NewResponseController(w).Flush()
			panic(http.ErrAbortHandler)
		default:
			fail(w, code)
			return
		}
	}
	// /api/v1/... or /apis/GROUP/VERSION/..., then [namespaces/NAMESPACE/]RESOURCE[/NAME]
	parts := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
	group, rest := parts[:min(2, len(parts))], parts[min(2, len(parts)):]
	if parts[0] == "apis" && len(parts) > 2 {
		group, rest = parts[:3], parts[3:]
	}
	namespace := ""
	if len(rest) > 2 && rest[0] == "namespaces" {
		namespace, rest = rest[1], rest[2:]
	}
	version := strings.Join(group[1:], "/")
	switch {
	case len(rest) == 0:
		fail(w, http.StatusNotFound)
	case r.Method == http.MethodPost:
		w.WriteHeader(http.StatusCreated)
		//nolint:gosec // no browser reads it
		fmt.Fprintf(w, `{"kind": "SelfSubjectAccessReview", "apiVersion": %q, "status": {"allowed": true}}`, version)
	case len(rest) == 2:
		h.get(w, rest[0], namespace, rest[1])
	default:
		h.list(w, r, version, rest[0], namespace)
	}
}

// reasons are those of an API server.
var reasons = map[int]metav1.StatusReason{
	http.StatusBadRequest: metav1.StatusReasonBadRequest, http.StatusUnauthorized: metav1.StatusReasonUnauthorized,
	http.StatusForbidden: metav1.StatusReasonForbidden, http.StatusNotFound: metav1.StatusReasonNotFound,
	http.StatusServiceUnavailable: metav1.StatusReasonServiceUnavailable,
}

func fail(w http.ResponseWriter, code int) {
	w.WriteHeader(code)
	fmt.Fprintf(w, `{"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": %d, "reason": %q}`,
		code, reasons[code])
}

func (h *Hub) get(w http.ResponseWriter, resource, namespace, name string) {
	for _, o := range h.objects[resource] {
		if o.namespace == namespace && o.name == name {
			_, _ = w.Write(o.content)
			return
		}
	}
	fail(w, http.StatusNotFound)
}

func (h *Hub) list(w http.ResponseWriter, r *http.Request, version, resource, namespace string) {
	h.mu.Lock()
	h.lists[resource]++
	h.mu.Unlock()
	query := r.URL.Query()
	ofLabels, err := labels.Parse(query.Get("labelSelector"))
	ofFields, fieldsErr := fields.ParseSelector(query.Get("fieldSelector"))
	limit, _ := strconv.Atoi(query.Get("limit"))
	next, _ := strconv.Atoi(query.Get("continue")) // the index of the first object that is not read
	if err != nil || fieldsErr != nil {
		fail(w, http.StatusBadRequest)
		return
	}
	kind, all := "", h.objects[resource]
	var page [][]byte
	for ; next < len(all) && (limit == 0 || len(page) < limit); next++ {
		o := all[next]
		kind = o.kind + "List"
		if (namespace == "" || o.namespace == namespace) && ofLabels.Matches(o.labels) && ofFields.Matches(o.fields) {
			page = append(page, o.content)
		}
	}
	token := ""
	if next < len(all) {
		token = strconv.Itoa(next)
	}
	//nolint:gosec // no browser reads it
	fmt.Fprintf(w, `{"kind": %q, "apiVersion": %q, "metadata": {"resourceVersion": "1", "continue": %q}, "items": [`,
		kind, version, token)
	_, _ = w.Write(bytes.Join(page, []byte(",")))
	_, _ = w.Write([]byte("]}"))
}
