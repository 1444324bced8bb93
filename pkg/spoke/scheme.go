package spoke

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	clusterv1alpha1 "open-cluster-management.io/api/cluster/v1alpha1"

	"open-cluster-management.io/cluster-inventory-addon/pkg/spoke/property"
)

// newScheme returns the typed kinds the agent reads and writes, on spoke and
// hub.
func newScheme() *runtime.Scheme {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{corev1.AddToScheme, clusterv1alpha1.Install, addonv1beta1.Install} {
		utilruntime.Must(add(scheme))
	}
	return scheme
}

// newMapper returns the resources of all kinds the agent uses. They are known,
// so nothing is asked of discovery for them, and a kind that is not served (yet) is no
// error until it is used.
func newMapper() meta.RESTMapper {
	mapper := meta.NewDefaultRESTMapper(nil)
	mapper.Add(corev1.SchemeGroupVersion.WithKind("ConfigMap"), meta.RESTScopeNamespace)
	mapper.Add(schema.GroupVersion(addonv1beta1.GroupVersion).WithKind("ManagedClusterAddOn"), meta.RESTScopeNamespace)
	mapper.Add(schema.GroupVersion(clusterv1alpha1.GroupVersion).WithKind("ClusterClaim"), meta.RESTScopeRoot)
	mapper.Add(property.NewCRD().GroupVersionKind(), meta.RESTScopeRoot)
	for _, version := range property.Versions() {
		mapper.Add(property.GroupVersionKind(version), meta.RESTScopeRoot)
	}
	return mapper
}
