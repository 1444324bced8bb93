package access

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	"sigs.k8s.io/yaml"

	"open-cluster-management.io/cluster-inventory-addon/internal/certtest"
)

func message(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

func itoa(n int) string { return fmt.Sprint(n) }

// entryText is a direct entry as an administrator writes it.
func entryText(t *testing.T, fields map[string]any) string {
	t.Helper()
	text, err := yaml.Marshal(fields)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestParseDirect(t *testing.T) {
	ca := certtest.NewCA(t, "spoke", time.Now().Add(time.Hour))
	good := map[string]any{"server": "https://spoke.example.com:6443", "certificateAuthority": string(ca.PEM())}
	with := func(key string, value any) string {
		changed := map[string]any{key: value}
		for k, v := range good {
			if _, given := changed[k]; !given {
				changed[k] = v
			}
		}
		return entryText(t, changed)
	}
	tests := map[string]struct {
		text string
		want directEntry
		err  string
	}{
		"server and CA": {
			text: entryText(t, good),
			want: directEntry{server: "https://spoke.example.com:6443", ca: string(ca.PEM())},
		},
		"as JSON":                 {text: `{"fromManagedCluster": true}`, want: directEntry{fromManagedCluster: true}},
		"from the ManagedCluster": {text: "fromManagedCluster: true\n", want: directEntry{fromManagedCluster: true}},
		"nothing":                 {err: "needs server and certificateAuthority, or fromManagedCluster: true"},
		"not from there": {
			text: "fromManagedCluster: false",
			err:  "needs server and certificateAuthority, or fromManagedCluster: true",
		},
		"no CA": {
			text: "server: https://a",
			err:  "needs server and certificateAuthority, or fromManagedCluster: true",
		},
		"both": {
			text: with("fromManagedCluster", true),
			err:  "has fromManagedCluster beside server or certificateAuthority",
		},
		"without TLS": {
			text: with("server", "http://spoke.example.com"),
			err:  "has a server that is not an https URL",
		},
		"a CA that is none": {
			text: with("certificateAuthority", "secret"),
			err:  "has a certificateAuthority that is not PEM text",
		},
		"a key in addition to the CA": {
			text: with("certificateAuthority", string(ca.PEM())+string(ca.KeyPEM(t))),
			err:  `has a certificateAuthority that has a block "EC PRIVATE KEY" among its certificates`,
		},
		"an unknown field": {
			text: with("proxy-url", "https://p"),
			err:  `cannot be read: error unmarshaling JSON: while decoding JSON: json: unknown field "proxy-url"`,
		},
		"a field twice": {
			text: "server: https://a\nserver: https://b\n",
			err: `cannot be read: error converting YAML to JSON: yaml: unmarshal errors: line 2: key ` +
				`"server" already set in map`,
		},
		"a list": {
			text: "[]",
			err: "cannot be read: error unmarshaling JSON: while decoding JSON: json: cannot unmarshal array into Go value " +
				"of type access.directConfig",
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := parseDirect(test.text)
			if message(err) != test.err {
				t.Errorf("error %q, want %q", message(err), test.err)
			}
			if diff := cmp.Diff(test.want, got, cmp.AllowUnexported(directEntry{})); diff != "" {
				t.Errorf("entry (-want +got):\n%s", diff)
			}
		})
	}
}

func TestDirectEntries(t *testing.T) {
	going := metav1.Now()
	configMap := func(name string, data map[string]string) *corev1.ConfigMap {
		return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name}, Data: data}
	}
	gone := configMap("gone", map[string]string{"c1": "fromManagedCluster: true"})
	gone.DeletionTimestamp = &going
	const from = "fromManagedCluster: true"
	got := directEntries([]*corev1.ConfigMap{
		configMap("b", map[string]string{"c1": from, "c2": from, "c4": "x"}),
		configMap("a", map[string]string{"c2": "broken:", "c3": from}),
		gone,
	})
	want := map[string]directEntry{
		"c1": {source: "ns/b", fromManagedCluster: true},
		"c2": {problem: "more than one ConfigMap has it: ns/a, ns/b"},
		"c3": {source: "ns/a", fromManagedCluster: true},
		"c4": {
			source: "ns/b",
			problem: `what ConfigMap ns/b has under "c4" cannot be read: error unmarshaling JSON: while decoding JSON: json: ` +
				`cannot unmarshal string into Go value of type access.directConfig`,
		},
	}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(directEntry{})); diff != "" {
		t.Errorf("entries (-want +got):\n%s", diff)
	}
}

func TestFromManagedCluster(t *testing.T) {
	a, b := certtest.NewCA(t, "a", time.Now().Add(time.Hour)), certtest.NewCA(t, "b", time.Now().Add(time.Hour))
	const none = "no entry of the ManagedCluster's spec.managedClusterClientConfigs has both an https " +
		"URL and a usable caBundle"
	tests := map[string]struct {
		configs     *[]clusterv1.ClientConfig
		server, ca  string
		wantProblem string
	}{
		"the first that can be used": {
			configs: &[]clusterv1.ClientConfig{
				{URL: "http://1", CABundle: a.PEM()},
				{URL: "https://2"},
				{URL: "https://3", CABundle: []byte("x")},
				{URL: "https://4", CABundle: b.PEM()},
				{URL: "https://5", CABundle: a.PEM()},
			},
			server: "https://4",
			ca:     string(b.PEM()),
		},
		"without CA":  {configs: &[]clusterv1.ClientConfig{{URL: "https://1"}}, wantProblem: none},
		"without TLS": {configs: &[]clusterv1.ClientConfig{{URL: "http://1", CABundle: a.PEM()}}, wantProblem: none},
		"a key with the CA": {
			configs:     &[]clusterv1.ClientConfig{{URL: "https://1", CABundle: append(a.PEM(), a.KeyPEM(t)...)}},
			wantProblem: none,
		},
		"empty": {
			configs:     &[]clusterv1.ClientConfig{},
			wantProblem: "the ManagedCluster has no spec.managedClusterClientConfigs",
		},
		"no ManagedCluster": {wantProblem: "the ManagedCluster has no spec.managedClusterClientConfigs"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			server, ca, problem := fromManagedCluster(test.configs)
			if diff := cmp.Diff([]string{test.server, test.ca, test.wantProblem}, []string{server, ca, problem}); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// An unrequested provider is not published, and another client's entry named direct is not
// touched.
func TestUnmentionedClusterHasNoDirectAccess(t *testing.T) {
	d := decide(ClusterProxyOptions{}, endpoint{}, clusterFacts{name: "c1"})
	if diff := cmp.Diff(Decision{Direct: ProviderState{Known: true}}, d); diff != "" {
		t.Errorf("decision (-want +got):\n%s", diff)
	}
	if strings.Contains(fmt.Sprint(d.Problems), "direct") {
		t.Error(d.Problems)
	}
}
