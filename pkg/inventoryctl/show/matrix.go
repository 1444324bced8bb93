package show

import (
	"fmt"
	"io"
	"strconv"
	"strings"

	"open-cluster-management.io/cluster-inventory-addon/pkg/inventoryctl/decide"
	"open-cluster-management.io/cluster-inventory-addon/pkg/kube"
)

// maxPairs is how many pairs are named for one reason.
const maxPairs = 10

// maxWhyBytes is how much of a reason is shown.
const maxWhyBytes = 400

// Matrix prints a column for each cluster, and then the reasons.
func Matrix(out io.Writer, m decide.Matrix) error {
	// The printer's own headers are in capitals, which names are not.
	columns := make([]column, 1+len(m.Clusters))
	rows := [][]string{append([]string{"NAMESPACE"}, m.Clusters...)}
	for i, row := range m.Rows {
		cells := []string{row.Namespace}
		for _, cell := range m.Cells[i*len(m.Clusters) : (i+1)*len(m.Clusters)] {
			cells = append(cells, string(cell.State))
		}
		rows = append(rows, cells)
	}
	if err := printTable(out, columns, rows, false, false); err != nil {
		return err
	}
	for i, reason := range m.Reasons() {
		if i == 0 {
			fmt.Fprintln(out)
		}
		fmt.Fprintf(out, "%s: %s: the cluster %s\n", reason.State, kube.ListNames(printable(reason.Pairs), maxPairs),
			kube.Shorten(reason.Why, maxWhyBytes))
	}
	return nil
}

// MatrixCounts prints how many clusters each namespace sees, and the most frequent reasons.
func MatrixCounts(out io.Writer, m decide.Matrix) error {
	columns := []column{
		{name: "Namespace"}, {name: "Published"}, {name: "Withheld"}, {name: "Failed"}, {name: "Not selected"},
		{name: "Unknown"}, {name: "Mostly because the cluster"},
	}
	rows := make([][]string, 0, len(m.Rows))
	for _, row := range m.Rows {
		mostly := "-"
		if row.MostlyCount > 0 {
			mostly = fmt.Sprintf("%s (%d)", kube.Shorten(row.MostlyBecause, maxCellBytes-len(" (1234567)")), row.MostlyCount)
		}
		rows = append(rows, []string{
			row.Namespace, strconv.Itoa(row.Published), strconv.Itoa(row.Withheld), strconv.Itoa(row.Failed),
			strconv.Itoa(row.NotSelected), strconv.Itoa(row.Unknown), mostly,
		})
	}
	return printTable(out, columns, rows, false, true)
}

// NotVisible prints what the reader may not read, if anything.
func NotVisible(out io.Writer, kinds []string) {
	if len(kinds) > 0 {
		fmt.Fprintf(out, "Not visible to you: %s.\n", strings.Join(kinds, ", "))
	}
}

func printable(names []string) []string {
	shown := make([]string, 0, len(names))
	for _, name := range names {
		shown = append(shown, kube.Shorten(name, 2*maxCellBytes))
	}
	return shown
}
