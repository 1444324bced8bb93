package decide

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	inventoryv1alpha1 "sigs.k8s.io/cluster-inventory-api/apis/v1alpha1"
)

// PropertyNames returns the names of properties on a command line without repetitions.
func PropertyNames(given []string) []string {
	var names []string
	for _, name := range given {
		if name = strings.TrimSpace(name); name != "" && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

// Counter counts clusters by the value of a property. A cluster that is published in several
// namespaces counts once.
type Counter struct {
	Property string

	values map[string]string // by cluster
}

// Add adds a profile.
func (c *Counter) Add(p *inventoryv1alpha1.ClusterProfile) {
	if c.values == nil {
		c.values = map[string]string{}
	}
	value := c.values[p.Name]
	for _, property := range p.Status.Properties {
		if property.Name == c.Property {
			value = property.Value
		}
	}
	c.values[p.Name] = value
}

// Count is how many clusters have a value; "" stands for those without the property.
type Count struct {
	Value    string
	Clusters int
}

// Counts returns the counts, the largest first.
func (c *Counter) Counts() []Count {
	byValue := map[string]int{}
	for _, value := range c.values {
		byValue[value]++
	}
	var counts []Count
	for _, value := range slices.Sorted(maps.Keys(byValue)) {
		counts = append(counts, Count{Value: value, Clusters: byValue[value]})
	}
	slices.SortStableFunc(counts, func(a, b Count) int { return cmp.Compare(b.Clusters, a.Clusters) })
	return counts
}

// PropertiesOf returns the properties of a profile in the form in which the hub returns it; nil if
// they have another form.
func PropertiesOf(p *unstructured.Unstructured) []inventoryv1alpha1.Property {
	profile := &inventoryv1alpha1.ClusterProfile{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(p.Object, profile); err != nil {
		return nil
	}
	return profile.Status.Properties
}
