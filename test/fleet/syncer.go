package fleet

import (
	"context"
	"io"
	"os"
	"path/filepath"

	"open-cluster-management.io/cluster-inventory-addon/test/fleet/internal/objects"
	"open-cluster-management.io/cluster-inventory-addon/test/fleet/internal/progress"
	"open-cluster-management.io/cluster-inventory-addon/test/fleet/programs"
	"open-cluster-management.io/cluster-inventory-addon/test/fleet/supervisor"
)

// AccountKind makes the hub serve ManagedServiceAccounts, without anything that acts on
// them.
func (f *Fleet) AccountKind(ctx context.Context) error {
	sources, err := programs.ManagedServiceAccount.ModuleDir(ctx, f.Root)
	if err != nil {
		return err
	}
	name := programs.ManagedServiceAccount.Name
	crd, err := os.Open(filepath.Join(
		sources, "charts", name, "crds", "authentication.open-cluster-management.io_managedserviceaccounts.yaml",
	))
	if err != nil {
		return err
	}
	defer func() { _ = crd.Close() }()
	kinds, err := objects.Decode(crd)
	if err != nil {
		return err
	}
	c, err := f.Client(HubName)
	if err != nil {
		return err
	}
	return objects.Apply(ctx, c, kinds...)
}

// TokenSyncer describes managed-serviceaccount's own syncer of tokens, alone and as an
// administrator, for Ensure. It writes Secrets of the names that the addon uses, so only
// one of the two may run. The program is built if needed.
func (f *Fleet) TokenSyncer(ctx context.Context, out io.Writer) (supervisor.Process, error) {
	image, err := programs.ManagedServiceAccount.Path(ctx, f.Root, progress.New(out))
	return supervisor.Process{
		Name: HubName + "/token-syncer",
		Args: []string{
			filepath.Join(image, "msa"), "manager",
			"--deploy-mode=AddOnTemplate", // without the rest of its manager
			"--feature-gates=ClusterProfileCredSyncer=true",
			"--metrics-bind-address=0",
			"--health-probe-bind-address=0",
		},
		Env:  []string{"KUBECONFIG=" + f.Kubeconfig(HubName)},
		Tier: supervisor.TierManagement,
	}, err
}
