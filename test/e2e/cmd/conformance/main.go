// Command conformance checks the ClusterProfiles that a cluster manager publishes in one
// namespace of any hub (package internal/conformance), prints the result, and writes it to
// a file if one is named. It exits with 1 if a required check failed, and with 2 if it
// could not check.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/yaml"

	"open-cluster-management.io/cluster-inventory-addon/internal/conformance"
)

type options struct{ kubeconfig, context, namespace, manager, report string }

func main() {
	o := options{}
	flag.StringVar(&o.kubeconfig, "kubeconfig", "", "path of the hub's kubeconfig (default: as kubectl finds it)")
	flag.StringVar(&o.context, "context", "", "context in the kubeconfig (default: the current one)")
	flag.StringVar(&o.namespace, "namespace", "", "the namespace whose ClusterProfiles are checked (required)")
	flag.StringVar(&o.manager, "cluster-manager", "open-cluster-management", "name of the cluster manager")
	flag.StringVar(&o.report, "report", "", "file for the report, in YAML")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	report, err := run(ctx, o)
	stop()
	switch {
	case err != nil:
		fmt.Fprintln(os.Stderr, "conformance:", err)
		os.Exit(2)
	case !report.Conforms():
		os.Exit(1)
	}
}

func run(ctx context.Context, o options) (conformance.Report, error) {
	if o.namespace == "" {
		return conformance.Report{}, fmt.Errorf("--namespace is required")
	}
	cfg, err := o.config()
	if err != nil {
		return conformance.Report{}, err
	}
	hub, err := conformance.Observe(ctx, cfg, o.namespace)
	if err != nil {
		return conformance.Report{}, err
	}
	report := conformance.Check(hub, o.manager)
	report.Print(os.Stdout)
	if o.report == "" {
		return report, nil
	}
	content, err := yaml.Marshal(report)
	if err != nil {
		return report, err
	}
	return report, os.WriteFile(o.report, content, 0o600)
}

func (o options) config() (*rest.Config, error) {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = o.kubeconfig
	overrides := &clientcmd.ConfigOverrides{CurrentContext: o.context}
	return clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, overrides).ClientConfig()
}
