package ocm

import (
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"open-cluster-management.io/cluster-inventory-addon/test/fleet/internal/objects"
	"open-cluster-management.io/cluster-inventory-addon/test/fleet/supervisor"
)

// BootstrapAccount is the service account that may ask to join, in
// ManagementNamespace.
const BootstrapAccount = "agent-registration-bootstrap"

// Hub is the components on the hub.
type Hub struct {
	// Binary is all components in one.
	Binary string
	// Kubeconfig is the administrator's, and CertDir has the webhooks' tls.crt and tls.key.
	Kubeconfig, CertDir string
	Ports               HubPorts
}

// HubPorts are where the components listen, all on loopback.
type HubPorts struct{ Webhooks, WebhookProbes, Registration, Placement, AddonManager int }

// WebhookURL is the address of the webhooks.
func (h Hub) WebhookURL() string { return fmt.Sprintf("https://127.0.0.1:%d", h.Ports.Webhooks) }

// Webhooks is the process that serves all webhooks.
func (h Hub) Webhooks() supervisor.Process {
	return supervisor.Process{
		Name: "hub/webhooks",
		Args: []string{
			h.Binary, "webhooks", "server", "--kubeconfig=" + h.Kubeconfig, "--certdir=" + h.CertDir,
			"--host=127.0.0.1", fmt.Sprintf("--port=%d", h.Ports.Webhooks),
			fmt.Sprintf("--health-probe-bind-address=127.0.0.1:%d", h.Ports.WebhookProbes),
		},
		Tier:  supervisor.TierWebhooks,
		Probe: fmt.Sprintf("http://127.0.0.1:%d/readyz", h.Ports.WebhookProbes),
	}
}

// Controllers are the processes that need the webhooks.
func (h Hub) Controllers() []supervisor.Process {
	return []supervisor.Process{
		h.Registration(false),
		h.controller("placement", h.Ports.Placement, []string{"placement", "controller"}),
		h.controller("addon-manager", h.Ports.AddonManager, []string{"addon", "manager"}),
	}
}

// Registration is the registration controller, with or without the gate by which it writes
// ClusterProfiles.
func (h Hub) Registration(profiles bool) supervisor.Process {
	gates := "ManagedClusterAutoApproval=true"
	if profiles {
		gates += ",ClusterProfile=true"
	}
	return h.controller("registration", h.Ports.Registration, []string{"registration", "controller"},
		"--feature-gates="+gates,
		"--auto-approved-csr-users=system:serviceaccount:"+ManagementNamespace+":"+BootstrapAccount)
}

func (h Hub) controller(name string, port int, command []string, flags ...string) supervisor.Process {
	args := append([]string{h.Binary}, command...)
	args = append(args,
		"--kubeconfig="+h.Kubeconfig, "--namespace="+HubNamespace,
		"--disable-leader-election", fmt.Sprintf("--listen=127.0.0.1:%d", port))
	return supervisor.Process{
		Name: "hub/" + name, Args: append(args, flags...), Env: env(HubNamespace),
		Tier: supervisor.TierManagement, Probe: fmt.Sprintf("https://127.0.0.1:%d/healthz", port),
	}
}

// env is the environment of a process whose Pod would run in namespace.
func env(namespace string) []string {
	return []string{
		"POD_NAMESPACE=" + namespace,
		// The fleet's build of OCM has a newer client-go than its release. Switch off
		// what the newer one does by default.
		"KUBE_FEATURE_InOrderInformersBatchProcess=false",
		"KUBE_FEATURE_WatchListClient=false",
	}
}

// BootstrapAccess is what OCM's chart gives to clusters that may ask to join.
func BootstrapAccess() []*unstructured.Unstructured {
	return []*unstructured.Unstructured{
		objects.New(`
apiVersion: v1
kind: ServiceAccount
metadata: {name: %s, namespace: %s}`, BootstrapAccount, ManagementNamespace),
		objects.New(`
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: "open-cluster-management:bootstrap"}
rules:
- {apiGroups: [""], resources: [configmaps], verbs: [get]}
- {apiGroups: [certificates.k8s.io], resources: [certificatesigningrequests], verbs: [create, get, list, watch]}
- {apiGroups: [cluster.open-cluster-management.io], resources: [managedclusters], verbs: [create, get, list, watch]}
- {apiGroups: [cluster.open-cluster-management.io], resources: [managedclustersets/join], verbs: [create]}`),
		objects.New(`
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: "open-cluster-management:bootstrap:agent-registration"}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: "open-cluster-management:bootstrap"}
subjects: [{kind: ServiceAccount, name: %s, namespace: %s}]`, BootstrapAccount, ManagementNamespace),
	}
}
