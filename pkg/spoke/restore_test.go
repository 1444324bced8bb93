package spoke

import (
	"context"
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"open-cluster-management.io/cluster-inventory-addon/internal/apitest"
	"open-cluster-management.io/cluster-inventory-addon/internal/apitest/spoketest"
	"open-cluster-management.io/cluster-inventory-addon/pkg/kube"
)

func TestEditsAreFollowedAfterTheSpokeWasRestored(t *testing.T) {
	w := newWorld(t, allVersions)
	agent := spokeServer.User(t, "system:serviceaccount:"+w.opts.InstallNamespace+":cluster-inventory-agent")
	w.opts.Kubeconfig = w.spoke.File("direct.kubeconfig", apitest.Kubeconfig(t, agent, ""))
	w.spoke.MustCreate(spoketest.Property("v1beta1", "location", "eu", nil))
	data := spokeServer.Snapshot(t)
	advance(w.spoke, w.opts.InstallNamespace)
	w.start()
	w.eventuallyClaims(map[string]string{"location*": "eu"})
	w.edit("v1beta1", "location", `{"spec":{"value":"lost"}}`)
	w.spoke.MustCreate(spoketest.Property("v1beta1", "lost", "v", nil))
	w.eventuallyClaims(map[string]string{"location*": "lost", "lost*": "v"})

	spokeServer.Restore(t, data, nil)
	w.spoke.Patience, w.hub.Patience = apitest.RestartPatience, apitest.RestartPatience
	w.eventuallyClaims(map[string]string{"location*": "eu"})
	w.edit("v1beta1", "location", `{"spec":{"value":"us"}}`)
	w.spoke.MustCreate(spoketest.Property("v1beta1", "new", "v", nil))
	w.eventuallyClaims(map[string]string{"location*": "us", "new*": "v"})
	w.eventuallyCondition("True Published 2 properties published.")
}

func TestTheReportIsMadeAgainAfterTheHubWasRestored(t *testing.T) {
	w := newWorld(t, allVersions)
	agent := hubServer.User(t, agentByCertificate(w.opts.ClusterName))
	path := w.hub.File("direct.kubeconfig", apitest.Kubeconfig(t, agent, ""))
	data := hubServer.Snapshot(t)
	advance(w.hub, w.opts.ClusterName)
	cfg, err := kube.Config(w.opts.Kubeconfig)
	apitest.Must(t, err)
	apitest.Run(t, func(ctx context.Context) error {
		return run(ctx, cfg, &clusterAccess{path: path, relist: time.Second}, w.opts)
	})
	w.eventuallyCondition("True Published There are no properties.")

	hubServer.Restore(t, data, nil)
	w.hub.Patience = apitest.RestartPatience
	w.eventuallyCondition("True Published There are no properties.")
	w.spoke.MustCreate(spoketest.Property("v1beta1", "location", "eu", nil))
	w.eventuallyCondition("True Published 1 property published.")
}

// advance moves a server's resource version by far more than a test writes afterwards.
func advance(w *apitest.World, namespace string) {
	w.T.Helper()
	written := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "advance"}}
	w.MustCreate(written)
	for i := range 500 {
		apitest.Edit(w, written, func(cm *corev1.ConfigMap) { cm.Data = map[string]string{"n": fmt.Sprint(i)} })
	}
}
