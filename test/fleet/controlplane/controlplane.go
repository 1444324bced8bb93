package controlplane

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"open-cluster-management.io/cluster-inventory-addon/test/fleet/supervisor"
)

// ControlPlane describes a cluster's control plane: its addresses and files.
type ControlPlane struct {
	Name string
	// Dir holds data and certificates.
	Dir string
	// Kube is the binary that is etcd, kube-apiserver and kube-controller-manager.
	Kube string
	// Signs is true of a control plane that signs certificate requests. The certificates
	// are valid for SignedFor, or for Kubernetes' default when 0.
	Signs     bool
	SignedFor time.Duration
	// Services is a socket at which the API server asks for connections to Services, such as
	// those of webhooks; without one it cannot reach any.
	Services string
	// Audit is the file in which the API server logs the requests of service accounts and of
	// the addon's agents, without their content; no such log if empty.
	Audit string
	Ports Ports
}

// Ports are where the servers listen, all on loopback.
type Ports struct{ Etcd, EtcdPeer, APIServer, ControllerManager int }

// serviceRange is the range of Service addresses; nothing answers on them on the host.
const serviceRange = "10.96.0.0/16"

// The controllers of kube-controller-manager that OCM and the addon need. The controllers
// that watch the heartbeats of nodes are left out.
var (
	controllers = []string{
		"clusterrole-aggregation-controller",
		"deployment-controller",
		"disruption-controller",
		"garbage-collector-controller",
		"job-controller",
		"namespace-controller",
		"replicaset-controller",
		"resourcequota-controller",
		"root-ca-certificate-publisher-controller",
		"serviceaccount-controller",
		"serviceaccount-token-controller",
		"ttl-after-finished-controller",
		"validatingadmissionpolicy-status-controller",
	}
	signingControllers = []string{
		"certificatesigningrequest-cleaner-controller",
		"certificatesigningrequest-signing-controller",
	}
)

// Server is the URL of the API server.
func (c *ControlPlane) Server() string { return fmt.Sprintf("https://127.0.0.1:%d", c.Ports.APIServer) }

func (c *ControlPlane) controllers() []string {
	if c.Signs {
		return slices.Concat(signingControllers, controllers)
	}
	return controllers
}

// Processes of the control plane, in the order in which they need each other.
func (c *ControlPlane) Processes() []supervisor.Process {
	return []supervisor.Process{{
		Name:  c.Name + "/etcd",
		Args:  append([]string{c.Kube, "etcd"}, c.etcdFlags()...),
		Tier:  supervisor.TierStore,
		Probe: fmt.Sprintf("http://127.0.0.1:%d/readyz", c.Ports.Etcd),
	}, {
		Name:  c.Name + "/apiserver",
		Args:  append([]string{c.Kube, "kube-apiserver"}, c.apiserverFlags()...),
		Tier:  supervisor.TierServer,
		Probe: c.Server() + "/readyz",
	}, {
		Name:  c.Name + "/controller-manager",
		Args:  append([]string{c.Kube, "kube-controller-manager"}, c.controllerManagerFlags()...),
		Tier:  supervisor.TierControllers,
		Probe: fmt.Sprintf("https://127.0.0.1:%d/healthz", c.Ports.ControllerManager),
	}}
}

func (c *ControlPlane) etcdFlags() []string {
	client := fmt.Sprintf("http://127.0.0.1:%d", c.Ports.Etcd)
	peer := fmt.Sprintf("http://127.0.0.1:%d", c.Ports.EtcdPeer)
	return []string{
		"--name=" + c.Name,
		"--data-dir=" + filepath.Join(c.Dir, "etcd"),
		"--listen-client-urls=" + client,
		"--advertise-client-urls=" + client,
		"--listen-peer-urls=" + peer,
		"--initial-advertise-peer-urls=" + peer,
		"--initial-cluster=" + c.Name + "=" + peer,
		"--unsafe-no-fsync", // the data is discarded with the fleet
		"--log-level=warn",
	}
}

func (c *ControlPlane) apiserverFlags() []string {
	flags := []string{
		fmt.Sprintf("--etcd-servers=http://127.0.0.1:%d", c.Ports.Etcd),
		"--bind-address=127.0.0.1",
		"--advertise-address=127.0.0.1",
		fmt.Sprintf("--secure-port=%d", c.Ports.APIServer),
		"--endpoint-reconciler-type=none", // loopback may not be an endpoint
		"--cert-dir=" + filepath.Join(c.Dir, "apiserver"),
		"--tls-cert-file=" + c.CertFile("apiserver.crt"),
		"--tls-private-key-file=" + c.CertFile("apiserver.key"),
		"--client-ca-file=" + c.CertFile("ca.crt"),
		"--requestheader-client-ca-file=" + c.CertFile("front-proxy-ca.crt"),
		"--requestheader-allowed-names=front-proxy-client",
		"--requestheader-extra-headers-prefix=X-Remote-Extra-",
		"--requestheader-group-headers=X-Remote-Group",
		"--requestheader-username-headers=X-Remote-User",
		"--service-account-key-file=" + c.CertFile("sa.pub"),
		"--service-account-signing-key-file=" + c.CertFile("sa.key"),
		"--service-account-issuer=https://kubernetes.default.svc",
		"--service-cluster-ip-range=" + serviceRange,
		"--authorization-mode=Node,RBAC",
		"--enable-admission-plugins=NodeRestriction",
		"--allow-privileged=true",
	}
	if c.Services != "" {
		flags = append(flags, "--egress-selector-config-file="+c.egressFile())
	}
	if c.Audit != "" {
		flags = append(flags,
			"--audit-policy-file="+c.auditPolicyFile(),
			"--audit-log-path="+c.Audit,
			"--audit-log-maxsize=100000", // MB, so that there is one file
		)
	}
	return flags
}

func (c *ControlPlane) auditPolicyFile() string { return filepath.Join(c.Dir, "audit-policy.json") }

// auditPolicy logs who asked for what, and nothing of the content. Administrators, among
// them OCM's processes, and Kubernetes' own controllers are left out.
func auditPolicy() ([]byte, error) {
	return json.Marshal(map[string]any{
		"apiVersion": "audit.k8s.io/v1", "kind": "Policy",
		"omitStages": []string{"RequestReceived"},
		"rules": []any{
			map[string]any{
				"level": "None", "userGroups": []string{"system:masters", "system:serviceaccounts:kube-system"},
			},
			map[string]any{
				"level":      "Metadata",
				"userGroups": []string{"system:serviceaccounts", "system:open-cluster-management:addon:cluster-inventory"},
			},
		},
	})
}

func (c *ControlPlane) egressFile() string { return filepath.Join(c.Dir, "egress.json") }

// egress tells the API server how to reach the cluster.
func (c *ControlPlane) egress() ([]byte, error) {
	connection := map[string]any{
		"proxyProtocol": "HTTPConnect",
		"transport":     map[string]any{"uds": map[string]any{"udsName": c.Services}},
	}
	return json.Marshal(map[string]any{
		"apiVersion": "apiserver.k8s.io/v1beta1", "kind": "EgressSelectorConfiguration",
		"egressSelections": []any{map[string]any{"name": "cluster", "connection": connection}},
	})
}

func (c *ControlPlane) controllerManagerFlags() []string {
	flags := []string{
		"--kubeconfig=" + c.controllerManagerKubeconfig(),
		"--bind-address=127.0.0.1",
		fmt.Sprintf("--secure-port=%d", c.Ports.ControllerManager),
		"--cert-dir=" + filepath.Join(c.Dir, "controller-manager"),
		"--leader-elect=false",
		"--use-service-account-credentials=true",
		"--service-account-private-key-file=" + c.CertFile("sa.key"),
		"--root-ca-file=" + c.CertFile("ca.crt"),
		"--cluster-signing-cert-file=" + c.CertFile("ca.crt"),
		"--cluster-signing-key-file=" + c.CertFile("ca.key"),
		"--controllers=" + strings.Join(c.controllers(), ","),
	}
	if c.Signs && c.SignedFor > 0 {
		flags = append(flags, "--cluster-signing-duration="+c.SignedFor.String())
	}
	return flags
}

func (c *ControlPlane) controllerManagerKubeconfig() string {
	return filepath.Join(c.Dir, "controller-manager.kubeconfig")
}
