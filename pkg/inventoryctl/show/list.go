package show

import (
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/duration"
	"k8s.io/cli-runtime/pkg/printers"
	inventoryv1alpha1 "sigs.k8s.io/cluster-inventory-api/apis/v1alpha1"

	"open-cluster-management.io/cluster-inventory-addon/pkg/contract"
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

// Row returns what a list shows of one profile. gone is true if it was deleted.
func (o ListOptions) Row(p *inventoryv1alpha1.ClusterProfile, gone bool) []string {
	health := inWords(p, inventoryv1alpha1.ClusterConditionControlPlaneHealthy, "Healthy", "Unhealthy")
	if gone {
		health = "Deleted"
	}
	access := make([]string, 0, len(p.Status.AccessProviders))
	for _, provider := range p.Status.AccessProviders {
		access = append(access, provider.Name)
	}
	values, newest := make([]string, len(o.Properties)), time.Time{}
	for _, property := range p.Status.Properties {
		if property.LastObservedTime.After(newest) {
			newest = property.LastObservedTime.Time
		}
		if at := slices.Index(o.Properties, property.Name); at >= 0 {
			values[at] = property.Value
		}
	}
	var row []string
	if o.Namespaces {
		row = append(row, p.Namespace)
	}
	row = append(row, p.Name, p.Status.Version.Kubernetes, health, strings.Join(access, ","))
	row = append(row, values...)
	return append(row, Age(newest, o.Now), inWords(p, contract.ProfileConditionJoined, "Yes", "No"),
		p.Labels[contract.LabelClusterSet], strconv.Itoa(len(p.Status.Properties)), p.Spec.ClusterManager.Name,
		Age(p.CreationTimestamp.Time, o.Now))
}

// inWords returns the word for a condition's status; "" if there is no condition.
func inWords(p *inventoryv1alpha1.ClusterProfile, conditionType, isTrue, isFalse string) string {
	condition := apimeta.FindStatusCondition(p.Status.Conditions, conditionType)
	switch {
	case condition == nil:
		return ""
	case condition.Status == metav1.ConditionTrue:
		return isTrue
	case condition.Status == metav1.ConditionFalse:
		return isFalse
	default:
		return "Unknown"
	}
}

// List prints the rows of profiles.
func List(out io.Writer, rows [][]string, opts ListOptions) error {
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
	return printTable(out, shown, rows, opts.Wide, opts.Headers)
}

// Age returns how long ago a time was; "" for the zero time. A time that is yet to come by this
// machine's clock is now.
func Age(at, now time.Time) string {
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
