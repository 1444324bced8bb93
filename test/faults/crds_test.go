package faults

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

func TestAddVersion(t *testing.T) {
	one := func(name string, isStored bool) apiextensionsv1.CustomResourceDefinitionVersion {
		return apiextensionsv1.CustomResourceDefinitionVersion{
			Name: name, Served: true, Storage: isStored,
			Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{
				Properties: map[string]apiextensionsv1.JSONSchemaProps{"spec": {Type: "object"}},
			}},
		}
	}
	const stored = true
	tests := map[string]struct {
		have      []apiextensionsv1.CustomResourceDefinitionVersion
		withField bool
		want      []string // name, whether objects are stored in it, and the number of fields
	}{
		"one more version": {
			have: []apiextensionsv1.CustomResourceDefinitionVersion{one("v1alpha1", stored)},
			want: []string{"v1alpha1 false 1", "v1alpha2 true 1"},
		},
		"and a field": {
			have:      []apiextensionsv1.CustomResourceDefinitionVersion{one("v1alpha1", stored)},
			withField: true, want: []string{"v1alpha1 false 2", "v1alpha2 true 2"},
		},
		"the name is taken": {
			have: []apiextensionsv1.CustomResourceDefinitionVersion{one("v1alpha2", !stored), one("v1alpha1", stored)},
			want: []string{"v1alpha2 false 1", "v1alpha1 false 1", "v1beta1 true 1"},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			crd := &apiextensionsv1.CustomResourceDefinition{}
			crd.Spec.Versions = test.have
			addVersion(crd, test.withField)
			var got []string
			for _, v := range crd.Spec.Versions {
				got = append(got, fmt.Sprintf("%s %t %d", v.Name, v.Storage, len(v.Schema.OpenAPIV3Schema.Properties)))
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestCRDsAreUpdatedInStoriesWithTheirObjects(t *testing.T) {
	ref := reference{after: map[string]string{profiles + " team-a/c1": "", secrets + " team-a/c1-reader": ""}}
	var got []string
	for _, p := range plansOf(story{name: "edit"}, ref) {
		if slices.Contains(ofUpdates, p.fault.Kind) {
			got = append(got, p.String())
			if parsed, err := parsePlan(p.String()); err != nil || parsed != p {
				t.Errorf("%s is read as %s, %v", p, parsed, err)
			}
		}
	}
	want := []string{
		"edit new-version clusterprofiles.multicluster.x-k8s.io", "edit new-field clusterprofiles.multicluster.x-k8s.io",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}
