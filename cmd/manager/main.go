// Command manager runs on the hub: it deploys the cluster inventory's agent to
// the spokes and maintains their ClusterProfiles.
package main

import (
	"fmt"
	"os"

	ctrl "sigs.k8s.io/controller-runtime"

	"open-cluster-management.io/cluster-inventory-addon/pkg/hub"
)

func main() {
	if err := hub.NewCommand().ExecuteContext(ctrl.SetupSignalHandler()); err != nil {
		fmt.Fprintf(os.Stderr, "manager: %v\n", err)
		os.Exit(1)
	}
}
