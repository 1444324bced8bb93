package orders

import "testing"

// TestProfiles explores the rule and the profiles.
func TestProfiles(t *testing.T) {
	SearchAll(t, ProfileScenarios(), func() Part { return nil })
}
