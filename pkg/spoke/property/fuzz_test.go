package property

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Whatever a ClusterProperty holds, what the agent keeps of it is bounded and reads the same as
// the whole.
func FuzzClusterProperty(f *testing.F) {
	f.Add([]byte(`{"apiVersion":"about.k8s.io/v1","kind":"ClusterProperty","metadata":{"name":"a"},"spec":{"value":"eu"}}`))
	f.Add([]byte(`{"apiVersion":"about.k8s.io/v1beta1","kind":"ClusterProperty","metadata":{"labels":{"a":1}},"spec":"x"}`))
	f.Add([]byte(`{"apiVersion":"about.k8s.io/v1beta1","kind":"ClusterProperty",` +
		`"metadata":{"name":"a","labels":{"open-cluster-management.io/spoke-only":""}},"spec":{"value":1}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		given := &unstructured.Unstructured{}
		if given.UnmarshalJSON(data) != nil {
			return // the API server does not send it
		}
		read := Read(given)
		kept, err := Strip(given.DeepCopy())
		if err != nil {
			t.Fatal(err)
		}
		again := Read(kept.(*unstructured.Unstructured))
		if given.GroupVersionKind().Group == Group && len(again.Value) > 1025 {
			t.Errorf("a value of %d bytes is kept", len(again.Value))
		}
		if read.Obstacle(nil) != again.Obstacle(nil) && len(read.Value) <= 1024 {
			t.Errorf("obstacle %q became %q", read.Obstacle(nil), again.Obstacle(nil))
		}
		if diff := cmp.Diff(read, again); diff != "" && len(read.Value) <= 1024 {
			t.Errorf("(-whole +kept):\n%s", diff)
		}
	})
}
