package hub

import (
	"testing"

	"open-cluster-management.io/cluster-inventory-addon/internal/apitest"
	"open-cluster-management.io/cluster-inventory-addon/internal/apitest/hubtest"
)

// hub is for tests that can share a server.
var hub = apitest.New(apitest.Hub())

func TestMain(m *testing.M) {
	apitest.Main(m, hub)
	hubtest.RemoveProgram()
}
