package fleet

import (
	"context"
	"os"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"open-cluster-management.io/cluster-inventory-addon/test/fleet/await"
	"open-cluster-management.io/cluster-inventory-addon/test/fleet/internal/objects"
	"open-cluster-management.io/cluster-inventory-addon/test/fleet/internal/progress"
	"open-cluster-management.io/cluster-inventory-addon/test/fleet/ocm"
)

func (f *Fleet) hubOCM(binary string) ocm.Hub {
	return ocm.Hub{
		Binary: binary, Kubeconfig: f.Kubeconfig(HubName), CertDir: f.hubCertFile("webhooks"),
		Ports: ocm.HubPorts{
			Webhooks:      f.state.Ports["hub/webhooks"],
			WebhookProbes: f.state.Ports["hub/webhook-probes"],
			Registration:  f.state.Ports["hub/registration"],
			Placement:     f.state.Ports["hub/placement"],
			AddonManager:  f.state.Ports["hub/addon-manager"],
		},
	}
}

// startHubOCM makes the hub an OCM hub: first the kinds, then the webhooks that
// serve them, then the controllers that use them.
func (f *Fleet) startHubOCM(ctx context.Context, binary string, m ocm.Manifests, report *progress.Report) error {
	hub := f.hubOCM(binary)
	c, err := f.Client(HubName)
	if err != nil {
		return err
	}
	ca, err := os.ReadFile(f.hubCertFile("ca.crt"))
	if err != nil {
		return err
	}
	crds, err := m.HubCRDs(ca, hub.WebhookURL())
	if err != nil {
		return err
	}
	access, err := m.HubAccess(ca)
	if err != nil {
		return err
	}
	admission, err := m.HubAdmission(ca, hub.WebhookURL())
	if err != nil {
		return err
	}

	if err := f.Ensure(ctx, hub.Webhooks()); err != nil {
		return err
	}
	namespaces := objects.Enforce("restricted", objects.Namespaces(ocm.ManagementNamespace, ocm.HubNamespace))
	if err := objects.Apply(ctx, c, slices.Concat(crds, namespaces, access, ocm.BootstrapAccess())...); err != nil {
		return err
	}
	if err := f.WaitReady(ctx, hub.Webhooks().Name); err != nil {
		return err
	}
	if err := objects.Apply(ctx, c, admission...); err != nil {
		return err
	}
	for _, p := range hub.Controllers() {
		if err := f.Ensure(ctx, p); err != nil {
			return err
		}
	}
	for _, p := range hub.Controllers() {
		if err := f.WaitReady(ctx, p.Name); err != nil {
			return err
		}
	}
	if err := waitAdmission(ctx, c); err != nil {
		return err
	}
	report.Line("hub: Open Cluster Management ready")
	return nil
}

// waitAdmission waits until the hub admits a ManagedCluster. The first request
// through the webhooks takes a second; a registration agent that is accepted
// during that time gives up creating its own.
func waitAdmission(ctx context.Context, c client.Client) error {
	trial := &clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: "fleet-admission-trial"}}
	const every = 50 * time.Millisecond
	return await.Until(ctx, "the hub to admit a ManagedCluster", every, func(ctx context.Context) (bool, error) {
		err := c.Create(ctx, trial.DeepCopy(), client.DryRunAll)
		return err == nil, err
	})
}
