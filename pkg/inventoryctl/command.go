package inventoryctl

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/go-logr/logr"
	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"open-cluster-management.io/cluster-inventory-addon/pkg/credplugin"
)

// Main runs the command line and returns the exit code. A failure is one line on stderr.
func Main(ctx context.Context, args []string, streams genericiooptions.IOStreams) int {
	// Log lines of libraries would add to the one line on stderr. To discard klog's output is not
	// enough: it writes errors to stderr as well.
	klog.SetLogger(logr.Discard())
	log.SetLogger(logr.Discard())
	return run(ctx, args, streams, time.Now)
}

func run(ctx context.Context, args []string, streams genericiooptions.IOStreams, now func() time.Time) int {
	o := &options{
		IOStreams: streams, config: genericclioptions.NewConfigFlags(true), now: now,
		chunkSize: 500, // as in kubectl
	}
	cmd := newCommand(o) //nolint:contextcheck // ExecuteContext hands it to the commands
	cmd.SetArgs(args)
	cmd.SetIn(streams.In)
	cmd.SetOut(streams.Out)
	cmd.SetErr(streams.ErrOut)
	err := cmd.ExecuteContext(ctx)
	switch {
	case err == nil:
		return ExitOK
	case errors.Is(err, errMissing):
		return ExitMissing
	}
	fmt.Fprintf(streams.ErrOut, "error: %s\n", oneLine(err))
	if failure, ok := errors.AsType[*credplugin.Failure](err); ok {
		return failure.Code
	}
	return ExitFailed
}

func newCommand(o *options) *cobra.Command {
	cmd := &cobra.Command{
		Use:         "kubectl-inventory",
		Annotations: map[string]string{cobra.CommandDisplayNameAnnotation: "kubectl inventory"},
		Short:       "Shows which namespaces see which clusters of a hub, and why others do not",
		Long: "Shows which namespaces see which clusters of a hub of Open Cluster Management, and why others do not.\n\n" +
			"It only reads the hub, with your rights; only the exec plugin \"credential\" reads a Secret. Exit codes: 0 all\n" +
			"is well, 1 something is missing or would change, 2 the command failed.",
		SilenceUsage:      true,
		SilenceErrors:     true,
		CompletionOptions: cobra.CompletionOptions{DisableDefaultCmd: true},
		RunE:              func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	o.addFlags(cmd)
	cmd.SetUsageTemplate(usage)
	cmd.AddCommand(newListCommand(o), newMatrixCommand(o), newExplainCommand(o), newDescribeCommand(o),
		newDoctorCommand(o), newDiffCommand(o), newRolloutCommand(o), newKubeconfigCommand(o), newCredentialCommand(o),
		newCheckAccessCommand(o), newOptionsCommand(o), newVersionCommand(o))
	return cmd
}
