package access

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/runtime"
	clientcmdv1 "k8s.io/client-go/tools/clientcmd/api/v1"
	inventoryv1alpha1 "sigs.k8s.io/cluster-inventory-api/apis/v1alpha1"

	"open-cluster-management.io/cluster-inventory-addon/pkg/contract"
	"open-cluster-management.io/cluster-inventory-addon/pkg/kube/watch"
)

// Names of cluster-proxy's components on the hub, which are not configurable (cluster-proxy
// v0.10.0, pkg/constant and charts/cluster-proxy).
const (
	proxyAddonName    = "cluster-proxy"
	userServerService = "cluster-proxy-addon-user"
	userServerSecret  = "cluster-proxy-user-serving-cert"
)

// Decision says which access providers the profiles of one cluster should have. The zero
// value leaves them as they are.
type Decision struct {
	// Proxy is the provider through cluster-proxy.
	Proxy ProviderState

	// Direct is the provider without a proxy.
	Direct ProviderState

	// Problems are sentences for the cluster's condition. They say why a provider
	// that the cluster should have is not published or not kept up to date.
	Problems []string

	// Missing names the providers that the cluster should have, or may turn out to have in
	// a moment, and that this addon cannot publish. A profile without such an entry does
	// not lead to its cluster yet.
	Missing []string
}

// ProviderState is the state of one access provider.
type ProviderState struct {
	// Known is false if it is unknown whether there should be a provider, or if another client
	// decides that: an entry of its name stays as it is.
	Known bool

	// Provider is nil if there should be none.
	Provider *inventoryv1alpha1.AccessProvider
}

// Merge returns a profile's access providers with this addon's own corrected: first the one
// through cluster-proxy, then the direct one, then all others in their order. It does not
// change current, and returns it if nothing is wrong.
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
		name  string
		state ProviderState
	}{
		{contract.AccessProviderName, d.Proxy},
		{contract.DirectAccessProviderName, d.Direct},
	} {
		switch {
		case ours.state.Provider != nil:
			merged = append(merged, *ours.state.Provider)
		case len(rest) > 0 && rest[0].Name == ours.name:
			// It stays as it is, at its usual position.
			merged, rest = append(merged, rest[0]), rest[1:]
		}
	}
	merged = append(merged, rest...)
	if slices.EqualFunc(current, merged, equal) {
		return current
	}
	return merged
}

// equal compares two entries, ignoring spaces and the order of keys in their
// extensions.
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

// decoded returns an extension's content, or its bytes if that is not JSON.
func decoded(extension runtime.RawExtension) any {
	var value any
	if err := json.Unmarshal(extension.Raw, &value); err != nil {
		return extension.Raw
	}
	return value
}

// isOurDirect reports whether an entry with the name of the direct provider has exactly the
// form that this addon writes. Any other is another client's.
func isOurDirect(entry inventoryv1alpha1.AccessProvider, cluster string) bool {
	return strings.HasPrefix(entry.Cluster.Server, "https://") && len(entry.Cluster.CertificateAuthorityData) > 0 &&
		equal(entry, provider(entry.Name, entry.Cluster.Server, entry.Cluster.CertificateAuthorityData, cluster))
}

// provider returns an entry as this addon writes it. Its one extension is passed to the
// consumer's exec plugin: the cluster's name, and nothing secret.
func provider(name, server string, ca []byte, cluster string) inventoryv1alpha1.AccessProvider {
	// Encoding a map of strings cannot fail.
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

// found is what is known about one object.
type found[T any] struct {
	unknown string // why nothing is known, completing "it "; otherwise empty
	object  *T     // nil if it is absent or unknown
}

type clusterFacts struct {
	name string

	// proxied is true if the cluster has cluster-proxy's addon; proxiedUnknown says why
	// that is unknown.
	proxied        bool
	proxiedUnknown string

	direct directFacts
}

// decide combines the shared facts with the cluster's own.
func decide(o ClusterProxyOptions, e endpoint, c clusterFacts) Decision {
	var d Decision
	var why problem
	if o.Enabled {
		d.Proxy, why = desiredProxy(e, c)
		d.report(contract.AccessProviderName, d.Proxy, why, c.proxied)
	}
	d.Direct, why = desiredDirect(c)
	d.report(contract.DirectAccessProviderName, d.Direct, why, c.direct.entry != nil)
	return d
}

// problem is why a provider cannot be published or kept up to date.
type problem struct {
	text string // part of a sentence; empty if there is none

	// transient says that it resolves by itself within moments, so that it is not worth
	// reporting.
	transient bool
}

// unknown is the problem that something is unknown; why is the end of a sentence about it, empty
// if it is known.
func unknown(what, why string) problem {
	if why == "" {
		return problem{}
	}
	return problem{what + " " + why, watch.IsTransient(why)}
}

// report adds the problem of one provider. expected says whether the cluster should have
// it.
func (d *Decision) report(name string, state ProviderState, why problem, expected bool) {
	if why.text != "" && (expected || why.transient) {
		d.Missing = append(d.Missing, name)
	}
	switch {
	case why.text == "", !state.Known && why.transient:
	case state.Known:
		d.Problems = append(d.Problems, fmt.Sprintf("Access provider %q is not published: %s.", name, why.text))
	default:
		d.Problems = append(d.Problems, fmt.Sprintf("Access provider %q is left as it is: %s.", name, why.text))
	}
}

func desiredProxy(e endpoint, c clusterFacts) (ProviderState, problem) {
	switch {
	case c.proxiedUnknown != "":
		return ProviderState{}, unknown("ManagedClusterAddOn "+proxyAddonName, c.proxiedUnknown)
	case !c.proxied:
		return ProviderState{Known: !e.yield}, problem{}
	case !e.known, e.server == "":
		return ProviderState{Known: e.known}, e.problem
	default:
		entry := provider(contract.AccessProviderName, strings.TrimSuffix(e.server, "/")+"/"+c.name, e.ca, c.name)
		return ProviderState{Known: true, Provider: &entry}, problem{}
	}
}
