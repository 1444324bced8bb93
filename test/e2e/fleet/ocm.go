package fleet

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/tools/clientcmd/api"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const bootstrapAccount = "agent-registration-bootstrap"

// hubOCM describes OCM's processes on the hub.
type hubOCM struct {
	ocm, kubeconfig, certDir                                     string
	webhooks, webhookProbes, registration, placement, addonAgent int
}

func (f *Fleet) hubOCM(ocm string) hubOCM {
	return hubOCM{
		ocm: ocm, kubeconfig: f.Kubeconfig(HubName), certDir: f.path(HubName, "pki", "webhooks"),
		webhooks:      f.state.Ports["hub/webhooks"],
		webhookProbes: f.state.Ports["hub/webhook-probes"],
		registration:  f.state.Ports["hub/registration"],
		placement:     f.state.Ports["hub/placement"],
		addonAgent:    f.state.Ports["hub/addon-manager"],
	}
}

func (h hubOCM) webhookURL() string { return fmt.Sprintf("https://127.0.0.1:%d", h.webhooks) }

func (h hubOCM) webhookProcess() Process {
	return Process{
		Name: "hub/webhooks",
		Args: []string{
			h.ocm, "webhooks", "server", "--kubeconfig=" + h.kubeconfig, "--certdir=" + h.certDir,
			"--host=127.0.0.1", fmt.Sprintf("--port=%d", h.webhooks),
			fmt.Sprintf("--health-probe-bind-address=127.0.0.1:%d", h.webhookProbes),
		},
		Tier:  TierWebhooks,
		Probe: fmt.Sprintf("http://127.0.0.1:%d/readyz", h.webhookProbes),
	}
}

func (h hubOCM) controllers() []Process {
	controller := func(name string, port int, command []string, flags ...string) Process {
		args := append([]string{h.ocm}, command...)
		args = append(args,
			"--kubeconfig="+h.kubeconfig, "--namespace="+hubNamespace,
			"--disable-leader-election", fmt.Sprintf("--listen=127.0.0.1:%d", port))
		return Process{
			Name: HubName + "/" + name, Args: append(args, flags...), Env: []string{"POD_NAMESPACE=" + hubNamespace},
			Tier: TierManagement, Probe: fmt.Sprintf("https://127.0.0.1:%d/healthz", port),
		}
	}
	return []Process{
		controller("registration", h.registration, []string{"registration", "controller"},
			"--feature-gates=ManagedClusterAutoApproval=true",
			"--auto-approved-csr-users=system:serviceaccount:"+managementNamespace+":"+bootstrapAccount),
		controller("placement", h.placement, []string{"placement", "controller"}),
		controller("addon-manager", h.addonAgent, []string{"addon", "manager"}),
	}
}

// bootstrapAccess is what OCM's chart gives to whoever may ask to join.
func bootstrapAccess() []*unstructured.Unstructured {
	return []*unstructured.Unstructured{
		object(`
apiVersion: v1
kind: ServiceAccount
metadata: {name: %s, namespace: %s}`, bootstrapAccount, managementNamespace),
		object(`
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: "open-cluster-management:bootstrap"}
rules:
- {apiGroups: [""], resources: [configmaps], verbs: [get]}
- {apiGroups: [certificates.k8s.io], resources: [certificatesigningrequests], verbs: [create, get, list, watch]}
- {apiGroups: [cluster.open-cluster-management.io], resources: [managedclusters], verbs: [create, get, list, watch]}
- {apiGroups: [cluster.open-cluster-management.io], resources: [managedclustersets/join], verbs: [create]}`),
		object(`
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: "open-cluster-management:bootstrap:agent-registration"}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: "open-cluster-management:bootstrap"}
subjects: [{kind: ServiceAccount, name: %s, namespace: %s}]`, bootstrapAccount, managementNamespace),
	}
}

func namespaces(names ...string) []*unstructured.Unstructured {
	objects := make([]*unstructured.Unstructured, 0, len(names))
	for _, name := range names {
		objects = append(objects, object("{apiVersion: v1, kind: Namespace, metadata: {name: %s}}", name))
	}
	return objects
}

// startHubOCM makes the hub a hub: kinds first, then the webhooks that serve
// them, then the controllers that use them.
func (f *Fleet) startHubOCM(ctx context.Context, ocm string, m manifests, report *progress) error {
	hub := f.hubOCM(ocm)
	c, err := f.Client(HubName)
	if err != nil {
		return err
	}
	ca, err := os.ReadFile(f.path(HubName, "pki", "ca.crt"))
	if err != nil {
		return err
	}
	crds, err := m.hubCRDs(ca, hub.webhookURL())
	if err != nil {
		return err
	}
	access, err := m.hubAccess(ca)
	if err != nil {
		return err
	}
	admission, err := m.hubAdmission(ca, hub.webhookURL())
	if err != nil {
		return err
	}

	if err := f.Ensure(ctx, hub.webhookProcess()); err != nil {
		return err
	}
	objects := slices.Concat(crds, namespaces(managementNamespace, hubNamespace), access, bootstrapAccess())
	if err := apply(ctx, c, objects...); err != nil {
		return err
	}
	if err := f.WaitReady(ctx, "hub/webhooks"); err != nil {
		return err
	}
	if err := apply(ctx, c, admission...); err != nil {
		return err
	}
	for _, p := range hub.controllers() {
		if err := f.Ensure(ctx, p); err != nil {
			return err
		}
	}
	for _, p := range hub.controllers() {
		if err := f.WaitReady(ctx, p.Name); err != nil {
			return err
		}
	}
	if err := admits(ctx, c); err != nil {
		return err
	}
	report.line("hub: Open Cluster Management ready")
	return nil
}

// admits waits till the hub admits a ManagedCluster. The first request through
// the webhooks takes a second, and a registration agent that is accepted meanwhile
// gives its own up.
func admits(ctx context.Context, c client.Client) error {
	trial := &clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: "fleet-admission-trial"}}
	return wait(ctx, "the hub to admit a ManagedCluster", 50*time.Millisecond, func(ctx context.Context) (bool, error) {
		err := c.Create(ctx, trial.DeepCopy(), client.DryRunAll)
		return err == nil, err
	})
}

// spokeOCM describes OCM's agents on a spoke.
type spokeOCM struct {
	ocm, cluster, server             string
	kubeconfig, bootstrap, hubAccess string
	registration, work               int
}

func (f *Fleet) spokeOCM(ocm, name string) spokeOCM {
	return spokeOCM{
		ocm: ocm, cluster: name, server: f.cluster(name, "").server(),
		kubeconfig: f.Kubeconfig(name),
		bootstrap:  f.path(name, "bootstrap.kubeconfig"),
		hubAccess:  f.path(name, "hub-kubeconfig"),

		registration: f.state.Ports[name+"/registration-agent"],
		work:         f.state.Ports[name+"/work-agent"],
	}
}

// registrationAgent tells the hub of the cluster. Its intervals are stock but
// for the health check's.
func (s spokeOCM) registrationAgent() Process {
	return Process{
		Name: s.cluster + "/registration-agent",
		Args: append([]string{s.ocm, "registration", "agent"}, append(s.common(s.registration),
			"--cluster-name="+s.cluster,
			"--bootstrap-kubeconfig="+s.bootstrap,
			"--hub-kubeconfig-secret="+hubAccessSecret,
			"--cluster-healthcheck-period=10s",
			"--spoke-external-server-urls="+s.server,
		)...),
		Env:   []string{"POD_NAMESPACE=" + agentNamespace},
		Tier:  TierAgents,
		Probe: fmt.Sprintf("https://127.0.0.1:%d/healthz", s.registration),
	}
}

func (s spokeOCM) workAgent() Process {
	return Process{
		Name: s.cluster + "/work-agent",
		Args: append([]string{s.ocm, "work", "agent"}, append(s.common(s.work),
			"--workload-source-config="+filepath.Join(s.hubAccess, "kubeconfig"),
			"--status-sync-interval=5s",
		)...),
		Env:   []string{"POD_NAMESPACE=" + agentNamespace},
		Tier:  TierAgents,
		Probe: fmt.Sprintf("https://127.0.0.1:%d/healthz", s.work),
	}
}

func (s spokeOCM) common(port int) []string {
	return []string{
		"--kubeconfig=" + s.kubeconfig,
		"--spoke-kubeconfig=" + s.kubeconfig,
		"--spoke-cluster-name=" + s.cluster,
		"--namespace=" + agentNamespace,
		"--hub-kubeconfig-dir=" + s.hubAccess,
		"--disable-leader-election",
		fmt.Sprintf("--listen=127.0.0.1:%d", port),
	}
}

// startSpokeOCM starts the agents of a spoke and waits till it has joined.
func (f *Fleet) startSpokeOCM(ctx context.Context, ocm, name string, m manifests, report *progress) error {
	spoke := f.spokeOCM(ocm, name)
	c, err := f.Client(name)
	if err != nil {
		return err
	}
	crds, err := m.spokeCRDs()
	if err != nil {
		return err
	}
	if err := apply(ctx, c, append(crds, namespaces(agentNamespace, addonNamespace)...)...); err != nil {
		return err
	}
	if err := f.writeBootstrap(ctx, spoke.bootstrap); err != nil {
		return err
	}
	if err := f.register(ctx, spoke, c, report); err != nil {
		return err
	}
	if err := f.Ensure(ctx, spoke.workAgent()); err != nil {
		return err
	}
	if err := f.waitManaged(ctx, name, joined); err != nil {
		return err
	}
	for _, p := range []Process{spoke.registrationAgent(), spoke.workAgent()} {
		if err := f.WaitReady(ctx, p.Name); err != nil {
			return err
		}
	}
	report.line("%s: joined and available", name)
	return nil
}

// hubAccessSecret is the Secret, on the spoke, of the registration agent's access
// to the hub.
const hubAccessSecret = "hub-kubeconfig-secret"

// registrationPatience is how long an accepted agent may take to have its
// ManagedCluster on the hub.
const registrationPatience = 3 * time.Second

// register starts the registration agent and waits till it has access to the hub,
// without which the work agent would end at once. An agent whose certificate
// arrives before its ManagedCluster is created never creates it (it tries again
// after an hour); such a one starts over.
func (f *Fleet) register(ctx context.Context, spoke spokeOCM, c client.Client, report *progress) error {
	agent := spoke.registrationAgent()
	accepted := func(context.Context) (bool, error) { return exists(filepath.Join(spoke.hubAccess, "kubeconfig")), nil }
	for {
		if err := f.Ensure(ctx, agent); err != nil {
			return err
		}
		if err := wait(ctx, spoke.cluster+" to be accepted", 50*time.Millisecond, accepted); err != nil {
			return err
		}
		patient, cancel := context.WithTimeout(ctx, registrationPatience)
		err := f.waitManaged(patient, spoke.cluster, func(*clusterv1.ManagedCluster) bool { return true })
		cancel()
		if err == nil || ctx.Err() != nil {
			return err
		}
		report.line("%s: was accepted before it was on the hub, registering again", spoke.cluster)
		if err := f.Stop(ctx, agent.Name); err != nil {
			return err
		}
		access := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: agentNamespace, Name: hubAccessSecret}}
		if err := client.IgnoreNotFound(c.Delete(ctx, access)); err != nil {
			return err
		}
		if err := os.RemoveAll(spoke.hubAccess); err != nil {
			return err
		}
		if err := f.Start(ctx, agent.Name); err != nil {
			return err
		}
	}
}

// writeBootstrap gives a spoke what a hub administrator hands out: the token
// of a service account that may only ask to join.
func (f *Fleet) writeBootstrap(ctx context.Context, path string) error {
	if exists(path) {
		return nil
	}
	c, err := f.Client(HubName)
	if err != nil {
		return err
	}
	year := int64(365 * 24 * 60 * 60)
	token := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: &year}}
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: bootstrapAccount, Namespace: managementNamespace}}
	if err := c.SubResource("token").Create(ctx, account, token); err != nil {
		return fmt.Errorf("bootstrap token: %w", err)
	}
	ca, err := os.ReadFile(f.path(HubName, "pki", "ca.crt"))
	if err != nil {
		return err
	}
	content, err := kubeconfig(HubName, f.cluster(HubName, "").server(), ca, &api.AuthInfo{Token: token.Status.Token})
	if err != nil {
		return err
	}
	return writeFile(path, content, fileMode)
}

// waitManaged waits till a cluster is on the hub, and as it should be.
func (f *Fleet) waitManaged(ctx context.Context, name string, asItShould func(*clusterv1.ManagedCluster) bool) error {
	c, err := f.Client(HubName)
	if err != nil {
		return err
	}
	return wait(ctx, name+" to be available on the hub", 100*time.Millisecond, func(ctx context.Context) (bool, error) {
		managed := &clusterv1.ManagedCluster{}
		if err := c.Get(ctx, client.ObjectKey{Name: name}, managed); err != nil {
			return false, err
		}
		return asItShould(managed), nil
	})
}

func joined(managed *clusterv1.ManagedCluster) bool {
	for _, condition := range []string{
		clusterv1.ManagedClusterConditionHubAccepted, clusterv1.ManagedClusterConditionJoined, clusterv1.ManagedClusterConditionAvailable,
	} {
		if !meta.IsStatusConditionTrue(managed.Status.Conditions, condition) {
			return false
		}
	}
	return true
}
