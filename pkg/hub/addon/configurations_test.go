package addon

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	"open-cluster-management.io/addon-framework/pkg/index"

	"open-cluster-management.io/cluster-inventory-addon/internal/apitest"
	"open-cluster-management.io/cluster-inventory-addon/internal/apitest/ocmtest"
)

// deploymentConfig is a configuration that sets the namespace of agents, always of one
// UID and generation.
func deploymentConfig(namespace string) *unstructured.Unstructured {
	config := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"agentInstallNamespace": namespace}}}
	config.SetNamespace("configs")
	config.SetName("a")
	config.SetUID("u")
	config.SetGeneration(1)
	return config
}

// The content of a configuration may change without a new generation, as when the API
// gets another default.
func TestConfigurationsAreJudgedByTheirContent(t *testing.T) {
	configs := toolscache.NewStore(toolscache.MetaNamespaceKeyFunc)
	c := newConfigurations(configs)
	addons := toolscache.NewIndexer(toolscache.MetaNamespaceKeyFunc, toolscache.Indexers{
		indexAddonByConfiguration: index.IndexAddonByConfig,
	})
	queue := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[string]())
	defer queue.ShutDown()
	handler := c.onConfigurations(addons, queue)

	one, another := deploymentConfig("one"), deploymentConfig("another")
	apitest.Must(t, configs.Add(one))
	first := c.find(referent("a"))
	addon := ocmtest.Addon("c1")
	refersTo("a", c.judge(another).hash)(addon)
	apitest.Must(t, addons.Add(addon))
	apitest.Must(t, configs.Update(another))
	handler.OnUpdate(one, another)

	second := c.find(referent("a"))
	got := []string{first.overrides.installNamespace, second.overrides.installNamespace}
	if diff := cmp.Diff([]string{"one", "another"}, got); diff != "" {
		t.Errorf("namespaces (-want +got):\n%s", diff)
	}
	if queue.Len() != 1 {
		t.Errorf("%d clusters are looked at again, want the one that is to have the content", queue.Len())
	}
	handler.OnUpdate(another, another.DeepCopy())
	if queue.Len() != 1 {
		t.Errorf("%d clusters are looked at again", queue.Len())
	}
}
