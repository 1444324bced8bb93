package show

import (
	"fmt"
	"io"
	"strconv"
	"strings"

	"open-cluster-management.io/cluster-inventory-addon/pkg/inventoryctl/rollout"
	"open-cluster-management.io/cluster-inventory-addon/pkg/kube"
)

// maxFailures is how many failures are printed.
const maxFailures = 20

// Rollout prints the counts of a rollout, and the clusters on which it failed.
func Rollout(out io.Writer, r rollout.Report) error {
	fmt.Fprintf(out, "%d of %d clusters have their desired AgentRevision", r.Done, r.Total)
	if len(r.Targets) > 0 {
		fmt.Fprintf(out, " (%s)", kube.Shorten(strings.Join(r.Targets, ", "), maxCellBytes))
	}
	fmt.Fprint(out, ".\n\n")
	rows := make([][]string, 0, len(r.Counts))
	for _, count := range r.Counts {
		rows = append(rows, []string{count.Revision, string(count.State), strconv.Itoa(count.Clusters)})
	}
	if err := printTable(out, columnsOf("Revision", "State", "Clusters"), rows, false, true); err != nil {
		return err
	}
	if r.Stalled {
		fmt.Fprintln(out, "\nThe rollout stands still.")
	}
	for i, failure := range r.Failed {
		switch i {
		case 0:
			fmt.Fprint(out, "\nFailed:\n\n")
		case maxFailures:
			fmt.Fprintf(out, "and %d more (-o json has all)\n", len(r.Failed)-maxFailures)
			return nil
		}
		fmt.Fprintf(out, "%s: %s\n", failure.Cluster, kube.Shorten(failure.Why, maxWhyBytes))
	}
	for i, message := range r.Messages {
		if i == 0 {
			fmt.Fprintln(out)
		}
		fmt.Fprintf(out, "Open Cluster Management says of %s\n", kube.Shorten(message, maxFindingBytes))
	}
	NotVisible(out, r.NotVisible)
	return nil
}
