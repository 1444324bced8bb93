package conditions

import (
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	testingclock "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"

	"open-cluster-management.io/cluster-inventory-addon/internal/apitest"
	"open-cluster-management.io/cluster-inventory-addon/internal/apitest/ocmtest"
)

// stepper is the reconciler, which the test steps by hand, and the addon of one cluster.
type stepper struct {
	*ocmtest.Hub
	r                *Reconciler
	wire             *apitest.Wire
	time             *testingclock.FakePassiveClock
	profiles, tokens *source
	addon            *addonv1beta1.ManagedClusterAddOn
}

func newStepper(t *testing.T) *stepper {
	t.Helper()
	h := ocmtest.New(t, hub.Config(t))
	s := &stepper{
		Hub: h, wire: &apitest.Wire{}, profiles: ofProfiles(), tokens: ofTokens(), addon: enabled(h),
		time: testingclock.NewFakePassiveClock(time.Now().Truncate(time.Second)),
	}
	writer := apitest.NewClient(t, s.wire.Tap(hub.Config(t)), ocmtest.Scheme())
	s.r = newReconciler(h, writer, Options{Sources: []Source{s.profiles, s.tokens}, Clock: s.time})
	return s
}

// step reconciles once and checks what was written.
func (s *stepper) step(want ...string) reconcile.Result {
	s.T.Helper()
	s.wire.Reset()
	request := reconcile.Request{NamespacedName: types.NamespacedName{Name: s.addon.Namespace}}
	result, err := s.r.Reconcile(s.T.Context(), request)
	if err != nil {
		s.T.Fatalf("reconcile: %v", err)
	}
	if diff := cmp.Diff(want, s.wire.Sent(), cmpopts.EquateEmpty()); diff != "" {
		s.T.Fatalf("writes (-want +got):\n%s", diff)
	}
	return result
}

// has checks the addon's conditions, all of them.
func (s *stepper) has(want ...metav1.Condition) {
	s.T.Helper()
	s.MustGet(s.addon)
	if diff := cmp.Diff(want, s.addon.Status.Conditions, cmpopts.EquateEmpty()); diff != "" {
		s.T.Errorf("conditions (-want +got):\n%s", diff)
	}
}

// condition is one that was written now.
func (s *stepper) condition(conditionType, status, reason, message string) metav1.Condition {
	c := ocmtest.Condition(conditionType, status, reason, message)
	c.LastTransitionTime = metav1.NewTime(s.time.Now())
	return c
}

// well is Degraded as it was written at birth.
func (s *stepper) well() metav1.Condition {
	return s.condition("Degraded", "False", "AsExpected", allIsWell)
}

// failed is Degraded because of a failure of profiles.
func (s *stepper) failed() metav1.Condition {
	return s.condition("Degraded", "True", "WriteFailed", "ProfilesSynced is False (WriteFailed).")
}

func TestAllConditionsAreCreatedInOnePatchAndOthersStay(t *testing.T) {
	s := newStepper(t)
	theirs := ocmtest.Condition("Available", "True", "R", "theirs")
	apitest.EditStatus(s, s.addon, func(a *addonv1beta1.ManagedClusterAddOn) {
		a.Status.Conditions = []metav1.Condition{theirs}
	})
	s.step(patchAddon)
	profiles := s.condition("ProfilesSynced", "True", "Synced", "p")
	tokens := s.condition("CredentialsSynced", "True", "Copied", "t")
	s.has(theirs, profiles, tokens, s.well())
	s.step()

	// Another status: another time. Another text: the same.
	s.time.SetTime(s.time.Now().Add(time.Hour))
	s.profiles.say(failure())
	s.step(patchAddon)
	profiles = s.condition("ProfilesSynced", "False", "WriteFailed", "no")
	degraded := s.failed()
	s.has(theirs, profiles, tokens, degraded)
	s.time.SetTime(s.time.Now().Add(time.Hour))
	s.profiles.say(&Desired{Status: "False", Reason: "WriteFailed", Message: "still no"})
	s.step(patchAddon)
	profiles.Message = "still no"
	s.has(theirs, profiles, tokens, degraded)
	s.step()

	// Another client drops one: it is written again.
	apitest.EditStatus(s, s.addon, func(a *addonv1beta1.ManagedClusterAddOn) {
		a.Status.Conditions = []metav1.Condition{theirs, tokens, degraded}
	})
	s.step(patchAddon)
	profiles.LastTransitionTime = metav1.NewTime(s.time.Now())
	s.has(theirs, tokens, degraded, profiles)

	// It must not exist any more.
	s.tokens.say(&Desired{Absent: true})
	s.step(patchAddon)
	s.has(theirs, degraded, profiles)
	s.step()
}

func TestFirstWriteWithoutAnyConditionIsOnePatch(t *testing.T) {
	s := newStepper(t)
	s.step(patchAddon)
	s.has(s.condition("ProfilesSynced", "True", "Synced", "p"),
		s.condition("CredentialsSynced", "True", "Copied", "t"), s.well())
}

// The API server stores an addon that was not set up yet without a status.
func TestFirstWriteToAnAddonWithoutStatus(t *testing.T) {
	s := newStepper(t)
	s.addon = ocmtest.Addon(s.Namespace("bare", nil))
	s.MustCreate(s.addon)
	raw := &unstructured.Unstructured{}
	raw.SetAPIVersion(addonv1beta1.GroupVersion.String())
	raw.SetKind("ManagedClusterAddOn")
	apitest.Must(t, s.Get(t.Context(), client.ObjectKeyFromObject(s.addon), raw))
	if status, ok := raw.Object["status"]; ok {
		t.Fatalf("the addon has a status: %v", status)
	}
	s.step()
	s.time.SetTime(s.addon.CreationTimestamp.Add(frameworkPatience))
	s.step(patchAddon)
	s.has(s.condition("ProfilesSynced", "True", "Synced", "p"),
		s.condition("CredentialsSynced", "True", "Copied", "t"), s.well())
	s.step()

	// A first write based on an older version overwrites nothing.
	stale := s.addon.DeepCopy()
	stale.ResourceVersion, stale.Status.Conditions = "1", nil
	wrong := wanted{conditionType: "ProfilesSynced", Desired: failure()}
	if err := s.r.apply(t.Context(), stale, []wanted{wrong}, s.time.Now()); !apierrors.IsConflict(err) {
		t.Errorf("got %v, want a conflict", err)
	}
}

func TestTransientUnknownIsNotWritten(t *testing.T) {
	s := newStepper(t)
	s.step(patchAddon)
	unknown := &Desired{Status: "Unknown", Reason: "SelectionUnknown", HoldBack: 5 * time.Second}
	for range 3 { // each time it starts over
		s.profiles.say(unknown)
		if result := s.step(); result.RequeueAfter != 5*time.Second {
			t.Errorf("result %+v", result)
		}
		s.time.SetTime(s.time.Now().Add(4 * time.Second))
		if result := s.step(); result.RequeueAfter != time.Second {
			t.Errorf("result %+v", result)
		}
		s.profiles.say(ofProfiles().desired)
		s.step()
	}
	s.profiles.say(unknown)
	s.step()
	s.time.SetTime(s.time.Now().Add(5 * time.Second))
	s.step(patchAddon)
	s.step()
	s.profiles.say(ofProfiles().desired)
	s.step(patchAddon)
	if s.r.held.Len() != 0 {
		t.Errorf("remembered: %v", s.r.held.Keys())
	}
}

// The agent's report degrades the addon once it has lasted; that it ends, or changes its
// wording, costs nothing.
func TestAgentsReportDegradesTheAddon(t *testing.T) {
	s := newStepper(t)
	reports := func(status, reason, message string) {
		apitest.EditStatus(s, s.addon, func(a *addonv1beta1.ManagedClusterAddOn) {
			a.Status.Conditions = slices.DeleteFunc(a.Status.Conditions, func(c metav1.Condition) bool {
				return c.Type == "PropertiesPublished"
			})
			a.Status.Conditions = append(a.Status.Conditions, ocmtest.Condition("PropertiesPublished", status, reason, message))
		})
	}
	degraded := func() string {
		s.MustGet(s.addon)
		c := meta.FindStatusCondition(s.addon.Status.Conditions, "Degraded")
		return string(c.Status) + " " + c.Reason + ": " + c.Message
	}
	reports("True", "Published", "1")
	s.step(patchAddon)
	reports("False", "ClusterPropertyAPIMissing", "none")
	if result := s.step(); result.RequeueAfter != 5*time.Second {
		t.Errorf("result %+v", result)
	}
	s.time.SetTime(s.time.Now().Add(4 * time.Second))
	reports("True", "Published", "1")
	s.step()

	reports("False", "PartiallyPublished", "a")
	s.step()
	s.time.SetTime(s.time.Now().Add(5 * time.Second))
	s.step(patchAddon)
	if got := degraded(); got != "True PartiallyPublished: PropertiesPublished is False (PartiallyPublished)." {
		t.Errorf("Degraded is %s", got)
	}
	reports("False", "PartiallyPublished", "a, b")
	s.step()

	// Another manager has not known it for as long.
	s.r = newReconciler(s.r.reader, s.r.writer, Options{Sources: s.r.sources, Clock: s.time})
	s.step()
	reports("True", "Published", "2")
	s.step(patchAddon)
	if got := degraded(); got != "False AsExpected: "+allIsWell {
		t.Errorf("Degraded is %s", got)
	}
	s.step()
}

// A manager that knows Degraded follows one that does not: it writes nothing to healthy
// addons.
func TestAnUpgradeWritesNoHealthyAddon(t *testing.T) {
	s := newStepper(t)
	apitest.EditStatus(s, s.addon, func(a *addonv1beta1.ManagedClusterAddOn) {
		a.Status.Conditions = []metav1.Condition{
			ocmtest.Condition("ProfilesSynced", "True", "Synced", "p"),
			ocmtest.Condition("CredentialsSynced", "True", "Copied", "t"),
		}
	})
	s.step()
	s.profiles.say(failure())
	s.step(patchAddon)
	s.profiles.say(ofProfiles().desired)
	s.step(patchAddon)
	s.step()
	s.MustGet(s.addon)
	if c := meta.FindStatusCondition(s.addon.Status.Conditions, "Degraded"); c == nil || c.Status != "False" {
		t.Errorf("Degraded is %+v", c)
	}
}

func TestConflictIsNotAnErrorAndOverwritesNothing(t *testing.T) {
	s := newStepper(t)
	s.step(patchAddon)
	s.profiles.say(failure())
	s.wire.FailNthWrite(1, apitest.Fault{Status: http.StatusConflict, Reason: "Conflict"})
	if result := s.step(patchAddon); result.RequeueAfter != time.Second {
		t.Errorf("result %+v, want to look again in a second", result)
	}
	s.step() // until the cache shows the other client's change
	apitest.Edit(s, s.addon, func(a *addonv1beta1.ManagedClusterAddOn) { a.Labels = map[string]string{"theirs": "x"} })
	s.step(patchAddon)

	// The position of a condition is that at the version of the patch.
	stale := s.addon.DeepCopy()
	apitest.EditStatus(s, s.addon, func(a *addonv1beta1.ManagedClusterAddOn) {
		a.Status.Conditions = append([]metav1.Condition{ocmtest.Condition("Theirs", "True", "R", "")}, a.Status.Conditions...)
	})
	before := s.addon.ResourceVersion
	wrong := wanted{conditionType: "ProfilesSynced", Desired: ofProfiles().desired}
	if err := s.r.apply(t.Context(), stale, []wanted{wrong}, s.time.Now()); err == nil {
		t.Error("a patch of an older version was accepted")
	}
	if s.MustGet(s.addon); s.addon.ResourceVersion != before {
		t.Errorf("the addon was changed: %+v", s.addon.Status.Conditions)
	}
}

// While the hub does not serve addons, its answer is that there is none.
func TestAConditionIsWrittenWhenTheHubServesAddonsAgain(t *testing.T) {
	s := newStepper(t)
	s.wire.FailNthWrite(1, apitest.Fault{Status: http.StatusNotFound})
	request := reconcile.Request{NamespacedName: types.NamespacedName{Name: s.addon.Namespace}}
	if _, err := s.r.Reconcile(t.Context(), request); err == nil {
		t.Error("reconcile returned no error, so the queue does not try again")
	}
	s.step(patchAddon)
}

func TestNothingIsWrittenToADeletedAddon(t *testing.T) {
	s := newStepper(t)
	apitest.Edit(s, s.addon, func(a *addonv1beta1.ManagedClusterAddOn) { a.Finalizers = []string{"example.com/hold"} })
	s.MustDelete(s.addon.DeepCopy())
	s.step()
	apitest.Edit(s, s.addon, func(a *addonv1beta1.ManagedClusterAddOn) { a.Finalizers = nil })
	s.step()
}

func TestWarningCreatesAnEvent(t *testing.T) {
	s := newStepper(t)
	s.profiles.say(&Desired{Status: "False", Reason: "UpstreamGateOn", Message: "upstream writes", Warn: true})
	s.step(patchAddon, "POST events")
	s.profiles.say(&Desired{Status: "False", Reason: "UpstreamGateOn", Message: "upstream still writes", Warn: true})
	s.step(patchAddon)
	s.step()
	list := &eventsv1.EventList{}
	if err := s.List(t.Context(), list, client.InNamespace(s.addon.Namespace)); err != nil {
		t.Fatal(err)
	}
	if len(list.Items) != 1 || list.Items[0].Note != "upstream writes" || list.Items[0].Regarding.UID != s.addon.UID {
		t.Errorf("events = %+v", list.Items)
	}
}
