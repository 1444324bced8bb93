package faults

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	rbacv1 "k8s.io/api/rbac/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
	clusterv1beta2 "open-cluster-management.io/api/cluster/v1beta2"
	workv1 "open-cluster-management.io/api/work/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"open-cluster-management.io/cluster-inventory-addon/internal/apitest"
	"open-cluster-management.io/cluster-inventory-addon/internal/apitest/hubtest"
	"open-cluster-management.io/cluster-inventory-addon/internal/apitest/ocmtest"
)

// ocm are the components of Open Cluster Management's that install addons.
var ocm = []component{placementController, addonManager, registrationController}

// byPlacement are the chart's values with which a Placement decides where the addon is, and one
// cluster at a time gets another agent.
const byPlacement = `
installStrategy:
  type: Placements
  placement: {create: false, name: ` + placementName + `, namespace: ` + installer + `}
  rollout: {type: Progressive, maxConcurrency: 1}
`

// nextRevision are values with which agents are of another revision.
const nextRevision = byPlacement + `
agent: {logLevel: 1}
`

// install is the story of clusters that join and leave the Placement by which the addon is installed.
// Open Cluster Management's own programs create and delete the addon on them.
func install() story {
	return story{
		name: "install", components: ocm,
		before: pairs(teamA, "c1", "c2", "c3"), after: pairs(teamA, "c1", "c3", "c4", "c5"),
		meanwhile: pairs(teamA, "c1"),
		targets:   map[string][]string{"c1": {teamA}, "c2": {teamA}},
		setup: func(w *world) {
			w.installs(map[string]string{"c1": "1", "c2": "3", "c3": "1", "c4": "0", "c5": "2"}, "1", "3")
			w.account("c1", teamA)
			w.account("c2", teamA)
			w.deployed("c1", "c2", "c3")
		},
		act: func(w *world) {
			w.wave("c4", "1")
			w.shows(teamA, "c4", "1")
			w.deployed("c4")
			w.wave("c1", "0")
			w.gone(teamA, "c1")
			w.removed("c1")
			// The number of chosen clusters stays the same.
			w.installsWaves("1", "2")
			w.gone(teamA, "c2")
			w.removed("c2")
			w.withdrawn(teamA) // also the right to copies, of which the last one is gone
			w.unread("c2")
			w.shows(teamA, "c5", "1")
			w.deployed("c5")
			w.wave("c1", "1")
			w.shows(teamA, "c1", "1")
			w.copied(teamA)
			w.deployed("c1")
		},
		undo: func(w *world) {
			w.wave("c4", "0")
			w.installsWaves("1", "3")
			for _, name := range []string{"c4", "c5"} {
				w.removed(name)
				// The garbage collector does that on other hubs.
				w.MustDelete(&rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Namespace: name, Name: agentRights}})
			}
			w.deployed("c1", "c2", "c3")
		},
	}
}

// rollback is the story of another revision of the agent that is taken back when it has reached some
// clusters, and does not become available on one.
func rollback() story {
	all := clusterNames[:4]
	return story{
		name: "rollback", components: ocm, before: pairs(teamA, all...), after: pairs(teamA, all...),
		targets: map[string][]string{"c1": {teamA}},
		setup: func(w *world) {
			waves := map[string]string{}
			for _, name := range all {
				waves[name] = "1"
			}
			w.installs(waves, "1")
			w.account("c1", teamA)
			w.wroteFirst(all)
			w.deployed(all...)
		},
		act: func(w *world) {
			first, second := w.revision(byPlacement), w.revision(nextRevision)
			w.spokes.fails("c3", second)
			for _, name := range all[:3] { // by name
				w.wrote[agentOf(name)] = []string{first, second, first}
			}
			w.upgrades(nextRevision)
			w.runs("c3", second)
			w.deployed("c1", "c2")
			w.upgrades(byPlacement)
			for _, name := range all {
				w.runs(name, first)
			}
			w.deployed(all...)
		},
		undo: func(w *world) {
			w.forgetRollout()
			w.wroteFirst(all)
			w.deployed(all...)
		},
	}
}

// wroteFirst notes that clusters have had no AgentRevision but the first.
func (w *world) wroteFirst(clusters []string) {
	w.T.Helper()
	first := w.revision(byPlacement)
	for _, name := range clusters {
		w.wrote[agentOf(name)] = []string{first}
	}
}

// agentOf is what a cluster's AgentRevisions are recorded by.
func agentOf(cluster string) string { return "agent of " + cluster }

// installs registers clusters of the set, by their waves, and installs the addon on those of the
// chosen waves. Their profiles are in the first team's namespace.
func (w *world) installs(waves map[string]string, chosen ...string) {
	w.T.Helper()
	w.set(prod)
	for _, name := range slices.Sorted(maps.Keys(waves)) {
		labels := ocmtest.InSet(prod)
		labels[waveLabel] = waves[name]
		cluster := &clusterv1.ManagedCluster{
			ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels},
			Spec:       clusterv1.ManagedClusterSpec{HubAcceptsClient: true, LeaseDurationSeconds: leaseSeconds},
		}
		w.MustCreate(cluster)
		apitest.EditStatus(w, cluster, func(c *clusterv1.ManagedCluster) { c.Status = joined(name, "1") })
		w.wrote[name] = append(w.wrote[name], "1")
	}
	w.Bind(teamA, prod)
	w.upgrades(byPlacement)
	w.forgetRollout()
	w.MustCreate(
		&clusterv1beta2.ManagedClusterSetBinding{
			ObjectMeta: metav1.ObjectMeta{
				Namespace: installer, Name: prod,
				Labels: map[string]string{"inventory.open-cluster-management.io/publish": "false"},
			},
			Spec: clusterv1beta2.ManagedClusterSetBindingSpec{ClusterSet: prod},
		},
		&clusterv1beta1.Placement{
			ObjectMeta: metav1.ObjectMeta{Namespace: installer, Name: placementName},
			Spec:       clusterv1beta1.PlacementSpec{Predicates: ofWaves(chosen...)},
		},
	)
}

// installsWaves changes where the addon is installed.
func (w *world) installsWaves(waves ...string) {
	w.T.Helper()
	placement := &clusterv1beta1.Placement{ObjectMeta: metav1.ObjectMeta{Namespace: installer, Name: placementName}}
	apitest.Edit(w, placement, func(p *clusterv1beta1.Placement) { p.Spec.Predicates = ofWaves(waves...) })
}

// rendered are, of what the chart makes of values, the AgentRevision, the rights to deploy it and, at
// the end, the ClusterManagementAddOn.
func (w *world) rendered(values string) []*unstructured.Unstructured {
	w.T.Helper()
	var before, after []*unstructured.Unstructured
	for _, object := range hubtest.MustRender(w.T, values) {
		switch {
		case isDefinition(object):
			after = append(after, object)
		case isRevision(object) || hubtest.AgentImageRights(object):
			before = append(before, object)
		}
	}
	return append(before, after...)
}

func isDefinition(object *unstructured.Unstructured) bool {
	return object.GetKind() == "ClusterManagementAddOn"
}

// revision is the name of the AgentRevision that the chart makes of values.
func (w *world) revision(values string) string {
	w.T.Helper()
	all := w.rendered(values)
	return all[slices.IndexFunc(all, isRevision)].GetName()
}

func isRevision(object *unstructured.Unstructured) bool { return object.GetKind() == "AgentRevision" }

// upgrades does with these objects what helm upgrade does: it creates what there is not, and changes
// the ClusterManagementAddOn.
func (w *world) upgrades(values string) {
	w.T.Helper()
	for _, object := range w.rendered(values) {
		found := object.DeepCopy()
		switch {
		case !w.Find(found):
			w.MustCreate(object)
		case isDefinition(object):
			spec, err := json.Marshal(map[string]any{"spec": object.Object["spec"]})
			apitest.Must(w.T, err)
			w.MustMerge(found, string(spec))
		}
	}
}

// forgetRollout removes what an earlier run has left: AgentRevisions that nothing names, and how far
// their rollout was.
func (w *world) forgetRollout() {
	w.T.Helper()
	definition := &addonv1beta1.ClusterManagementAddOn{ObjectMeta: metav1.ObjectMeta{Name: ocmtest.AddonName}}
	nothing := client.RawPatch(types.MergePatchType, []byte(`{"status":null}`))
	apitest.Must(w.T, w.Status().Patch(w.T.Context(), definition, nothing))
	present := w.revision(byPlacement)
	revisions := &unstructured.UnstructuredList{}
	revisions.SetAPIVersion("inventory.open-cluster-management.io/v1alpha1")
	revisions.SetKind("AgentRevisionList")
	w.MustList(revisions)
	for i := range revisions.Items {
		if revisions.Items[i].GetName() != present {
			w.MustDelete(&revisions.Items[i])
		}
	}
}

// deployed waits until Open Cluster Management counts clusters as done with the agent that they
// should have.
func (w *world) deployed(clusters ...string) {
	w.T.Helper()
	for _, cluster := range clusters {
		w.stepWithin(w.patience, spokesPoll, "the agent of "+cluster+" is deployed", func() bool {
			addon := ocmtest.Addon(cluster)
			return w.Find(addon) && isDone(addon)
		})
	}
}

// isDone reports whether Open Cluster Management counts an addon as done.
func isDone(addon *addonv1beta1.ManagedClusterAddOn) bool {
	progress := apimeta.FindStatusCondition(addon.Status.Conditions, addonv1beta1.ManagedClusterAddOnConditionProgressing)
	return progress != nil && progress.Reason == addonv1beta1.ProgressingReasonCompleted &&
		len(addon.Status.ConfigReferences) > 0 &&
		apimeta.IsStatusConditionTrue(addon.Status.Conditions, addonv1beta1.ManagedClusterAddOnConditionAvailable)
}

// runs waits until a cluster's ManifestWork deploys the agent of an AgentRevision.
func (w *world) runs(cluster, revision string) {
	w.T.Helper()
	w.stepWithin(w.patience, spokesPoll, fmt.Sprintf("%s has the agent %s", cluster, revision), func() bool {
		work := &workv1.ManifestWork{ObjectMeta: metav1.ObjectMeta{Namespace: cluster, Name: deployWork}}
		return w.Find(work) && revisionIn(work.Annotations) == revision
	})
}

// removed waits until the addon on a cluster is gone, with its ManifestWorks.
func (w *world) removed(cluster string) {
	w.T.Helper()
	w.stepWithin(w.patience, spokesPoll, "the addon on "+cluster+" is gone", func() bool {
		left := &workv1.ManifestWorkList{}
		w.MustList(left, client.InNamespace(cluster))
		return len(left.Items) == 0 && !w.Find(ocmtest.Addon(cluster))
	})
}
