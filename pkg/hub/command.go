package hub

import (
	"context"
	"time"

	"github.com/go-logr/logr"
	"github.com/spf13/cobra"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/client-go/rest"

	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/check"
	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/credentials"
	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/credentials/grants"
	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/uninstall"
	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/upgrade"
	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/upstream"
	"open-cluster-management.io/cluster-inventory-addon/pkg/kube"
	"open-cluster-management.io/cluster-inventory-addon/pkg/version"
)

// NewCommand returns the manager's command line. Executing it blocks until its context
// ends; a returned error is one line that says what failed and where.
func NewCommand() *cobra.Command {
	opts := newOptions()
	var logs *kube.Log
	cmd := &cobra.Command{
		Use:           "manager",
		Short:         "Deploys the inventory agent to the spokes and maintains their ClusterProfiles",
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
			ctx := logr.NewContext(cmd.Context(), logs.Logger())
			return run(ctx, cfg, opts)
		},
	}
	opts.addFlags(cmd.Flags())
	logs = kube.AddLogFlags(cmd.PersistentFlags())
	version.AddFlag(cmd)
	cmd.AddCommand(newUninstallCommand(logs), newCheckCommand(logs), newUpgradeCommand(logs))
	return cmd
}

// runsOnHub makes a command validate its flags and then do its work on the hub that its flag
// --kubeconfig names.
func runsOnHub(
	cmd *cobra.Command, logs *kube.Log, validate func(*kube.FlagErrors), work func(context.Context, *rest.Config) error,
) {
	kubeconfig := ""
	addKubeconfigFlag(cmd.Flags(), &kubeconfig)
	cmd.Args = cobra.NoArgs
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		var errs kube.FlagErrors
		validate(&errs)
		if err := errs.Err(); err != nil {
			return err
		}
		cfg, err := kube.Config(kubeconfig)
		if err != nil {
			return err
		}
		return work(logr.NewContext(cmd.Context(), logs.Logger()), cfg)
	}
}

// newCheckCommand returns what the chart's test runs.
func newCheckCommand(logs *kube.Log) *cobra.Command {
	opts := check.Options{Timeout: time.Minute}
	cmd := &cobra.Command{
		Use:   "check",
		Short: "Checks that an installation is complete and that a manager works",
		Long: "Waits until the hub serves what the manager needs, the manager has its rights, and one renews\n" +
			"the Lease. Run it as the manager's user: the rights that it checks are its own.",
	}
	runsOnHub(cmd, logs, func(errs *kube.FlagErrors) {
		errs.Required("namespace", opts.Namespace)
		errs.Positive("timeout", opts.Timeout)
	}, func(ctx context.Context, cfg *rest.Config) error {
		return check.Run(ctx, cfg, cmd.OutOrStdout(), opts)
	})
	cmd.Flags().StringVar(&opts.Namespace, "namespace", opts.Namespace, "the manager's namespace (required)")
	cmd.Flags().DurationVar(&opts.Timeout, "timeout", opts.Timeout, "how long to wait for what is missing")
	return cmd
}

// newUpgradeCommand returns what the chart's pre-upgrade hook runs.
func newUpgradeCommand(logs *kube.Log) *cobra.Command {
	opts := upgrade.Options{Timeout: time.Minute}
	cmd := &cobra.Command{
		Use:   "upgrade-definition",
		Short: "Replaces an older CustomResourceDefinition AgentRevision on the hub",
	}
	runsOnHub(cmd, logs, func(errs *kube.FlagErrors) {
		errs.Required("file", opts.File)
		errs.Positive("timeout", opts.Timeout)
	}, func(ctx context.Context, cfg *rest.Config) error {
		return upgrade.Run(ctx, cfg, opts)
	})
	cmd.Flags().StringVar(&opts.File, "file", opts.File, "the file with the definition, in YAML (required)")
	cmd.Flags().DurationVar(&opts.Timeout, "timeout", opts.Timeout, "how long this may take")
	return cmd
}

// newUninstallCommand returns what the chart's pre-delete hook runs.
func newUninstallCommand(logs *kube.Log) *cobra.Command {
	opts := uninstall.Options{
		Timeout: 10 * time.Minute, RegistrationClusterRole: upstream.DefaultRegistrationClusterRole,
	}
	gates, mode := string(upstream.OverrideNone), string(credentials.ModeEnabled)
	cmd := &cobra.Command{
		Use:   "uninstall",
		Short: "Removes the addon from every cluster and waits until it is gone",
	}
	runsOnHub(cmd, logs, func(errs *kube.FlagErrors) {
		errs.Positive("timeout", opts.Timeout)
		validateOverride(errs, "upstream-gates", gates)
		errs.Required("upstream-registration-clusterrole", opts.RegistrationClusterRole)
		errs.Required("namespace", opts.Namespace)
		validateCredentialsMode(errs, mode)
	}, func(ctx context.Context, cfg *rest.Config) error {
		opts.IsGateOff = func(role *rbacv1.ClusterRole) bool {
			return upstream.RegistrationVerdict(opts.RegistrationClusterRole, role, true, upstream.Override(gates)).Allowed
		}
		opts.GrantNamespaces = grants.Namespaces
		opts.GrantsStay = credentials.Mode(mode) == credentials.ModeDisabled
		return uninstall.Run(ctx, cfg, opts)
	})
	cmd.Flags().StringVar(&opts.Namespace, "namespace", opts.Namespace, "the manager's namespace (required)")
	cmd.Flags().DurationVar(&opts.Timeout, "timeout", opts.Timeout, "how long the whole uninstallation may take")
	cmd.Flags().BoolVar(&opts.KeepProfiles, "keep-profiles", opts.KeepProfiles, "leave the ClusterProfiles in place")
	cmd.Flags().StringVar(&mode, "credentials-mode", mode,
		`the manager's mode; with "disabled" the manager removes no copies of tokens, `+
			"so the uninstallation fails if some may be left")
	addUpstreamFlags(cmd.Flags(), &gates, &opts.RegistrationClusterRole)
	return cmd
}
