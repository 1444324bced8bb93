package inventoryctl

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/util/validation"

	"open-cluster-management.io/cluster-inventory-addon/pkg/contract"
	"open-cluster-management.io/cluster-inventory-addon/pkg/inventoryctl/decide"
	"open-cluster-management.io/cluster-inventory-addon/pkg/inventoryctl/gather"
	"open-cluster-management.io/cluster-inventory-addon/pkg/inventoryctl/show"
	"open-cluster-management.io/cluster-inventory-addon/pkg/kube"
)

type explainOptions struct {
	*options
	cluster string
	output  string
}

func newExplainCommand(o *options) *cobra.Command {
	e := &explainOptions{options: o}
	cmd := &cobra.Command{
		Use:   "explain CLUSTER | PROPERTY --cluster CLUSTER",
		Short: "Explains step by step why a cluster or one of its properties is published or not",
		Long: "Explains step by step why a cluster is published in a namespace or not, or with --cluster why a property\n" +
			"of that cluster is, and names the command that fixes the first missing step.",
		Example: "  kubectl inventory explain cluster1 -n team-a\n" +
			"  kubectl inventory explain region.example.com --cluster cluster1",
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error { return e.run(cmd.Context(), args[0]) },
	}
	// It replaces kubectl's flag of that name, which chooses a cluster of the kubeconfig.
	cmd.Flags().StringVar(&e.cluster, "cluster", "", "the cluster whose property is explained")
	addOutput(cmd, &e.output)
	return cmd
}

func (e *explainOptions) run(ctx context.Context, name string) error {
	if err := checkOutput(e.output); err != nil {
		return err
	}
	cluster := e.cluster
	if cluster == "" {
		cluster = name
	}
	if problems := validation.IsDNS1123Subdomain(cluster); len(problems) > 0 {
		return fmt.Errorf("%s is not a cluster name", kube.Quote(cluster))
	}
	namespace, given, err := e.namespace()
	if err != nil {
		return err
	}
	hub, err := e.hub()
	if err != nil {
		return err
	}
	if e.cluster == "" {
		return e.explainPair(ctx, hub, namespace, cluster)
	}
	if name == "" || len(name) > contract.MaxPropertyNameBytes {
		return fmt.Errorf("%s is not a property name", kube.Quote(name))
	}
	scope := ""
	if given {
		scope = namespace
	}
	return e.explainProperty(ctx, hub, name, cluster, scope, namespace)
}

func (e *explainOptions) explainPair(ctx context.Context, hub *gather.Hub, namespace, cluster string) error {
	facts, err := hub.Pair(ctx, namespace, cluster)
	switch {
	case err != nil:
		return advise(err, hub.Host)
	case !facts.IsVisible():
		return fmt.Errorf("nothing of cluster %s in namespace %s is visible to you: ask the hub's administrator for the "+
			"rights that %s lists, or give another namespace with -n", cluster, namespace, docsOfRights())
	case facts.Facts.Namespace == nil && !facts.Facts.Hidden.Namespaces:
		return noNamespace(namespace)
	case facts.Facts.Cluster == nil && !facts.Facts.Hidden.Clusters && facts.Facts.Profile == nil:
		return noCluster(cluster)
	}
	return e.print(decide.ExplainPair(facts, e.now()))
}

func (e *explainOptions) explainProperty(
	ctx context.Context, hub *gather.Hub, name, cluster, namespace, own string,
) error {
	facts, err := hub.Property(ctx, name, cluster, namespace, own)
	switch {
	case err != nil:
		return advise(err, hub.Host)
	case !facts.IsVisible():
		return fmt.Errorf("nothing of cluster %s is visible to you: ask the hub's administrator for the rights that "+
			"%s lists, or give another namespace with -n", cluster, docsOfRights())
	case facts.ManagedCluster == nil && !facts.HiddenCluster && len(facts.Profiles) == 0:
		return noCluster(cluster)
	case namespace != "" && len(facts.Profiles) == 0:
		if exists, err := hub.Namespace(ctx, namespace); err != nil {
			return advise(err, hub.Host)
		} else if !exists {
			return noNamespace(namespace)
		}
	}
	return e.print(decide.ExplainProperty(facts))
}

func (e *explainOptions) print(explanation decide.Explanation) error {
	if e.output != "" {
		if err := show.Structured(e.Out, e.output, explanation); err != nil {
			return err
		}
	} else {
		show.Explanation(e.Out, explanation, e.colors())
	}
	if decide.FirstWrong(explanation.Steps) != nil {
		return errMissing
	}
	return nil
}
