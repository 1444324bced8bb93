package configuration

import "open-cluster-management.io/cluster-inventory-addon/pkg/hub/addon/manifests"

// Location is where a cluster's agent runs and should run, and what else differs between
// clusters with the same configuration.
type Location struct {
	// Cluster is the ManagedCluster's name, and Registries its annotation with image
	// registries.
	Cluster    string
	Registries string

	// Allowed are the registries and repositories from which a configuration or that
	// annotation may pull the image.
	Allowed []string

	// There is what is deployed.
	There manifests.Deployed

	// Host is the cluster on which the agent should run, if that is another one, and
	// HostsOwn the namespace of that cluster's own agent there, if it is deployed.
	Host     string
	HostsOwn string

	// HostsHost is the cluster on which the agent of the cluster that the addon's annotation
	// names should run, if that is another one.
	HostsHost string

	// HostedIn returns the cluster whose agent should run in a namespace of this one, or "".
	HostedIn func(namespace string) string
}

// Namespace returns the agent's namespace, or "" if it does not run on Host.
func (at Location) Namespace() string {
	if at.Host != at.There.Host {
		return ""
	}
	return at.There.Namespace
}
