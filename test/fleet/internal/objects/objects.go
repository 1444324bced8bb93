// Package objects decodes Kubernetes objects and applies them as the fleet.
package objects

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"strings"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"open-cluster-management.io/cluster-inventory-addon/test/fleet/await"
)

// New builds an object from YAML with the verbs of fmt. It panics if that is
// not valid.
func New(text string, args ...any) *unstructured.Unstructured {
	o := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(strings.TrimSpace(fmt.Sprintf(text, args...))), &o.Object); err != nil {
		panic(fmt.Sprintf("fleet: %v in:\n%s", err, text))
	}
	return o
}

// Namespaces builds namespaces.
func Namespaces(names ...string) []*unstructured.Unstructured {
	objects := make([]*unstructured.Unstructured, 0, len(names))
	for _, name := range names {
		objects = append(objects, New("{apiVersion: v1, kind: Namespace, metadata: {name: %s}}", name))
	}
	return objects
}

// Enforce has namespaces enforce a Pod Security Standard.
func Enforce(standard string, namespaces []*unstructured.Unstructured) []*unstructured.Unstructured {
	for _, namespace := range namespaces {
		namespace.SetLabels(map[string]string{"pod-security.kubernetes.io/enforce": standard})
	}
	return namespaces
}

// Decode reads the objects in YAML documents.
func Decode(text io.Reader) ([]*unstructured.Unstructured, error) {
	var objects []*unstructured.Unstructured
	decoder := yaml.NewYAMLOrJSONDecoder(text, 4096)
	for {
		o := &unstructured.Unstructured{}
		err := decoder.Decode(&o.Object)
		if errors.Is(err, io.EOF) {
			return objects, nil
		}
		if err != nil {
			return nil, err
		}
		if len(o.Object) > 0 {
			dropRemovals(o)
			objects = append(objects, o)
		}
	}
}

// dropRemovals drops annotations whose key ends in "-": OCM's operator, which
// merges objects, removes the annotation of that name.
func dropRemovals(o *unstructured.Unstructured) {
	annotations := o.GetAnnotations()
	if len(annotations) == 0 {
		return
	}
	maps.DeleteFunc(annotations, func(key, _ string) bool { return strings.HasSuffix(key, "-") })
	o.SetAnnotations(annotations)
}

// Apply applies objects and waits until new kinds are served.
func Apply(ctx context.Context, c client.Client, objects ...*unstructured.Unstructured) error {
	for _, o := range objects {
		if err := c.Apply(
			ctx, client.ApplyConfigurationFromUnstructured(o), client.FieldOwner("fleet"), client.ForceOwnership,
		); err != nil {
			return fmt.Errorf("apply %s %s: %w", o.GetKind(), o.GetName(), err)
		}
	}
	for _, o := range objects {
		if o.GetKind() != "CustomResourceDefinition" {
			continue
		}
		if err := waitEstablished(ctx, c, o.GetName()); err != nil {
			return err
		}
	}
	return nil
}

// Replace makes a CRD exactly match the given one, as OCM's operator does, whichever client
// created the existing one, and waits until it is served.
func Replace(ctx context.Context, c client.Client, crd *unstructured.Unstructured) error {
	current := &unstructured.Unstructured{}
	current.SetGroupVersionKind(crd.GroupVersionKind())
	err := c.Get(ctx, client.ObjectKeyFromObject(crd), current)
	switch {
	case apierrors.IsNotFound(err):
		err = c.Create(ctx, crd, client.FieldOwner("fleet"))
	case err == nil:
		crd.SetResourceVersion(current.GetResourceVersion())
		err = c.Update(ctx, crd, client.FieldOwner("fleet"))
	}
	if err != nil {
		return fmt.Errorf("replace %s %s: %w", crd.GetKind(), crd.GetName(), err)
	}
	return waitEstablished(ctx, c, crd.GetName())
}

func waitEstablished(ctx context.Context, c client.Client, name string) error {
	return await.Until(ctx, "CRD "+name, 50*time.Millisecond, func(ctx context.Context) (bool, error) {
		crd := &apiextensionsv1.CustomResourceDefinition{}
		if err := c.Get(ctx, client.ObjectKey{Name: name}, crd); err != nil {
			return false, err
		}
		for _, condition := range crd.Status.Conditions {
			if condition.Type == apiextensionsv1.Established && condition.Status == apiextensionsv1.ConditionTrue {
				return true, nil
			}
		}
		return false, nil
	})
}
