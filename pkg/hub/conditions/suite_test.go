package conditions

import (
	"context"
	"sync"
	"testing"

	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"

	"open-cluster-management.io/cluster-inventory-addon/internal/apitest"
	"open-cluster-management.io/cluster-inventory-addon/internal/apitest/ocmtest"
)

var hub = apitest.New(apitest.Hub())

func TestMain(m *testing.M) { apitest.Main(m, hub) }

const patchAddon = "PATCH managedclusteraddons/status"

// source is a Source that the test controls.
type source struct {
	conditionType string

	mu      sync.Mutex
	desired *Desired
	changed func(string)
}

func (s *source) Type() string { return s.conditionType }

func (s *source) Desired(context.Context, string) (*Desired, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.desired, nil
}

func (s *source) Subscribe(changed func(cluster string)) { s.changed = changed }

// say changes the desired condition and notifies the writer.
func (s *source) say(desired *Desired) {
	s.mu.Lock()
	s.desired = desired
	s.mu.Unlock()
	if s.changed != nil {
		s.changed("")
	}
}

// ofProfiles and ofTokens are the two conditions, in order.
func ofProfiles() *source {
	return &source{conditionType: "ProfilesSynced", desired: &Desired{Status: "True", Reason: "Synced", Message: "p"}}
}

func ofTokens() *source {
	return &source{conditionType: "CredentialsSynced", desired: &Desired{Status: "True", Reason: "Copied", Message: "t"}}
}

func failure() *Desired { return &Desired{Status: "False", Reason: "WriteFailed", Message: "no"} }

// enabled is a cluster whose addon addon-framework has set up.
func enabled(h *ocmtest.Hub) *addonv1beta1.ManagedClusterAddOn {
	h.T.Helper()
	return h.Enable(h.Namespace("cluster", nil))
}
