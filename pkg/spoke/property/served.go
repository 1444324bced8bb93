package property

import (
	"context"
	"fmt"

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

// Discovery reports which kinds an API server serves; see watch.Discovery.
type Discovery interface {
	Serves(ctx context.Context, kind schema.GroupVersionKind) (bool, error)
}

// Observe asks the API server which version of ClusterProperty it serves. The
// reader must not be a cache. It returns an error if the result is not certain.
func Observe(ctx context.Context, disco Discovery, live client.Reader) (API, error) {
	for _, version := range Versions() {
		served, err := disco.Serves(ctx, GroupVersionKind(version))
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

// Absent reports whether the spoke has no CustomResourceDefinition of
// ClusterProperty, and so no properties. The reader must not be a cache.
func Absent(ctx context.Context, live client.Reader) (bool, error) {
	crd, err := kube.Get(ctx, live, client.ObjectKey{Name: CRDName}, kube.Partial(kube.CRDKind))
	return err == nil && crd == nil, err
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
