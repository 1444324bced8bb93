package access

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"open-cluster-management.io/cluster-inventory-addon/internal/certtest"
	"open-cluster-management.io/cluster-inventory-addon/pkg/kube/watch"
)

const (
	unread     = "may not be read by the manager: its rights are missing"
	serviceURI = "https://cluster-proxy-addon-user.proxy:9092"
)

func onTheHub() ClusterProxyOptions {
	return ClusterProxyOptions{Enabled: true, Namespace: "proxy", Configuration: "cluster-proxy", stateNamespace: "hub"}
}

// outside is for consumers outside the hub.
func outside() ClusterProxyOptions {
	o := onTheHub()
	o.URL = "https://proxy.example.com/p"
	return o
}

func outsideWithCA() ClusterProxyOptions {
	o := outside()
	o.CABundle = []byte("THEIRS")
	return o
}

type endpointCase struct {
	change func(*proxyFacts) // of a hub on which everything is there
	want   endpoint
}

// checkEndpoints runs the cases with the CA that the user server's certificate has.
func checkEndpoints(t *testing.T, o ClusterProxyOptions, cases func(ca []byte) map[string]endpointCase) {
	t.Helper()
	now := time.Now()
	ca := certtest.NewCA(t, "ca", now.Add(time.Hour))
	chain := certtest.Chain(certtest.NewLeaf(t, ca, userServerHost, "proxy.example.com"), ca)
	for name, test := range cases(ca.PEM()) {
		t.Run(name, func(t *testing.T) {
			facts := proxyFacts{
				served:         true,
				configurations: []configuration{{name: "cluster-proxy", namespace: "proxy", userServer: true}},
				service: found[corev1.Service]{object: &corev1.Service{
					Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Name: "metrics", Port: 1}, {Name: "https", Port: 9092}}},
				}},
				secret: found[corev1.Secret]{object: &corev1.Secret{Data: map[string][]byte{"tls.crt": chain}}},
			}
			if test.change != nil {
				test.change(&facts)
			}
			got, _ := desiredEndpoint(o, facts, now)
			if diff := cmp.Diff(test.want, got, cmp.AllowUnexported(endpoint{}, problem{})); diff != "" {
				t.Errorf("endpoint (-want +got):\n%s", diff)
			}
		})
	}
}

func TestEndpointIsTheServiceWithTheCAOfTheSecret(t *testing.T) {
	checkEndpoints(t, onTheHub(), func(ca []byte) map[string]endpointCase {
		return map[string]endpointCase{
			"everything is there": {want: endpoint{known: true, server: serviceURI, ca: ca}},
			"the one port of the Service, with any name": {
				change: func(f *proxyFacts) { f.service.object.Spec.Ports = []corev1.ServicePort{{Port: 443}} },
				want:   endpoint{known: true, server: "https://cluster-proxy-addon-user.proxy:443", ca: ca},
			},
			"no port that could be meant": {
				change: func(f *proxyFacts) { f.service.object.Spec.Ports[1].Name = "tunnel" },
				want: endpoint{
					known: true, problem: problem{text: "Service proxy/cluster-proxy-addon-user has no port named https"},
				},
			},
			"no Service": {
				change: func(f *proxyFacts) { f.service.object = nil },
				want: endpoint{
					known: true,
					problem: problem{text: "Service proxy/cluster-proxy-addon-user is missing " +
						"(enableServiceProxy of cluster-proxy's chart)"},
				},
			},
			"no Secret": {
				change: func(f *proxyFacts) { f.secret.object = nil },
				want:   endpoint{known: true, problem: problem{text: "Secret proxy/cluster-proxy-user-serving-cert is missing"}},
			},
		}
	})
}

func TestEndpointNeedsTheConfiguration(t *testing.T) {
	checkEndpoints(t, onTheHub(), func(ca []byte) map[string]endpointCase {
		return map[string]endpointCase{
			"the API is not served": {
				change: func(f *proxyFacts) { f.served, f.configurations = false, nil },
				want: endpoint{
					known:   true,
					problem: problem{text: "the hub serves no ManagedProxyConfiguration: cluster-proxy is not installed on it"},
				},
			},
			"no configuration": {
				change: func(f *proxyFacts) { f.configurations = nil },
				want:   endpoint{known: true, problem: problem{text: `there is no ManagedProxyConfiguration "cluster-proxy"`}},
			},
			"only other configurations": {
				change: func(f *proxyFacts) {
					f.configurations = []configuration{{name: "b", namespace: "proxy", userServer: true}, {name: "a"}}
				},
				want: endpoint{
					known: true,
					problem: problem{text: `there is no ManagedProxyConfiguration "cluster-proxy", only others (a, b), ` +
						`which are not looked at`},
				},
			},
			"a second configuration": {
				change: func(f *proxyFacts) {
					f.configurations = append([]configuration{{name: "a", namespace: "other"}}, f.configurations...)
				},
				want: endpoint{known: true, server: serviceURI, ca: ca},
			},
			"no user server": {
				change: func(f *proxyFacts) { f.configurations[0].userServer = false },
				want: endpoint{
					known: true,
					problem: problem{text: `ManagedProxyConfiguration "cluster-proxy" has no spec.userServer ` +
						`(userServer.enabled of cluster-proxy's chart)`},
				},
			},
			"another namespace": {
				change: func(f *proxyFacts) { f.configurations[0].namespace = "other" },
				want: endpoint{
					known: true,
					problem: problem{text: `ManagedProxyConfiguration "cluster-proxy" is for namespace "other", ` +
						`and this addon is told to look in "proxy" (access.clusterProxy.namespace)`},
				},
			},
		}
	})
}

func TestEndpointForConsumersOutside(t *testing.T) {
	checkEndpoints(t, outside(), func(ca []byte) map[string]endpointCase {
		return map[string]endpointCase{
			"by the user server's own CA": {
				change: func(f *proxyFacts) { f.service.object = nil },
				want:   endpoint{known: true, server: "https://proxy.example.com/p", ca: ca},
			},
		}
	})
	checkEndpoints(t, outsideWithCA(), func([]byte) map[string]endpointCase {
		return map[string]endpointCase{
			"by another CA": {
				change: func(f *proxyFacts) {
					f.service.object, f.secret.object, f.configurations[0].namespace = nil, nil, "other"
				},
				want: endpoint{known: true, server: "https://proxy.example.com/p", ca: []byte("THEIRS")},
			},
			"without cluster-proxy": {
				change: func(f *proxyFacts) { f.configurations = nil },
				want:   endpoint{known: true, problem: problem{text: `there is no ManagedProxyConfiguration "cluster-proxy"`}},
			},
		}
	})
}

func TestEndpointIsUnknownWhileSomethingCannotBeRead(t *testing.T) {
	checkEndpoints(t, onTheHub(), func([]byte) map[string]endpointCase {
		return map[string]endpointCase{
			"the Secret may not be read": {
				change: func(f *proxyFacts) { f.secret = found[corev1.Secret]{unknown: unread} },
				want:   endpoint{problem: problem{text: "Secret proxy/cluster-proxy-user-serving-cert " + unread}},
			},
			"the Secret has not been read yet": {
				change: func(f *proxyFacts) { f.secret = found[corev1.Secret]{unknown: watch.NotReadYet} },
				want: endpoint{
					problem: problem{text: "Secret proxy/cluster-proxy-user-serving-cert has not been read yet", transient: true},
				},
			},
			"the gate will be known in a moment": {
				change: func(f *proxyFacts) { f.gate = problem{text: "Deployment d was not found", transient: true} },
				want:   endpoint{yield: true, problem: problem{text: "Deployment d was not found", transient: true}},
			},
			"the Service may not be read": {
				change: func(f *proxyFacts) { f.service = found[corev1.Service]{unknown: unread} },
				want:   endpoint{problem: problem{text: "Service proxy/cluster-proxy-addon-user " + unread}},
			},
			"the state cannot be read": {
				change: func(f *proxyFacts) { f.remembered.unknown = unread },
				want:   endpoint{problem: problem{text: "ConfigMap hub/cluster-inventory-access-ca " + unread}},
			},
			"the configurations cannot be read": {
				change: func(f *proxyFacts) { f.unknown = unread },
				want:   endpoint{problem: problem{text: "ManagedProxyConfiguration cluster-proxy " + unread}},
			},
			"one is missing, another cannot be read: missing counts": {
				change: func(f *proxyFacts) { f.secret.object, f.service = nil, found[corev1.Service]{unknown: unread} },
				want:   endpoint{known: true, problem: problem{text: "Secret proxy/cluster-proxy-user-serving-cert is missing"}},
			},
			"nothing there and nothing readable: not installed": {
				change: func(f *proxyFacts) {
					*f = proxyFacts{
						service: found[corev1.Service]{unknown: unread}, secret: found[corev1.Secret]{unknown: unread},
						gate: problem{text: "Deployment " + unread},
					}
				},
				want: endpoint{
					known:   true,
					problem: problem{text: "the hub serves no ManagedProxyConfiguration: cluster-proxy is not installed on it"},
				},
			},
		}
	})
}

func TestEndpointBelongsToClusterProxyWhileItsGateIsOn(t *testing.T) {
	checkEndpoints(t, onTheHub(), func([]byte) map[string]endpointCase {
		return map[string]endpointCase{
			"it writes the entries itself": {
				change: func(f *proxyFacts) {
					f.gateOn, f.gate.text, f.secret.object = true, "cluster-proxy writes it itself", nil
				},
				want: endpoint{yield: true, problem: problem{text: "cluster-proxy writes it itself"}},
			},
			"it writes them, and the configurations cannot be read": {
				change: func(f *proxyFacts) {
					f.gateOn, f.gate.text, f.unknown = true, "cluster-proxy writes it itself", unread
				},
				want: endpoint{yield: true, problem: problem{text: "cluster-proxy writes it itself"}},
			},
			"it is unknown whether it does": {
				change: func(f *proxyFacts) { f.gate.text, f.secret.object = "Deployment "+unread, nil },
				want:   endpoint{yield: true, problem: problem{text: "Deployment " + unread}},
			},
		}
	})
}
