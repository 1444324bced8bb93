package spoketest

import (
	"bytes"
	"slices"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"open-cluster-management.io/cluster-inventory-addon/internal/apitest"
	"open-cluster-management.io/cluster-inventory-addon/manifests"
	"open-cluster-management.io/cluster-inventory-addon/pkg/spoke/property"
)

const crdFile = "spoke/10-clusterproperty-crd.yaml"

// CRD returns the shipped CRD of ClusterProperty, changed to serve only the given
// versions and to store the last of them. With both versions, v1beta1 first, it is
// the shipped one.
func CRD(tb testing.TB, served ...string) *apiextensionsv1.CustomResourceDefinition {
	tb.Helper()
	shipped, err := Shipped()()
	apitest.Must(tb, err)
	crd := shipped[0]
	type crdVersion = apiextensionsv1.CustomResourceDefinitionVersion
	crd.Spec.Versions = slices.DeleteFunc(crd.Spec.Versions, func(version crdVersion) bool {
		return !slices.Contains(served, version.Name)
	})
	for i := range crd.Spec.Versions {
		crd.Spec.Versions[i].Storage = crd.Spec.Versions[i].Name == served[len(served)-1]
	}
	if len(crd.Spec.Versions) != len(served) {
		tb.Fatalf("the shipped CRD lacks some of the versions %v", served)
	}
	return crd
}

// Shipped returns the shipped CRD of ClusterProperty.
func Shipped() apitest.CRDs {
	return func() ([]*apiextensionsv1.CustomResourceDefinition, error) {
		text, err := manifests.Spoke.ReadFile(crdFile)
		if err != nil {
			return nil, err
		}
		return apitest.YAML(text)()
	}
}

// Property returns a ClusterProperty of an API version.
func Property(version, name, value string, labels map[string]string) *unstructured.Unstructured {
	obj := property.New(version)
	obj.SetName(name)
	obj.SetLabels(labels)
	obj.Object["spec"] = map[string]any{"value": value}
	return obj
}

// manifest returns the objects of one file of the shipped manifests.
func manifest(tb testing.TB, file string) []*unstructured.Unstructured {
	tb.Helper()
	text, err := manifests.Spoke.ReadFile("spoke/" + file)
	apitest.Must(tb, err)
	var objects []*unstructured.Unstructured
	for _, document := range bytes.Split(text, []byte("\n---\n")) {
		obj := &unstructured.Unstructured{}
		apitest.Must(tb, yaml.Unmarshal(document, &obj.Object))
		objects = append(objects, obj)
	}
	return objects
}

// Grant creates the RBAC objects of a shipped manifest, and the file's other objects, for
// service accounts in the given namespace. Cluster-scoped objects get unique names. Clients
// of the user system:serviceaccount:<namespace>:<account> then have these rights.
func Grant(w *apitest.World, file, namespace string) {
	w.T.Helper()
	for _, obj := range manifest(w.T, file) {
		switch obj.GetKind() {
		case "ConfigMap", "ServiceAccount", "Role", "RoleBinding":
			obj.SetNamespace(namespace)
		case "ClusterRole", "ClusterRoleBinding":
			obj.SetName(obj.GetName() + ":" + namespace)
			if name, ok, _ := unstructured.NestedString(obj.Object, "roleRef", "name"); ok {
				apitest.Must(w.T, unstructured.SetNestedField(obj.Object, name+":"+namespace, "roleRef", "name"))
			}
			w.CleanUp(obj)
		default:
			w.T.Fatalf("%s: unexpected kind %s", file, obj.GetKind())
		}
		if subjects, ok, _ := unstructured.NestedSlice(obj.Object, "subjects"); ok {
			for _, subject := range subjects {
				subject.(map[string]any)["namespace"] = namespace
			}
			apitest.Must(w.T, unstructured.SetNestedSlice(obj.Object, subjects, "subjects"))
		}
		w.MustCreate(obj)
	}
}
