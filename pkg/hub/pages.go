package hub

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	toolscache "k8s.io/client-go/tools/cache"
)

// listInPages makes an informer list page by page, size objects at a time, and trim each page
// before it asks for the next. It is for objects that tenants may create in large numbers and
// sizes: informers trim a list only when they have all of it. API servers of Kubernetes 1.34
// or later stream lists, object by object, so that informers do not list at all.
func listInPages(
	from toolscache.ListerWatcher, size int64, trim toolscache.TransformFunc,
) *toolscache.ListWatch {
	source := toolscache.ToListerWatcherWithContext(from)
	return &toolscache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, opts metav1.ListOptions) (runtime.Object, error) {
			return listPages(ctx, source, opts, size, trim)
		},
		WatchFuncWithContext: source.WatchWithContext,
	}
}

func listPages(
	ctx context.Context, source toolscache.ListerWithContext, opts metav1.ListOptions,
	size int64, trim toolscache.TransformFunc,
) (runtime.Object, error) {
	// From its cache an API server returns the whole list, regardless of the limit.
	opts.ResourceVersion, opts.ResourceVersionMatch = "", ""
	opts.Limit = size
	all := &internalversion.List{}
	for {
		page, err := source.ListWithContext(ctx, opts)
		if err != nil {
			return nil, err
		}
		// Each object is copied, because it would otherwise keep the page in memory.
		err = meta.EachListItemWithAlloc(page, func(item runtime.Object) error {
			trimmed, err := trim(item)
			if err != nil {
				return err
			}
			object, ok := trimmed.(runtime.Object)
			if !ok {
				return fmt.Errorf("trimming a %T returned a %T", item, trimmed)
			}
			all.Items = append(all.Items, object)
			return nil
		})
		if err != nil {
			return nil, err
		}
		list, err := meta.ListAccessor(page)
		if err != nil {
			return nil, err
		}
		all.ResourceVersion = list.GetResourceVersion() // the same on every page
		if opts.Continue = list.GetContinue(); opts.Continue == "" {
			return all, nil
		}
	}
}
