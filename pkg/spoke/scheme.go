package spoke

import (
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	clusterv1alpha1 "open-cluster-management.io/api/cluster/v1alpha1"

	"open-cluster-management.io/cluster-inventory-addon/pkg/kube"
	"open-cluster-management.io/cluster-inventory-addon/pkg/spoke/property"
)

// newScheme returns the scheme of the typed kinds that the agent reads and writes,
// on spoke and hub.
func newScheme() *runtime.Scheme {
	scheme := runtime.NewScheme()
	utilruntime.Must(corev1.AddToScheme(scheme))
	utilruntime.Must(eventsv1.AddToScheme(scheme))
	utilruntime.Must(clusterv1alpha1.Install(scheme))
	utilruntime.Must(addonv1beta1.Install(scheme))
	return scheme
}

// newMapper returns a static mapping of all kinds that the agent uses. It needs no
// discovery, and a kind that is not served (yet) causes no error until it is used.
func newMapper() meta.RESTMapper {
	mapper := meta.NewDefaultRESTMapper(nil)
	mapper.Add(corev1.SchemeGroupVersion.WithKind("ConfigMap"), meta.RESTScopeNamespace)
	mapper.Add(eventsv1.SchemeGroupVersion.WithKind("Event"), meta.RESTScopeNamespace)
	mapper.Add(schema.GroupVersion(addonv1beta1.GroupVersion).WithKind("ManagedClusterAddOn"), meta.RESTScopeNamespace)
	mapper.Add(schema.GroupVersion(clusterv1alpha1.GroupVersion).WithKind("ClusterClaim"), meta.RESTScopeRoot)
	mapper.Add(kube.CRDKind, meta.RESTScopeRoot)
	for _, version := range property.Versions() {
		mapper.Add(property.GroupVersionKind(version), meta.RESTScopeRoot)
	}
	return mapper
}
