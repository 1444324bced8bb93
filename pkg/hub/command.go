package hub

import (
	"github.com/go-logr/logr"
	"github.com/spf13/cobra"

	"open-cluster-management.io/cluster-inventory-addon/pkg/kube"
)

// NewCommand returns the manager's command line. Executing it blocks until its
// context ends; a returned error is one line that says what is wrong and where.
func NewCommand() *cobra.Command {
	opts := newOptions()
	cmd := &cobra.Command{
		Use:           "manager",
		Short:         "Deploys the cluster inventory's agent to the spokes and keeps their ClusterProfiles",
		Args:          cobra.NoArgs,
		SilenceUsage:  true,
		SilenceErrors: true,
		RunE: func(cmd *cobra.Command, _ []string) error {
			opts.complete()
			if err := opts.validate(); err != nil {
				return err
			}
			cfg, err := kube.Config(opts.Kubeconfig)
			if err != nil {
				return err
			}
			ctx := logr.NewContext(cmd.Context(), kube.Logger())
			return run(ctx, cfg, opts)
		},
	}
	opts.addFlags(cmd.Flags())
	kube.AddLogFlags(cmd.PersistentFlags())
	return cmd
}
