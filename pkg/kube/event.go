package kube

import (
	"context"
	"fmt"
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

// NewEvent returns an Event about a namespaced object, which the caller creates.
// It exists because client-go's recorders aggregate events that differ only in
// their notes and keep the first note, which is useless where the note says what
// changed.
func NewEvent(
	regarding corev1.ObjectReference, eventType, reason, action, note, controller, instance string, now time.Time,
) *eventsv1.Event {
	prefix := regarding.Name[:min(len(regarding.Name), 200)] + "-"
	return &eventsv1.Event{
		ObjectMeta:          metav1.ObjectMeta{Namespace: regarding.Namespace, GenerateName: prefix},
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
// no event can be created there and nobody would read it.
func CreateEvent(ctx context.Context, writer client.Client, event *eventsv1.Event) error {
	err := writer.Create(ctx, event)
	isTerminating := apierrors.IsForbidden(err) && apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause)
	if err == nil || apierrors.IsNotFound(err) || isTerminating {
		return nil
	}
	return fmt.Errorf("creating event: %w", err)
}
