package charts

import (
	"testing"

	"open-cluster-management.io/cluster-inventory-addon/internal/apitest"
	"open-cluster-management.io/cluster-inventory-addon/internal/apitest/hubtest"
)

// testPodsAreAcceptedWhereRestricted: an administrator may have the release's namespace enforce
// the Pod Security Standard "restricted".
func testPodsAreAcceptedWhereRestricted(t *testing.T) {
	p := install(t)
	for _, values := range []string{
		"",
		"metrics: {certificateSecret: serving}\naccess: {clusterProxy: {caBundle: \"-----BEGIN CERTIFICATE-----\"}}",
		"podSecurityContext: {runAsUser: 5, runAsGroup: 6, fsGroup: 7}",
	} {
		// The manager, the uninstall hook and the test.
		if found := apitest.CheckPodSecurity(p.World, server.Config(t), hubtest.MustRender(t, values)); found != 3 {
			t.Errorf("%q: %d workloads, want 3", values, found)
		}
	}
}
