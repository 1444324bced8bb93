package decide

import (
	"slices"
	"strings"
	"time"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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
