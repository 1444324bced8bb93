package spoke

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/go-logr/logr"
	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"open-cluster-management.io/cluster-inventory-addon/pkg/kube"
	"open-cluster-management.io/cluster-inventory-addon/pkg/spoke/cleanup"
	"open-cluster-management.io/cluster-inventory-addon/pkg/version"
)

// Exit codes of the process.
const (
	exitOK = iota
	exitFailed
	exitUsage // the command line is wrong
)

// Main runs the command line until it is done or ctx ends, and returns the exit
// code. A failure is one line on stderr that says what is wrong and where.
func Main(ctx context.Context, args []string, stderr io.Writer) int {
	code := exitUsage
	cmd := newCommand(func() { code = exitFailed }) //nolint:contextcheck // ExecuteContext hands it to the commands
	cmd.SetArgs(args)
	if err := cmd.ExecuteContext(ctx); err != nil {
		_, _ = fmt.Fprintf(stderr, "agent: %v\n", err) // a failure to write has nowhere to be reported
		return code
	}
	return exitOK
}

// newCommand returns the command line. It calls validated once the command line
// has been found valid.
func newCommand(validated func()) *cobra.Command {
	root := &cobra.Command{
		Use:               "agent",
		Short:             "Publishes a cluster's ClusterProperties to its hub",
		SilenceUsage:      true,
		SilenceErrors:     true,
		CompletionOptions: cobra.CompletionOptions{DisableDefaultCmd: true},
		RunE: func(*cobra.Command, []string) error {
			return errors.New(`no command given: "run" or "cleanup"`)
		},
	}
	logs := kube.AddLogFlags(root.PersistentFlags())
	version.AddFlag(root)
	root.AddCommand(runCommand(validated, logs), cleanupCommand(validated, logs))
	return root
}

func runCommand(validated func(), logs *kube.Log) *cobra.Command {
	opts := newOptions()
	cmd := &cobra.Command{
		Use:   "run",
		Short: "Publish until stopped",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			opts.complete()
			if err := opts.Validate(); err != nil {
				return err
			}
			validated()
			return Run(logr.NewContext(cmd.Context(), logs.Logger()), *opts)
		},
	}
	opts.addFlags(cmd.Flags())
	return cmd
}

func cleanupCommand(validated func(), logs *kube.Log) *cobra.Command {
	opts := &CleanupOptions{Timeout: 20 * time.Second}
	cmd := &cobra.Command{
		Use:   "cleanup",
		Short: "Stop the running agent and delete what it published",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := opts.Validate(); err != nil {
				return err
			}
			validated()
			return Cleanup(logr.NewContext(cmd.Context(), logs.Logger()), *opts)
		},
	}
	opts.addFlags(cmd.Flags())
	return cmd
}

// Cleanup runs the clean-up hook.
func Cleanup(ctx context.Context, opts CleanupOptions) error {
	cfg, err := kube.Config(opts.Kubeconfig)
	if err != nil {
		return err
	}
	c, err := client.New(withoutProxy(cfg), client.Options{Scheme: newScheme(), Mapper: newMapper()})
	if err != nil {
		return err
	}
	hook := &cleanup.Hook{
		Client:           c,
		InstallNamespace: opts.InstallNamespace,
		Addon:            types.UID(opts.AddonUID),
		AgentTimeout:     opts.Timeout,
		Clock:            clock.RealClock{},
	}
	return hook.Run(ctx)
}
