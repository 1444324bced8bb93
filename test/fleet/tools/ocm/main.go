// Command ocm is every Open Cluster Management component of the fleet in one
// binary, called as its images are: "ocm registration controller", "ocm work
// agent" and so on. Only the command asked for is constructed, because the
// components share global feature gates and cannot be built side by side.
package main

import (
	goflag "flag"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/util/runtime"
	cliflag "k8s.io/component-base/cli/flag"
	"k8s.io/component-base/featuregate"
	"k8s.io/component-base/logs"

	"open-cluster-management.io/api/feature"
	"open-cluster-management.io/ocm/pkg/cmd/hub"
	"open-cluster-management.io/ocm/pkg/cmd/spoke"
	"open-cluster-management.io/ocm/pkg/features"
)

type component struct {
	command func() *cobra.Command
	// hubGates are the gates that the component's own main registers.
	hubGates map[featuregate.Feature]featuregate.FeatureSpec
}

var components = map[string]component{
	"addon manager":        {command: hub.NewAddonManager},
	"placement controller": {command: hub.NewPlacementController},
	"registration agent":   {command: spoke.NewRegistrationAgent, hubGates: feature.DefaultHubRegistrationFeatureGates},
	"registration controller": {
		command:  hub.NewRegistrationController,
		hubGates: feature.DefaultHubRegistrationFeatureGates,
	},
	"webhooks server": {command: newWebhooks, hubGates: feature.DefaultHubRegistrationFeatureGates},
	"work agent":      {command: spoke.NewWorkAgent, hubGates: feature.DefaultHubWorkFeatureGates},
}

func main() {
	name := strings.Join(os.Args[1:min(len(os.Args), 3)], " ")
	chosen, known := components[name]
	if !known {
		names := make([]string, 0, len(components))
		for n := range components {
			names = append(names, n)
		}
		slices.Sort(names)
		fmt.Fprintf(os.Stderr, "ocm: unknown component %q: want one of: %s\n", name, strings.Join(names, ", "))
		os.Exit(2)
	}
	os.Args = append([]string{"ocm"}, os.Args[3:]...)

	pflag.CommandLine.SetNormalizeFunc(cliflag.WordSepNormalizeFunc)
	pflag.CommandLine.AddGoFlagSet(goflag.CommandLine)
	logs.AddFlags(pflag.CommandLine)
	logs.InitLogs()
	if chosen.hubGates != nil {
		runtime.Must(features.HubMutableFeatureGate.Add(chosen.hubGates))
		features.HubMutableFeatureGate.AddFlag(pflag.CommandLine)
	}
	if err := chosen.command().Execute(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		logs.FlushLogs()
		os.Exit(1)
	}
	logs.FlushLogs()
}
