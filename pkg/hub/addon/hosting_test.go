package addon

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	toolscache "k8s.io/client-go/tools/cache"
	"open-cluster-management.io/addon-framework/pkg/index"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	addonlisters "open-cluster-management.io/api/client/addon/listers/addon/v1beta1"

	"open-cluster-management.io/cluster-inventory-addon/internal/apitest"
	"open-cluster-management.io/cluster-inventory-addon/internal/apitest/ocmtest"
)

// When the framework asks for the namespace, it has put its own default into the status of
// the addon that it passes. The hosting cluster's own agent is in just that namespace.
func TestTheFrameworksDefaultNamespaceIsNotTaken(t *testing.T) {
	const usual = "open-cluster-management-agent-addon"
	renderers, err := newRenderers(values().of("", ""))
	apitest.Must(t, err)
	addons := toolscache.NewIndexer(toolscache.MetaNamespaceKeyFunc, toolscache.Indexers{indexAddonByPlace: indexPlace})
	a := &inventoryAgent{renderers: renderers, outcomes: newOutcomes(nil), observed: observed{
		addons: addons,
		places: addons,
		works: toolscache.NewIndexer(toolscache.MetaNamespaceKeyFunc, toolscache.Indexers{
			index.ManifestWorkByAddon:       index.IndexManifestWorkByAddon,
			index.ManifestWorkByHostedAddon: index.IndexManifestWorkByHostedAddon,
		}),
		definitions: addonlisters.NewClusterManagementAddOnLister(toolscache.NewIndexer(toolscache.MetaNamespaceKeyFunc, nil)),
		configs:     newConfigurations(toolscache.NewStore(toolscache.MetaNamespaceKeyFunc)),
	}}
	host, hosted := ocmtest.Addon("host"), ocmtest.Addon("c1")
	host.Status.Namespace = usual
	hosted.Annotations = map[string]string{hostingAnnotation: "host"}
	for _, addon := range []*addonv1beta1.ManagedClusterAddOn{host, hosted} {
		addon.Status.Conditions = []metav1.Condition{ocmtest.Condition("Configured", "True", "R", "")}
		apitest.Must(t, addons.Add(addon))
	}
	passed := hosted.DeepCopy()
	passed.Status.Namespace = usual
	if got, err := a.namespace(t.Context(), passed); err != nil || got != "cluster-inventory-c1" {
		t.Errorf("namespace %q, %v", got, err)
	}
}
