package hub

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	toolscache "k8s.io/client-go/tools/cache"
)

func TestListInPagesHoldsOnePageAtATime(t *testing.T) {
	const objects, size = 45, 20
	var asked []metav1.ListOptions
	trimmed := 0
	source := &toolscache.ListWatch{
		ListWithContextFunc: func(_ context.Context, opts metav1.ListOptions) (runtime.Object, error) {
			if trimmed != len(asked)*size {
				t.Errorf("request %d after %d objects were trimmed", len(asked)+1, trimmed)
			}
			asked = append(asked, opts)
			from, _ := strconv.Atoi(opts.Continue)
			page := &corev1.ConfigMapList{ListMeta: metav1.ListMeta{ResourceVersion: "7"}}
			for n := from; n < min(objects, from+size); n++ {
				page.Items = append(page.Items, corev1.ConfigMap{
					ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint(n)}, Data: map[string]string{"much": "x"},
				})
			}
			if from+size < objects {
				page.Continue = fmt.Sprint(from + size)
			}
			return page, nil
		},
		WatchFuncWithContext: func(context.Context, metav1.ListOptions) (watch.Interface, error) {
			return watch.NewFake(), nil
		},
	}
	trim := func(in any) (any, error) {
		trimmed++
		in.(*corev1.ConfigMap).Data = nil
		return in, nil
	}
	lists := listInPages(source, size, trim)
	// As an informer asks for its first list, of any age.
	selected := metav1.ListOptions{LabelSelector: "a=b", ResourceVersion: "0", ResourceVersionMatch: "NotOlderThan"}
	list, err := lists.ListWithContext(t.Context(), selected)
	if err != nil {
		t.Fatal(err)
	}
	items, err := meta.ExtractList(list)
	if err != nil || len(items) != objects {
		t.Fatalf("%d objects, %v", len(items), err)
	}
	for n, item := range items {
		want := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint(n)}}
		if diff := cmp.Diff(want, item); diff != "" {
			t.Fatalf("(-want +got):\n%s", diff)
		}
	}
	if accessor, err := meta.ListAccessor(list); err != nil || accessor.GetResourceVersion() != "7" ||
		accessor.GetContinue() != "" {
		t.Errorf("%v, %v", accessor, err)
	}
	want := []metav1.ListOptions{
		{LabelSelector: "a=b", Limit: size}, {LabelSelector: "a=b", Limit: size, Continue: "20"},
		{LabelSelector: "a=b", Limit: size, Continue: "40"},
	}
	if diff := cmp.Diff(want, asked); diff != "" {
		t.Errorf("asked (-want +got):\n%s", diff)
	}
	if watching, err := lists.WatchWithContext(t.Context(), selected); err != nil || watching == nil {
		t.Errorf("watching: %v", err)
	}
}

func TestListInPagesReturnsErrors(t *testing.T) {
	failed := errors.New("failed")
	page := &corev1.ConfigMapList{Items: make([]corev1.ConfigMap, 1)}
	keep := func(in any) (any, error) { return in, nil }
	for name, test := range map[string]struct {
		list func() (runtime.Object, error)
		trim toolscache.TransformFunc
	}{
		"of the API server": {func() (runtime.Object, error) { return nil, failed }, keep},
		"of the trimming": {
			func() (runtime.Object, error) { return page, nil }, func(any) (any, error) { return nil, failed },
		},
		"of something that is no object": {
			func() (runtime.Object, error) { return page, nil }, func(any) (any, error) { return "text", nil },
		},
	} {
		t.Run(name, func(t *testing.T) {
			source := &toolscache.ListWatch{
				ListWithContextFunc: func(context.Context, metav1.ListOptions) (runtime.Object, error) { return test.list() },
			}
			list, err := listInPages(source, 1, test.trim).ListWithContext(t.Context(), metav1.ListOptions{})
			if err == nil || list != nil {
				t.Errorf("%v, %v", list, err)
			}
		})
	}
}
