package access

import (
	"cmp"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const configurationCRD = "managedproxyconfigurations.proxy.open-cluster-management.io"

var (
	crdKind = schema.GroupVersionKind{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"}

	addonKind = schema.GroupVersionKind{Group: "addon.open-cluster-management.io", Version: "v1beta1", Kind: "ManagedClusterAddOn"}

	// configurationKind is read without its Go type: the module that has it requires
	// all that cluster-proxy is made of.
	configurationKind = schema.GroupVersionKind{Group: "proxy.open-cluster-management.io", Version: "v1alpha1", Kind: "ManagedProxyConfiguration"}
)

// foundOf is what a follower knows of one object, as T; an object being deleted
// is not there.
func foundOf[T any](f *follower, key string) found[T] {
	result := found[T]{unknown: f.unknown()}
	if result.unknown != "" {
		return result
	}
	if obj := f.get(key); obj != nil && obj.GetDeletionTimestamp() == nil {
		result.object, _ = any(obj).(*T)
	}
	return result
}

func configurationsOf(f *follower) []configuration {
	var list []configuration
	for _, obj := range f.objects() {
		object, ok := obj.(*unstructured.Unstructured)
		if !ok || object.GetDeletionTimestamp() != nil {
			continue
		}
		c := configuration{name: object.GetName()}
		c.namespace, _, _ = unstructured.NestedString(object.Object, "spec", "proxyServer", "namespace")
		userServer, _, _ := unstructured.NestedFieldNoCopy(object.Object, "spec", "userServer")
		c.userServer = userServer != nil
		list = append(list, c)
	}
	slices.SortFunc(list, func(a, b configuration) int { return cmp.Compare(a.name, b.name) })
	return list
}

func clientConfigsOf(f *follower, cluster string) found[[]clusterv1.ClientConfig] {
	managed := foundOf[clusterv1.ManagedCluster](f, cluster)
	result := found[[]clusterv1.ClientConfig]{unknown: managed.unknown}
	if managed.object != nil {
		result.object = &managed.object.Spec.ManagedClusterClientConfigs
	}
	return result
}

// trimmed keeps of metadata what identifies and ends an object. Annotations go
// first of all: one of kubectl's repeats what was applied, a Secret's data too.
func trimmed(full metav1.Object) metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Name:              full.GetName(),
		Namespace:         full.GetNamespace(),
		UID:               full.GetUID(),
		ResourceVersion:   full.GetResourceVersion(),
		DeletionTimestamp: full.GetDeletionTimestamp(),
	}
}

// trim keeps of every object followed only what is read. Of the user server's
// Secret these are its certificates: its private key stays in memory no longer
// than it takes to decode the API server's answer.
func trim(in any) (any, error) {
	switch obj := in.(type) {
	case *corev1.Secret:
		return &corev1.Secret{ObjectMeta: trimmed(obj), Data: map[string][]byte{
			corev1.TLSCertKey: onlyCertificates(obj.Data[corev1.TLSCertKey]),
			caKey:             onlyCertificates(obj.Data[caKey]),
		}}, nil
	case *corev1.ConfigMap:
		return &corev1.ConfigMap{ObjectMeta: trimmed(obj), Data: obj.Data}, nil
	case *corev1.Service:
		return &corev1.Service{ObjectMeta: trimmed(obj), Spec: corev1.ServiceSpec{Ports: obj.Spec.Ports}}, nil
	case *clusterv1.ManagedCluster:
		return &clusterv1.ManagedCluster{ObjectMeta: trimmed(obj), Spec: clusterv1.ManagedClusterSpec{ManagedClusterClientConfigs: obj.Spec.ManagedClusterClientConfigs}}, nil
	case *metav1.PartialObjectMetadata:
		return &metav1.PartialObjectMetadata{TypeMeta: obj.TypeMeta, ObjectMeta: trimmed(obj)}, nil
	case *unstructured.Unstructured:
		obj.SetManagedFields(nil)
		obj.SetAnnotations(nil)
		unstructured.RemoveNestedField(obj.Object, "status")
		return obj, nil
	default:
		return in, nil
	}
}

func partial(kind schema.GroupVersionKind) *metav1.PartialObjectMetadata {
	obj := &metav1.PartialObjectMetadata{}
	obj.SetGroupVersionKind(kind)
	return obj
}

func partialList(kind schema.GroupVersionKind) *metav1.PartialObjectMetadataList {
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
	return list
}

func whole(kind schema.GroupVersionKind) (client.Object, client.ObjectList) {
	obj, list := &unstructured.Unstructured{}, &unstructured.UnstructuredList{}
	obj.SetGroupVersionKind(kind)
	list.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
	return obj, list
}
