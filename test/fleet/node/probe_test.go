package node

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

func TestStreak(t *testing.T) {
	for name, tc := range map[string]struct {
		success, failure int32
		results          string // + and -
		want             string // ? undecided, p passing, f failing
	}{
		"thresholds not set mean one":                   {results: "+-+", want: "pfp"},
		"undecided until enough failures":               {failure: 3, results: "---", want: "??f"},
		"one success passes":                            {success: 1, failure: 3, results: "-+", want: "?p"},
		"a passing one survives fewer failures":         {failure: 3, results: "+--+--+", want: "ppppppp"},
		"failures must be in a row":                     {failure: 3, results: "+--+---", want: "ppppppf"},
		"a failing one needs enough successes in a row": {success: 2, failure: 1, results: "-+-++", want: "ffffp"},
	} {
		t.Run(name, func(t *testing.T) {
			probe := &corev1.Probe{SuccessThreshold: tc.success, FailureThreshold: tc.failure}
			var seen streak
			got := ""
			for _, result := range tc.results {
				seen = seen.count(result == '+', probe)
				got += string("?pf"[seen.verdict])
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestProbeURL(t *testing.T) {
	ports := []corev1.ContainerPort{{Name: "health", ContainerPort: 8081}}
	for name, tc := range map[string]struct {
		action corev1.HTTPGetAction
		want   string
		err    string
	}{
		"the pod's address is the default": {
			action: corev1.HTTPGetAction{Path: "/healthz", Port: intstr.FromInt32(80)},
			want:   "http://127.20.1.1:80/healthz",
		},
		"a named port": {
			action: corev1.HTTPGetAction{Port: intstr.FromString("health")},
			want:   "http://127.20.1.1:8081/",
		},
		"a host, a scheme and a query": {
			action: corev1.HTTPGetAction{Host: "127.0.0.1", Scheme: "HTTPS", Path: "ready?x=1", Port: intstr.FromInt32(1)},
			want:   "https://127.0.0.1:1/ready?x=1",
		},
		"an unknown port name, an error": {
			action: corev1.HTTPGetAction{Port: intstr.FromString("none")},
			err:    "the container has no port named none",
		},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := probeURL(&tc.action, "127.20.1.1", ports)
			if got != tc.want || message(err) != tc.err {
				t.Errorf("got %q, %q; want %q, %q", got, message(err), tc.want, tc.err)
			}
		})
	}
}

func TestAttempt(t *testing.T) {
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		code, err := strconv.Atoi(strings.TrimPrefix(r.URL.Path, "/"))
		if err != nil || r.Header.Get("X-Probe") != "yes" {
			code = http.StatusTeapot
		}
		w.Header().Set("Location", "/500")
		w.WriteHeader(code)
	}))
	defer server.Close()
	address, err := url.Parse(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	port := intstr.Parse(address.Port())
	closed, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	closedPort := intstr.FromInt(closed.Addr().(*net.TCPAddr).Port)
	if err := closed.Close(); err != nil {
		t.Fatal(err)
	}
	get := func(path string) corev1.ProbeHandler {
		return corev1.ProbeHandler{
			HTTPGet: &corev1.HTTPGetAction{
				Scheme:      "HTTPS",
				Path:        path,
				Port:        port,
				HTTPHeaders: []corev1.HTTPHeader{{Name: "X-Probe", Value: "yes"}},
			},
		}
	}
	run := func(_ context.Context, argv []string) (int32, error) {
		switch argv[0] {
		case "good":
			return 0, nil
		case "bad":
			return 2, nil
		default:
			return 0, errors.New("not executed")
		}
	}
	command := func(word string) corev1.ProbeHandler {
		return corev1.ProbeHandler{Exec: &corev1.ExecAction{Command: []string{word}}}
	}
	for name, tc := range map[string]struct {
		handler corev1.ProbeHandler
		ok      bool
	}{
		"200 is success":                         {handler: get("/200"), ok: true},
		"a redirect is success and not followed": {handler: get("/302"), ok: true},
		"404 is failure":                         {handler: get("/404")},
		"an open port is success": {
			handler: corev1.ProbeHandler{TCPSocket: &corev1.TCPSocketAction{Port: port}},
			ok:      true,
		},
		"a closed port is failure": {
			handler: corev1.ProbeHandler{TCPSocket: &corev1.TCPSocketAction{Port: closedPort}},
		},
		"a command that succeeds":                 {handler: command("good"), ok: true},
		"a command that fails":                    {handler: command("bad")},
		"a command that cannot be executed fails": {handler: command("none")},
		"no handler is failure":                   {},
	} {
		t.Run(name, func(t *testing.T) {
			err := attempt(t.Context(), &corev1.Probe{ProbeHandler: tc.handler}, "127.0.0.1", nil, hostNetwork.dial, run)
			if (err == nil) != tc.ok {
				t.Errorf("got %v, want success %v", err, tc.ok)
			}
		})
	}
}
