package hosted

import (
	"testing"

	"open-cluster-management.io/cluster-inventory-addon/test/e2e/journeys"
	"open-cluster-management.io/cluster-inventory-addon/test/fleet"
)

const (
	hosting = fleet.HostingSpoke
	managed = fleet.HostedSpoke
)

func TestMain(m *testing.M) {
	journeys.Main(m, fleet.Options{Name: "hosted", Spokes: 2, Hosted: true})
}
