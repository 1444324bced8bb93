package proxy

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

func TestTimesAreShifted(t *testing.T) {
	tests := map[string]struct{ body, want string }{
		"metadata": {
			body: `{"creationTimestamp":"2026-12-31T23:30:00Z","deletionTimestamp": "2026-12-31T22:59:59Z"}`,
			want: `{"creationTimestamp":"2027-01-01T00:30:00Z","deletionTimestamp": "2026-12-31T23:59:59Z"}`,
		},
		"managed fields": {
			body: `[{"manager":"m","time":"2026-11-01T00:00:00Z"}]`, want: `[{"manager":"m","time":"2026-11-01T01:00:00Z"}]`,
		},
		"status": {
			body: `{"lastTransitionTime":"2026-11-01T00:00:00Z","expirationTimestamp":"2026-11-01T05:00:00Z","renewTime":"2026-11-01T00:00:00.123456Z"}`,
			want: `{"lastTransitionTime":"2026-11-01T01:00:00Z","expirationTimestamp":"2026-11-01T06:00:00Z","renewTime":"2026-11-01T01:00:00.123456Z"}`,
		},
		"annotations and texts": {
			body: `{"inventory.example.com/time":"2026-11-01T00:00:00Z","message":"2026-11-01T00:00:00Z","a":"{\"time\":\"2026-11-01T00:00:00Z\"}"}`,
		},
		"no times": {body: `{"creationTimestamp":null,"observedTime":"soon","lastTransitionTime":"2026-13-01T00:00:00Z"}`},
	}
	for name, test := range tests {
		want := test.want
		if want == "" {
			want = test.body
		}
		got := shifted([]byte(test.body), time.Hour)
		if string(got) != want {
			t.Errorf("%s: got %s, want %s", name, got, want)
		}
		if back := shifted(got, -time.Hour); string(back) != test.body {
			t.Errorf("%s: got %s after shifting back, want %s", name, back, test.body)
		}
	}
}

// stamped is an API server that remembers what it gets, and whose objects have a time.
type stamped struct{ got string }

const madeAt = `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"x","namespace":"n",` +
	`"creationTimestamp":"2026-11-01T10:00:00Z"}}`

func (s *stamped) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	if r.Method != http.MethodGet {
		body, _ := io.ReadAll(r.Body) // a test's
		s.got = string(body)
	}
	if r.URL.Query().Has("watch") {
		fmt.Fprintf(w, `{"type":"ADDED","object":%s}`+"\n", madeAt)
		return
	}
	_, _ = io.WriteString(w, madeAt) // likewise
}

func TestTheProgramSeesAgainWhatItWrote(t *testing.T) {
	s := &stamped{}
	behind := httptest.NewServer(s)
	t.Cleanup(behind.Close)
	p, err := New(&rest.Config{Host: behind.URL})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	p.Shift(-time.Hour)
	cfg, err := p.Config()
	if err != nil {
		t.Fatal(err)
	}
	c, err := kubernetes.NewForConfig(cfg)
	if err != nil {
		t.Fatal(err)
	}
	read, err := c.CoreV1().ConfigMaps("n").Get(t.Context(), "x", metav1.GetOptions{})
	if err != nil || read.CreationTimestamp.UTC().Hour() != 9 {
		t.Fatalf("read %v, %v", read, err)
	}
	w, err := c.CoreV1().ConfigMaps("n").Watch(t.Context(), metav1.ListOptions{ResourceVersion: "1"})
	if err != nil {
		t.Fatal(err)
	}
	if e := <-w.ResultChan(); !strings.Contains(fmt.Sprint(e.Object), "09:00:00") {
		t.Errorf("event %+v", e)
	}
	w.Stop()
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"creationTimestamp": read.CreationTimestamp}})
	if err != nil {
		t.Fatal(err)
	}
	written, err := c.CoreV1().ConfigMaps("n").Patch(t.Context(), "x", types.MergePatchType, patch, metav1.PatchOptions{})
	if err != nil || !written.CreationTimestamp.Equal(&read.CreationTimestamp) {
		t.Errorf("the answer is %v, %v", written, err)
	}
	if want := `{"metadata":{"creationTimestamp":"2026-11-01T10:00:00Z"}}`; s.got != want {
		t.Errorf("the API server got %s, want %s", s.got, want)
	}
	if err := p.Broken(); err != nil {
		t.Error(err)
	}
}
