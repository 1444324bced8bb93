package credentials

import (
	"testing"

	"open-cluster-management.io/cluster-inventory-addon/test/e2e/journeys"
)

// A user who types the commands of docs/quickstart.md sees what that page shows, from a hub
// without the addon to a program that logs in, and back. The name of this file puts the
// story first, when there is no addon to be removed yet.
func TestQuickStartWorksAsWritten(t *testing.T) {
	journeys.WithAccess(t)
	journeys.QuickStart{}.Follow(t)
}
