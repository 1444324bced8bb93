package property

import (
	"context"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"open-cluster-management.io/cluster-inventory-addon/pkg/kube"
)

// API is what is known about the ClusterProperty API of a spoke. The zero value
// means that nothing is known.
type API struct {
	// Version is the version to read; empty if no version the agent reads is served.
	Version string

	// Absent says that the spoke has no CustomResourceDefinition of ClusterProperty, and so
	// certainly no properties. If it is false and Version is empty, there may be properties
	// that cannot be read.
	Absent bool
}

// Served reports whether properties can be read.
func (a API) Served() bool { return a.Version != "" }

// Discovery is the part of a discovery client that Observe needs.
type Discovery interface {
	ServerResourcesForGroupVersion(groupVersion string) (*metav1.APIResourceList, error)
}

// Observe asks the API server which version of ClusterProperty it serves. The
// reader must not be a cache. It returns an error if the result is not certain.
func Observe(ctx context.Context, disco Discovery, live client.Reader) (API, error) {
	for _, version := range Versions() {
		served, err := serves(disco, schema.GroupVersion{Group: Group, Version: version})
		if err != nil {
			return API{}, err
		}
		if served {
			return API{Version: version}, nil
		}
	}
	absent, err := Absent(ctx, live)
	return API{Absent: absent}, err
}

func serves(disco Discovery, version schema.GroupVersion) (bool, error) {
	list, err := disco.ServerResourcesForGroupVersion(version.String())
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("discovering %s: %w", version, err)
	}
	isProperty := func(resource metav1.APIResource) bool { return resource.Kind == Kind }
	return slices.ContainsFunc(list.APIResources, isProperty), nil
}

// Absent reports whether the spoke has no CustomResourceDefinition of
// ClusterProperty, and so no properties. The reader must not be a cache.
func Absent(ctx context.Context, live client.Reader) (bool, error) {
	err := live.Get(ctx, client.ObjectKey{Name: CRDName}, NewCRD())
	if apierrors.IsNotFound(err) {
		return true, nil
	}
	if err != nil {
		return false, fmt.Errorf("reading CustomResourceDefinition %s: %w", CRDName, err)
	}
	return false, nil
}

// NewCRD returns an empty CustomResourceDefinition, metadata only, to read into or
// to watch.
func NewCRD() *metav1.PartialObjectMetadata {
	crd := &metav1.PartialObjectMetadata{}
	crd.SetGroupVersionKind(schema.GroupVersionKind{
		Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition",
	})
	return crd
}

// Live reads the property of a name from the API server, or returns nil if there is none. A cache may lag
// behind the claims that it is compared with. It returns an error if the result is not certain: if the
// version is no longer served or, where there was no API, its CustomResourceDefinition has come since.
func Live(ctx context.Context, live client.Reader, api API, name string) (*Property, error) {
	if api.Absent {
		absent, err := Absent(ctx, live)
		if err == nil && !absent {
			err = fmt.Errorf("there is a CustomResourceDefinition %s now", CRDName)
		}
		return nil, err
	}
	obj := New(api.Version)
	if err := live.Get(ctx, client.ObjectKey{Name: name}, obj); err != nil {
		if kube.IsGone(err) {
			return nil, nil
		}
		return nil, fmt.Errorf("reading ClusterProperty %s at %s: %w", name, api.Version, err)
	}
	read := Read(obj)
	return &read, nil
}
