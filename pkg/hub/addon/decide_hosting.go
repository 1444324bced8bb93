package addon

import (
	"crypto/sha256"
	"encoding/hex"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"

	"open-cluster-management.io/cluster-inventory-addon/pkg/contract"
)

// wantedHost is the cluster on which a cluster's agent is to run, empty if that is the
// cluster itself.
func wantedHost(addon *addonv1beta1.ManagedClusterAddOn) string {
	return addon.Annotations[addonv1beta1.HostingClusterNameAnnotationKey]
}

const (
	hostedNamespacePrefix = "cluster-inventory-"
	maxNamespaceLength    = 63
)

// hostedNamespace is where an agent on a hosting cluster runs unless its configuration
// says otherwise. Each managed cluster has its own, because the klusterlet keeps the
// agent's kubeconfig for the hub there under a fixed name.
func hostedNamespace(cluster string) string {
	name := hostedNamespacePrefix + cluster
	if len(name) <= maxNamespaceLength {
		return name
	}
	hash := sha256.Sum256([]byte(cluster))
	suffix := "-" + hex.EncodeToString(hash[:4])
	return name[:maxNamespaceLength-len(suffix)] + suffix
}

// judgeHost returns why an agent cannot run where it is to, or nil. runs says where it
// does, if it is deployed.
func judgeHost(addon *addonv1beta1.ManagedClusterAddOn, deployed bool, runs string) *refusal {
	wanted := wantedHost(addon)
	switch {
	case wanted == addon.Namespace:
		return refuse(contract.ReasonHostingRefused,
			"The annotation %s is the cluster's own name; remove it, or name another cluster",
			addonv1beta1.HostingClusterNameAnnotationKey)
	case deployed && wanted != runs:
		return refuse(contract.ReasonHostingRefused,
			"The annotation %s is %q, but the agent runs on cluster %s and is not moved; "+
				"set it back, or disable the addon on this cluster first",
			addonv1beta1.HostingClusterNameAnnotationKey, wanted, runsOn(addon.Namespace, runs))
	}
	return nil
}

func runsOn(cluster, host string) string {
	if host == "" {
		return cluster
	}
	return host
}

// resident is an agent on a cluster, by the namespace that it has or is to get there.
type resident struct {
	cluster   string
	namespace string

	// registered: the klusterlet has been told of the namespace.
	registered bool

	// since is when the addon was enabled.
	since time.Time
}

func residentOf(addon *addonv1beta1.ManagedClusterAddOn, wanted string) resident {
	r := resident{cluster: addon.Namespace, namespace: wanted, since: addon.CreationTimestamp.Time}
	if addon.Status.Namespace != "" {
		r.namespace, r.registered = addon.Status.Namespace, true
	}
	return r
}

// takenBy returns the cluster whose agent has the namespace that another one's wants on
// the same cluster, or "". Two agents in one namespace would share the Secret with their
// kubeconfigs for the hub. Whoever is registered there keeps it, otherwise the addon that
// was enabled first.
func takenBy(wants resident, others []resident) string {
	for _, other := range others {
		if other.namespace == wants.namespace && other.precedes(wants) {
			return other.cluster
		}
	}
	return ""
}

func (r resident) precedes(other resident) bool {
	switch {
	case r.registered != other.registered:
		return r.registered
	case !r.since.Equal(other.since):
		return r.since.Before(other.since)
	default:
		return r.cluster < other.cluster
	}
}

// isHosted reports whether a manifest is for the hosting cluster.
func isHosted(object metav1.Object) bool {
	return object.GetAnnotations()[addonv1beta1.HostedManifestLocationAnnotationKey] ==
		addonv1beta1.HostedManifestLocationHostingValue
}
