// Command kubectl-inventory is a kubectl plugin: "kubectl inventory" shows which namespaces
// see which clusters of a hub, and explains why one does not.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"k8s.io/cli-runtime/pkg/genericiooptions"
	_ "k8s.io/client-go/plugin/pkg/client/auth" // the authentication providers that kubectl supports

	"open-cluster-management.io/cluster-inventory-addon/pkg/inventoryctl"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	streams := genericiooptions.IOStreams{In: os.Stdin, Out: os.Stdout, ErrOut: os.Stderr}
	code := inventoryctl.Main(ctx, inventoryctl.Arguments(os.Args), streams)
	stop()
	os.Exit(code)
}
