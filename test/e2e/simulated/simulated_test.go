package simulated

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

func TestEachDoesAllUntilOneFails(t *testing.T) {
	var done atomic.Int64
	if err := Each(t.Context(), 100, func(context.Context, int) error { done.Add(1); return nil }); err != nil {
		t.Fatal(err)
	}
	if done.Load() != 100 {
		t.Errorf("%d done", done.Load())
	}
	broken := errors.New("broken")
	err := Each(t.Context(), 100, func(_ context.Context, i int) error {
		if i == 3 {
			return broken
		}
		return nil
	})
	if !errors.Is(err, broken) {
		t.Errorf("got %v", err)
	}
}

func TestRightsAreCopiedForAnotherCluster(t *testing.T) {
	given := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding",
		"metadata": map[string]any{
			"name": "ocm:one:work", "namespace": "one", "uid": "u", "resourceVersion": "7",
			"labels": map[string]any{"cluster-name": "one"}, "finalizers": []any{"work"},
		},
		"roleRef":  map[string]any{"kind": "ClusterRole", "name": "ocm:work"},
		"subjects": []any{map[string]any{"kind": "Group", "name": "ocm:one"}},
	}}
	want := map[string]any{
		"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding",
		"metadata": map[string]any{
			"name": "ocm:two:work", "namespace": "two",
			"labels": map[string]any{"cluster-name": "two"}, "finalizers": []any{"work"},
		},
		"roleRef":  map[string]any{"kind": "ClusterRole", "name": "ocm:work"},
		"subjects": []any{map[string]any{"kind": "Group", "name": "ocm:two"}},
	}
	r := rights{of: "one"}
	if diff := cmp.Diff(want, r.copyFor(given, "two").Object); diff != "" {
		t.Error(diff)
	}
	if given.GetName() != "ocm:one:work" {
		t.Error("the object itself was changed")
	}
}
