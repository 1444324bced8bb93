package ocmtest

import (
	"maps"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
)

// Full is metadata with everything that controllers read and do not read, and with more labels.
func Full(labels map[string]string) metav1.ObjectMeta {
	meta := metav1.ObjectMeta{
		Name: "n", Namespace: "ns", UID: "u", ResourceVersion: "1", Generation: 2,
		Labels:          map[string]string{"l": "1"},
		Annotations:     map[string]string{"inventory.open-cluster-management.io/require-placement": "true", "other": "x"},
		Finalizers:      []string{"f"},
		OwnerReferences: []metav1.OwnerReference{{Name: "o"}},
		ManagedFields:   []metav1.ManagedFieldsEntry{{Manager: "m"}},
	}
	maps.Copy(meta.Labels, labels)
	return meta
}

// Lean is what caches keep of Full for most kinds, with the labels that are read.
func Lean(labels map[string]string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Name: "n", Namespace: "ns", UID: "u", ResourceVersion: "1", Generation: 2, Labels: labels}
}

// Cached is an object and what a cache keeps of it.
type Cached struct{ In, Want client.Object }

// CheckCached transforms each object by the cache options of its kind, and then what that returns
// again, because an informer may transform an object twice.
func CheckCached(t *testing.T, options map[client.Object]cache.ByObject, tests map[string]Cached) {
	t.Helper()
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			kind, err := apiutil.GVKForObject(test.In, Scheme())
			if err != nil {
				t.Fatal(err)
			}
			hasOptions := false
			for of, byObject := range options {
				if other, err := apiutil.GVKForObject(of, Scheme()); err != nil || other != kind {
					continue
				}
				hasOptions = true
				var got any = test.In
				for _, times := range []string{"once", "twice"} {
					if got, err = byObject.Transform(got); err != nil {
						t.Fatal(err)
					}
					if diff := cmp.Diff(test.Want, got); diff != "" {
						t.Errorf("transformed %s (-want +got):\n%s", times, diff)
					}
				}
			}
			if !hasOptions {
				t.Error("the kind has no cache options")
			}
		})
	}
}
