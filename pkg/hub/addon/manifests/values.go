package manifests

import corev1 "k8s.io/api/core/v1"

// Revision are the values that an AgentRevision sets: every difference between the agents of one
// revision and those of another. The JSON is that of its spec.
type Revision struct {
	// Manifests is the revision of the manifests, empty for the present one.
	Manifests string `json:"manifests"`

	// InstallNamespace is the agent's namespace on the spoke.
	InstallNamespace string `json:"installNamespace"`

	// Image and PullPolicy are those of the agent and the clean-up Job, and PullSecrets the
	// names of the image's pull Secrets.
	Image       string   `json:"image"`
	PullPolicy  string   `json:"imagePullPolicy"`
	PullSecrets []string `json:"imagePullSecrets"`

	// ClaimLimit is how many custom claims the klusterlet reports.
	ClaimLimit int `json:"claimLimit"`

	// LogLevel is the agent's log verbosity.
	LogLevel int `json:"logLevel"`

	// ReservedProperties are patterns of names that no ClusterProperty is published under.
	ReservedProperties []string `json:"reservedProperties"`

	// NetworkPolicy is nil if there are to be no NetworkPolicies.
	NetworkPolicy *NetworkPolicy `json:"networkPolicy"`

	// Users are those of the pods.
	Users PodUsers `json:"podSecurityContext"`
}

// Values are the differences between the manifests of two spokes, or of two addon versions.
type Values struct {
	Revision

	// ClusterName is the name of the ManagedCluster.
	ClusterName string

	// AddonUID is the UID of the ManagedClusterAddOn. It distinguishes successive
	// installations on the same cluster.
	AddonUID string

	// Hosted makes the agent run on another cluster than the one it works for.
	Hosted bool

	// JSONLogs makes the agent log one JSON object a line.
	JSONLogs bool

	// NodeSelector and Tolerations choose the nodes of the agent and the clean-up Job.
	NodeSelector map[string]string
	Tolerations  []corev1.Toleration

	// AgentResources and CleanupResources replace those in the manifests unless they are
	// nil.
	AgentResources   *corev1.ResourceRequirements
	CleanupResources *corev1.ResourceRequirements

	// Proxy says how the agent reaches the hub.
	Proxy Proxy
}

// PodUsers are the user and groups of a pod. Those that are nil are the image's, or what the
// cluster assigns.
type PodUsers struct {
	RunAsUser  *int64 `json:"runAsUser"`
	RunAsGroup *int64 `json:"runAsGroup"`
	FSGroup    *int64 `json:"fsGroup"`
}

// NetworkPolicy is what an agent and its clean-up Job may connect to: name servers, the API
// servers of the hub and of the cluster, and the proxy through which the hub is reached.
type NetworkPolicy struct {
	// APIServerCIDRs are the networks of the API servers. Without any, their addresses do
	// not matter.
	APIServerCIDRs []string `json:"apiServerCIDRs"`

	// APIServerPorts are the ports of the API servers themselves: a policy is applied after
	// the port of a Service was replaced.
	APIServerPorts []int32 `json:"apiServerPorts"`

	// DNSPorts are the ports of the name servers, in the same form.
	DNSPorts []int32 `json:"dnsPorts"`
}

// Proxy says how agents reach the hub.
type Proxy struct {
	// HTTP and HTTPS are URLs, No a comma-separated list of hosts, domains and networks.
	HTTP, HTTPS, No string

	// CABundle are CA certificates, in PEM, for https proxies.
	CABundle string
}

// of returns the values of one cluster, and of one installation on it.
func (v Values) of(cluster, addonUID string) Values {
	v.ClusterName, v.AddonUID = cluster, addonUID
	return v
}

// OnHost returns the values of an agent on a hosting cluster. Its namespace differs per
// cluster, so the renderer fills it in.
func (v Values) OnHost() Values {
	v.Hosted, v.InstallNamespace = true, anyHostedNamespace
	return v
}
