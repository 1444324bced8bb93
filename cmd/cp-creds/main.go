// Command cp-creds is the exec plugin for consumers on the hub: a client that connects to
// the cluster of a ClusterProfile gets from it the token that was copied to the consumer's
// namespace.
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
