package decide

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	inventoryv1alpha1 "sigs.k8s.io/cluster-inventory-api/apis/v1alpha1"

	"open-cluster-management.io/cluster-inventory-addon/pkg/contract"
)

// Profile is what a list shows of one ClusterProfile.
type Profile struct {
	Namespace, Name string
	Manager         string
	Version         string
	Health          string
	Joined          string
	Set             string
	Access          []string // names of access providers
	Properties      int
	Values          []string  // of the requested properties
	Newest          time.Time // when the newest value was first seen; zero if there is none
	Created         time.Time
}

// ProfileOf summarizes a profile, with the values of the named properties.
func ProfileOf(p *inventoryv1alpha1.ClusterProfile, properties []string) Profile {
	summary := Profile{
		Namespace: p.Namespace, Name: p.Name,
		Manager:    p.Spec.ClusterManager.Name,
		Version:    p.Status.Version.Kubernetes,
		Health:     inWords(p, inventoryv1alpha1.ClusterConditionControlPlaneHealthy, "Healthy", "Unhealthy"),
		Joined:     inWords(p, contract.ProfileConditionJoined, "Yes", "No"),
		Set:        p.Labels[contract.LabelClusterSet],
		Properties: len(p.Status.Properties),
		Values:     make([]string, len(properties)),
		Created:    p.CreationTimestamp.Time,
	}
	for _, provider := range p.Status.AccessProviders {
		summary.Access = append(summary.Access, provider.Name)
	}
	for _, property := range p.Status.Properties {
		if property.LastObservedTime.After(summary.Newest) {
			summary.Newest = property.LastObservedTime.Time
		}
		for i, name := range properties {
			if property.Name == name {
				summary.Values[i] = property.Value
			}
		}
	}
	return summary
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

// PropertyNames parses names of properties from a command line, each alone or several
// separated by commas, and drops repetitions.
func PropertyNames(given []string) []string {
	var names []string
	for _, list := range given {
		for name := range strings.SplitSeq(list, ",") {
			if name = strings.TrimSpace(name); name != "" && !slices.Contains(names, name) {
				names = append(names, name)
			}
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
