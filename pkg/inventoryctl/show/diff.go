package show

import (
	"cmp"
	"io"
	"strconv"

	"open-cluster-management.io/cluster-inventory-addon/pkg/inventoryctl/decide"
	"open-cluster-management.io/cluster-inventory-addon/pkg/kube"
)

// Diff prints what would change, a line for each action, namespace and reason.
func Diff(out io.Writer, d decide.Difference) error {
	groups := d.Groups()
	rows := make([][]string, 0, len(groups))
	for _, group := range groups {
		rows = append(rows, []string{
			string(group.Action), group.Namespace, strconv.Itoa(len(group.Clusters)),
			kube.ListNames(group.Clusters, decide.MaxClusters), cmp.Or(group.What, "-"),
		})
	}
	return printTable(
		out, columnsOf("Action", "Namespace", "Count", "Clusters", "Reason or fields"), rows, false, true)
}
