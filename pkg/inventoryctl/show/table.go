package show

import (
	"cmp"
	"encoding/json"
	"io"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/printers"
	"sigs.k8s.io/yaml"

	"open-cluster-management.io/cluster-inventory-addon/pkg/kube"
)

// maxCellBytes is how much of a text a table shows. Names have at most 253 bytes.
const maxCellBytes = 253

// column is a column of a table. A wide one, with a priority above 0, is shown only on request.
type column = metav1.TableColumnDefinition

// columnsOf returns columns with these headers, which the printer shows in capitals.
func columnsOf(headers ...string) []column {
	all := make([]column, 0, len(headers))
	for _, header := range headers {
		all = append(all, column{Name: header, Type: "string"})
	}
	return all
}

// printTable prints rows in columns. An empty cell is shown as in kubectl's own tables.
func printTable(out io.Writer, shown []column, rows [][]string, wide, headers bool) error {
	table := &metav1.Table{ColumnDefinitions: shown}
	for _, row := range rows {
		cells := make([]any, 0, len(row))
		for _, text := range row {
			cells = append(cells, kube.Shorten(cmp.Or(text, "<none>"), maxCellBytes))
		}
		table.Rows = append(table.Rows, metav1.TableRow{Cells: cells})
	}
	return printers.NewTablePrinter(printers.PrintOptions{Wide: wide, NoHeaders: !headers}).PrintObj(table, out)
}

// Formats for everything but lists of objects.
const (
	FormatText = ""
	FormatJSON = "json"
	FormatYAML = "yaml"
)

// Structured prints a value as JSON or YAML.
func Structured(out io.Writer, format string, value any) error {
	if format == FormatJSON {
		encoder := json.NewEncoder(out)
		encoder.SetIndent("", "    ")
		return encoder.Encode(value)
	}
	content, err := yaml.Marshal(value)
	if err != nil {
		return err
	}
	_, err = out.Write(content)
	return err
}
