package kube

import (
	"context"
	"errors"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// LargeObjectsPerPage is a page size for objects that any tenant may fill, with up to a
// megabyte each, so that few of them are in memory at a time.
const LargeObjectsPerPage = 20

// EachPage lists objects page by page, size at a time, and calls take with each page. Every
// page is a new list: decoding into a used one would merge the pages. If a list outlasts
// the API server's snapshot, it continues with the present state and may miss objects
// created meanwhile.
func EachPage[L client.ObjectList](
	ctx context.Context, reader client.Reader, size int64, newPage func() L, take func(L) error,
	selected ...client.ListOption,
) error {
	for token := ""; ; {
		page := newPage()
		// Use a new slice for each page, so that its options do not leak into the next.
		opts := append([]client.ListOption{client.Limit(size), client.Continue(token)}, selected...)
		err := reader.List(ctx, page, opts...)
		if next := remainder(err); next != "" && next != token {
			token = next
			continue
		}
		if err != nil {
			return err
		}
		if err := take(page); err != nil {
			return err
		}
		if token = page.GetContinue(); token == "" {
			return nil
		}
	}
}

// remainder returns the token with which the API server continues although the list's
// snapshot has expired; "" if the error is another one.
func remainder(err error) string {
	status := apierrors.APIStatus(nil)
	if !apierrors.IsResourceExpired(err) || !errors.As(err, &status) {
		return ""
	}
	return status.Status().Continue
}
