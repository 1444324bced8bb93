package decide

import (
	"cmp"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/duration"
)

// Event is what the manager has reported to the consumers of a namespace.
type Event struct {
	Time   metav1.Time `json:"time"`
	Age    string      `json:"-"`
	Type   string      `json:"type"`
	Reason string      `json:"reason"`

	// Object is the kind and the name of what it is about.
	Object string `json:"object"`
	Text   string `json:"text"`
}

// AddEvent keeps an event if it concerns the cluster and none for the same reason about the
// same object is newer. Any user who may create events can make one that looks like the
// manager's, so an event proves nothing.
func (p *PairFacts) AddEvent(event *eventsv1.Event) {
	if !concerns(event, p.Cluster) {
		return
	}
	key := eventKey{event.Regarding.Kind, event.Regarding.Name, event.Reason}
	if known, ok := p.events[key]; ok && !timeOf(known).Before(timeOf(event)) {
		return
	}
	if p.events == nil {
		p.events = map[eventKey]*eventsv1.Event{}
	}
	p.events[key] = event
}

// eventKey is what only the newest event is kept of.
type eventKey struct{ kind, name, reason string }

// concerns reports whether an event is about a cluster. One about many clusters does not name
// all of them.
func concerns(event *eventsv1.Event, cluster string) bool {
	switch event.Regarding.Kind {
	case "ClusterProfile":
		return event.Regarding.Name == cluster
	case "ManagedClusterSetBinding", "Placement":
		return strings.Contains(event.Note, cluster) || strings.Contains(event.Note, " more")
	default:
		return false
	}
}

// timeOf is when an event was last seen.
func timeOf(event *eventsv1.Event) time.Time {
	if event.Series != nil {
		return event.Series.LastObservedTime.Time
	}
	return event.EventTime.Time
}

// newest returns the events that were kept, the newest first.
func (p *PairFacts) newest(now time.Time) []Event {
	var list []Event
	for key, event := range p.events {
		eventType := corev1.EventTypeNormal
		if event.Type == corev1.EventTypeWarning {
			eventType = corev1.EventTypeWarning
		}
		list = append(list, Event{
			Time: metav1.NewTime(timeOf(event)), Age: duration.HumanDuration(now.Sub(timeOf(event))),
			Type: eventType, Reason: key.reason, Object: key.kind + " " + key.name, Text: event.Note,
		})
	}
	slices.SortFunc(list, func(a, b Event) int {
		return cmp.Or(b.Time.Compare(a.Time.Time), cmp.Compare(a.Object, b.Object), cmp.Compare(a.Reason, b.Reason))
	})
	return list
}
