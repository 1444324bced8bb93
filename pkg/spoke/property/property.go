package property

import (
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"open-cluster-management.io/cluster-inventory-addon/pkg/contract"
	"open-cluster-management.io/cluster-inventory-addon/pkg/kube"
)

// Names of the API.
const (
	Group   = "about.k8s.io"
	Kind    = "ClusterProperty"
	CRDName = "clusterproperties." + Group
)

// Versions returns the versions the agent can read, the preferred one first.
// Their schemas are the same.
func Versions() []string { return []string{"v1beta1", "v1alpha1"} }

// GroupVersionKind returns the GroupVersionKind of ClusterProperty at a version.
func GroupVersionKind(version string) schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: Group, Version: version, Kind: Kind}
}

// New returns an empty object of a version, to read into or to watch.
func New(version string) *unstructured.Unstructured {
	obj := &unstructured.Unstructured{}
	obj.SetGroupVersionKind(GroupVersionKind(version))
	return obj
}

// NewList returns an empty list of objects of a version.
func NewList(version string) *unstructured.UnstructuredList {
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(GroupVersionKind(version).GroupVersion().WithKind(Kind + "List"))
	return list
}

// Property holds the fields of a ClusterProperty that the agent uses.
type Property struct {
	Name  string
	UID   types.UID
	Value string

	// SpokeOnly says that its owner labelled it to stay on the spoke.
	SpokeOnly bool
}

// Read returns the property in an object of any version. A value that is absent or
// not a string is read as empty.
func Read(obj *unstructured.Unstructured) Property {
	value, _, _ := unstructured.NestedString(obj.Object, "spec", "value")
	_, spokeOnly := obj.GetLabels()[contract.LabelSpokeOnly]
	return Property{Name: obj.GetName(), UID: obj.GetUID(), Value: value, SpokeOnly: spokeOnly}
}

// Obstacle is a reason in the property itself that prevents it from becoming a claim.
type Obstacle string

// The obstacles. A property with ObstacleNone is published.
const (
	ObstacleNone      Obstacle = ""
	ObstacleSpokeOnly Obstacle = "it is labeled " + contract.LabelSpokeOnly
	ObstacleReserved  Obstacle = "its name is reserved"
	ObstacleEmpty     Obstacle = "its value is empty"
	ObstacleTooLong   Obstacle = "its value is longer than 1024 bytes"
	ObstacleNotText   Obstacle = "its value is not valid UTF-8"
)

// Reserved are patterns (kube.IsPattern) of names that no property may be published under,
// because readers on the hub take claims of such names for those of another component, such as
// OCM's own.
type Reserved []string

// Obstacle returns what prevents the property from becoming a claim. The label
// comes first: the name and the value of a property that stays on the spoke do not matter.
func (p Property) Obstacle(reserved Reserved) Obstacle {
	switch {
	case p.SpokeOnly:
		return ObstacleSpokeOnly
	case kube.MatchesAny(reserved, p.Name):
		return ObstacleReserved
	case p.Value == "":
		return ObstacleEmpty
	case len(p.Value) > contract.MaxPropertyValueBytes:
		return ObstacleTooLong
	case !utf8.ValidString(p.Value):
		return ObstacleNotText
	default:
		return ObstacleNone
	}
}

// Strip is a cache transform that reduces a ClusterProperty to what Read reads. It
// truncates a value that is too long to a length that still is too long, because a
// CRD without a maximum admits values of a megabyte and more. Other objects pass
// unchanged.
func Strip(obj any) (any, error) {
	full, ok := obj.(*unstructured.Unstructured)
	if !ok || full.GroupVersionKind().Group != Group {
		return obj, nil
	}
	read := Read(full)
	if tooLong := contract.MaxPropertyValueBytes + 1; len(read.Value) > tooLong {
		// A copy, because a substring would keep the whole value in memory.
		read.Value = string([]byte(read.Value[:tooLong]))
	}
	kept := &unstructured.Unstructured{Object: map[string]any{
		"spec": map[string]any{"value": read.Value},
	}}
	kept.SetGroupVersionKind(full.GroupVersionKind())
	kept.SetName(full.GetName())
	kept.SetUID(full.GetUID())
	kept.SetResourceVersion(full.GetResourceVersion())
	if read.SpokeOnly {
		kept.SetLabels(map[string]string{contract.LabelSpokeOnly: ""})
	}
	return kept, nil
}
