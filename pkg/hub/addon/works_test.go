package addon

import (
	"strings"
	"testing"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/runtime"
	workv1 "open-cluster-management.io/api/work/v1"
)

// TestBytesAreComparedAtOnce: the framework compares the manifests of a ManifestWork this
// way.
func TestBytesAreComparedAtOnce(t *testing.T) {
	work := func(raw string) *workv1.ManifestWork {
		w := &workv1.ManifestWork{}
		w.Spec.Workload.Manifests = []workv1.Manifest{{RawExtension: runtime.RawExtension{Raw: []byte(raw)}}}
		return w
	}
	if !apiequality.Semantic.DeepEqual(work("a"), work("a")) || apiequality.Semantic.DeepEqual(work("a"), work("b")) ||
		!apiequality.Semantic.DeepEqual(work(""), &workv1.ManifestWork{Spec: workv1.ManifestWorkSpec{
			Workload: workv1.ManifestsTemplate{Manifests: []workv1.Manifest{{}}},
		}}) {
		t.Error("works are compared wrongly")
	}
	long := work(strings.Repeat("x", 1<<16))
	other := long.DeepCopy()
	if steps := testing.AllocsPerRun(1, func() { apiequality.Semantic.DeepEqual(long, other) }); steps > 1000 {
		t.Errorf("comparing 64 KiB allocates %.0f times", steps)
	}
}
