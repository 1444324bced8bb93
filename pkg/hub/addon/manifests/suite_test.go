package manifests

import (
	"testing"

	"open-cluster-management.io/cluster-inventory-addon/internal/apitest"
)

var hub = apitest.New(apitest.Hub())

func TestMain(m *testing.M) { apitest.Main(m, hub) }
