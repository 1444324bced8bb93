package configuration

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	toolscache "k8s.io/client-go/tools/cache"
	"open-cluster-management.io/addon-framework/pkg/index"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"

	"open-cluster-management.io/cluster-inventory-addon/internal/apitest"
	"open-cluster-management.io/cluster-inventory-addon/internal/apitest/addontest"
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
func TestConfigurationsAreValidatedByTheirContent(t *testing.T) {
	configs := toolscache.NewStore(toolscache.MetaNamespaceKeyFunc)
	c := NewDeploymentConfigs(configs)
	addons := toolscache.NewIndexer(toolscache.MetaNamespaceKeyFunc, toolscache.Indexers{
		IndexAddonByConfiguration: index.IndexAddonByConfig,
	})
	var enqueued []string
	handler := c.Handler(addons, func(cluster string) { enqueued = append(enqueued, cluster) })

	one, another := deploymentConfig("one"), deploymentConfig("another")
	apitest.Must(t, configs.Add(one))
	first := c.find(referent("a"))
	addon := ocmtest.Addon("c1")
	refersTo("a", c.validated(another).hash)(addon)
	apitest.Must(t, addons.Add(addon))
	apitest.Must(t, configs.Update(another))
	handler.OnUpdate(one, another)

	second := c.find(referent("a"))
	got := []string{first.overrides.installNamespace, second.overrides.installNamespace}
	if diff := cmp.Diff([]string{"one", "another"}, got); diff != "" {
		t.Errorf("namespaces (-want +got):\n%s", diff)
	}
	if len(enqueued) != 1 {
		t.Errorf("%d clusters are looked at again, want the one that is to have the content", len(enqueued))
	}
	handler.OnUpdate(another, another.DeepCopy())
	if len(enqueued) != 1 {
		t.Errorf("%d clusters are looked at again", len(enqueued))
	}
}

// agentRevision returns one as it is cached.
func agentRevision(name, manifests string, created int64) *unstructured.Unstructured {
	return Trim(addontest.AgentRevision(name, manifests, created))
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
			if newest := NewRevisions(store, nil).newest(); newest != nil {
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
		revisions := NewRevisions(toolscache.NewStore(toolscache.MetaNamespaceKeyFunc), nil)
		apitest.Must(t, revisions.indexer.Add(test.revision))
		name := addonv1beta1.ConfigReferent{Name: test.revision.GetName()}
		_, refused := RevisionKind().choose([]addonv1beta1.ConfigSpecHash{{
			ConfigReferent: name, SpecHash: revisions.find(name).hash,
		}}, revisions.find)
		if refused == nil || refused.Reason != "InvalidConfiguration" || refused.UnknownManifests != test.want {
			t.Errorf("%s: %+v", name.Name, refused)
		}
	}
}
