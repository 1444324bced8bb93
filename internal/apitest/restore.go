package apitest

import (
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
)

// Reinstall deletes a CRD, and with it all objects of its kind, waits until it is gone, and
// recreates it from the sources that have it. The scheme of the world must know CRDs.
func (s *Server) Reinstall(w *World, name string, sources ...CRDs) {
	w.T.Helper()
	crd := &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: name}}
	w.MustDelete(crd)
	w.EventuallyGone(crd)
	s.installNamed(w.T, name, sources)
}

func (s *Server) installNamed(tb testing.TB, name string, sources []CRDs) {
	tb.Helper()
	crds, err := load(sources)
	Must(tb, err)
	for _, crd := range crds {
		if crd.Name == name {
			options := envtest.CRDInstallOptions{CRDs: []*apiextensionsv1.CustomResourceDefinition{crd}, MaxTime: startTimeout}
			_, err := envtest.InstallCRDs(s.Config(tb), options)
			Must(tb, err)
			return
		}
	}
	tb.Fatalf("no CRD %s among the sources", name)
}

// Backup copies all objects of a kind, and returns a function that recreates them with the
// status they had, like a restored backup. The kind must have a status subresource. An object
// that exists already, because another client was first, stays as it is.
func (w *World) Backup(list client.ObjectList) (restore func()) {
	w.T.Helper()
	w.MustList(list)
	var objects []client.Object
	Must(w.T, apimeta.EachListItem(list, func(item runtime.Object) error {
		obj, _ := item.DeepCopyObject().(client.Object)
		objects = append(objects, obj)
		return nil
	}))
	return func() {
		w.T.Helper()
		for _, obj := range objects {
			obj.SetUID("")
			obj.SetResourceVersion("")
			created, _ := obj.DeepCopyObject().(client.Object)
			// What was just created may not be served by the CRD's new storage yet.
			w.Eventually("restored "+w.identify(obj), Succeeds(func() error {
				if err := w.Create(w.ctx(), created); err != nil && !apierrors.IsAlreadyExists(err) {
					return err
				}
				return nil
			}))
			obj.SetResourceVersion(created.GetResourceVersion())
			if err := w.Status().Update(w.ctx(), obj); err != nil && !apierrors.IsConflict(err) {
				w.T.Fatalf("restore the status of %s: %v", w.identify(obj), err)
			}
		}
	}
}
