package access

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"open-cluster-management.io/cluster-inventory-addon/pkg/contract"
	"open-cluster-management.io/cluster-inventory-addon/pkg/kube"
)

// state is the ConfigMap that stores which CA certificates of cluster-proxy were published.
// A nil state stores nothing.
type state struct {
	client client.Client
	key    types.NamespacedName
	entry  string // the ConfigMap's one entry

	expectations kube.Expectations
	written      *corev1.ConfigMap // the last write of this process
}

func newState(c client.Client, namespace, entry string) *state {
	key := types.NamespacedName{Namespace: namespace, Name: contract.AccessStateName}
	return &state{client: c, key: key, entry: entry}
}

// latest returns the last write of this process until the follower has seen it, so that a
// CA published just now is not forgotten when another one arrives.
func (s *state) latest(followed found[corev1.ConfigMap], now time.Time) found[corev1.ConfigMap] {
	if s == nil {
		return followed
	}
	if s.expectations.Wait(s.key, kube.ObjectOrNil(followed.object), now) > 0 {
		followed.object = s.written
	}
	return followed
}

// remember stores the bundle; nil leaves the state as it is. If current, the follower's
// ConfigMap, has not caught up with the last write, it returns how long to wait instead.
func (s *state) remember(
	ctx context.Context, current client.Object, bundle []byte, now time.Time,
) (time.Duration, error) {
	if s == nil || bundle == nil {
		return 0, nil
	}
	if wait := s.expectations.Wait(s.key, current, now); wait > 0 {
		return wait, nil
	}
	written, err := s.write(ctx, current, bundle)
	if err != nil {
		return 0, fmt.Errorf("remembering the CA of cluster-proxy in ConfigMap %s: %w", s.key, err)
	}
	s.wrote(written, now)
	return 0, nil
}

func (s *state) wrote(configMap *corev1.ConfigMap, now time.Time) {
	s.written = configMap
	s.expectations.Wrote(configMap, now)
}

// write makes the bundle the ConfigMap's only content.
func (s *state) write(ctx context.Context, current client.Object, bundle []byte) (*corev1.ConfigMap, error) {
	written := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: s.key.Namespace, Name: s.key.Name}}
	before, ok := current.(*corev1.ConfigMap)
	if !ok {
		written.Data = map[string]string{s.entry: string(bundle)}
		return written, s.client.Create(ctx, written, client.FieldOwner(ControllerName))
	}
	data := map[string]any{s.entry: string(bundle)}
	for other := range before.Data {
		if other != s.entry {
			data[other] = nil
		}
	}
	patch, err := kube.MergePatch(before.ResourceVersion, map[string]any{"data": data})
	if err != nil {
		return nil, err
	}
	return written, s.client.Patch(ctx, written, patch, client.FieldOwner(ControllerName))
}
