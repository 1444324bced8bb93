package conditions

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/utils/clock"

	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"

	"open-cluster-management.io/cluster-inventory-addon/internal/apitest"
	"open-cluster-management.io/cluster-inventory-addon/internal/apitest/ocmtest"
)

// quiet is how long nothing must be written for it to count as nothing: longer than a
// change waits.
const quiet = delay + time.Second

func TestAddonIsWrittenOnceAtCreationAndOncePerFailure(t *testing.T) {
	h := ocmtest.New(t, hub.Config(t))
	h.Clear(&addonv1beta1.ManagedClusterAddOnList{}) // which stepped tests have left
	t.Cleanup(func() { h.Clear(&addonv1beta1.ManagedClusterAddOnList{}) })
	wire := &apitest.Wire{}
	profiles, tokens := ofProfiles(), ofTokens()
	start := func() (stop func()) {
		mgr := ocmtest.NewManager(t, wire.Tap(hub.Config(t)), nil)
		apitest.Must(t, Add(t.Context(), mgr, Options{Sources: []Source{profiles, tokens}, Clock: clock.RealClock{}}))
		return apitest.Run(t, mgr.Start)
	}
	stop := start()
	says := func(addon *addonv1beta1.ManagedClusterAddOn, conditionType, status string) {
		t.Helper()
		h.Eventually(conditionType+" is "+status, func() string {
			return cmp.Diff(status, string(h.AddonCondition(addon.Namespace, conditionType).Status))
		})
	}
	wrote := func(what string, want ...string) {
		t.Helper()
		wire.Settle(t, apitest.Patience, quiet)
		if diff := cmp.Diff(append([]string{}, want...), wire.Sent()); diff != "" {
			t.Errorf("%s: writes (-want +got):\n%s", what, diff)
		}
		wire.Reset()
	}

	addon := ocmtest.Addon(h.Namespace("cluster", nil))
	h.MustCreate(addon)
	wrote("the framework has not set the addon up")
	apitest.EditStatus(h, addon, func(a *addonv1beta1.ManagedClusterAddOn) { a.Status.HealthCheck.Mode = "Customized" })
	says(addon, "ProfilesSynced", "True")
	says(addon, "CredentialsSynced", "True")
	says(addon, "Degraded", "False")
	wrote("enabling", patchAddon)

	apitest.EditStatus(h, addon, func(a *addonv1beta1.ManagedClusterAddOn) {
		a.Status.Conditions = append(a.Status.Conditions, ocmtest.Condition("Available", "True", "R", ""))
	})
	profiles.say(ofProfiles().desired)
	wrote("a healthy change")

	profiles.say(failure())
	tokens.say(failure())
	says(addon, "Degraded", "True")
	says(addon, "ProfilesSynced", "False")
	wrote("both fail", patchAddon)
	profiles.say(ofProfiles().desired)
	tokens.say(ofTokens().desired)
	says(addon, "ProfilesSynced", "True")
	says(addon, "Degraded", "False")
	wrote("both recover", patchAddon)

	reports := func(status, reason string) {
		t.Helper()
		apitest.EditStatus(h, addon, func(a *addonv1beta1.ManagedClusterAddOn) {
			meta.SetStatusCondition(&a.Status.Conditions, ocmtest.Condition("PropertiesPublished", status, reason, ""))
		})
	}
	reports("True", "Published")
	wrote("the agent reports that all is well")
	reports("False", "PartiallyPublished")
	says(addon, "Degraded", "True")
	wrote("the agent reports that something is wrong", patchAddon)
	reports("True", "Published")
	says(addon, "Degraded", "False")
	wrote("the agent reports that all is well again", patchAddon)

	for range 10 {
		profiles.say(failure())
		profiles.say(ofProfiles().desired)
	}
	profiles.say(failure())
	says(addon, "ProfilesSynced", "False")
	wire.Settle(t, apitest.Patience, quiet)
	if got := len(wire.Sent()); got < 1 || got > 2 {
		t.Errorf("a failure that comes and goes: %d writes", got)
	}
	wire.Reset()

	stop()
	start()
	// The new manager has reconciled every addon when an addon created later has its
	// conditions.
	second := enabled(h)
	says(second, "CredentialsSynced", "True")
	wrote("a restart, and one addon more", patchAddon)
	h.MustGet(addon)
	var types []string
	for _, c := range addon.Status.Conditions {
		types = append(types, c.Type)
	}
	want := []string{"ProfilesSynced", "CredentialsSynced", "Degraded", "Available", "PropertiesPublished"}
	if diff := cmp.Diff(want, types); diff != "" {
		t.Errorf("conditions (-want +got):\n%s", diff)
	}
}
