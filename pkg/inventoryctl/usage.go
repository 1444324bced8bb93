package inventoryctl

import (
	"fmt"

	"github.com/spf13/cobra"
)

// usage is cobra's template of a command's usage, without the flags that all commands have: those of
// kubectl, which would hide each command's own.
const usage = `Usage:
  {{if .HasAvailableSubCommands}}{{.CommandPath}} COMMAND [flags]{{else}}{{.UseLine}}{{end}}{{if .Aliases}}

Aliases:
  {{.NameAndAliases}}{{end}}{{if .HasExample}}

Examples:
{{.Example}}{{end}}{{if .HasAvailableSubCommands}}

Commands:{{range .Commands}}{{if .IsAvailableCommand}}
  {{rpad .Name .NamePadding}} {{.Short}}{{end}}{{end}}{{end}}{{if .LocalNonPersistentFlags.HasAvailableFlags}}

Flags:
{{.LocalNonPersistentFlags.FlagUsages | trimTrailingWhitespaces}}{{end}}

kubectl's own flags work, too, such as -n and --context: "kubectl inventory options" lists them.
`

func newOptionsCommand(o *options) *cobra.Command {
	return &cobra.Command{
		Use:   "options",
		Short: "Lists the flags that all commands have: those of kubectl",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			_, err := fmt.Fprintf(o.Out, "These flags work with every command:\n\n%s",
				cmd.Root().PersistentFlags().FlagUsages())
			return err
		},
	}
}
