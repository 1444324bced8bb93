package decisions

import (
	"context"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"

	"open-cluster-management.io/cluster-inventory-addon/pkg/kube"
)

const (
	// eventAction is what the controller did or refrained from.
	eventAction = "PublishDecisions"

	// eventInterval is the least time between two events of one reason about a Placement.
	eventInterval = 30 * time.Second
)

// reporter creates the events on Placements, each once. It is safe for concurrent use.
type reporter struct {
	writer client.Client
	clock  clock.PassiveClock

	mu         sync.Mutex
	lastEvents map[types.NamespacedName]map[string]lastEvent // by Placement and reason
}

type lastEvent struct {
	text string
	at   time.Time
}

func newReporter(writer client.Client, clock clock.PassiveClock) *reporter {
	return &reporter{writer: writer, clock: clock, lastEvents: map[types.NamespacedName]map[string]lastEvent{}}
}

// report creates an event for each notice that differs from the last of its reason. wait
// is how long another is held back, because the last was only just created.
func (r *reporter) report(
	ctx context.Context, placement *clusterv1beta1.Placement, key types.NamespacedName, notices []notice,
) (wait time.Duration, err error) {
	if placement == nil {
		r.replace(key, nil)
		return 0, nil
	}
	now := r.clock.Now()
	current := r.lately(key, now)
	for _, n := range notices {
		last, ok := r.last(key, n.reason)
		left := last.at.Add(eventInterval).Sub(now)
		switch {
		case ok && last.text == n.text:
		case ok && left > 0:
			wait = kube.Sooner(wait, left)
		default:
			if err := r.emit(ctx, placement, n, now); err != nil {
				return wait, err
			}
			last = lastEvent{text: n.text, at: now}
		}
		current[n.reason] = last
	}
	r.replace(key, current)
	return wait, nil
}

// lately returns the last events that are so new that others of their reason must wait,
// as if they had said nothing.
func (r *reporter) lately(placement types.NamespacedName, now time.Time) map[string]lastEvent {
	r.mu.Lock()
	defer r.mu.Unlock()
	recent := map[string]lastEvent{}
	for reason, last := range r.lastEvents[placement] {
		if now.Sub(last.at) < eventInterval {
			recent[reason] = lastEvent{at: last.at}
		}
	}
	return recent
}

func (r *reporter) replace(placement types.NamespacedName, events map[string]lastEvent) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(events) > 0 {
		r.lastEvents[placement] = events
	} else {
		delete(r.lastEvents, placement)
	}
}

func (r *reporter) last(placement types.NamespacedName, reason string) (lastEvent, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	last, ok := r.lastEvents[placement][reason]
	return last, ok
}

func (r *reporter) emit(ctx context.Context, placement *clusterv1beta1.Placement, n notice, now time.Time) error {
	regarding := corev1.ObjectReference{
		APIVersion: clusterv1beta1.GroupVersion.String(), Kind: "Placement",
		Namespace: placement.Namespace, Name: placement.Name, UID: placement.UID,
	}
	return kube.CreateEvent(ctx, r.writer, kube.NewEvent(
		regarding, corev1.EventTypeWarning, n.reason, eventAction, n.text, ControllerName, ControllerName, now))
}
