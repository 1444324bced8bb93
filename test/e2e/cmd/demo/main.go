// Command demo shows the cluster inventory at work on a local fleet.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strings"

	"open-cluster-management.io/cluster-inventory-addon/test/e2e/demo"
)

func main() {
	name := flag.String("fleet", "default", "name of the fleet")
	titles := flag.Bool("titles", false, "print the headings only, and start nothing")
	flag.Parse()
	if *titles {
		fmt.Println(strings.Join(demo.Titles(), "\n"))
		return
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := demo.Run(ctx, *name, os.Stdout)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "demo:", err)
		os.Exit(1)
	}
}
