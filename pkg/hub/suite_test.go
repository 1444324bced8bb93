package hub

import (
	"testing"

	"open-cluster-management.io/cluster-inventory-addon/internal/apitest"
)

func TestMain(m *testing.M) { apitest.Main(m) }
