// Package columns prints objects in columns that the user defines, as kubectl's custom-columns do.
package columns

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/util/jsonpath"

	"open-cluster-management.io/cluster-inventory-addon/pkg/kube"
)

// maxValueBytes is how much of a value is printed.
const maxValueBytes = 1024

// Column is a column with the part of an object that it shows.
type Column struct {
	Name string
	path *jsonpath.JSONPath
}

// Parse reads a definition such as NAME:.metadata.name,VERSION:.status.version.kubernetes.
func Parse(definition string) ([]Column, error) {
	var columns []Column
	for one := range strings.SplitSeq(definition, ",") {
		name, path, found := strings.Cut(one, ":")
		if !found || name == "" || path == "" {
			return nil, fmt.Errorf("%q is not a column: write NAME:.path", one)
		}
		parsed := jsonpath.New(name).AllowMissingKeys(true)
		if !strings.HasPrefix(path, "{") {
			path = "{." + strings.TrimPrefix(path, ".") + "}"
		}
		if err := parsed.Parse(path); err != nil {
			return nil, fmt.Errorf("column %s: %w", name, err)
		}
		columns = append(columns, Column{Name: name, path: parsed})
	}
	return columns, nil
}

// Values returns what the columns show of an object; "" where it has nothing.
func Values(columns []Column, object *unstructured.Unstructured) ([]string, error) {
	values := make([]string, 0, len(columns))
	for _, column := range columns {
		results, err := column.path.FindResults(object.Object)
		if err != nil {
			return nil, fmt.Errorf("column %s: %w", column.Name, err)
		}
		var texts []string
		for _, value := range slices.Concat(results...) {
			texts = append(texts, fmt.Sprint(value.Interface()))
		}
		values = append(values, kube.Shorten(strings.Join(texts, ","), maxValueBytes))
	}
	return values, nil
}
