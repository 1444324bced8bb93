// Command fleet starts, shows and removes a hub with its spokes on this
// machine, and installs the addon from this tree into it.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"open-cluster-management.io/cluster-inventory-addon/test/fleet"
	"open-cluster-management.io/cluster-inventory-addon/test/fleet/node"
)

func main() {
	node.Init() // a pod's process starts as this program
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "fleet:", err)
		os.Exit(1)
	}
}

func run() error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	return newCommand().ExecuteContext(ctx)
}

// options are what every command shares; the variables are those of make.
type options struct {
	name   string
	spokes int
	with   []string
}

func newCommand() *cobra.Command {
	o := &options{name: env("FLEET", "default")}
	root := &cobra.Command{
		Use:           "fleet",
		Short:         "A local hub with its spokes, joined by Open Cluster Management",
		SilenceErrors: true,
		SilenceUsage:  true,
	}
	root.SetOut(os.Stdout)
	root.PersistentFlags().StringVar(&o.name, "name", o.name, "Name of the fleet (FLEET).")
	root.AddCommand(
		upCommand(o), downCommand(o), statusCommand(o), deployCommand(o), undeployCommand(o),
		processCommand(o, "stop", "Stop one process, such as cluster1/registration-agent", (*fleet.Fleet).Stop),
		processCommand(o, "start", "Start a process that was stopped", (*fleet.Fleet).Start),
		processCommand(o, "restart", "Restart one process", (*fleet.Fleet).Restart),
		diagnoseCommand(o), kubectlCommand(o), helmCommand(), helm4Command(),
		assetsCommand(), upstreamCommand(), kubeCommand(), superviseCommand(o), nodeCommand(),
	)
	return root
}

func upCommand(o *options) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "up",
		Short: "Start the fleet, or what a running one lacks",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := spokesFromEnv(cmd, o); err != nil {
				return err
			}
			wanted := fleet.Options{Name: o.name, Spokes: o.spokes}
			if o.spokes == 0 {
				wanted.Spokes = fleet.NoSpokes
			}
			if err := withFromEnv(cmd, o, &wanted); err != nil {
				return err
			}
			f, err := fleet.Up(cmd.Context(), wanted, cmd.OutOrStdout())
			if err != nil {
				return err
			}
			for _, cluster := range f.Clusters() {
				cmd.Printf("         %-9s export KUBECONFIG=%s\n", cluster, f.Kubeconfig(cluster))
			}
			return nil
		},
	}
	cmd.Flags().IntVar(&o.spokes, "spokes", 2, "How many spokes to join (SPOKES).")
	cmd.Flags().StringSliceVar(
		&o.with, "with", nil, "What to run besides: access is cluster-proxy and managed-serviceaccount; "+
			"consumers is access, and the images of Kueue and of the Knative operator; "+
			"token makes the addons of "+fleet.TokenSpoke+" register by token; "+
			"hosted lets "+fleet.HostingSpoke+" host the addons of "+fleet.HostedSpoke+"; "+
			"local-cluster joins the hub itself (WITH).",
	)
	return cmd
}

func withFromEnv(cmd *cobra.Command, o *options, wanted *fleet.Options) error {
	with := o.with
	if !cmd.Flags().Changed("with") {
		with = strings.FieldsFunc(os.Getenv("WITH"), func(r rune) bool { return r == ',' || r == ' ' })
	}
	for _, what := range with {
		switch what {
		case "access":
			wanted.Access = true
		case "consumers":
			wanted.Consumers = true
		case "token":
			wanted.Token = true
		case "hosted":
			wanted.Hosted = true
		case "local-cluster":
			wanted.LocalCluster = true
		default:
			return fmt.Errorf("WITH=%s: want access, consumers, token, hosted or local-cluster", what)
		}
	}
	return nil
}

func spokesFromEnv(cmd *cobra.Command, o *options) error {
	value := os.Getenv("SPOKES")
	if value == "" || cmd.Flags().Changed("spokes") {
		return nil
	}
	spokes, err := strconv.Atoi(value)
	if err != nil {
		return fmt.Errorf("SPOKES=%s: want a number", value)
	}
	o.spokes = spokes
	return nil
}

func downCommand(o *options) *cobra.Command {
	return &cobra.Command{
		Use:   "down",
		Short: "Stop the fleet and remove every file of it",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			err := fleet.Down(cmd.Context(), o.name, cmd.OutOrStdout())
			if errors.Is(err, fleet.ErrNoFleet) {
				cmd.Println(err) // nothing was left to do
				return nil
			}
			return err
		},
	}
}

func statusCommand(o *options) *cobra.Command {
	return &cobra.Command{
		Use:   "status",
		Short: "Show what runs",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			f, err := fleet.Open(o.name)
			if err != nil {
				return err
			}
			return f.Status(cmd.Context(), cmd.OutOrStdout())
		},
	}
}

func deployCommand(o *options) *cobra.Command {
	return &cobra.Command{
		Use:   "deploy [-- HELM ARGUMENTS]",
		Short: "Install or upgrade the addon from this tree (HELM_ARGS)",
		RunE: func(cmd *cobra.Command, args []string) error {
			return withHelmArgs(cmd, o, args, (*fleet.Fleet).Deploy)
		},
	}
}

func undeployCommand(o *options) *cobra.Command {
	return &cobra.Command{
		Use:   "undeploy [-- HELM ARGUMENTS]",
		Short: "Remove the addon (HELM_ARGS)",
		RunE: func(cmd *cobra.Command, args []string) error {
			return withHelmArgs(cmd, o, args, (*fleet.Fleet).Undeploy)
		},
	}
}

func withHelmArgs(
	cmd *cobra.Command, o *options, args []string, do func(*fleet.Fleet, context.Context, io.Writer, ...string) error,
) error {
	f, err := fleet.Open(o.name)
	if err != nil {
		return err
	}
	fromEnv, err := splitWords(os.Getenv("HELM_ARGS"))
	if err != nil {
		return fmt.Errorf("HELM_ARGS: %w", err)
	}
	return do(f, cmd.Context(), cmd.OutOrStdout(), append(fromEnv, args...)...)
}

func processCommand(
	o *options, verb, short string, do func(*fleet.Fleet, context.Context, string) error,
) *cobra.Command {
	return &cobra.Command{
		Use:   verb + " PROCESS",
		Short: short,
		Args:  cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			f, err := fleet.Open(o.name)
			if err != nil {
				return err
			}
			return do(f, cmd.Context(), args[0])
		},
	}
}

func diagnoseCommand(o *options) *cobra.Command {
	return &cobra.Command{
		Use:   "diagnose",
		Short: "Show pods that are not ready, their logs, and warning events",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			f, err := fleet.Open(o.name)
			if err != nil {
				return err
			}
			f.Diagnose(cmd.Context(), cmd.OutOrStdout())
			return nil
		},
	}
}

func kubectlCommand(o *options) *cobra.Command {
	cluster := fleet.HubName
	cmd := &cobra.Command{
		Use:   "kubectl [--cluster CLUSTER] -- ARGUMENTS",
		Short: "Run the pinned kubectl against the hub or a spoke",
		RunE: func(cmd *cobra.Command, args []string) error {
			f, err := fleet.Open(o.name)
			if err != nil {
				return err
			}
			return f.RunKubectl(cmd.Context(), cmd.ErrOrStderr(), cluster, args...)
		},
	}
	cmd.Flags().StringVar(&cluster, "cluster", cluster, "The cluster: hub, cluster1 and so on.")
	return cmd
}

func superviseCommand(o *options) *cobra.Command {
	return &cobra.Command{
		Use:    "supervise",
		Short:  "Keep the processes of the fleet running (started by up)",
		Hidden: true,
		Args:   cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return fleet.Supervise(cmd.Context(), o.name)
		},
	}
}

func assetsCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "assets",
		Short: "Print a directory with etcd and kube-apiserver, for KUBEBUILDER_ASSETS",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			dir, err := fleet.Assets(cmd.Context(), cmd.ErrOrStderr())
			if err != nil {
				return err
			}
			_, err = fmt.Fprintln(cmd.OutOrStdout(), dir)
			return err
		},
	}
}

func upstreamCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "upstream DIRECTORY",
		Short: "Fill a directory with upstream's own writers of ClusterProfiles and tokens, and their rights",
		Args:  cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return fleet.UpstreamWriters(cmd.Context(), args[0], cmd.ErrOrStderr())
		},
	}
}

func kubeCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "kube MINOR",
		Short: "Print the path of Kubernetes at another version, such as 1.36, for FLEET_KUBE_BINARY",
		Args:  cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			binary, err := fleet.KubeAt(cmd.Context(), cmd.ErrOrStderr(), args[0])
			if err != nil {
				return err
			}
			_, err = fmt.Fprintln(cmd.OutOrStdout(), binary)
			return err
		},
	}
}

func helmCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "helm -- ARGUMENTS",
		Short: "Run the pinned Helm",
		RunE: func(cmd *cobra.Command, args []string) error {
			return fleet.Helm(cmd.Context(), cmd.ErrOrStderr(), args...)
		},
	}
}

func helm4Command() *cobra.Command {
	return &cobra.Command{
		Use:   "helm4",
		Short: "Print the path of Helm 4, for FLEET_HELM_BINARY",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			binary, err := fleet.Helm4Path(cmd.Context(), cmd.ErrOrStderr())
			if err != nil {
				return err
			}
			_, err = fmt.Fprintln(cmd.OutOrStdout(), binary)
			return err
		},
	}
}

func env(name, fallback string) string {
	if value := os.Getenv(name); value != "" {
		return value
	}
	return fallback
}
