package show

import (
	"io"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/duration"

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
	var columns []column
	if opts.Namespaces {
		columns = append(columns, column{name: "Namespace"})
	}
	columns = append(columns,
		column{name: "Name"}, column{name: "Version"}, column{name: "Health"}, column{name: "Access"})
	for _, property := range opts.Properties {
		columns = append(columns, column{name: kube.Shorten(property, maxCellBytes)})
	}
	columns = append(columns,
		column{name: "Newest value"}, column{"Joined", true}, column{"Clusterset", true}, column{"Properties", true},
		column{"Manager", true}, column{"Age", true})
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
	return printTable(out, columns, rows, opts.Wide, opts.Headers)
}

// age returns how long ago a time was; "" for the zero time.
func age(at, now time.Time) string {
	if at.IsZero() {
		return ""
	}
	return duration.HumanDuration(now.Sub(at))
}
