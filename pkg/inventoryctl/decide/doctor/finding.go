package doctor

import "open-cluster-management.io/cluster-inventory-addon/pkg/inventoryctl/decide"

var (
	ok, notConfigured   = decide.OK.Finding, decide.NotConfigured.Finding
	problem, notVisible = decide.Problem.FixedBy, decide.Unreadable
)
