package publish

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"open-cluster-management.io/cluster-inventory-addon/pkg/spoke/property"
)

func propertyObject(uid, value string, labels map[string]string) *unstructured.Unstructured {
	obj := property.New("v1beta1")
	obj.SetName("location")
	obj.SetUID("u1")
	obj.SetLabels(labels)
	obj.Object["spec"] = map[string]any{"value": value}
	if uid != "" {
		obj.SetUID("u2")
	}
	return obj
}

func TestPropertyChanged(t *testing.T) {
	before := propertyObject("", "eu", nil)
	for name, tc := range map[string]struct {
		after *unstructured.Unstructured
		want  bool
	}{
		"edited value passes": {propertyObject("", "us", nil), true},
		"recreated passes":    {propertyObject("u2", "eu", nil), true},
		"become spoke-only passes": {
			propertyObject("", "eu", map[string]string{"open-cluster-management.io/spoke-only": ""}), true,
		},
		"another label does not matter": {propertyObject("", "eu", map[string]string{"a": "b"}), false},
		"nothing changed":               {propertyObject("", "eu", nil), false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := propertyChanged(before, tc.after); got != tc.want {
				t.Errorf("passes = %v, want %v", got, tc.want)
			}
		})
	}
}
