// Command kube is etcd, kube-apiserver, kube-controller-manager and kubectl in
// one binary: linking them together costs a fraction of the time and disk of
// linking each. The first argument, or the name it is called by, chooses.
package main

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"go.etcd.io/etcd/server/v3/etcdmain"
	"k8s.io/component-base/cli"
	_ "k8s.io/component-base/logs/json/register"          // --logging-format=json
	_ "k8s.io/component-base/metrics/prometheus/clientgo" // client metrics on /metrics
	_ "k8s.io/component-base/metrics/prometheus/version"  // version metrics on /metrics
	kubectl "k8s.io/kubectl/pkg/cmd"
	apiserver "k8s.io/kubernetes/cmd/kube-apiserver/app"
	controllermanager "k8s.io/kubernetes/cmd/kube-controller-manager/app"
)

// commands are the mains, each with os.Args[0] its own name.
var commands = map[string]func() int{
	"etcd":                    func() int { etcdmain.Main(os.Args); return 0 },
	"kube-apiserver":          func() int { return cli.Run(apiserver.NewAPIServerCommand()) },
	"kube-controller-manager": func() int { return cli.Run(controllermanager.NewControllerManagerCommand()) },
	"kubectl":                 func() int { return cli.Run(kubectl.NewDefaultKubectlCommand()) },
}

func main() {
	name := filepath.Base(os.Args[0])
	if _, calledByName := commands[name]; !calledByName && len(os.Args) > 1 {
		os.Args = os.Args[1:]
		name = os.Args[0]
	}
	command, known := commands[name]
	if !known {
		names := slices.Sorted(maps.Keys(commands))
		fmt.Fprintf(os.Stderr, "kube: unknown command %q: want one of %s\n", name, strings.Join(names, ", "))
		os.Exit(2)
	}
	os.Exit(command())
}
