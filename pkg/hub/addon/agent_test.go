package addon

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"
	"open-cluster-management.io/addon-framework/pkg/index"
	workv1 "open-cluster-management.io/api/work/v1"

	"open-cluster-management.io/cluster-inventory-addon/internal/apitest"
	"open-cluster-management.io/cluster-inventory-addon/internal/apitest/ocmtest"
)

// An addon that is enabled again may go to another namespace, although the ManifestWork
// of the previous installation is still there.
func TestWorksOfAPreviousInstallationDoNotCount(t *testing.T) {
	works := toolscache.NewIndexer(toolscache.MetaNamespaceKeyFunc, toolscache.Indexers{
		index.ManifestWorkByAddon: index.IndexManifestWorkByAddon,
	})
	a := &inventoryAgent{observed: observed{works: works}}
	addon := ocmtest.Addon("c1")
	addon.UID = "new"
	for _, owner := range []types.UID{"old", "new"} {
		work := &workv1.ManifestWork{ObjectMeta: metav1.ObjectMeta{
			Namespace: "c1", Name: "addon-cluster-inventory-deploy-0",
			Labels:          map[string]string{"open-cluster-management.io/addon-name": "cluster-inventory"},
			OwnerReferences: []metav1.OwnerReference{{Kind: "ManagedClusterAddOn", Name: "cluster-inventory", UID: owner}},
		}}
		apitest.Must(t, works.Update(work))
		there, err := a.deployed(addon)
		apitest.Must(t, err)
		if want := owner == addon.UID; (len(there) == 1) != want {
			t.Errorf("the work of the installation %s counts: %t", owner, !want)
		}
	}
}

// What became of a cluster whose addon is gone is not remembered, even if the framework
// was at work on it when it went.
func TestNothingIsRememberedOfAnAddonThatIsGone(t *testing.T) {
	addons := toolscache.NewStore(toolscache.MetaNamespaceKeyFunc)
	a := &inventoryAgent{observed: observed{addons: addons}, outcomes: newOutcomes(nil)}
	addon := ocmtest.Addon("c1")
	apitest.Must(t, addons.Add(addon))
	a.report(addon, nil, choice{known: true}, nil)
	if len(a.outcomes.byCluster) != 1 {
		t.Error("of an addon that is there nothing is remembered")
	}
	apitest.Must(t, addons.Delete(addon))
	a.outcomes.forget("c1")
	a.report(addon, nil, choice{known: true}, nil)
	if len(a.outcomes.byCluster) != 0 {
		t.Errorf("remembered: %v", a.outcomes.byCluster)
	}
}
