package addon

import (
	"testing"

	"open-cluster-management.io/cluster-inventory-addon/internal/apitest"
	"open-cluster-management.io/cluster-inventory-addon/internal/apitest/addontest"
)

var hub = apitest.New(apitest.Hub(), apitest.AgentRevision())

const (
	// hookFinalizer is the one with which the framework waits for the clean-up Job.
	hookFinalizer = "addon.open-cluster-management.io/addon-pre-delete"

	// foreignFinalizer is another client's.
	foreignFinalizer = "example.com/hold"
)

func TestMain(m *testing.M) { apitest.Main(m, hub) }

// world is the hub, with a record of every request.
type world struct{ *addontest.World }

func newWorld(t testing.TB) *world {
	t.Helper()
	return &world{addontest.New(t, hub)}
}
