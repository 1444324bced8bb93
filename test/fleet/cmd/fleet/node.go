package main

import (
	"github.com/spf13/cobra"

	"open-cluster-management.io/cluster-inventory-addon/test/fleet/node"
)

// nodeCommand plays the node of one cluster; the supervisor runs one for each.
func nodeCommand() *cobra.Command {
	cfg := node.Config{}
	check := false
	cmd := &cobra.Command{
		Use:    "node",
		Short:  "Run the pods of one cluster (started by up)",
		Hidden: true,
		Args:   cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if check {
				return node.Check()
			}
			return node.Run(cmd.Context(), cfg)
		},
	}
	flags := cmd.Flags()
	flags.BoolVar(&check, "check", false, "Only tell whether pods can run here.")
	flags.StringVar(&cfg.Kubeconfig, "kubeconfig", "", "Administrator's kubeconfig of the cluster.")
	flags.StringVar(&cfg.NodeName, "node-name", "", "Name of the node.")
	flags.StringToStringVar(&cfg.Images, "image", nil, "An image without its tag, and the directory with its content.")
	flags.StringVar(&cfg.Dir, "dir", "", "Scratch space.")
	flags.StringVar(&cfg.LogDir, "log-dir", "", "Where containers log.")
	flags.StringVar(&cfg.PodCIDR, "pod-cidr", "", "Loopback range of the pods.")
	flags.StringVar(
		&cfg.ServiceCIDR, "service-cidr", "", "Loopback range of the Services; without one they have no addresses.",
	)
	flags.StringSliceVar(&cfg.OwnNetwork, "own-network", nil, "An image whose pods have a network of their own.")
	flags.StringVar(
		&cfg.ServiceTunnel, "service-tunnel", "", "Socket at which the API server reaches Services; none by default.",
	)
	flags.StringSliceVar(&cfg.Outside, "outside", nil, "HOST:PORT that pods with a network of their own may reach.")
	flags.StringToStringVar(
		&cfg.Expose, "expose", nil, "HOST:PORT to listen at, and NAMESPACE/NAME:PORT of the Service behind it.",
	)
	return cmd
}
