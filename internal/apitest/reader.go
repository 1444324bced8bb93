package apitest

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Getter is a reader, for example a cache that lags, whose Get is a function. It cannot list.
type Getter func(key client.ObjectKey, into client.Object) error

// Get calls the function.
func (g Getter) Get(_ context.Context, key client.ObjectKey, into client.Object, _ ...client.GetOption) error {
	return g(key, into)
}

// List panics.
func (Getter) List(context.Context, client.ObjectList, ...client.ListOption) error {
	panic("this reader cannot list")
}

// EmptyCache is a cache that has not seen any object yet.
var EmptyCache = Getter(func(key client.ObjectKey, _ client.Object) error {
	return apierrors.NewNotFound(schema.GroupResource{}, key.Name)
})
