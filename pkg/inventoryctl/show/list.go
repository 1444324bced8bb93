package show

import (
	"io"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/duration"
	"k8s.io/cli-runtime/pkg/printers"

	"open-cluster-management.io/cluster-inventory-addon/pkg/inventoryctl/columns"
	"open-cluster-management.io/cluster-inventory-addon/pkg/inventoryctl/decide"
	"open-cluster-management.io/cluster-inventory-addon/pkg/kube"
)

// ListOptions say how to print profiles.
type ListOptions struct {
	Namespaces bool // start with the namespace
	Properties []string
	Wide       bool
	Headers    bool
	Now        time.Time
}

// List prints profiles, one to a line.
func List(out io.Writer, profiles []decide.Profile, opts ListOptions) error {
	var shown []column
	if opts.Namespaces {
		shown = columnsOf("Namespace")
	}
	shown = append(shown, columnsOf("Name", "Version", "Health", "Access")...)
	for _, property := range opts.Properties {
		shown = append(shown, columnsOf(kube.Shorten(property, maxCellBytes))...)
	}
	shown = append(shown, columnsOf("Newest value")...)
	for _, wide := range columnsOf("Joined", "Clusterset", "Properties", "Manager") {
		wide.Priority = 1
		shown = append(shown, wide)
	}
	shown = append(shown, columnsOf("Age")...)
	rows := make([][]string, 0, len(profiles))
	for _, p := range profiles {
		var row []string
		if opts.Namespaces {
			row = append(row, p.Namespace)
		}
		row = append(row, p.Name, p.Version, p.Health, strings.Join(p.Access, ","))
		row = append(row, p.Values...)
		rows = append(rows, append(row, age(p.Newest, opts.Now), p.Joined, p.Set, strconv.Itoa(p.Properties), p.Manager,
			age(p.Created, opts.Now)))
	}
	return printTable(out, shown, rows, opts.Wide, opts.Headers)
}

// age returns how long ago a time was; "" for the zero time. A time that is yet to come by this
// machine's clock is now.
func age(at, now time.Time) string {
	if at.IsZero() {
		return ""
	}
	return duration.HumanDuration(max(0, now.Sub(at)))
}

// Counts prints how many clusters have each value of a property.
func Counts(out io.Writer, property string, counts []decide.Count, headers bool) error {
	rows := make([][]string, 0, len(counts))
	for _, count := range counts {
		rows = append(rows, []string{count.Value, strconv.Itoa(count.Clusters)})
	}
	return printTable(out, columnsOf(kube.Shorten(property, maxCellBytes), "Clusters"), rows, false, headers)
}

// CustomColumns returns a printer of lists in columns that the user defines.
func CustomColumns(defined []columns.Column, headers bool) printers.ResourcePrinter {
	return printers.ResourcePrinterFunc(func(object runtime.Object, out io.Writer) error {
		list, ok := object.(*unstructured.UnstructuredList)
		if !ok {
			return nil
		}
		shown := make([]column, len(defined))
		var rows [][]string
		if headers { // as they are written: the table's own headers are in capitals
			names := make([]string, 0, len(defined))
			for _, one := range defined {
				names = append(names, one.Name)
			}
			rows = append(rows, names)
		}
		for i := range list.Items {
			values, err := columns.Values(defined, &list.Items[i])
			if err != nil {
				return err
			}
			rows = append(rows, values)
		}
		return printTable(out, shown, rows, false, false)
	})
}
