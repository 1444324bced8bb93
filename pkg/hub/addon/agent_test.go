package addon

import (
	"context"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/utils/ptr"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	workv1 "open-cluster-management.io/api/work/v1"

	"open-cluster-management.io/cluster-inventory-addon/internal/apitest"
	"open-cluster-management.io/cluster-inventory-addon/internal/apitest/addontest"
	"open-cluster-management.io/cluster-inventory-addon/internal/apitest/ocmtest"
	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/addon/configuration"
	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/addon/manifests"
)

// An addon that is enabled again may go to another namespace, although the ManifestWork
// of the previous installation is still there.
func TestWorksOfAPreviousInstallationDoNotCount(t *testing.T) {
	works := toolscache.NewIndexer(toolscache.MetaNamespaceKeyFunc, workIndexers())
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
		there := a.observed.deployed(addon)
		if want := owner == addon.UID; (len(there.Works) == 1) != want {
			t.Errorf("the work of the installation %s counts: %t", owner, !want)
		}
	}
}

// The outcome of a cluster whose addon is deleted is not remembered, even if the framework
// was processing the addon at that time.
func TestDeletedAddonIsForgotten(t *testing.T) {
	addons := toolscache.NewIndexer(toolscache.MetaNamespaceKeyFunc, hostIndexers())
	a := &inventoryAgent{observed: observed{addons: addons}, outcomes: configuration.NewOutcomes(nil)}
	addon := ocmtest.Addon("c1")
	apitest.Must(t, addons.Add(addon))
	announced := 0 // unless the same outcome is remembered
	a.outcomes.Subscribe(func(string) { announced++ })
	reports := func(want int, what string) {
		t.Helper()
		announced = 0
		a.report("c1", configuration.Decision{Known: true}, "")
		a.report("c1", configuration.Decision{Known: true}, "")
		if announced != want {
			t.Errorf("%s: announced %d times, want %d", what, announced, want)
		}
	}
	reports(1, "an existing addon is remembered")
	apitest.Must(t, addons.Delete(addon))
	a.outcomes.Forget("c1")
	reports(2, "a deleted addon is not")
}

// An addon that waits for its clean-up gets it even if its configuration is missing and
// its ManifestWork is gone; one that was never installed needs none.
func TestCleanupNeedsNeitherAConfigurationNorAManifestWork(t *testing.T) {
	renderers, err := manifests.NewRenderers()
	apitest.Must(t, err)
	revisions := toolscache.NewStore(toolscache.MetaNamespaceKeyFunc)
	a := &inventoryAgent{renderers: renderers, outcomes: configuration.NewOutcomes(nil), observed: observed{
		addons:  toolscache.NewIndexer(toolscache.MetaNamespaceKeyFunc, hostIndexers()),
		works:   toolscache.NewIndexer(toolscache.MetaNamespaceKeyFunc, workIndexers()),
		sources: sourcesOf(toolscache.NewIndexer(toolscache.MetaNamespaceKeyFunc, nil), revisions),
	}}
	cluster := &clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: "c1"}}
	addon := ocmtest.Addon("c1")
	addon.Status.ConfigReferences = []addonv1beta1.ConfigReference{{
		ConfigGroupResource: addontest.DeploymentConfigs,
		DesiredConfig: &addonv1beta1.ConfigSpecHash{
			ConfigReferent: addonv1beta1.ConfigReferent{Namespace: "configs", Name: "missing"}, SpecHash: "h1",
		},
	}}
	addon.DeletionTimestamp, addon.Status.Namespace = ptr.To(metav1.Now()), "elsewhere"
	cleanup := func() []string {
		t.Helper()
		objects, err := a.Manifests(t.Context(), cluster, addon)
		apitest.Must(t, err)
		var jobs []string
		for _, object := range objects {
			if object.GetObjectKind().GroupVersionKind().Kind == "Job" {
				jobs = append(jobs, object.(metav1.Object).GetNamespace())
			}
		}
		return jobs
	}
	if diff := cmp.Diff([]string(nil), cleanup()); diff != "" {
		t.Errorf("clean-up Jobs of what was not installed (-want +got):\n%s", diff)
	}
	addon.Finalizers = []string{hookFinalizer}
	if manifests, err := a.Manifests(t.Context(), cluster, addon); !errors.Is(err, configuration.ErrNoImage) || manifests != nil {
		t.Errorf("%d manifests without an image: %v", len(manifests), err)
	}
	apitest.Must(t, revisions.Add(addontest.AgentRevision("v1", "2", 1)))
	if diff := cmp.Diff([]string{"elsewhere"}, cleanup()); diff != "" {
		t.Errorf("namespaces of clean-up Jobs (-want +got):\n%s", diff)
	}
}

// An addon that OCM's addon manager deletes although the install strategy is about to create
// it again is not cleaned up: the framework releases an addon without a clean-up Job.
func TestAnAddonThatIsCreatedAgainIsNotCleanedUp(t *testing.T) {
	renderers, err := manifests.NewRenderers()
	apitest.Must(t, err)
	revisions := toolscache.NewStore(toolscache.MetaNamespaceKeyFunc)
	definitions := toolscache.NewIndexer(toolscache.MetaNamespaceKeyFunc, toolscache.Indexers{})
	var again, known bool
	var asked []string
	a := &inventoryAgent{
		renderers: renderers, outcomes: configuration.NewOutcomes(nil),
		observed: observed{
			addons:  toolscache.NewIndexer(toolscache.MetaNamespaceKeyFunc, hostIndexers()),
			works:   toolscache.NewIndexer(toolscache.MetaNamespaceKeyFunc, workIndexers()),
			sources: sourcesOf(definitions, revisions),
		},
		reinstalls: func(context.Context, *addonv1beta1.ManagedClusterAddOn) (bool, bool, error) { return again, known, nil },
		askAgain:   func(cluster string) { asked = append(asked, cluster) },
	}
	apitest.Must(t, revisions.Add(addontest.AgentRevision("v1", "2", 1)))
	cluster := &clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: "c1"}}
	cluster.Spec.HubAcceptsClient = true
	addon := ocmtest.Addon("c1")
	addon.UID, addon.Finalizers = "uid", []string{hookFinalizer}
	addon.DeletionTimestamp = ptr.To(metav1.Now())
	definition := &addonv1beta1.ClusterManagementAddOn{ObjectMeta: metav1.ObjectMeta{Name: "cluster-inventory"}}
	strategy := func(kind string) {
		definition.Spec.InstallStrategy.Type = kind
		apitest.Must(t, definitions.Update(definition))
	}
	check := func(what, want string) {
		t.Helper()
		got := "clean-up"
		objects, err := a.Manifests(t.Context(), cluster, addon)
		switch {
		case errors.Is(err, configuration.ErrHeld):
			got = "waits"
		case err != nil:
			t.Errorf("%s: %v", what, err)
		case len(objects) == 0:
			got = "let go"
		}
		if got != want {
			t.Errorf("%s: %s, want %s", what, got, want)
		}
	}
	strategy("Placements")
	check("it is unknown", "waits")
	if diff := cmp.Diff([]string{"c1"}, asked); diff != "" {
		t.Errorf("asked again (-want +got):\n%s", diff)
	}
	known = true
	check("it is removed", "clean-up")
	again = true
	check("it is created again", "let go")

	cluster.Spec.HubAcceptsClient = false
	check("the cluster is not accepted", "clean-up")
	cluster.Spec.HubAcceptsClient = true
	cluster.DeletionTimestamp = addon.DeletionTimestamp
	check("the cluster is being detached", "clean-up")
	cluster.DeletionTimestamp = nil
	strategy("Manual")
	check("nothing would create it", "clean-up")
	strategy("Placements")
	definition.DeletionTimestamp = addon.DeletionTimestamp
	strategy("Placements")
	check("its definition is deleted after it", "clean-up")
	definition.DeletionTimestamp = nil
	strategy("Placements")
	check("that is over", "let go")

	onHost := func(installation types.UID) {
		t.Helper()
		objects, err := renderers.Render(values().OnHost(), "c1", string(installation))
		apitest.Must(t, err)
		work := &workv1.ManifestWork{ObjectMeta: metav1.ObjectMeta{
			Namespace: "host", Name: "addon-cluster-inventory-pre-delete-hosting-c1",
		}}
		all := addontest.Work(t, "c1", string(installation), objects)
		for i, object := range objects {
			if object.GetObjectKind().GroupVersionKind().Kind == "Job" {
				work.Spec.Workload.Manifests = append(work.Spec.Workload.Manifests, all.Spec.Workload.Manifests[i])
			}
		}
		apitest.Must(t, a.observed.works.Update(manifests.NewWorkTrimmer().Trim(work)))
	}
	onHost("of a previous installation")
	check("a work of an earlier addon was left on a hosting cluster", "let go")
	onHost(addon.UID)
	check("the clean-up on the hosting cluster has begun", "clean-up")
	for _, work := range a.observed.works.List() {
		apitest.Must(t, a.observed.works.Delete(work))
	}

	cleanup := func(owner types.UID) {
		apitest.Must(t, a.observed.works.Update(&workv1.ManifestWork{ObjectMeta: metav1.ObjectMeta{
			Namespace: "c1", Name: "addon-cluster-inventory-pre-delete",
			Labels:          map[string]string{"open-cluster-management.io/addon-name": "cluster-inventory"},
			OwnerReferences: []metav1.OwnerReference{{Kind: "ManagedClusterAddOn", Name: "cluster-inventory", UID: owner}},
		}}))
	}
	cleanup("of a previous installation")
	check("an earlier addon was cleaned up", "let go")
	cleanup(addon.UID)
	check("the clean-up has begun", "clean-up")
}
