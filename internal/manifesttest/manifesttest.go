// Package manifesttest reads rendered manifests, for tests and for tools that check them, and
// checks the rules for every Pod of the addon, on hub and spoke alike.
package manifesttest

import (
	"errors"
	"io"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
)

// Decode reads the objects of YAML documents. Documents may be empty.
func Decode(from io.Reader) ([]*unstructured.Unstructured, error) {
	var objects []*unstructured.Unstructured
	decoder := utilyaml.NewYAMLOrJSONDecoder(from, 4096)
	for {
		object := &unstructured.Unstructured{}
		err := decoder.Decode(&object.Object)
		if errors.Is(err, io.EOF) {
			return objects, nil
		}
		if err != nil {
			return nil, err
		}
		if len(object.Object) > 0 {
			objects = append(objects, object)
		}
	}
}

// Identify names an object by kind, namespace and name.
func Identify(object *unstructured.Unstructured) string {
	return object.GetKind() + " " + object.GetNamespace() + "/" + object.GetName()
}

// Find decodes the one object of that kind and name, and rejects fields that its
// API does not know.
func Find[T any](tb testing.TB, objects []*unstructured.Unstructured, kind, name string) *T {
	tb.Helper()
	for _, object := range objects {
		if object.GetKind() == kind && object.GetName() == name {
			typed := new(T)
			err := runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(object.Object, typed, true)
			if err != nil {
				tb.Fatalf("%s: %v", Identify(object), err)
			}
			return typed
		}
	}
	tb.Fatalf("no %s %s", kind, name)
	return nil
}

// CheckNamesNoUser checks that a Pod leaves its user and groups to the image, or to the
// cluster: OpenShift's restricted-v2 refuses those that are not the namespace's.
func CheckNamesNoUser(t *testing.T, pod corev1.PodSpec) {
	t.Helper()
	security := pod.SecurityContext
	if security.RunAsUser != nil || security.RunAsGroup != nil || security.FSGroup != nil ||
		len(security.SupplementalGroups) > 0 {
		t.Errorf("pod security context %+v", security)
	}
	for _, container := range pod.Containers {
		if security := container.SecurityContext; security.RunAsUser != nil || security.RunAsGroup != nil {
			t.Errorf("container security context %+v", security)
		}
	}
}

// CheckRestricted checks that a Pod meets the Pod Security Standard "restricted", can write to
// no file, and requests and limits its resources.
func CheckRestricted(t *testing.T, pod corev1.PodSpec) {
	t.Helper()
	profile := pod.SecurityContext.SeccompProfile.Type
	if !*pod.SecurityContext.RunAsNonRoot || profile != corev1.SeccompProfileTypeRuntimeDefault {
		t.Errorf("pod security context %+v", pod.SecurityContext)
	}
	if pod.HostNetwork || pod.HostPID || pod.HostIPC {
		t.Error("uses the host's namespaces")
	}
	for _, volume := range pod.Volumes {
		if volume.Secret == nil && volume.ConfigMap == nil {
			t.Errorf("volume %s is neither a Secret nor a ConfigMap", volume.Name)
		}
	}
	for _, container := range pod.Containers {
		for _, mount := range container.VolumeMounts {
			if !mount.ReadOnly {
				t.Errorf("%s can be written to", mount.MountPath)
			}
		}
		security := container.SecurityContext
		if *security.AllowPrivilegeEscalation || !*security.ReadOnlyRootFilesystem ||
			!slices.Equal(security.Capabilities.Drop, []corev1.Capability{"ALL"}) {
			t.Errorf("container security context %+v", security)
		}
		if container.Resources.Limits.Memory().IsZero() || container.Resources.Requests.Cpu().IsZero() {
			t.Errorf("resources %+v", container.Resources)
		}
	}
}
