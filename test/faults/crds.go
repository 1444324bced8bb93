package faults

import (
	"context"
	"slices"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"open-cluster-management.io/cluster-inventory-addon/test/faults/proxy"
)

// Faults of a CRD, which is updated while the story runs. Their target is its name.
const (
	// newVersion serves one more version, in which objects are stored from now on.
	newVersion proxy.Kind = "new-version"
	// newField does so, and both versions have one more field.
	newField proxy.Kind = "new-field"
)

// ofUpdates are all of them.
var ofUpdates = []proxy.Kind{newVersion, newField}

// updated are the kinds whose CRDs SIG-Multicluster may update.
var updated = []string{profiles, references}

// updateCRD plays the story while the CRD of a kind is updated.
func (r *running) updateCRD(tb testing.TB, fault proxy.Fault) error {
	tb.Helper()
	by := r.lane.past(tb)
	r.lane.spoiled = true // a version in which objects are stored cannot simply go
	return r.meanwhile(fault.Key.Resource, func(ctx context.Context) error {
		return by.update(ctx, fault.Key.Resource, fault.Kind == newField)
	})
}

// update updates a CRD, and returns when the API server serves the new version.
func (a admin) update(ctx context.Context, name string, withField bool) error {
	crd := &apiextensionsv1.CustomResourceDefinition{}
	if err := a.Get(ctx, client.ObjectKey{Name: name}, crd); err != nil {
		return err
	}
	patch := client.MergeFrom(crd.DeepCopy())
	addVersion(crd, withField)
	if err := a.Patch(ctx, crd, patch); err != nil {
		return err
	}
	return a.await(ctx, crd, true)
}

// addVersion adds a version like the one in which objects are stored, and stores them in it. Perhaps
// both get one more field.
func addVersion(crd *apiextensionsv1.CustomResourceDefinition, withField bool) {
	versions := crd.Spec.Versions
	type crdVersion = apiextensionsv1.CustomResourceDefinitionVersion
	stored := slices.IndexFunc(versions, func(v crdVersion) bool { return v.Storage })
	if withField {
		versions[stored].Schema.OpenAPIV3Schema.Properties["note"] = apiextensionsv1.JSONSchemaProps{Type: "string"}
	}
	more := *versions[stored].DeepCopy()
	for _, name := range []string{"v1alpha2", "v1beta1"} {
		if !slices.ContainsFunc(versions, func(v crdVersion) bool { return v.Name == name }) {
			more.Name = name
			break
		}
	}
	versions[stored].Storage = false
	crd.Spec.Versions = append(crd.Spec.Versions, more)
}
