package demo

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"text/tabwriter"

	appsv1 "k8s.io/api/apps/v1"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	inventoryv1alpha1 "sigs.k8s.io/cluster-inventory-api/apis/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// showProfiles lists the profiles of the consumer's namespace.
func (d *Demo) showProfiles(ctx context.Context) error {
	return d.inventory(ctx, 0, "list", "-n", namespace, "-L", "region.example.com,gpu.example.com")
}

// showEvent waits for an event about a property and prints it.
func (d *Demo) showEvent(ctx context.Context, cluster, name string) error {
	owned := property(name)
	if err := d.spokes[cluster].Get(ctx, client.ObjectKeyFromObject(owned), owned); err != nil {
		return err
	}
	table := d.table("EVENT ON", "TYPE", "REASON", "NOTE")
	err := d.until(ctx, "an event about "+name, func(ctx context.Context) error {
		events := &eventsv1.EventList{}
		if err := d.spokes[cluster].List(ctx, events, client.InNamespace(metav1.NamespaceDefault)); err != nil {
			return err
		}
		for _, event := range events.Items {
			if event.Regarding.UID == owned.GetUID() {
				table.row("ClusterProperty "+name, event.Type, event.Reason, event.Note)
				return nil
			}
		}
		return fmt.Errorf("none among %d events", len(events.Items))
	})
	if err != nil {
		return err
	}
	return table.end()
}

// agentRuns returns an error until the agent with a log level is available.
func (d *Demo) agentRuns(ctx context.Context, cluster string, level int) error {
	agent, err := d.agent(ctx, cluster)
	if err != nil {
		return err
	}
	if args := agent.Spec.Template.Spec.Containers[0].Args; !slices.Contains(args, fmt.Sprintf("-v=%d", level)) {
		return fmt.Errorf("its arguments are %v", args)
	}
	status := agent.Status
	if status.ObservedGeneration < agent.Generation || status.UpdatedReplicas == 0 || status.AvailableReplicas == 0 {
		return fmt.Errorf("its status is %+v", status)
	}
	return nil
}

func (d *Demo) agent(ctx context.Context, cluster string) (*appsv1.Deployment, error) {
	agent := &appsv1.Deployment{}
	key := client.ObjectKey{Namespace: "open-cluster-management-agent-addon", Name: addonName + "-agent"}
	return agent, d.spokes[cluster].Get(ctx, key, agent)
}

func (d *Demo) addonReady(ctx context.Context, cluster string) error {
	for _, condition := range []string{"Available", "PropertiesPublished", "ProfilesSynced"} {
		if err := d.conditionIs(ctx, cluster, condition, metav1.ConditionTrue); err != nil {
			return err
		}
	}
	return nil
}

func (d *Demo) conditionIs(ctx context.Context, cluster, conditionType string, want metav1.ConditionStatus) error {
	addon := &addonv1beta1.ManagedClusterAddOn{}
	if err := d.hub.Get(ctx, client.ObjectKey{Namespace: cluster, Name: addonName}, addon); err != nil {
		return err
	}
	found := meta.FindStatusCondition(addon.Status.Conditions, conditionType)
	switch {
	case found == nil:
		return fmt.Errorf("the addon of %s has no condition %s yet", cluster, conditionType)
	case found.Status != want:
		return fmt.Errorf("%s is %s: %s", conditionType, found.Status, found.Message)
	}
	return nil
}

// value returns the value of a property in the cluster's profile.
func (d *Demo) value(ctx context.Context, cluster, name string) (string, error) {
	profile := &inventoryv1alpha1.ClusterProfile{}
	if err := d.hub.Get(ctx, client.ObjectKey{Namespace: namespace, Name: cluster}, profile); err != nil {
		return "", err
	}
	for _, p := range profile.Status.Properties {
		if p.Name == name {
			return p.Value, nil
		}
	}
	return "", fmt.Errorf("profile of %s has no property %s", cluster, name)
}

func (d *Demo) profileGone(ctx context.Context, cluster string) error {
	err := d.hub.Get(ctx, client.ObjectKey{Namespace: namespace, Name: cluster}, &inventoryv1alpha1.ClusterProfile{})
	switch {
	case apierrors.IsNotFound(err):
		return nil
	case err != nil:
		return err
	}
	return fmt.Errorf("the profile of %s is still there", cluster)
}

type table struct{ *tabwriter.Writer }

func (d *Demo) table(columns ...any) table {
	t := table{tabwriter.NewWriter(d.out, 0, 0, 3, ' ', 0)}
	t.row(columns...)
	return t
}

func (t table) row(cells ...any) {
	texts := make([]string, 0, len(cells))
	for _, cell := range cells {
		texts = append(texts, fmt.Sprint(cell))
	}
	fmt.Fprintf(t, "   %s\n", strings.Join(texts, "\t"))
}

func (t table) end() error {
	fmt.Fprintln(t)
	return t.Flush()
}
