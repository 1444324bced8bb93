package addon

import (
	"slices"
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	workv1 "open-cluster-management.io/api/work/v1"

	"open-cluster-management.io/cluster-inventory-addon/internal/manifesttest"
)

// Whatever a configuration says about proxies, it is used only where it is harmless on an agent's
// command line and in its environment.
func FuzzProxySettings(f *testing.F) {
	f.Add(".cluster.local,10.0.0.0/8, *", []byte("-----BEGIN CERTIFICATE-----"))
	f.Add("a b\n", []byte("-----BEGIN PRIVATE KEY-----\nhalf of one\n-----BEGIN CERTIFICATE-----\n-----END CERTIFICATE-----"))
	f.Fuzz(func(t *testing.T, noProxy string, ca []byte) {
		var wrong mistakes
		judgeNoProxy("noProxy", noProxy, &wrong)
		if len(wrong) == 0 && strings.ContainsAny(noProxy, "\n\x00$\"'") {
			t.Errorf("accepted: %q", noProxy)
		}
		bundle := judgeCA("caBundle", ca, &wrong)
		if strings.Contains(bundle, "PRIVATE KEY") {
			t.Errorf("accepted: %q", bundle)
		}
		if len(bundle) > len(ca)+1000 {
			t.Errorf("%d bytes became %d", len(ca), len(bundle))
		}
	})
}

// Whatever the annotation of a cluster says about registries, the image that comes of it is a
// name with the same tag and digest, or a mistake is told in a few words that quote nothing.
func FuzzRegistries(f *testing.F) {
	f.Add(`{"registries":[{"source":"quay.io/ocm","mirror":"mirror.example.com:5000/ocm"}]}`)
	f.Add(`{"registries":[{"mirror":"mirror.example.com/"},{"source":"quay.io","mirror":"https://user:password@m"}]}`)
	f.Add(`{"registries":[{"source":"quay.io","mirror":"a"}]}{"registries":[]}`)
	f.Add(`[`)
	const name, version = "quay.io/ocm/agent", ":v1@sha256:0123"
	f.Fuzz(func(t *testing.T, annotation string) {
		registries, wrong := judgeAnnotation(annotation)
		if len(wrong) > 0 && len(registries) > 0 {
			t.Errorf("%d registries are used in spite of %q", len(registries), wrong)
		}
		for _, mistake := range wrong {
			if len(mistake) > 300 || strings.Contains(mistake, "password") {
				t.Errorf("mistake %q", mistake)
			}
		}
		image := mirrored(name+version, registries)
		if got, kept := splitImage(image); kept != version || len(registries) > 0 && !repository.MatchString(got) {
			t.Errorf("image %q", image)
		}
		if len(registries) == 0 && image != name+version {
			t.Errorf("image %q of no registries", image)
		}
		if isFrom(image, []string{"quay.io/oc"}) {
			t.Errorf("image %q counts as one of quay.io/oc", image)
		}
	})
}

// Whatever a spoke makes of the ManifestWork in its namespace, a clean-up Job comes of it that
// runs the agent's program without privileges, or an error.
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
		work := trimmedWork(t, newWorkTrimmer(), theirs)
		held, err := deployed{work}.manifests(known, v.AddonUID)
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
