package spoke

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"open-cluster-management.io/cluster-inventory-addon/internal/apitest"
	"open-cluster-management.io/cluster-inventory-addon/pkg/spoke/internal/spoketest"
)

// Until the administrator has given it a kubeconfig that works, a hosted agent says on the
// hub what it lacks, and is alive and not ready. It follows another one without a restart.
func TestAHostedAgentWaitsForAKubeconfigThatWorks(t *testing.T) {
	w := newWorld(t, allVersions)
	good, err := os.ReadFile(w.opts.Kubeconfig)
	apitest.Must(t, err)
	agent := "system:serviceaccount:" + w.opts.InstallNamespace + ":cluster-inventory-agent"
	w.opts.Hosted, w.opts.Kubeconfig = true, filepath.Join(t.TempDir(), "kubeconfig")
	write := func(content []byte) { apitest.Must(t, os.WriteFile(w.opts.Kubeconfig, content, 0o600)) }
	w.spoke.MustCreate(spoketest.Property("v1beta1", "location", "eu", nil))
	apitest.Run(t, func(ctx context.Context) error { return Run(ctx, w.opts) })

	lacks := func(what string) {
		t.Helper()
		w.eventuallyCondition("False ManagedKubeconfigInvalid The Secret " + w.opts.InstallNamespace +
			"/cluster-inventory-managed-kubeconfig on the hosting cluster, with the kubeconfig of the managed cluster, " +
			"cannot be used: " + what + ".")
	}
	lacks("it does not exist, or has no key kubeconfig")
	if alive, ready := w.probe("healthz"), w.probe("readyz"); alive != "" || ready == "" {
		t.Errorf("alive: %q, ready: %q", alive, ready)
	}
	write([]byte("no kubeconfig"))
	lacks("its kubeconfig cannot be read")
	write(w.kubeconfig(spokeServer.User(t, "nobody")))
	lacks("its user may not list clusterproperties")
	nowhere := spokeServer.Config(t)
	nowhere.Host = "https://" + freeAddress(t)
	write(apitest.Kubeconfig(t, nowhere, ""))
	lacks("the managed cluster cannot be reached with it; the agent's log says why")
	w.claimsStay(map[string]string{})

	write(good)
	w.eventuallyCondition("True Published 1 property published.")
	w.eventuallyClaims(map[string]string{"location*": "eu"})
	w.spoke.Eventually("the agent is ready", func() string { return w.probe("readyz") })

	write([]byte("no kubeconfig"))
	write(w.kubeconfig(spokeServer.User(t, agent)))
	w.edit("v1beta1", "location", `{"spec":{"value":"us"}}`)
	w.eventuallyClaims(map[string]string{"location*": "us"})
	w.eventuallyCondition("True Published 1 property published.")

	apitest.Must(t, os.Remove(w.opts.Kubeconfig))
	lacks("it does not exist, or has no key kubeconfig")
	w.claimsStay(map[string]string{"location*": "us"})
	write(good)
	w.eventuallyCondition("True Published 1 property published.")
}
