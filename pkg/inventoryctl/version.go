package inventoryctl

import (
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
)

func newVersionCommand(o *options) *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Prints the version of this program; it sends no request",
		Args:  cobra.NoArgs,
		RunE:  func(*cobra.Command, []string) error { return printLine(o.Out, version()) },
	}
}

// version describes this build: its version, or what it was built from.
func version() string {
	name, revision := "unknown", ""
	if info, ok := debug.ReadBuildInfo(); ok {
		name = info.Main.Version
		for _, setting := range info.Settings {
			if setting.Key == "vcs.revision" {
				revision = " " + setting.Value
			}
		}
	}
	return fmt.Sprintf("kubectl-inventory %s%s (%s, %s/%s)", name, revision, runtime.Version(), runtime.GOOS, runtime.GOARCH)
}
