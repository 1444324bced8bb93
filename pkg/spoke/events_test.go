package spoke

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	eventsv1 "k8s.io/api/events/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"open-cluster-management.io/cluster-inventory-addon/internal/apitest"
	"open-cluster-management.io/cluster-inventory-addon/internal/apitest/spoketest"
)

// events returns what the owner of a property finds about it, as kubectl describe does.
func (w *world) events(of client.Object) []string {
	w.t.Helper()
	list := &eventsv1.EventList{}
	w.spoke.MustList(list, client.InNamespace("default"))
	found := []string{}
	for _, e := range list.Items {
		if e.Regarding.UID == of.GetUID() && e.Regarding.Kind == "ClusterProperty" && e.Regarding.Name == of.GetName() {
			found = append(found, e.Type+" "+e.Reason+" "+e.ReportingController+" "+e.Note)
		}
	}
	return found
}

func (w *world) eventuallyEvents(of client.Object, want ...string) {
	w.t.Helper()
	w.spoke.Eventually("the events about "+of.GetName(), func() string { return cmp.Diff(want, w.events(of)) })
}

const (
	long = "Warning ValueTooLong cluster-inventory-agent Not published to the hub: its value is longer than 1024 bytes. " +
		"Shorten spec.value."
)

// The owner of a property may have no right on the hub, and the hub may be away.
func TestOwnersLearnFromEventsWhyAPropertyIsNotPublished(t *testing.T) {
	w := newWorld(t, allVersions)
	property := spoketest.Property("v1beta1", "notes.example.com", strings.Repeat("x", 2000), nil)
	fine := spoketest.Property("v1beta1", "fine.example.com", "v", nil)
	w.spoke.MustCreate(property, fine)
	stop := w.start()
	w.eventuallyEvents(property, long)
	w.eventuallyCondition("False PartiallyPublished 1 of 2 properties published. " +
		"Left out: notes.example.com (its value is longer than 1024 bytes).")
	w.eventuallyClaims(map[string]string{"fine.example.com*": "v"}) // a claim counts just before it is there

	stop()
	w.settle()
	stop = w.start()
	// The API server refuses the event that exists.
	w.wrote("after a restart", "POST events")
	w.eventuallyEvents(property, long)

	w.edit("v1beta1", "notes.example.com", `{"spec":{"value":"short"}}`)
	w.eventuallyClaims(map[string]string{"fine.example.com*": "v", "notes.example.com*": "short"})
	w.settle()
	w.edit("v1beta1", "fine.example.com", `{"spec":{"value":"w"}}`)
	w.wrote("once it is fixed", "PATCH clusterclaims")
	w.eventuallyEvents(property, long)
	if events := w.events(fine); len(events) > 0 {
		t.Errorf("events about a published property: %v", events)
	}
	stop()
}

// A spoke has the manifests of revision 1 until its turn in the rollout comes.
func TestAnAgentThatMayCreateNoEventsPublishesAndReports(t *testing.T) {
	w := newWorld(t, allVersions)
	w.spoke.MustCreate(spoketest.Property("v1beta1", "notes.example.com", strings.Repeat("x", 2000), nil))
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{
		Name: "open-cluster-management:cluster-inventory:agent:" + w.opts.InstallNamespace,
	}}
	w.spoke.MustGet(role)
	role.Rules = slices.DeleteFunc(role.Rules, func(rule rbacv1.PolicyRule) bool {
		return slices.Contains(rule.APIGroups, "events.k8s.io")
	})
	apitest.Must(t, w.spoke.Update(t.Context(), role))
	w.start()
	report := "Left out: notes.example.com (its value is longer than 1024 bytes)."
	w.eventuallyCondition("False PartiallyPublished 0 of 1 property published. " + report)
	w.spoke.MustCreate(spoketest.Property("v1beta1", "fine.example.com", "v", nil))
	w.eventuallyClaims(map[string]string{"fine.example.com*": "v"})
	w.eventuallyCondition("False PartiallyPublished 1 of 2 properties published. " + report)
	posted := 0
	for _, sent := range w.wire.Sent() {
		if sent == "POST events" {
			posted++
		}
	}
	if posted != 1 {
		t.Errorf("%d refused events, want 1 and then a pause", posted)
	}
}

// Names of properties and reasons of others are data: nothing of a value reaches an event.
func TestHostilePropertiesMakeHarmlessEvents(t *testing.T) {
	w := newWorld(t, allVersions)
	property := spoketest.Property("v1beta1", strings.Repeat("n", 63)+".example.com",
		strings.Repeat("\x1b[2J{{.Secret}}\n", 100), nil)
	w.spoke.MustCreate(property)
	hub := w.opts.HubKubeconfig
	w.opts.HubKubeconfig = hub + "-is-missing"
	stop := apitest.Run(t, func(ctx context.Context) error { return Run(ctx, w.opts) })
	w.eventuallyEvents(property, long)
	stop()
}
