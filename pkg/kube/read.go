package kube

import (
	"context"
	"errors"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Uncopied makes a read from a cache return the cache's own objects, which must not be
// changed.
const Uncopied = client.UnsafeDisableDeepCopy

// Kinds that are read as metadata only.
var (
	NamespaceKind = schema.GroupVersionKind{Version: "v1", Kind: "Namespace"}
	CRDKind       = schema.GroupVersionKind{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"}
)

// Partial returns an empty object of a kind that is read as metadata only.
func Partial(kind schema.GroupVersionKind) *metav1.PartialObjectMetadata {
	obj := &metav1.PartialObjectMetadata{}
	obj.SetGroupVersionKind(kind)
	return obj
}

// PartialList returns an empty list of objects like those of Partial.
func PartialList(kind schema.GroupVersionKind) *metav1.PartialObjectMetadataList {
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
	return list
}

// Indexed returns an index of the objects of one type by the values that extract returns, without
// empty ones.
func Indexed[T client.Object](extract func(T) []string) client.IndexerFunc {
	return func(obj client.Object) []string {
		typed, ok := obj.(T)
		if !ok {
			return nil
		}
		return slices.DeleteFunc(extract(typed), func(value string) bool { return value == "" })
	}
}

// Get reads one object from a cache into into and returns it; it must not be changed. If
// there is none, Get returns nil and no error.
func Get[T client.Object](ctx context.Context, reader client.Reader, key types.NamespacedName, into T) (T, error) {
	var none T
	err := reader.Get(ctx, key, into, Uncopied)
	switch {
	case apierrors.IsNotFound(err):
		return none, nil
	case err != nil:
		return none, fmt.Errorf("reading %T %s: %w", into, key, err)
	default:
		return into, nil
	}
}

// ObjectOrNil returns an object as an interface, which is nil if the pointer is.
func ObjectOrNil[T any, P interface {
	*T
	client.Object
}](object P) client.Object {
	if object == nil {
		return nil
	}
	return object
}

// IsNewer reports whether resource version a is later than b. Versions that
// cannot be compared count as newer, so that the caller reads again.
func IsNewer(a, b string) bool {
	order, err := resourceversion.CompareResourceVersion(a, b)
	return err != nil || order > 0
}

// IsServed reports whether the hub serves the custom resource of the named CRD, according
// to a cache of CRDs. A CRD that is being deleted does not count: its objects are deleted
// first, so their absence means nothing.
func IsServed(ctx context.Context, reader client.Reader, crd string) (bool, error) {
	found, err := Get(ctx, reader, types.NamespacedName{Name: crd}, Partial(CRDKind))
	return err == nil && found != nil && found.DeletionTimestamp == nil, err
}

// IsUncached reports whether a kind was not read because the cache does not hold it: the API
// server has not served it yet.
func IsUncached(err error) bool {
	uncached := new(cache.ErrResourceNotCached)
	return errors.As(err, &uncached)
}
