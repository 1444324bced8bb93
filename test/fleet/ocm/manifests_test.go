package ocm

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

func TestRender(t *testing.T) {
	for name, test := range map[string]struct {
		text string
		want []map[string]any
		bad  bool
	}{
		"a gate that is off leaves its rules out": {
			text: "kind: ClusterRole\nrules:\n- {verbs: [get]}\n{{if .ClusterProfileEnabled}}\n- {verbs: [delete]}\n{{end}}",
			want: []map[string]any{{"kind": "ClusterRole", "rules": []any{map[string]any{"verbs": []any{"get"}}}}},
		},
		"several documents": {
			text: "kind: A\n---\n---\nkind: {{ .ClusterManagerName }}\n",
			want: []map[string]any{{"kind": "A"}, {"kind": "cluster-manager"}},
		},
		"annotations that the operator would remove are not there": {
			text: "metadata: {annotations: {keep: \"\", \"drop-\": \"\"}}",
			want: []map[string]any{{"metadata": map[string]any{"annotations": map[string]any{"keep": ""}}}},
		},
		"an unknown value is an error": {text: "kind: {{ .NewGateEnabled }}", bad: true},
		"no YAML":                      {text: "kind: [", bad: true},
	} {
		t.Run(name, func(t *testing.T) {
			objects, err := render(test.text, hubValues([]byte("authority")))
			if (err != nil) != test.bad {
				t.Fatal(err)
			}
			var got []map[string]any
			for _, o := range objects {
				got = append(got, o.Object)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestPointToURLKeepsThePathAndTheAuthority(t *testing.T) {
	crd := &unstructured.Unstructured{Object: map[string]any{"clientConfig": map[string]any{
		"caBundle": "YQ==",
		"service":  map[string]any{"name": "webhook", "path": "/convert", "port": int64(9443)},
	}}}
	if err := pointToURL(crd, "https://127.0.0.1:15000", "clientConfig"); err != nil {
		t.Fatal(err)
	}
	want := map[string]any{"clientConfig": map[string]any{"caBundle": "YQ==", "url": "https://127.0.0.1:15000/convert"}}
	if diff := cmp.Diff(want, crd.Object); diff != "" {
		t.Error(diff)
	}
	other := &unstructured.Unstructured{Object: map[string]any{"kind": "A"}}
	if err := pointToURL(other, "https://127.0.0.1:15000", "clientConfig"); err != nil || len(other.Object) != 1 {
		t.Errorf("an object without a webhook: %v, %v", other.Object, err)
	}
}
