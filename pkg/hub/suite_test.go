package hub

import (
	"testing"

	"open-cluster-management.io/cluster-inventory-addon/internal/apitest"
	"open-cluster-management.io/cluster-inventory-addon/internal/apitest/hubtest"
)

func TestMain(m *testing.M) {
	apitest.Main(m)
	hubtest.RemoveProgram()
}
