package inventoryctl

import (
	"github.com/spf13/cobra"

	"open-cluster-management.io/cluster-inventory-addon/pkg/credplugin"
)

func newCredentialCommand(o *options) *cobra.Command {
	opts := credplugin.NewOptions()
	cmd := &cobra.Command{
		Use:   "credential",
		Short: "Gives a client the token of a context that \"kubeconfig\" has written; clients run it for you",
		Long: "Gives a client the token of a context that \"kubeconfig\" has written. It is an exec plugin of client-go:\n" +
			"it reads the copy of the account's token, a Secret in the namespace, each time that a client asks. It has the\n" +
			"exit codes of cp-creds.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			namespace, _, err := o.namespace()
			if err != nil {
				return err
			}
			opts.Namespace = namespace
			if err := opts.Validate(); err != nil {
				return err
			}
			config, err := o.config.ToRESTConfig()
			if err != nil {
				return &credplugin.Failure{Code: credplugin.ExitNoConfig, Text: advise(err, "").Error()}
			}
			return credplugin.PrintFrom(cmd.Context(), opts, config, o.now, o.Out)
		},
	}
	opts.AddFlags(cmd.Flags())
	return cmd
}
