package departure

import (
	"testing"

	"open-cluster-management.io/cluster-inventory-addon/test/e2e/journeys"
	"open-cluster-management.io/cluster-inventory-addon/test/fleet"
)

func TestMain(m *testing.M) {
	journeys.Main(m, fleet.Options{Name: "departure", Spokes: 1})
}
