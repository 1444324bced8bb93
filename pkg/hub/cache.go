package hub

import (
	"maps"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	toolscache "k8s.io/client-go/tools/cache"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
	inventoryv1alpha1 "sigs.k8s.io/cluster-inventory-api/apis/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/addon"
	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/addon/stored"
	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/decisions"
	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/inventory"
	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/selection"
	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/upstream"
	"open-cluster-management.io/cluster-inventory-addon/pkg/kube"
)

// cacheOptions returns the options of the cache that all controllers share. Each concern
// decides which part of an object is kept; here, values that many objects repeat are stored
// only once.
func cacheOptions(opts *Options) cache.Options {
	byObject := map[client.Object]cache.ByObject{}
	maps.Copy(byObject, selection.CacheOptions())
	maps.Copy(byObject, inventory.CacheOptions(opts.Limits))
	maps.Copy(byObject, upstream.CacheOptions(opts.UpstreamRegistrationClusterRole))
	maps.Copy(byObject, addon.CacheOptions())
	maps.Copy(byObject, decisions.CacheOptions())
	shared := sharing{&interner{}}
	for kind, options := range byObject {
		options.Transform = shared.after(options.Transform)
		byObject[kind] = options
	}
	return cache.Options{
		// Reading a kind that is not watched would start a watch of all its objects.
		ReaderFailOnMissingInformer: true,
		DefaultTransform:            shared.after(cache.TransformStripManagedFields()),
		ByObject:                    byObject,
	}
}

// listTrimmed makes the informers of a cache list certificate requests page by page: any
// spoke can create them in bulk, and large.
func listTrimmed(next stored.NewInformer, byObject map[client.Object]cache.ByObject) stored.NewInformer {
	var trim toolscache.TransformFunc
	for kind, options := range byObject {
		if _, ok := kind.(*certificatesv1.CertificateSigningRequest); ok {
			trim = options.Transform
		}
	}
	return func(
		served toolscache.ListerWatcher, kind runtime.Object, resync time.Duration, indexers toolscache.Indexers,
	) toolscache.SharedIndexInformer {
		if _, ok := kind.(*certificatesv1.CertificateSigningRequest); ok {
			served = listInPages(served, kube.LargeObjectsPerPage, trim)
		}
		return next(served, kind, resync, indexers)
	}
}

// sharing makes the objects of a cache share repeated values: names of clusters and
// properties, values of labels and properties, conditions' texts, CA certificates.
type sharing struct{ *interner }

// after returns a transform that applies another one and then shares.
func (s sharing) after(transform toolscache.TransformFunc) toolscache.TransformFunc {
	return func(in any) (any, error) {
		out, err := transform(in)
		if obj, ok := out.(client.Object); ok && err == nil {
			s.share(obj)
		}
		return out, err
	}
}

// share replaces the strings and certificates of an object that a cache is about to store.
func (s sharing) share(obj client.Object) {
	obj.SetName(s.String(obj.GetName()))
	obj.SetNamespace(s.String(obj.GetNamespace()))
	obj.SetLabels(s.Map(obj.GetLabels()))
	obj.SetAnnotations(s.Map(obj.GetAnnotations()))
	switch obj := obj.(type) {
	case *metav1.PartialObjectMetadata:
		s.strings(&obj.Kind, &obj.APIVersion)
	case *clusterv1.ManagedCluster:
		s.strings(&obj.Kind, &obj.APIVersion)
		s.conditions(obj.Status.Conditions)
		s.strings(&obj.Status.Version.Kubernetes)
		for i := range obj.Status.ClusterClaims {
			s.strings(&obj.Status.ClusterClaims[i].Name, &obj.Status.ClusterClaims[i].Value)
		}
	case *addonv1beta1.ManagedClusterAddOn:
		s.strings(&obj.Kind, &obj.APIVersion)
		s.conditions(obj.Status.Conditions)
	case *clusterv1beta1.PlacementDecision:
		for i := range obj.Status.Decisions {
			s.strings(&obj.Status.Decisions[i].ClusterName)
		}
	case *inventoryv1alpha1.ClusterProfile:
		s.profile(obj)
	case *inventoryv1alpha1.PlacementDecision:
		s.strings(&obj.Kind, &obj.APIVersion, &obj.SchedulerName)
		for i := range obj.Decisions {
			s.strings(&obj.Decisions[i].ClusterProfileRef.Name)
		}
	}
}

func (s sharing) profile(profile *inventoryv1alpha1.ClusterProfile) {
	s.strings(&profile.Kind, &profile.APIVersion, &profile.Spec.DisplayName, &profile.Spec.ClusterManager.Name,
		&profile.Status.Version.Kubernetes)
	s.conditions(profile.Status.Conditions)
	for i := range profile.Status.Properties {
		s.strings(&profile.Status.Properties[i].Name, &profile.Status.Properties[i].Value)
	}
	for i := range profile.Status.AccessProviders {
		provider := &profile.Status.AccessProviders[i]
		s.strings(&provider.Name, &provider.Cluster.Server)
		provider.Cluster.CertificateAuthorityData = s.Bytes(provider.Cluster.CertificateAuthorityData)
		for n := range provider.Cluster.Extensions {
			s.strings(&provider.Cluster.Extensions[n].Name)
		}
	}
}

func (s sharing) conditions(list []metav1.Condition) {
	for i := range list {
		s.strings(&list[i].Type, &list[i].Reason, &list[i].Message)
		list[i].Status = metav1.ConditionStatus(s.String(string(list[i].Status)))
	}
}

func (s sharing) strings(all ...*string) {
	for _, one := range all {
		*one = s.String(*one)
	}
}
