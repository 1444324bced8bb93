package access

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	clusterv1 "open-cluster-management.io/api/cluster/v1"

	"open-cluster-management.io/cluster-inventory-addon/pkg/kube"
)

// trim keeps only the fields of followed objects that are read. Of the user server's Secret
// these are its certificates: the private key stays in memory no longer than it takes to
// decode the API server's response. Annotations in particular are dropped: one of kubectl's
// repeats the applied object, including a Secret's data.
func trim(in any) (any, error) {
	switch obj := in.(type) {
	case *corev1.Secret:
		return &corev1.Secret{ObjectMeta: kube.TrimMeta(obj.ObjectMeta), Data: map[string][]byte{
			corev1.TLSCertKey: onlyCertificates(obj.Data[corev1.TLSCertKey]),
			caKey:             onlyCertificates(obj.Data[caKey]),
		}}, nil
	case *corev1.ConfigMap:
		return &corev1.ConfigMap{ObjectMeta: kube.TrimMeta(obj.ObjectMeta), Data: obj.Data}, nil
	case *corev1.Service:
		ports := corev1.ServiceSpec{Ports: obj.Spec.Ports}
		return &corev1.Service{ObjectMeta: kube.TrimMeta(obj.ObjectMeta), Spec: ports}, nil
	case *clusterv1.ManagedCluster:
		return &clusterv1.ManagedCluster{ObjectMeta: kube.TrimMeta(obj.ObjectMeta), Spec: clusterv1.ManagedClusterSpec{
			ManagedClusterClientConfigs: obj.Spec.ManagedClusterClientConfigs,
		}}, nil
	case *metav1.PartialObjectMetadata:
		return &metav1.PartialObjectMetadata{TypeMeta: obj.TypeMeta, ObjectMeta: kube.TrimMeta(obj.ObjectMeta)}, nil
	case *unstructured.Unstructured:
		obj.SetManagedFields(nil)
		obj.SetAnnotations(nil)
		unstructured.RemoveNestedField(obj.Object, "status")
		return obj, nil
	default:
		return in, nil
	}
}
