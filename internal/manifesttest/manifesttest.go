// Package manifesttest reads rendered manifests in tests and holds them to what
// every Pod of the addon keeps to, on hub and spoke alike.
package manifesttest

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

// Identify names an object by kind, namespace and name.
func Identify(object *unstructured.Unstructured) string {
	return object.GetKind() + " " + object.GetNamespace() + "/" + object.GetName()
}

// Find decodes the one object of that kind and name, and fails on a field that
// its API does not know.
func Find[T any](t *testing.T, objects []*unstructured.Unstructured, kind, name string) *T {
	t.Helper()
	for _, object := range objects {
		if object.GetKind() == kind && object.GetName() == name {
			typed := new(T)
			if err := runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(object.Object, typed, true); err != nil {
				t.Fatalf("%s: %v", Identify(object), err)
			}
			return typed
		}
	}
	t.Fatalf("no %s %s", kind, name)
	return nil
}

// CheckRestricted holds a Pod to the Pod Security Standard "restricted", a
// read-only root file system, and resources that are asked for and limited.
func CheckRestricted(t *testing.T, pod corev1.PodSpec) {
	t.Helper()
	if !*pod.SecurityContext.RunAsNonRoot || pod.SecurityContext.SeccompProfile.Type != corev1.SeccompProfileTypeRuntimeDefault {
		t.Errorf("pod security context %+v", pod.SecurityContext)
	}
	if pod.HostNetwork || pod.HostPID || pod.HostIPC {
		t.Error("uses the host's namespaces")
	}
	for _, container := range pod.Containers {
		security := container.SecurityContext
		if *security.AllowPrivilegeEscalation || !*security.ReadOnlyRootFilesystem || !slices.Equal(security.Capabilities.Drop, []corev1.Capability{"ALL"}) {
			t.Errorf("container security context %+v", security)
		}
		if container.Resources.Limits.Memory().IsZero() || container.Resources.Requests.Cpu().IsZero() {
			t.Errorf("resources %+v", container.Resources)
		}
	}
}
