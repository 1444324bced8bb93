package conformance

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	inventoryv1alpha1 "sigs.k8s.io/cluster-inventory-api/apis/v1alpha1"
)

const resource = "clusterprofiles"

// Observe reads the state of a namespace. It reads profiles in v1alpha2 where that is
// served, and otherwise in v1alpha1. It is an error if neither is served, or if profiles
// may not be listed.
func Observe(ctx context.Context, cfg *rest.Config, namespace string) (Hub, error) {
	hub := Hub{Served: map[string]bool{}}
	served, err := discovery.NewDiscoveryClientForConfig(cfg)
	if err != nil {
		return hub, err
	}
	profiles, err := dynamic.NewForConfig(cfg)
	if err != nil {
		return hub, err
	}
	read := ""
	for _, version := range []string{inventoryv1alpha1.GroupVersion.Version, strictVersion} {
		list, err := served.ServerResourcesForGroupVersion(inventoryv1alpha1.GroupVersion.Group + "/" + version)
		if apierrors.IsNotFound(err) {
			continue
		}
		if err != nil {
			return hub, fmt.Errorf("discovering the served versions of ClusterProfile: %w", err)
		}
		for _, kind := range list.APIResources {
			if kind.Name == resource {
				hub.Served[version], read = kind.Namespaced, version
			}
		}
	}
	if read == "" {
		return hub, fmt.Errorf("the hub %s serves no ClusterProfiles", cfg.Host)
	}
	kind := schema.GroupVersionResource{Group: inventoryv1alpha1.GroupVersion.Group, Version: read, Resource: resource}
	list, err := profiles.Resource(kind).Namespace(namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return hub, fmt.Errorf("listing the ClusterProfiles of namespace %s: %w", namespace, err)
	}
	hub.Profiles = make([]inventoryv1alpha1.ClusterProfile, len(list.Items))
	for i := range list.Items {
		// v1alpha2 has no field that v1alpha1 lacks.
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(list.Items[i].Object, &hub.Profiles[i]); err != nil {
			return hub, fmt.Errorf("reading ClusterProfile %s: %w", list.Items[i].GetName(), err)
		}
	}
	return hub, nil
}
