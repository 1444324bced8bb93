// Package kinds lists the kinds that the manager and the kubectl plugin read and write. Their
// clients and caches need no discovery, so that the cache of a kind can be configured before the hub
// serves it. Packages whose clients do not come from the manager, such as addon, know their own kinds.
package kinds

import (
	"net/http"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
	clusterv1beta2 "open-cluster-management.io/api/cluster/v1beta2"
	workv1 "open-cluster-management.io/api/work/v1"
	authv1beta1 "open-cluster-management.io/managed-serviceaccount/apis/authentication/v1beta1"
	inventoryv1alpha1 "sigs.k8s.io/cluster-inventory-api/apis/v1alpha1"

	"open-cluster-management.io/cluster-inventory-addon/pkg/kube"
)

// NewScheme returns the Go types of the kinds.
func NewScheme() *runtime.Scheme {
	scheme := runtime.NewScheme()
	kinds := runtime.NewSchemeBuilder(
		clientgoscheme.AddToScheme,
		addonv1beta1.Install,
		clusterv1.Install,
		clusterv1beta1.Install,
		clusterv1beta2.Install,
		workv1.Install,
		authv1beta1.AddToScheme,
		inventoryv1alpha1.AddToScheme,
	)
	utilruntime.Must(kinds.AddToScheme(scheme))
	return scheme
}

var (
	namespaced = map[schema.GroupVersion][]string{
		corev1.SchemeGroupVersion:                        {"ConfigMap", "Secret", "Service"},
		appsv1.SchemeGroupVersion:                        {"Deployment"},
		coordinationv1.SchemeGroupVersion:                {"Lease"},
		eventsv1.SchemeGroupVersion:                      {"Event"},
		rbacv1.SchemeGroupVersion:                        {"RoleBinding"},
		schema.GroupVersion(addonv1beta1.GroupVersion):   {"ManagedClusterAddOn", "AddOnDeploymentConfig"},
		schema.GroupVersion(clusterv1beta1.GroupVersion): {"Placement", "PlacementDecision"},
		schema.GroupVersion(clusterv1beta2.GroupVersion): {"ManagedClusterSetBinding"},
		schema.GroupVersion(workv1.GroupVersion):         {"ManifestWork"},
		authv1beta1.GroupVersion:                         {"ManagedServiceAccount"},
		inventoryv1alpha1.GroupVersion:                   {"ClusterProfile", "PlacementDecision"},
	}
	clusterScoped = map[schema.GroupVersion][]string{
		corev1.SchemeGroupVersion: {"Namespace"},
		admissionregistrationv1.SchemeGroupVersion: {
			"ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding",
		},
		authorizationv1.SchemeGroupVersion:                               {"SelfSubjectAccessReview"},
		certificatesv1.SchemeGroupVersion:                                {"CertificateSigningRequest"},
		rbacv1.SchemeGroupVersion:                                        {"ClusterRole"},
		kube.CRDKind.GroupVersion():                                      {kube.CRDKind.Kind},
		schema.GroupVersion(addonv1beta1.GroupVersion):                   {"ClusterManagementAddOn"},
		schema.GroupVersion(clusterv1.GroupVersion):                      {"ManagedCluster"},
		schema.GroupVersion(clusterv1beta2.GroupVersion):                 {"ManagedClusterSet"},
		{Group: "proxy.open-cluster-management.io", Version: "v1alpha1"}: {"ManagedProxyConfiguration"},
	}
)

// NewMapper returns a static mapping of the kinds; it is a MapperProvider. A kind that is not
// served (yet) causes no error until it is used, and then the error is kube.IsUnserved.
func NewMapper(*rest.Config, *http.Client) (meta.RESTMapper, error) {
	mapper := meta.NewDefaultRESTMapper(nil)
	for version, kinds := range namespaced {
		for _, kind := range kinds {
			mapper.Add(version.WithKind(kind), meta.RESTScopeNamespace)
		}
	}
	for version, kinds := range clusterScoped {
		for _, kind := range kinds {
			mapper.Add(version.WithKind(kind), meta.RESTScopeRoot)
		}
	}
	return mapper, nil
}
