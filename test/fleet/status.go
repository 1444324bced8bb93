package fleet

import (
	"context"
	"errors"
	"fmt"
	"io"
	"text/tabwriter"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	clusterv1 "open-cluster-management.io/api/cluster/v1"

	"open-cluster-management.io/cluster-inventory-addon/test/fleet/supervisor"
)

// ErrNotWell says that a fleet lacks something that "up" would start.
var ErrNotWell = errors.New("the fleet is not well")

// Status prints what runs in the fleet and what the hub reports about its clusters. It
// returns ErrNotWell, wrapped, if something is wrong.
func (f *Fleet) Status(ctx context.Context, out io.Writer) error {
	ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	processes, err := f.Processes(ctx)
	if err != nil {
		return fmt.Errorf("%w: fleet %s: %w", ErrNotWell, f.Name, err)
	}
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	line := func(format string, args ...any) { _, _ = fmt.Fprintf(table, format+"\n", args...) }
	unwell := 0
	line("PROCESS\tSTATE\tPID\tSINCE\tRESTARTS\tLAST EXIT")
	for _, p := range processes {
		state := processState(p, p.Running && p.Ready(ctx))
		if state != "ready" {
			unwell++
		}
		line("%s\t%s\t%d\t%s\t%d\t%s", p.Name, state, p.PID, p.Since.Format(time.TimeOnly), p.Restarts, p.LastExit)
	}
	line("")
	line("CLUSTER\tACCEPTED\tJOINED\tAVAILABLE\tKUBECONFIG")
	line("%s\t\t\t\t%s", HubName, f.Kubeconfig(HubName))
	clusters, err := f.managedClusters(ctx)
	if err != nil {
		unwell++
	}
	for _, name := range f.Managed() {
		managed := clusters[name]
		if !joined(&managed) {
			unwell++
		}
		conditions := managed.Status.Conditions
		line("%s\t%t\t%t\t%t\t%s", name,
			meta.IsStatusConditionTrue(conditions, clusterv1.ManagedClusterConditionHubAccepted),
			meta.IsStatusConditionTrue(conditions, clusterv1.ManagedClusterConditionJoined),
			meta.IsStatusConditionTrue(conditions, clusterv1.ManagedClusterConditionAvailable),
			f.Kubeconfig(name))
	}
	unwell += f.accessStatus(ctx, line)
	if flushErr := table.Flush(); flushErr != nil {
		return flushErr
	}
	if err != nil {
		return fmt.Errorf("%w: the hub does not answer: %w", ErrNotWell, err)
	}
	if unwell > 0 {
		return fmt.Errorf("%w: %d of its processes and clusters", ErrNotWell, unwell)
	}
	return nil
}

func processState(p supervisor.Status, ready bool) string {
	switch {
	case !p.Wanted:
		return "stopped"
	case !p.Running:
		return "restarting"
	case !ready:
		return "starting"
	default:
		return "ready"
	}
}

func (f *Fleet) managedClusters(ctx context.Context) (map[string]clusterv1.ManagedCluster, error) {
	c, err := f.Client(HubName)
	if err != nil {
		return nil, err
	}
	list := &clusterv1.ManagedClusterList{}
	if err := c.List(ctx, list); err != nil {
		return nil, err
	}
	clusters := map[string]clusterv1.ManagedCluster{}
	for _, managed := range list.Items {
		clusters[managed.Name] = managed
	}
	return clusters, nil
}
