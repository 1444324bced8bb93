package addontest

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	workv1 "open-cluster-management.io/api/work/v1"

	"open-cluster-management.io/cluster-inventory-addon/internal/apitest"
)

// Work returns a cluster's ManifestWork with these manifests as the API server returns it.
func Work(t testing.TB, cluster, addonUID string, manifests []runtime.Object) *workv1.ManifestWork {
	t.Helper()
	work := &workv1.ManifestWork{ObjectMeta: metav1.ObjectMeta{
		Namespace: cluster, Name: "addon-cluster-inventory-deploy-0", ResourceVersion: "1", Generation: 1,
		Finalizers:      []string{"f"},
		OwnerReferences: []metav1.OwnerReference{{UID: types.UID(addonUID)}},
		ManagedFields:   []metav1.ManagedFieldsEntry{{Manager: "m"}},
	}}
	for _, object := range manifests {
		raw, err := runtime.Encode(unstructured.UnstructuredJSONScheme, object)
		apitest.Must(t, err)
		copied := append([]byte(nil), raw...)
		work.Spec.Workload.Manifests = append(work.Spec.Workload.Manifests,
			workv1.Manifest{RawExtension: runtime.RawExtension{Raw: copied}})
	}
	return work
}

// Transformed returns the work as an informer caches it that trims it, perhaps twice.
func Transformed(trim func(*workv1.ManifestWork) *workv1.ManifestWork, work *workv1.ManifestWork) *workv1.ManifestWork {
	return trim(trim(work))
}

// OfRevision returns a work with the agent of another revision of the manifests.
func OfRevision(t testing.TB, work *workv1.ManifestWork, revision string) *workv1.ManifestWork {
	t.Helper()
	work = work.DeepCopy()
	for i := range work.Spec.Workload.Manifests {
		manifest := &work.Spec.Workload.Manifests[i]
		object := &unstructured.Unstructured{}
		apitest.Must(t, object.UnmarshalJSON(manifest.Raw))
		if object.GetKind() != "Deployment" {
			continue
		}
		annotations := object.GetAnnotations()
		if annotations["inventory.open-cluster-management.io/manifests"] == "" {
			t.Fatalf("the agent notes no revision: %v", annotations)
		}
		annotations["inventory.open-cluster-management.io/manifests"] = revision
		object.SetAnnotations(annotations)
		var err error
		manifest.Raw, err = object.MarshalJSON()
		apitest.Must(t, err)
	}
	return work
}
