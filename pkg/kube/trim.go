package kube

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// TrimMeta returns the metadata that identifies, selects and ends an object: without
// annotations, finalizers, owners and managed fields. It serves transforms of caches.
func TrimMeta(full metav1.ObjectMeta) metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Name:              full.Name,
		Namespace:         full.Namespace,
		UID:               full.UID,
		ResourceVersion:   full.ResourceVersion,
		Generation:        full.Generation,
		CreationTimestamp: full.CreationTimestamp,
		DeletionTimestamp: full.DeletionTimestamp,
		Labels:            full.Labels,
	}
}
