package addon

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	"open-cluster-management.io/addon-framework/pkg/index"
	"open-cluster-management.io/addon-framework/pkg/utils"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"

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

// agentRevision is an AgentRevision that was created at a time, in seconds.
func agentRevision(name, manifests string, created int64) *unstructured.Unstructured {
	revision := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{
		"manifests": manifests, "image": "example.com/inventory:" + name, "imagePullPolicy": "Always",
		"installNamespace": "agents",
	}}}
	revision.SetName(name)
	revision.SetCreationTimestamp(metav1.Unix(created, 0))
	trimmed, err := trimConfiguration(revision)
	if err != nil {
		panic(err)
	}
	return trimmed.(*unstructured.Unstructured)
}

// revisionReference makes an addon refer to an AgentRevision, as Open Cluster Management does
// when the cluster's turn has come.
func revisionReference(revision *unstructured.Unstructured) addonv1beta1.ConfigReference {
	hash, err := utils.GetSpecHash(revision)
	if err != nil {
		panic(err)
	}
	return addonv1beta1.ConfigReference{ConfigGroupResource: agentRevisions, DesiredConfig: &addonv1beta1.ConfigSpecHash{
		ConfigReferent: addonv1beta1.ConfigReferent{Name: revision.GetName()}, SpecHash: hash,
	}}
}

func TestNewestRevision(t *testing.T) {
	later := agentRevision("b", "2", 7)
	tests := map[string]struct {
		revisions []*unstructured.Unstructured
		want      string
	}{
		"none": {},
		"the one created last": {revisions: []*unstructured.Unstructured{agentRevision("c", "2", 5),
			later, agentRevision("d", "1", 6)}, want: "b"},
		"the last by name, in doubt": {revisions: []*unstructured.Unstructured{later, agentRevision("a", "2", 7)},
			want: "b"},
		"none for another manager": {revisions: []*unstructured.Unstructured{agentRevision("a", "3", 9), later},
			want: "b"},
		"no other for want of a good": {revisions: []*unstructured.Unstructured{agentRevision("a", "3", 9)}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			store := toolscache.NewStore(toolscache.MetaNamespaceKeyFunc)
			for _, revision := range test.revisions {
				apitest.Must(t, store.Add(revision))
			}
			got := ""
			if newest := newRevisions(store, nil).newest(); newest != nil {
				got = strings.TrimPrefix(newest.values.Image, "example.com/inventory:")
			}
			if got != test.want {
				t.Errorf("%q is the newest, want %q", got, test.want)
			}
		})
	}
}

// A configuration for another version of the manager is distinguished from a wrong one: the
// next leader may have that version.
func TestRevisionsForAnotherManagerAreRecognized(t *testing.T) {
	wrong := agentRevision("wrong", "2", 1)
	apitest.Must(t, unstructured.SetNestedField(wrong.Object, "", "spec", "image"))
	for _, test := range []struct {
		revision *unstructured.Unstructured
		want     bool
	}{{agentRevision("later", "3", 1), true}, {wrong, false}} {
		revisions := newRevisions(toolscache.NewStore(toolscache.MetaNamespaceKeyFunc), nil)
		apitest.Must(t, revisions.indexer.Add(test.revision))
		name := addonv1beta1.ConfigReferent{Name: test.revision.GetName()}
		_, refused := revisionKind().choose([]addonv1beta1.ConfigSpecHash{{
			ConfigReferent: name, SpecHash: revisions.find(name).hash,
		}}, revisions.find)
		if refused == nil || refused.reason != "InvalidConfiguration" || refused.unknownManifests != test.want {
			t.Errorf("%s: %+v", name.Name, refused)
		}
	}
}
