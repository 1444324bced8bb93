package charts

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"

	"helm.sh/helm/v3/pkg/chartutil"

	"open-cluster-management.io/cluster-inventory-addon/internal/apitest"
	"open-cluster-management.io/cluster-inventory-addon/internal/apitest/hubtest"
)

// Catalogues of charts show what is in Chart.yaml, and Helm refuses hubs that are too old.
func TestMetadata(t *testing.T) {
	metadata := hubtest.Load(t).Metadata
	if metadata.Icon == "" || len(metadata.Sources) == 0 || len(metadata.Maintainers) == 0 || metadata.Home == "" {
		t.Errorf("incomplete: %+v", metadata)
	}
	if metadata.AppVersion != "v"+metadata.Version {
		t.Errorf("the chart is %s and the app is %s", metadata.Version, metadata.AppVersion)
	}
	for version, want := range map[string]bool{
		"v1.29.14": false, "v1.30.0": true, "v1.35.4": true, "v1.33.1-eks-abc": true, "v1.34.0+k3s1": true,
	} {
		if got := chartutil.IsCompatibleRange(metadata.KubeVersion, version); got != want {
			t.Errorf("hub %s: accepted is %t", version, got)
		}
	}
}

// The image in the catalogue is the one that is installed by default.
func TestImagesInTheCatalogue(t *testing.T) {
	c := hubtest.Load(t)
	var images []struct {
		Name, Image string
		Platforms   []string
	}
	apitest.Must(t, yaml.UnmarshalStrict([]byte(c.Metadata.Annotations["artifacthub.io/images"]), &images))
	repository := c.Values["image"].(map[string]any)["repository"].(string)
	if len(images) != 1 || images[0].Image != repository+":"+c.Metadata.AppVersion ||
		!slices.Equal(images[0].Platforms, []string{"linux/amd64", "linux/arm64"}) {
		t.Errorf("images: %+v", images)
	}
}

// The definitions in the catalogue are those that the chart brings.
func TestDefinitionsInTheCatalogue(t *testing.T) {
	files, err := filepath.Glob(chartDir + "/crds/*.yaml")
	apitest.Must(t, err)
	var want []string
	for _, file := range files {
		content, err := os.ReadFile(file)
		apitest.Must(t, err)
		crd := &apiextensionsv1.CustomResourceDefinition{}
		apitest.Must(t, yaml.Unmarshal(content, crd))
		for _, version := range crd.Spec.Versions {
			if version.Served {
				want = append(want, strings.Join([]string{crd.Spec.Names.Kind, version.Name, crd.Name}, " "))
			}
		}
	}
	var crds []struct{ Kind, Version, Name, DisplayName, Description string }
	annotation := hubtest.Load(t).Metadata.Annotations["artifacthub.io/crds"]
	apitest.Must(t, yaml.UnmarshalStrict([]byte(annotation), &crds))
	var got []string
	for _, crd := range crds {
		got = append(got, strings.Join([]string{crd.Kind, crd.Version, crd.Name}, " "))
		if crd.DisplayName == "" || crd.Description == "" {
			t.Errorf("%s lacks what Artifact Hub shows", crd.Name)
		}
	}
	if diff := cmp.Diff(slices.Sorted(slices.Values(want)), slices.Sorted(slices.Values(got))); diff != "" {
		t.Errorf("definitions (-want +got):\n%s", diff)
	}
}
