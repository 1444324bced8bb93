package kube

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"hash/fnv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// MaxEventNoteBytes is the maximum length of an Event's note
// (k8s.io/kubernetes/pkg/apis/core/validation, noteLengthLimit).
const MaxEventNoteBytes = 1024

// EventPeriod is how long until an event is repeated if what it says still holds. An API server
// forgets events after an hour, unless --event-ttl says otherwise.
const EventPeriod = 50 * time.Minute

// NewEvent returns an Event, which the caller creates. If it is about a cluster-scoped object, it
// is in the namespace default, as API servers require.
// It exists because client-go's recorders aggregate events that differ only in
// their notes and keep the first note, which is useless where the note says what
// changed.
func NewEvent(
	regarding corev1.ObjectReference, eventType, reason, action, note, controller, instance string, now time.Time,
) *eventsv1.Event {
	prefix := regarding.Name[:min(len(regarding.Name), 200)] + "-"
	namespace := cmp.Or(regarding.Namespace, metav1.NamespaceDefault)
	return &eventsv1.Event{
		ObjectMeta:          metav1.ObjectMeta{Namespace: namespace, GenerateName: prefix},
		EventTime:           metav1.NewMicroTime(now),
		ReportingController: controller,
		ReportingInstance:   instance,
		Action:              action,
		Reason:              reason,
		Regarding:           regarding,
		Note:                Shorten(note, MaxEventNoteBytes),
		Type:                eventType,
	}
}

// CreateEvent creates an event. In a namespace that is being deleted it does nothing, since
// no event can be created there and none would be read.
func CreateEvent(ctx context.Context, writer client.Client, event *eventsv1.Event) error {
	err := writer.Create(ctx, event)
	isTerminating := apierrors.IsForbidden(err) && apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause)
	if err == nil || apierrors.IsNotFound(err) || isTerminating {
		return nil
	}
	return fmt.Errorf("creating event: %w", err)
}

// PeriodOfEvent returns the number of the period in which a time lies, and when that ends. Periods
// begin at another time for each object and reason, so that events are not repeated all at once.
func PeriodOfEvent(event *eventsv1.Event, now time.Time) (number int64, end time.Time) {
	hash := fnv.New32a()
	_, _ = fmt.Fprintf(hash, "%s/%s/%s", event.Regarding.UID, event.ReportingController, event.Reason)
	offset := int64(hash.Sum32()) * int64(time.Millisecond) % int64(EventPeriod)
	number = (now.UnixNano() + offset) / int64(EventPeriod)
	return number, time.Unix(0, (number+1)*int64(EventPeriod)-offset)
}

// SetEventName gives an event a name that follows from its type, object, controller, reason and
// period, and from what else the caller names. The API server refuses to create it a second time,
// so that a process which restarts repeats nothing.
func SetEventName(event *eventsv1.Event, period int64, also string) {
	hash := sha256.New()
	_, _ = fmt.Fprintf(hash, "%s\n%s\n%s\n%s\n%d\n%s", event.Regarding.UID, event.ReportingController, event.Type,
		event.Reason, period, also)
	event.Name = strings.TrimRight(event.GenerateName, "-.") + "." + hex.EncodeToString(hash.Sum(nil)[:8])
	event.GenerateName = ""
}
