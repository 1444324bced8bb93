package manifests

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	embedded "open-cluster-management.io/cluster-inventory-addon/manifests"
)

func newTestRenderer(t *testing.T) *renderer {
	t.Helper()
	tmpl, err := newTemplate(embedded.Revision)
	if err != nil {
		t.Fatal(err)
	}
	r, err := newRenderer(tmpl, values())
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func mustRender(t *testing.T, r *renderer, v Values) []runtime.Object {
	t.Helper()
	objects, err := r.render(v.ClusterName, v.AddonUID)
	if err != nil {
		t.Fatal(err)
	}
	return objects
}

// The framework must get the template's content, for any cluster.
func TestRendererReturnsWhatTheTemplateRenders(t *testing.T) {
	r := newTestRenderer(t)
	for _, v := range []Values{
		values().of("c1", "4a7f9d3e-5c1b-4b8e-9d61-0f2c5a8b7e13"),
		values().of("c2", "4a7f9d3e-5c1b-4b8e-9d61-0f2c5a8b7e13"),
		values().of("c1", "another"),
		values().of(`"quoted" & <escaped>`, `\`),
	} {
		want := rendered(t, v)
		for n, object := range mustRender(t, r, v) {
			encoded, err := runtime.Encode(unstructured.UnstructuredJSONScheme, object)
			if err != nil {
				t.Fatal(err)
			}
			got := map[string]any{}
			if err := json.Unmarshal(encoded, &got); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(normal(t, want[n].Object), got); diff != "" {
				t.Fatalf("manifest %d of cluster %s (-want +got):\n%s", n, v.ClusterName, diff)
			}
			accessor, err := meta.Accessor(object)
			if err != nil {
				t.Fatal(err)
			}
			gotMeta := []any{object.GetObjectKind().GroupVersionKind(), accessor.GetName(), accessor.GetNamespace(),
				accessor.GetLabels(), accessor.GetAnnotations()}
			wantMeta := []any{want[n].GroupVersionKind(), want[n].GetName(), want[n].GetNamespace(),
				want[n].GetLabels(), want[n].GetAnnotations()}
			if diff := cmp.Diff(wantMeta, gotMeta); diff != "" {
				t.Fatalf("metadata of manifest %d (-want +got):\n%s", n, diff)
			}
		}
	}
}

// normal returns the object as it is after JSON, where all numbers are float64.
func normal(t *testing.T, object map[string]any) map[string]any {
	t.Helper()
	data, err := json.Marshal(object)
	if err != nil {
		t.Fatal(err)
	}
	var result map[string]any
	if err := json.Unmarshal(data, &result); err != nil {
		t.Fatal(err)
	}
	return result
}

func TestRendererSharesWhatAllClustersHave(t *testing.T) {
	r := newTestRenderer(t)
	one, another := mustRender(t, r, values().of("c1", "u1")), mustRender(t, r, values().of("c2", "u2"))
	var own []string
	for i := range one {
		if one[i] != another[i] {
			own = append(own, one[i].GetObjectKind().GroupVersionKind().Kind)
		}
	}
	if diff := cmp.Diff([]string{"Deployment", "Job"}, own); diff != "" {
		t.Errorf("rendered for each cluster (-want +got):\n%s", diff)
	}
}

func TestAManifestIsEncodedAsJSONOnly(t *testing.T) {
	object := mustRender(t, newTestRenderer(t), values())[0]
	other := runtime.Identifier("another")
	if err := object.(*manifest).CacheEncode(other, nil, &bytes.Buffer{}); err == nil {
		t.Error("encoded as something else")
	}
	if copied := object.DeepCopyObject(); !cmp.Equal(copied.(*manifest).encoded, object.(*manifest).encoded) {
		t.Error("a copy is not encoded the same")
	}
}

// Clusters with equivalent configurations share one rendering, however many configurations
// there are; unused ones are forgotten.
func TestRenderersAreSharedAndBounded(t *testing.T) {
	r, err := NewRenderers()
	if err != nil {
		t.Fatal(err)
	}
	renderer := func(change func(*Values)) *renderer {
		t.Helper()
		v := values().of("", "")
		change(&v)
		got, err := r.of(v)
		if err != nil {
			t.Fatal(err)
		}
		return got
	}
	plain := renderer(func(*Values) {})
	if renderer(func(*Values) {}) != plain {
		t.Error("that of all clusters was recreated")
	}
	if renderer(func(v *Values) { v.Manifests = embedded.Previous }) == plain {
		t.Error("two revisions of the manifests have the same")
	}
	one := renderer(func(v *Values) { v.NodeSelector = map[string]string{"a": "1", "b": "2"} })
	if one == plain || one != renderer(func(v *Values) { v.NodeSelector = map[string]string{"b": "2", "a": "1"} }) {
		t.Error("equal values have different renderers, or different ones the same")
	}
	for i := range keptRenderers + 1 {
		renderer(func(v *Values) { v.ClaimLimit = 100 + i })
	}
	if got := r.kept.Len(); got != keptRenderers {
		t.Errorf("%d are kept, want %d", got, keptRenderers)
	}
}
