package inventoryctl

import (
	"github.com/spf13/cobra"

	"open-cluster-management.io/cluster-inventory-addon/pkg/version"
)

func newVersionCommand(o *options) *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Prints the version of this program; it sends no request",
		Args:  cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			return printLine(o.Out, "kubectl-inventory "+version.Get().String())
		},
	}
}
