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
	rows := [][]string{append([]string{"NAMESPACE"}, m.Clusters...)}
	for i, row := range m.Rows {
		cells := []string{row.Namespace}
		for _, cell := range m.Cells[i*len(m.Clusters) : (i+1)*len(m.Clusters)] {
			cells = append(cells, string(cell.State))
		}
		rows = append(rows, cells)
	}
	if err := printTable(out, make([]column, 1+len(m.Clusters)), rows, false, false); err != nil {
		return err
	}
	reasons(out, m.Cells, "the cluster ")
	return nil
}

// reasons prints why cells are as they are, each reason after a word or two that begin its sentence.
func reasons(out io.Writer, cells []decide.Cell, begin string) {
	for i, reason := range decide.Reasons(cells) {
		if i == 0 {
			fmt.Fprintln(out)
		}
		fmt.Fprintf(out, "%s: %s: %s%s\n", reason.State, kube.ListNames(printable(reason.Pairs), maxPairs), begin,
			kube.Shorten(reason.Why, maxWhyBytes))
	}
}

// Tokens prints a line for each namespace and account that it has or should have, with a column for
// each cluster, or with counts, and then the reasons.
func Tokens(out io.Writer, t decide.Tokens, isFolded bool) error {
	shown := columnsOf("Namespace", "Account", "Copied", "Withheld", "Failed", "Unknown")
	header := []string{"NAMESPACE", "ACCOUNT"}
	var rows [][]string
	if !isFolded { // the printer's own headers are in capitals, which names are not
		shown = make([]column, len(header)+len(t.Clusters))
		rows = append(rows, append(header, t.Clusters...))
	}
	next := 0
	for _, row := range t.Rows {
		cells := []string{row.Namespace, row.Account}
		if isFolded {
			for _, count := range []int{row.Copied, row.Withheld, row.Failed, row.Unknown} {
				cells = append(cells, strconv.Itoa(count))
			}
			rows = append(rows, cells)
			continue
		}
		for _, cluster := range t.Clusters {
			state := "-"
			if next < len(t.Cells) && t.Cells[next].Cluster == cluster &&
				t.Cells[next].Namespace == row.Namespace && t.Cells[next].Account == row.Account {
				state = string(t.Cells[next].State)
				next++
			}
			cells = append(cells, state)
		}
		rows = append(rows, cells)
	}
	if len(t.Rows) > 0 {
		if err := printTable(out, shown, rows, false, isFolded); err != nil {
			return err
		}
	}
	reasons(out, t.Cells, "")
	if t.Unnamed > 0 {
		fmt.Fprintf(out, "Accounts that name no namespace, so that their tokens are copied to none: %d.\n", t.Unnamed)
	}
	return nil
}

// MatrixCounts prints how many clusters each namespace sees, and the most frequent reasons.
func MatrixCounts(out io.Writer, m decide.Matrix) error {
	shown := columnsOf(
		"Namespace", "Published", "Withheld", "Failed", "Not selected", "Unknown", "Mostly because the cluster")
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
	return printTable(out, shown, rows, false, true)
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
