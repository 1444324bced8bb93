package access

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/runtime"
	clientcmdv1 "k8s.io/client-go/tools/clientcmd/api/v1"
	inventoryv1alpha1 "sigs.k8s.io/cluster-inventory-api/apis/v1alpha1"

	"open-cluster-management.io/cluster-inventory-addon/pkg/contract"
)

// Names that cluster-proxy gives its parts on the hub, and that nothing
// configures (cluster-proxy v0.10.0, pkg/constant and charts/cluster-proxy).
const (
	proxyAddonName    = "cluster-proxy"
	userServerService = "cluster-proxy-addon-user"
	userServerSecret  = "cluster-proxy-user-serving-cert"
)

// Decision is what becomes of the access providers of one cluster's profiles.
// The zero value leaves them as they are.
type Decision struct {
	// Proxy is the provider through cluster-proxy.
	Proxy Answer

	// Direct is the provider without a proxy.
	Direct Answer

	// Problems are sentences, for the cluster's condition, that say why a provider
	// that the cluster should have is not published or not kept true.
	Problems []string
}

// Answer is what is known of one access provider.
type Answer struct {
	// Known is false when it cannot be told whether there is to be a provider, or
	// when it is somebody else's to tell: an entry of its name stays as it is.
	Known bool

	// Provider is nil when there is to be none.
	Provider *inventoryv1alpha1.AccessProvider
}

// Merge returns a profile's access providers with this addon's put right: first
// the one through cluster-proxy, then the direct one, then everybody else's in
// their order. current is not changed, and returned itself if it is right.
func Merge(current []inventoryv1alpha1.AccessProvider, cluster string, d Decision) []inventoryv1alpha1.AccessProvider {
	rest := slices.DeleteFunc(slices.Clone(current), func(entry inventoryv1alpha1.AccessProvider) bool {
		switch entry.Name {
		case contract.AccessProviderName:
			return d.Proxy.Known
		case contract.DirectAccessProviderName:
			return d.Direct.Known && (d.Direct.Provider != nil || isOurDirect(entry, cluster))
		default:
			return false
		}
	})
	var merged []inventoryv1alpha1.AccessProvider
	for _, ours := range []struct {
		name   string
		answer Answer
	}{
		{contract.AccessProviderName, d.Proxy},
		{contract.DirectAccessProviderName, d.Direct},
	} {
		switch {
		case ours.answer.Provider != nil:
			merged = append(merged, *ours.answer.Provider)
		case len(rest) > 0 && rest[0].Name == ours.name:
			// Not ours to change now, but in its place.
			merged, rest = append(merged, rest[0]), rest[1:]
		}
	}
	merged = append(merged, rest...)
	if slices.EqualFunc(current, merged, equal) {
		return current
	}
	return merged
}

// equal compares what two entries say, whatever spaces or order of keys their
// extensions were written with.
func equal(a, b inventoryv1alpha1.AccessProvider) bool {
	extensions := func(x, y clientcmdv1.NamedExtension) bool {
		return x.Name == y.Name && apiequality.Semantic.DeepEqual(decoded(x.Extension), decoded(y.Extension))
	}
	if !slices.EqualFunc(a.Cluster.Extensions, b.Cluster.Extensions, extensions) {
		return false
	}
	a.Cluster.Extensions, b.Cluster.Extensions = nil, nil
	return apiequality.Semantic.DeepEqual(a, b)
}

// decoded is what an extension says, or its bytes if that is no JSON.
func decoded(extension runtime.RawExtension) any {
	var value any
	if err := json.Unmarshal(extension.Raw, &value); err != nil {
		return extension.Raw
	}
	return value
}

// isOurDirect tells whether an entry named like the direct provider has exactly
// the form this addon gives it. Any other is somebody else's.
func isOurDirect(entry inventoryv1alpha1.AccessProvider, cluster string) bool {
	return strings.HasPrefix(entry.Cluster.Server, "https://") && len(entry.Cluster.CertificateAuthorityData) > 0 &&
		equal(entry, provider(entry.Name, entry.Cluster.Server, entry.Cluster.CertificateAuthorityData, cluster))
}

// provider is an entry as this addon writes it. Its one extension is what the
// exec plugin of a consumer is told: nothing secret, and nothing but the cluster.
func provider(name, server string, ca []byte, cluster string) inventoryv1alpha1.AccessProvider {
	// A map of strings cannot fail to be encoded.
	extension, _ := json.Marshal(map[string]string{contract.ExecClusterName: cluster})
	return inventoryv1alpha1.AccessProvider{
		Name: name,
		Cluster: clientcmdv1.Cluster{
			Server:                   server,
			CertificateAuthorityData: ca,
			Extensions: []clientcmdv1.NamedExtension{{
				Name:      contract.ExecExtensionName,
				Extension: runtime.RawExtension{Raw: extension},
			}},
		},
	}
}

// found is what is known of one object: nothing, and why; or that it is not
// there; or what it says.
type found[T any] struct {
	unknown string // completes "it "; empty when it is known
	object  *T
}

// proxyFacts are what there is of cluster-proxy on the hub.
type proxyFacts struct {
	// unknown is why configurations are not known; empty when they are.
	unknown string

	// served is true when the hub serves ManagedProxyConfigurations.
	served         bool
	configurations []configuration

	service    found[corev1.Service]
	secret     found[corev1.Secret]
	remembered found[corev1.ConfigMap]

	// gateOn is true while cluster-proxy writes the entries itself. gateProblem says
	// that, or why it cannot be told; it is empty when the gate is off.
	gateOn      bool
	gateProblem string
}

// configuration is what is read of a ManagedProxyConfiguration.
type configuration struct {
	name       string
	namespace  string // of its proxy servers
	userServer bool
}

// endpoint is cluster-proxy's user server, as all clusters have it.
type endpoint struct {
	// known is false when entries are to stay as they are.
	known bool

	// server is the URL that a cluster's name completes; empty when there is no
	// user server to be used.
	server string
	ca     []byte

	// yield is true while cluster-proxy writes the entries itself, or may: then
	// none of them is touched, whatever else is known.
	yield bool

	// problem is a fragment that says why there is no server or why nothing is
	// known.
	problem string
}

// rotation is what follows from the user server's certificates beyond what is
// published.
type rotation struct {
	// remember is what is to be remembered of what is published; nil leaves that
	// as it is.
	remember []byte

	// until is when one of the published certificates expires; zero for never.
	until time.Time
}

// desiredEndpoint decides whether and how clusters are reached through
// cluster-proxy. What is positively missing counts before what cannot be told.
func desiredEndpoint(o ClusterProxyOptions, facts proxyFacts, now time.Time) (endpoint, rotation) {
	if e, done := checkConfiguration(o, facts); done {
		return e, rotation{}
	}
	result := endpoint{known: true, server: o.URL, ca: o.CABundle}
	if o.URL == "" {
		server, problem := serviceURL(o.Namespace, facts.service)
		if problem != "" {
			return endpoint{known: true, problem: problem}, rotation{}
		}
		result.server = server
	}
	var plan rotation
	var unknown endpoint
	if len(o.CABundle) == 0 {
		var problem string
		result.ca, plan, problem = secretCA(o, facts, result.server, now)
		if problem != "" {
			return endpoint{known: true, problem: problem}, rotation{}
		}
		unknown = firstUnknown(
			unknownEndpoint("Secret", o.Namespace, userServerSecret, facts.secret.unknown),
			unknownEndpoint("ConfigMap", o.stateNamespace, contract.AccessStateName, facts.remembered.unknown))
	}
	if o.URL == "" {
		unknown = firstUnknown(unknownEndpoint("Service", o.Namespace, userServerService, facts.service.unknown), unknown)
	}
	if unknown.problem != "" {
		return unknown, rotation{}
	}
	return result, plan
}

// checkConfiguration decides what the ManagedProxyConfigurations alone decide,
// and whether upstream writes the entries itself.
func checkConfiguration(o ClusterProxyOptions, facts proxyFacts) (endpoint, bool) {
	none := func(format string, args ...any) (endpoint, bool) {
		return endpoint{known: true, problem: fmt.Sprintf(format, args...)}, true
	}
	if facts.gateOn {
		return endpoint{yield: true, problem: facts.gateProblem}, true
	}
	// Without a configuration cluster-proxy writes nothing, whatever its gates are.
	if facts.unknown == "" && !facts.served {
		return none("the hub serves no ManagedProxyConfiguration: cluster-proxy is not installed on it")
	}
	if facts.unknown == "" && len(facts.configurations) == 0 {
		return none("there is no ManagedProxyConfiguration %q", o.Configuration)
	}
	if facts.gateProblem != "" {
		return endpoint{yield: true, problem: facts.gateProblem}, true
	}
	if facts.unknown != "" {
		return unknownEndpoint("ManagedProxyConfiguration", "", o.Configuration, facts.unknown), true
	}
	var others []string
	for _, c := range facts.configurations {
		switch {
		case c.name != o.Configuration:
			others = append(others, c.name)
		case !c.userServer:
			return none("ManagedProxyConfiguration %q has no spec.userServer", c.name)
		case c.namespace != o.Namespace && (o.URL == "" || len(o.CABundle) == 0):
			return none("ManagedProxyConfiguration %q is for namespace %q, and this addon is told to look in %q (access.clusterProxy.namespace)", c.name, c.namespace, o.Namespace)
		default:
			return endpoint{}, false
		}
	}
	slices.Sort(others)
	return none("there is no ManagedProxyConfiguration %q, only others (%s), which are not looked at", o.Configuration, strings.Join(others, ", "))
}

// unknownEndpoint says of what is not known, if there is a reason, why.
func unknownEndpoint(kind, namespace, name, why string) endpoint {
	if why == "" {
		return endpoint{}
	}
	if namespace != "" {
		name = namespace + "/" + name
	}
	return endpoint{problem: fmt.Sprintf("%s %s %s", kind, name, why)}
}

func firstUnknown(list ...endpoint) endpoint {
	for _, e := range list {
		if e.problem != "" {
			return e
		}
	}
	return endpoint{}
}

// serviceURL is how a pod of the hub reaches the user server. The name is the
// one its certificate has and every guide uses.
func serviceURL(namespace string, service found[corev1.Service]) (server, problem string) {
	name := namespace + "/" + userServerService
	switch {
	case service.unknown != "":
		return "", ""
	case service.object == nil:
		return "", fmt.Sprintf("Service %s is missing", name)
	}
	port := httpsPort(service.object.Spec.Ports)
	if port == 0 {
		return "", fmt.Sprintf("Service %s has no port named https", name)
	}
	return fmt.Sprintf("https://%s.%s:%d", userServerService, namespace, port), ""
}

// httpsPort is the port named https, or the only one.
func httpsPort(ports []corev1.ServicePort) int32 {
	for _, port := range ports {
		if port.Name == "https" {
			return port.Port
		}
	}
	if len(ports) == 1 {
		return ports[0].Port
	}
	return 0
}

// clusterFacts are what there is of one cluster's ways in.
type clusterFacts struct {
	name string

	// proxied is whether the cluster has cluster-proxy's addon; unknown says why
	// that cannot be told.
	proxied        bool
	proxiedUnknown string

	direct directFacts
}

// decide joins what all clusters share with what is the cluster's own.
func decide(o ClusterProxyOptions, e endpoint, c clusterFacts) Decision {
	var d Decision
	var problem string
	if o.Enabled {
		d.Proxy, problem = desiredProxy(e, c)
		d.report(contract.AccessProviderName, d.Proxy, problem)
	}
	d.Direct, problem = desiredDirect(c)
	d.report(contract.DirectAccessProviderName, d.Direct, problem)
	return d
}

func (d *Decision) report(name string, answer Answer, problem string) {
	switch {
	case problem == "", !answer.Known && strings.HasSuffix(problem, notRead):
	case answer.Known:
		d.Problems = append(d.Problems, fmt.Sprintf("Access provider %q is not published: %s.", name, problem))
	default:
		d.Problems = append(d.Problems, fmt.Sprintf("Access provider %q is left as it is: %s.", name, problem))
	}
}

func desiredProxy(e endpoint, c clusterFacts) (Answer, string) {
	switch {
	case c.proxiedUnknown != "":
		return Answer{}, fmt.Sprintf("ManagedClusterAddOn %s %s", proxyAddonName, c.proxiedUnknown)
	case !c.proxied:
		return Answer{Known: !e.yield}, ""
	case !e.known, e.server == "":
		return Answer{Known: e.known}, e.problem
	default:
		entry := provider(contract.AccessProviderName, strings.TrimSuffix(e.server, "/")+"/"+c.name, e.ca, c.name)
		return Answer{Known: true, Provider: &entry}, ""
	}
}

func (e endpoint) equal(other endpoint) bool {
	return e.known == other.known && e.yield == other.yield && e.server == other.server && e.problem == other.problem && bytes.Equal(e.ca, other.ca)
}
