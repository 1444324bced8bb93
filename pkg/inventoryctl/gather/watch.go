package gather

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	inventoryv1alpha1 "sigs.k8s.io/cluster-inventory-api/apis/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// WatchProfiles calls take with every ClusterProfile that changes after the last list, until take
// or the watch fails or the context ends. gone is true for one that was deleted. hidden is true if
// the reader may not watch them. The API server ends each watch after a while, so it is resumed.
func (h *Hub) WatchProfiles(
	ctx context.Context, namespace, selector string, take func(p *inventoryv1alpha1.ClusterProfile, gone bool) error,
) (hidden bool, err error) {
	for {
		opts := &client.ListOptions{Namespace: namespace, Raw: &metav1.ListOptions{
			LabelSelector: selector, ResourceVersion: h.version, AllowWatchBookmarks: true,
		}}
		events, err := h.reader.Watch(ctx, &inventoryv1alpha1.ClusterProfileList{}, opts)
		switch {
		case apierrors.IsForbidden(err):
			return true, nil
		case err != nil:
			return false, fmt.Errorf("watching ClusterProfiles: %w", err)
		}
		err = h.follow(ctx, events, take)
		events.Stop()
		if err != nil {
			return false, err
		}
	}
}

// follow returns nil when the API server has ended the watch.
func (h *Hub) follow(
	ctx context.Context, events watch.Interface, take func(p *inventoryv1alpha1.ClusterProfile, gone bool) error,
) error {
	for event := range events.ResultChan() {
		if event.Type == watch.Error {
			return fmt.Errorf("watching ClusterProfiles: %w", apierrors.FromObject(event.Object))
		}
		profile, ok := event.Object.(*inventoryv1alpha1.ClusterProfile)
		if !ok {
			return errors.New("watching ClusterProfiles: the hub sends something else")
		}
		h.version = profile.ResourceVersion
		if event.Type == watch.Bookmark {
			continue
		}
		if err := take(profile, event.Type == watch.Deleted); err != nil {
			return err
		}
	}
	return ctx.Err()
}
