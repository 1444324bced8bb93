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

func newExplainCommand(o *options) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "explain CLUSTER [PROPERTY]",
		Aliases: []string{"why"},
		Short:   "Explains step by step why a cluster or one of its properties is or is not published",
		Long: "Explains step by step why a cluster, or one of its properties, is or is not published in a namespace,\n" +
			"and names the command that fixes the first missing step.",
		Example: "  kubectl inventory explain cluster1 -n team-a\n" +
			"  kubectl inventory explain cluster1 region.example.com",
		Args:              cobra.RangeArgs(1, 2),
		ValidArgsFunction: o.completeProperty,
		RunE: func(cmd *cobra.Command, args []string) error {
			return o.explain(cmd.Context(), args[0], args[1:])
		},
	}
	o.addOutput(cmd)
	return cmd
}

// checkCluster returns why a text cannot be the name of a cluster.
func checkCluster(name string) error {
	if len(validation.IsDNS1123Subdomain(name)) > 0 {
		return fmt.Errorf("%s is not a cluster name", kube.Quote(name))
	}
	return nil
}

func (o *options) explain(ctx context.Context, cluster string, property []string) error {
	if err := checkCluster(cluster); err != nil {
		return err
	}
	namespace, scope, err := o.namespace()
	if chosen := *o.config.ClusterName; err != nil && chosen != "" {
		return fmt.Errorf("%w (--cluster chooses a cluster of the kubeconfig; a property of a cluster of the fleet is "+
			"explained by: kubectl inventory explain CLUSTER PROPERTY)", err)
	} else if err != nil {
		return err
	}
	hub, err := o.hub()
	if err != nil {
		return err
	}
	if len(property) == 0 {
		return o.explainPair(ctx, hub, namespace, cluster)
	}
	name := property[0]
	if name == "" || len(name) > contract.MaxPropertyNameBytes {
		return fmt.Errorf("%s is not a property name", kube.Quote(name))
	}
	return o.explainProperty(ctx, hub, name, cluster, scope, namespace)
}

func (o *options) explainPair(ctx context.Context, hub *gather.Hub, namespace, cluster string) error {
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
	if err := hub.Members(ctx, &facts); err != nil {
		return advise(err, hub.Host)
	}
	return o.printExplanation(decide.ExplainPair(facts, o.now()))
}

func (o *options) explainProperty(
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
	return o.printExplanation(decide.ExplainProperty(facts))
}

func (o *options) printExplanation(e decide.Explanation) error {
	return o.printFindings(e, e.Steps, func(p show.Palette) { show.Explanation(o.Out, e, p) })
}
