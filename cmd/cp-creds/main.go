// Command cp-creds is the exec plugin of a consumer on the hub: it answers a
// client that wants to talk to the cluster of a ClusterProfile with the token
// that was copied to the consumer's namespace.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"open-cluster-management.io/cluster-inventory-addon/pkg/credplugin"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := credplugin.Main(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}
