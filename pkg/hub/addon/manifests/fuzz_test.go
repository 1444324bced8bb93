package manifests

import (
	"slices"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	workv1 "open-cluster-management.io/api/work/v1"

	"open-cluster-management.io/cluster-inventory-addon/internal/manifesttest"
)

// Any ManifestWork that a spoke writes results in a clean-up Job that runs the agent's program
// without privileges, or an error.
func FuzzHeldWork(f *testing.F) {
	v := configured()
	known, err := newTemplates()
	if err != nil {
		f.Fatal(err)
	}
	rendered, err := known.of(v).render(v)
	if err != nil {
		f.Fatal(err)
	}
	for _, object := range rendered {
		if kind := object.GetKind(); kind != "Deployment" && kind != "Namespace" {
			continue
		}
		raw, err := object.MarshalJSON()
		if err != nil {
			f.Fatal(err)
		}
		f.Add(raw)
	}
	f.Add([]byte(`{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"cluster-inventory-agent",` +
		`"annotations":{"inventory.open-cluster-management.io/cleanup-resources":"[","inventory.open-cluster-management.io/manifests":"9"}},` +
		`"spec":{"template":{"spec":{"containers":[{"args":["-v=x"],"env":[{"name":"HTTP_PROXY","value":"$$("}]}]}}}}`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		theirs := &workv1.ManifestWork{ObjectMeta: metav1.ObjectMeta{
			Namespace: v.ClusterName, Name: "addon-cluster-inventory-deploy-0",
		}}
		theirs.Spec.Workload.Manifests = []workv1.Manifest{{RawExtension: runtime.RawExtension{Raw: raw}}}
		work := trimmedWork(t, NewWorkTrimmer(), theirs)
		held, err := (&Renderers{templates: known}).Held(deployedBy(v, work), v.AddonUID)
		if err != nil || len(held) == 0 {
			return
		}
		jobs := 0
		for _, object := range held {
			made, ok := object.(*unstructured.Unstructured)
			if !ok {
				continue // the spoke's own
			}
			jobs++
			job := manifesttest.Find[batchv1.Job](t, []*unstructured.Unstructured{made}, "Job", "cluster-inventory-cleanup")
			pod := job.Spec.Template.Spec
			if len(pod.Containers) != 1 || pod.HostNetwork || len(pod.Volumes) > 0 || !*pod.SecurityContext.RunAsNonRoot {
				t.Fatalf("pod %+v", pod)
			}
			container := pod.Containers[0]
			if !slices.Equal(container.Command, []string{"/agent"}) || *container.SecurityContext.AllowPrivilegeEscalation ||
				container.SecurityContext.Privileged != nil {
				t.Errorf("container %+v", container)
			}
		}
		if jobs != 1 {
			t.Errorf("%d Jobs among %d manifests", jobs, len(held))
		}
	})
}
