package kube

import (
	"slices"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	toolscache "k8s.io/client-go/tools/cache"
)

// Trimmed returns the transform of a cache that trims objects of one type and keeps others.
func Trimmed[T any](trim func(T) T) toolscache.TransformFunc {
	return func(in any) (any, error) {
		if obj, ok := in.(T); ok {
			return trim(obj), nil
		}
		return in, nil
	}
}

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

// OnlyLabels returns the labels, or annotations, with these keys, nil if there are none. Any user
// who may write an object may give it a megabyte of them.
func OnlyLabels(labels map[string]string, keys ...string) map[string]string {
	var kept map[string]string
	for _, key := range keys {
		if value, ok := labels[key]; ok {
			if kept == nil {
				kept = make(map[string]string, len(keys))
			}
			kept[key] = value
		}
	}
	return kept
}

const (
	// maxGrantees is how many subjects and owners TrimRoleBinding keeps: more than one.
	maxGrantees = 2

	// maxGranteeBytes is longer than the name of any subject that this program binds.
	maxGranteeBytes = 512
)

// TrimRoleBinding returns what a RoleBinding is compared by: role, subjects, owners and the
// labels with these keys. It fits RoleBindings of this program, with one subject and at most
// one owner: lists are cut after two and names shortened, so that another client's
// RoleBinding still differs, however large it is.
func TrimRoleBinding(full *rbacv1.RoleBinding, labels ...string) *rbacv1.RoleBinding {
	trimmed := &rbacv1.RoleBinding{
		TypeMeta:   full.TypeMeta,
		ObjectMeta: TrimMeta(full.ObjectMeta),
		RoleRef:    full.RoleRef,
		Subjects:   slices.Clone(full.Subjects[:min(len(full.Subjects), maxGrantees)]),
	}
	trimmed.Labels = OnlyLabels(full.Labels, labels...)
	trimmed.OwnerReferences = slices.Clone(full.OwnerReferences[:min(len(full.OwnerReferences), maxGrantees)])
	shorten := func(texts ...*string) {
		for _, text := range texts {
			*text = Shorten(*text, maxGranteeBytes)
		}
	}
	shorten(&trimmed.RoleRef.APIGroup, &trimmed.RoleRef.Kind, &trimmed.RoleRef.Name)
	for i := range trimmed.Subjects {
		subject := &trimmed.Subjects[i]
		shorten(&subject.APIGroup, &subject.Kind, &subject.Namespace, &subject.Name)
	}
	for i := range trimmed.OwnerReferences {
		owner := &trimmed.OwnerReferences[i]
		shorten(&owner.APIVersion, &owner.Kind, &owner.Name)
	}
	return trimmed
}
