// Command agent runs on every cluster of the inventory: "agent run" publishes the cluster's
// ClusterProperties to the hub, "agent cleanup" deletes the published claims when the addon
// is removed.
package main

import (
	"os"

	ctrl "sigs.k8s.io/controller-runtime"

	"open-cluster-management.io/cluster-inventory-addon/pkg/spoke"
)

func main() {
	os.Exit(spoke.Main(ctrl.SetupSignalHandler(), os.Args[1:], os.Stderr))
}
