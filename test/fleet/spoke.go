package fleet

import (
	"context"
	"fmt"
	"os"
	"slices"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd/api"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"open-cluster-management.io/cluster-inventory-addon/test/fleet/await"
	"open-cluster-management.io/cluster-inventory-addon/test/fleet/controlplane"
	"open-cluster-management.io/cluster-inventory-addon/test/fleet/internal/files"
	"open-cluster-management.io/cluster-inventory-addon/test/fleet/internal/objects"
	"open-cluster-management.io/cluster-inventory-addon/test/fleet/internal/progress"
	"open-cluster-management.io/cluster-inventory-addon/test/fleet/ocm"
	"open-cluster-management.io/cluster-inventory-addon/test/fleet/supervisor"
)

// management is the cluster on which the klusterlet of a spoke keeps what is its own.
func (f *Fleet) management(spoke string) string {
	if f.state.Hosted && spoke == HostedSpoke {
		return HostingSpoke
	}
	return spoke
}

// podSecurity is the Pod Security Standard that the namespace of a spoke's addon agents
// enforces. Neither cluster-proxy's nor managed-serviceaccount's agent (v0.10.0) has a seccomp
// profile.
func (f *Fleet) podSecurity() string {
	if f.state.Access {
		return "privileged"
	}
	return "restricted"
}

func (f *Fleet) spokeOCM(binary, name string) ocm.Spoke {
	management := f.management(name)
	return ocm.Spoke{
		Management: f.Kubeconfig(management), Hosted: management != name,
		Binary: binary, Cluster: name, Server: f.server(name),
		Kubeconfig: f.Kubeconfig(name),
		Bootstrap:  f.path(name, "bootstrap.kubeconfig"),
		HubAccess:  f.path(name, "hub-kubeconfig"),
		Token:      f.state.Token && name == TokenSpoke, TokenLifetime: f.credentialLifetime,
		Ports: ocm.SpokePorts{
			Registration: f.state.Ports[name+"/registration-agent"],
			Work:         f.state.Ports[name+"/work-agent"],
		},
	}
}

// startSpokeOCM starts the agents of a spoke and waits until it has joined.
func (f *Fleet) startSpokeOCM(
	ctx context.Context, binary, name string, m ocm.Manifests, report *progress.Report,
) error {
	spoke := f.spokeOCM(binary, name)
	c, err := f.Client(name)
	if err != nil {
		return err
	}
	crds, err := m.SpokeCRDs()
	if err != nil {
		return err
	}
	namespaces := slices.Concat(
		objects.Namespaces(ocm.AgentNamespace),
		objects.Enforce(f.podSecurity(), objects.Namespaces(ocm.AddonNamespace)))
	if err := objects.Apply(ctx, c, slices.Concat(crds, namespaces)...); err != nil {
		return err
	}
	if err := f.writeBootstrap(ctx, spoke.Bootstrap); err != nil {
		return err
	}
	management, err := f.Client(f.management(name))
	if err != nil {
		return err
	}
	if err := objects.Apply(ctx, management, objects.Namespaces(ocm.AgentNamespace)...); err != nil {
		return err
	}
	if err := f.register(ctx, spoke, management, report); err != nil {
		return err
	}
	if err := f.Ensure(ctx, spoke.WorkAgent()); err != nil {
		return err
	}
	if err := f.waitManaged(ctx, name, joined); err != nil {
		return err
	}
	for _, p := range []supervisor.Process{spoke.RegistrationAgent(), spoke.WorkAgent()} {
		if err := f.WaitReady(ctx, p.Name); err != nil {
			return err
		}
	}
	report.Line("%s: joined and available", name)
	return nil
}

// registrationPatience is how long an accepted agent may take to create its
// ManagedCluster on the hub.
const registrationPatience = 3 * time.Second

// register starts the registration agent and waits until it has access to the
// hub, without which the work agent would end at once. An agent whose
// certificate arrives before it has created its ManagedCluster does not create
// it for an hour; register then makes it start over.
func (f *Fleet) register(ctx context.Context, spoke ocm.Spoke, c client.Client, report *progress.Report) error {
	agent := spoke.RegistrationAgent()
	accepted := func(context.Context) (bool, error) { return files.Exists(spoke.HubKubeconfig()), nil }
	for {
		if err := f.Ensure(ctx, agent); err != nil {
			return err
		}
		if err := await.Until(ctx, spoke.Cluster+" to be accepted", 50*time.Millisecond, accepted); err != nil {
			return err
		}
		patient, cancel := context.WithTimeout(ctx, registrationPatience)
		err := f.waitManaged(patient, spoke.Cluster, func(*clusterv1.ManagedCluster) bool { return true })
		cancel()
		if err == nil || ctx.Err() != nil {
			return err
		}
		report.Line("%s: was accepted before it was on the hub, registering again", spoke.Cluster)
		if err := f.Stop(ctx, agent.Name); err != nil {
			return err
		}
		access := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: ocm.AgentNamespace, Name: spoke.HubAccessSecret()}}
		if err := client.IgnoreNotFound(c.Delete(ctx, access)); err != nil {
			return err
		}
		if err := os.RemoveAll(spoke.HubAccess); err != nil {
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
	if files.Exists(path) {
		return nil
	}
	c, err := f.Client(HubName)
	if err != nil {
		return err
	}
	year := int64(365 * 24 * 60 * 60)
	token := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: &year}}
	account := &corev1.ServiceAccount{
		ObjectMeta: metav1.ObjectMeta{Name: ocm.BootstrapAccount, Namespace: ocm.ManagementNamespace},
	}
	if err := c.SubResource("token").Create(ctx, account, token); err != nil {
		return fmt.Errorf("bootstrap token: %w", err)
	}
	ca, err := os.ReadFile(f.hubCertFile("ca.crt"))
	if err != nil {
		return err
	}
	content, err := controlplane.Kubeconfig(HubName, f.server(HubName), ca, &api.AuthInfo{Token: token.Status.Token})
	if err != nil {
		return err
	}
	return files.Write(path, content, files.Private)
}

// waitManaged waits until a cluster is on the hub and fulfils the condition.
func (f *Fleet) waitManaged(ctx context.Context, name string, condition func(*clusterv1.ManagedCluster) bool) error {
	c, err := f.Client(HubName)
	if err != nil {
		return err
	}
	return await.Until(
		ctx,
		name+" to be available on the hub",
		100*time.Millisecond,
		func(ctx context.Context) (bool, error) {
			managed := &clusterv1.ManagedCluster{}
			if err := c.Get(ctx, client.ObjectKey{Name: name}, managed); err != nil {
				return false, err
			}
			return condition(managed), nil
		},
	)
}

func joined(managed *clusterv1.ManagedCluster) bool {
	for _, condition := range []string{
		clusterv1.ManagedClusterConditionHubAccepted,
		clusterv1.ManagedClusterConditionJoined,
		clusterv1.ManagedClusterConditionAvailable,
	} {
		if !meta.IsStatusConditionTrue(managed.Status.Conditions, condition) {
			return false
		}
	}
	return true
}
