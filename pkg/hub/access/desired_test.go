package access

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime"
	clientcmdv1 "k8s.io/client-go/tools/clientcmd/api/v1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	inventoryv1alpha1 "sigs.k8s.io/cluster-inventory-api/apis/v1alpha1"

	"open-cluster-management.io/cluster-inventory-addon/internal/certtest"
	"open-cluster-management.io/cluster-inventory-addon/pkg/kube/watch"
)

type entries = []inventoryv1alpha1.AccessProvider

// entry is a provider of ours, spelled out.
func entry(name, server, ca, extension string) inventoryv1alpha1.AccessProvider {
	return inventoryv1alpha1.AccessProvider{Name: name, Cluster: clientcmdv1.Cluster{
		Server:                   server,
		CertificateAuthorityData: []byte(ca),
		Extensions: []clientcmdv1.NamedExtension{
			{Name: "client.authentication.k8s.io/exec", Extension: runtime.RawExtension{Raw: []byte(extension)}},
		},
	}}
}

func TestMerge(t *testing.T) {
	proxy := entry("open-cluster-management", "https://u/c1", "CA", `{"clusterName":"c1"}`)
	direct := entry("direct", "https://c1", "CA", `{"clusterName":"c1"}`)
	other := inventoryv1alpha1.AccessProvider{
		Name:    "gke",
		Cluster: clientcmdv1.Cluster{Server: "http://gke", ProxyURL: "http://p"},
	}
	another := entry("another", "https://a", "", `{"x":[1]}`)
	foreignDirect := direct
	foreignDirect.Cluster.TLSServerName = "c1"
	stale := entry("open-cluster-management", "https://u/c1", "OLD", `{"clusterName":"c1"}`)
	proxied := proxy
	proxied.Cluster.ProxyURL = "http://tenant"
	published := func(p inventoryv1alpha1.AccessProvider) ProviderState {
		return ProviderState{Known: true, Provider: &p}
	}
	unknown := ProviderState{}

	tests := map[string]struct {
		current       entries
		proxy, direct ProviderState
		want          entries
	}{
		"birth":              {proxy: published(proxy), direct: published(direct), want: entries{proxy, direct}},
		"nothing to publish": {proxy: none, direct: none},
		"ours come first, others keep their order": {
			current: entries{other, another},
			proxy:   published(proxy),
			direct:  published(direct),
			want:    entries{proxy, direct, other, another},
		},
		"a changed CA": {
			current: entries{stale, other},
			proxy:   published(proxy),
			direct:  none,
			want:    entries{proxy, other},
		},
		"another client's addition to ours is undone": {
			current: entries{proxied},
			proxy:   published(proxy),
			direct:  none,
			want:    entries{proxy},
		},
		"withdrawn, others stay": {
			current: entries{proxy, direct, other},
			proxy:   none,
			direct:  none,
			want:    entries{other},
		},
		"the last is withdrawn": {current: entries{proxy}, proxy: none, direct: none, want: nil},
		"twice of one name": {
			current: entries{proxy, other, stale},
			proxy:   published(proxy),
			direct:  none,
			want:    entries{proxy, other},
		},
		"unknown: stays": {
			current: entries{stale, direct, other},
			proxy:   unknown,
			direct:  unknown,
			want:    entries{stale, direct, other},
		},
		"unknown next to known: in its place": {
			current: entries{stale, direct, other},
			proxy:   unknown,
			direct:  published(direct),
			want:    entries{stale, direct, other},
		},
		"unknown, written last by another client": {
			current: entries{other, stale},
			proxy:   unknown,
			direct:  published(direct),
			want:    entries{direct, other, stale},
		},
		"another client's direct, not opted in": {
			current: entries{other, foreignDirect},
			proxy:   none,
			direct:  none,
			want:    entries{other, foreignDirect},
		},
		"another client's direct, opted in": {
			current: entries{other, foreignDirect},
			proxy:   none,
			direct:  published(direct),
			want:    entries{direct, other},
		},
		"a direct entry of another cluster's name": {
			current: entries{entry("direct", "https://c1", "CA", `{"clusterName":"c2"}`)}, proxy: none, direct: none,
			want: entries{entry("direct", "https://c1", "CA", `{"clusterName":"c2"}`)},
		},
		"a direct entry that says more": {
			current: entries{entry("direct", "https://c1", "CA", `{"clusterName":"c1","x":"y"}`)}, proxy: none, direct: none,
			want: entries{entry("direct", "https://c1", "CA", `{"clusterName":"c1","x":"y"}`)},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			d := Decision{Proxy: test.proxy, Direct: test.direct}
			got := Merge(test.current, "c1", d)
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("entries (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(got, Merge(got, "c1", d)); diff != "" {
				t.Errorf("a second time something changes:\n%s", diff)
			}
		})
	}
}

// An API server may serialize an extension differently.
func TestMergeComparesContent(t *testing.T) {
	current := entries{entry("open-cluster-management", "https://u/c1", "CA", "{ \"clusterName\" : \"c1\" }\n")}
	wanted := entry("open-cluster-management", "https://u/c1", "CA", `{"clusterName":"c1"}`)
	got := Merge(
		current, "c1", Decision{Proxy: ProviderState{Known: true, Provider: &wanted}, Direct: ProviderState{Known: true}},
	)
	if diff := cmp.Diff(current, got); diff != "" {
		t.Errorf("entries (-want +got):\n%s", diff)
	}
}

// none is the state of a provider that should not be published.
var none = ProviderState{Known: true}

type decideCase struct {
	endpoint endpoint
	cluster  clusterFacts
	disabled bool
	want     Decision
}

func checkDecisions(t *testing.T, tests map[string]decideCase) {
	t.Helper()
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			test.cluster.name = "c1"
			got := decide(ClusterProxyOptions{Enabled: !test.disabled}, test.endpoint, test.cluster)
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("decision (-want +got):\n%s", diff)
			}
		})
	}
}

func TestDecideClusterProxyProvider(t *testing.T) {
	proxy := entry("open-cluster-management", "https://u:1/c1", "CA", `{"clusterName":"c1"}`)
	there := endpoint{known: true, server: "https://u:1", ca: []byte("CA")}
	checkDecisions(t, map[string]decideCase{
		"a cluster with cluster-proxy": {
			endpoint: there, cluster: clusterFacts{proxied: true},
			want: Decision{Proxy: ProviderState{Known: true, Provider: &proxy}, Direct: none},
		},
		"a URL that ends in a slash": {
			endpoint: endpoint{known: true, server: "https://u:1/", ca: []byte("CA")}, cluster: clusterFacts{proxied: true},
			want: Decision{Proxy: ProviderState{Known: true, Provider: &proxy}, Direct: none},
		},
		"a cluster without it": {endpoint: there, want: Decision{Proxy: none, Direct: none}},
		"something is missing on the hub": {
			endpoint: endpoint{known: true, problem: problem{text: "it is missing"}},
			cluster:  clusterFacts{proxied: true},
			want: Decision{
				Proxy:    none,
				Direct:   none,
				Problems: []string{`Access provider "open-cluster-management" is not published: it is missing.`},
				Missing:  []string{"open-cluster-management"},
			},
		},
		"something is missing on the hub that the cluster does not use": {
			endpoint: endpoint{known: true, problem: problem{text: "it is missing"}}, want: Decision{Proxy: none, Direct: none},
		},
		"something on the hub is unknown": {
			endpoint: endpoint{problem: problem{text: "it " + unread}},
			cluster:  clusterFacts{proxied: true},
			want: Decision{
				Direct:   none,
				Problems: []string{`Access provider "open-cluster-management" is left as it is: it ` + unread + `.`},
				Missing:  []string{"open-cluster-management"},
			},
		},
		"something on the hub is not known yet: no word of it": {
			endpoint: endpoint{
				problem: problem{text: "it " + watch.NotReadYet, transient: true},
			},
			cluster: clusterFacts{proxied: true},
			want:    Decision{Direct: none, Missing: []string{"open-cluster-management"}},
		},
		"something on the hub is unknown, but the cluster lost cluster-proxy: withdrawn": {
			endpoint: endpoint{problem: problem{text: "it " + unread}}, want: Decision{Proxy: none, Direct: none},
		},
		"cluster-proxy writes itself: left, even where it should not write": {
			endpoint: endpoint{yield: true, problem: problem{text: "it does"}}, want: Decision{Direct: none},
		},
		"the addons are unknown": {
			endpoint: there,
			cluster:  clusterFacts{proxiedUnknown: unread},
			want: Decision{
				Direct: none,
				Problems: []string{
					`Access provider "open-cluster-management" is left as it is: ManagedClusterAddOn cluster-proxy ` + unread + `.`,
				},
			},
		},
		"not this addon's to write": {
			disabled: true,
			endpoint: there,
			cluster:  clusterFacts{proxied: true},
			want:     Decision{Direct: none},
		},
	})
}

func TestDecideDirectProvider(t *testing.T) {
	ca := certtest.NewCA(t, "spoke", time.Now().Add(time.Hour))
	direct := entry("direct", "https://c1.example.com", string(ca.PEM()), `{"clusterName":"c1"}`)
	there := endpoint{known: true, server: "https://u:1", ca: []byte("CA")}
	checkDecisions(t, map[string]decideCase{
		"reached directly": {
			endpoint: there,
			cluster: clusterFacts{
				direct: directFacts{entry: &directEntry{server: "https://c1.example.com", ca: string(ca.PEM())}},
			},
			want: Decision{Proxy: none, Direct: ProviderState{Known: true, Provider: &direct}},
		},
		"reached as the ManagedCluster says": {
			endpoint: there, cluster: clusterFacts{direct: directFacts{
				entry: &directEntry{fromManagedCluster: true},
				cluster: found[[]clusterv1.ClientConfig]{
					object: &[]clusterv1.ClientConfig{{URL: "https://c1.example.com", CABundle: ca.PEM()}},
				},
			}},
			want: Decision{Proxy: none, Direct: ProviderState{Known: true, Provider: &direct}},
		},
		"the ManagedCluster says nothing that can be used": {
			endpoint: there,
			cluster:  clusterFacts{direct: directFacts{entry: &directEntry{source: "hub/direct", fromManagedCluster: true}}},
			want: Decision{Proxy: none, Direct: none, Missing: []string{"direct"}, Problems: []string{
				`Access provider "direct" is not published: the ManagedCluster has no spec.managedClusterClientConfigs, as ` +
					`ConfigMap hub/direct wants it.`,
			}},
		},
		"the administrator's error": {
			endpoint: there,
			cluster:  clusterFacts{direct: directFacts{entry: &directEntry{problem: "it is wrong"}}},
			want: Decision{
				Proxy:    none,
				Direct:   none,
				Problems: []string{`Access provider "direct" is not published: it is wrong.`},
				Missing:  []string{"direct"},
			},
		},
		"what the administrator says is unknown": {
			endpoint: there, cluster: clusterFacts{direct: directFacts{unknown: unread}},
			want: Decision{Proxy: none, Problems: []string{
				`Access provider "direct" is left as it is: ConfigMaps labeled inventory.open-cluster-management.io/direct-access ` + unread + `.`,
			}},
		},
	})
}
