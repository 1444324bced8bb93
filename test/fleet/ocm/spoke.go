package ocm

import (
	"fmt"
	"path/filepath"
	"time"

	"open-cluster-management.io/cluster-inventory-addon/test/fleet/supervisor"
)

// hubAccessSecret is the Secret, in AgentNamespace, that holds a registration agent's
// access to the hub.
const hubAccessSecret = "hub-kubeconfig-secret"

// Spoke is the agents on a spoke.
type Spoke struct {
	// Binary is all components in one.
	Binary string
	// Cluster is the name of the spoke, and Server the URL of its API server.
	Cluster, Server string
	// Management is the administrator's kubeconfig of the cluster on which the agents keep
	// what is their own, in AgentNamespace: the spoke, or the one that hosts it.
	Management string
	// Hosted is true if that is another cluster than the spoke.
	Hosted bool
	// Kubeconfig is the administrator's of the spoke, Bootstrap the one to ask
	// the hub with, and HubAccess the directory where the agent keeps its access
	// to the hub.
	Kubeconfig, Bootstrap, HubAccess string
	// Token is true of a spoke whose addons get tokens, in place of certificates.
	// TokenLifetime is for how long; 0 is OCM's default.
	Token         bool
	TokenLifetime time.Duration
	Ports         SpokePorts
}

// SpokePorts are where the agents listen, all on loopback.
type SpokePorts struct{ Registration, Work int }

// RegistrationAgent joins the cluster to the hub. Only the interval of its
// health check is not the default.
func (s Spoke) RegistrationAgent() supervisor.Process {
	return supervisor.Process{
		Name: s.Cluster + "/registration-agent",
		Args: append([]string{s.Binary, "registration", "agent"}, append(s.common(s.Ports.Registration), append(
			s.addonFlags(),
			"--cluster-name="+s.Cluster,
			"--bootstrap-kubeconfig="+s.Bootstrap,
			"--hub-kubeconfig-secret="+s.HubAccessSecret(),
			"--cluster-healthcheck-period=10s",
			"--spoke-external-server-urls="+s.Server,
		)...)...),
		Env:   env(AgentNamespace),
		Tier:  supervisor.TierAgents,
		Probe: fmt.Sprintf("https://127.0.0.1:%d/healthz", s.Ports.Registration),
	}
}

// addonFlags say how addons register.
func (s Spoke) addonFlags() []string {
	var flags []string
	if s.Token {
		flags = append(flags, "--addon-kubeclient-registration-auth=token")
	}
	if s.TokenLifetime > 0 {
		flags = append(flags, fmt.Sprintf("--addon-token-expiration-seconds=%d", int(s.TokenLifetime.Seconds())))
	}
	return flags
}

// WorkAgent applies ManifestWorks. It ends at once while the registration agent
// has no access to the hub.
func (s Spoke) WorkAgent() supervisor.Process {
	return supervisor.Process{
		Name: s.Cluster + "/work-agent",
		Args: append([]string{s.Binary, "work", "agent"}, append(s.common(s.Ports.Work),
			"--workload-source-config="+s.HubKubeconfig(),
			"--status-sync-interval=5s",
		)...),
		Env:   env(AgentNamespace),
		Tier:  supervisor.TierAgents,
		Probe: fmt.Sprintf("https://127.0.0.1:%d/healthz", s.Ports.Work),
	}
}

// HubKubeconfig appears when the hub has accepted the registration agent.
func (s Spoke) HubKubeconfig() string { return filepath.Join(s.HubAccess, "kubeconfig") }

// HubAccessSecret is the Secret with the registration agent's access to the hub. Outside of
// a pod, all agents of a management cluster have the same namespace, whatever their flag
// --namespace says, and two that shared this Secret would replace each other's certificate
// forever.
func (s Spoke) HubAccessSecret() string {
	if s.Hosted {
		return s.Cluster + "-" + hubAccessSecret
	}
	return hubAccessSecret
}

func (s Spoke) common(port int) []string {
	return []string{
		"--kubeconfig=" + s.Management,
		"--spoke-kubeconfig=" + s.Kubeconfig,
		"--spoke-cluster-name=" + s.Cluster,
		"--namespace=" + AgentNamespace,
		"--hub-kubeconfig-dir=" + s.HubAccess,
		"--disable-leader-election",
		fmt.Sprintf("--listen=127.0.0.1:%d", port),
	}
}
