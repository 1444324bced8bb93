package registration

import (
	"testing"
	"time"

	"open-cluster-management.io/cluster-inventory-addon/test/e2e/journeys"
	"open-cluster-management.io/cluster-inventory-addon/test/fleet"
)

// The spokes by how their klusterlets register addons.
const (
	byCertificate = journeys.Cluster1
	byToken       = journeys.Cluster2
)

func TestMain(m *testing.M) { journeys.Main(m, options(0)) }

// options are those of the fleet; credentials from now on last as long as given.
func options(lifetime time.Duration) fleet.Options {
	return fleet.Options{Name: "registration", Spokes: 2, Token: true, CredentialLifetime: lifetime}
}
