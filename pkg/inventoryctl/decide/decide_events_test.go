package decide

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Of the manager's events in a namespace, the newest of each reason that concerns the cluster
// is shown, and what others say is not.
func TestTheNewestEventOfEachReasonIsShown(t *testing.T) {
	event := func(kind, name, reason string, age time.Duration, note string) *eventsv1.Event {
		return &eventsv1.Event{
			Regarding: corev1.ObjectReference{Kind: kind, Name: name}, Reason: reason, Type: "Warning", Note: note,
			EventTime: metav1.NewMicroTime(now.Add(-age)),
		}
	}
	repeated := event("ClusterProfile", "c", "InvalidSource", 50*time.Minute, "a series")
	repeated.Series = &eventsv1.EventSeries{LastObservedTime: metav1.NewMicroTime(now.Add(-time.Minute))}
	odd := event("ClusterProfile", "c", "Odd", 2*time.Hour, "of a type that there is not")
	odd.Type = "Alarming"
	p := published()
	for _, each := range []*eventsv1.Event{
		event("ClusterProfile", "c", "InvalidSource", 5*time.Minute, "newer"),
		event("ClusterProfile", "c", "InvalidSource", 55*time.Minute, "older"),
		repeated, odd,
		event("ClusterProfile", "c", "ForeignSecret", 3*time.Minute, "another reason"),
		event("ClusterProfile", "c2", "InvalidSource", time.Minute, "of another cluster"),
		event("ManagedClusterSetBinding", "s", "ProfilesWithheld", 4*time.Minute, "a, b and 90 more are out"),
		event("ManagedClusterSetBinding", "t", "ProfilesWithheld", time.Minute, "a, b are out"),
		event("Placement", "p", "ProfilesWithheld", 4*time.Minute, "b, c are unknown"),
		event("Pod", "c", "Killing", time.Minute, "Stopping container c"),
	} {
		p.AddEvent(each)
	}
	at := func(age time.Duration) metav1.Time { return metav1.NewTime(now.Add(-age)) }
	want := []Event{
		{at(time.Minute), "60s", "Warning", "InvalidSource", "ClusterProfile c", "a series"},
		{at(3 * time.Minute), "3m", "Warning", "ForeignSecret", "ClusterProfile c", "another reason"},
		{at(4 * time.Minute), "4m", "Warning", "ProfilesWithheld", "ManagedClusterSetBinding s", "a, b and 90 more are out"},
		{at(4 * time.Minute), "4m", "Warning", "ProfilesWithheld", "Placement p", "b, c are unknown"},
		{at(2 * time.Hour), "120m", "Normal", "Odd", "ClusterProfile c", "of a type that there is not"},
	}
	if diff := cmp.Diff(want, ExplainPair(p, now).Events); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
}
