package inventoryctl

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"open-cluster-management.io/cluster-inventory-addon/pkg/inventoryctl/describe"
	"open-cluster-management.io/cluster-inventory-addon/pkg/inventoryctl/show"
)

func newDescribeCommand(o *options) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "describe CLUSTER",
		Short: "Shows one ClusterProfile, its tokens (not their values), decisions and events",
		Long: "Shows one ClusterProfile: its properties and their age, conditions and access providers; whether\n" +
			"tokens of the cluster's accounts are copied to the namespace, but not the tokens; the Placements of the\n" +
			"namespace that choose the cluster, and the events about it.",
		Example:           "  kubectl inventory describe cluster1 -n team-a",
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: o.completeCluster,
		RunE:              func(cmd *cobra.Command, args []string) error { return o.describe(cmd.Context(), args[0]) },
	}
	o.addOutput(cmd)
	return cmd
}

func (o *options) describe(ctx context.Context, cluster string) error {
	if err := checkCluster(cluster); err != nil {
		return err
	}
	namespace, _, err := o.namespace()
	if err != nil {
		return err
	}
	hub, err := o.hub()
	if err != nil {
		return err
	}
	facts, err := hub.Pair(ctx, namespace, cluster)
	switch {
	case err != nil:
		return advise(err, hub.Host)
	case facts.HiddenProfile:
		return mayNotRead(namespace)
	case facts.Facts.Namespace == nil && !facts.Facts.Hidden.Namespaces:
		return noNamespace(namespace)
	case facts.Facts.Profile == nil:
		return fmt.Errorf("there is no ClusterProfile %s in namespace %s: kubectl inventory explain %s -n %s says why",
			cluster, namespace, cluster, namespace)
	}
	placements, hidden, err := hub.Naming(ctx, namespace, cluster)
	if err != nil {
		return advise(err, hub.Host)
	}
	description := describe.Of(facts, placements, hidden, o.now())
	if o.format != show.FormatText {
		return show.Structured(o.Out, o.format, description)
	}
	return describe.Print(o.Out, description, o.now())
}
