package charts

import (
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
	clusterv1beta2 "open-cluster-management.io/api/cluster/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/engine"

	"open-cluster-management.io/cluster-inventory-addon/internal/apitest"
	"open-cluster-management.io/cluster-inventory-addon/internal/apitest/hubtest"
	"open-cluster-management.io/cluster-inventory-addon/internal/apitest/ocmtest"
	"open-cluster-management.io/cluster-inventory-addon/internal/manifesttest"
)

// The values of a release whose install Placement has these groups.
const (
	noGroups = `{}`
	canary   = `{groupStrategy: {decisionGroups: [{groupName: canary,
      groupClusterSelector: {labelSelector: {matchLabels: {canary: "true"}}}}]}}`
	// sameCanary is canary as the API server completes it.
	sameCanary = `{groupStrategy: {clustersPerDecisionGroup: 100%, decisionGroups: [{groupName: canary,
      groupClusterSelector: {labelSelector: {matchLabels: {canary: "true"}}}}]}}`
	ofTen = `{groupStrategy: {clustersPerDecisionGroup: 10}}`
)

func groupsOf(strategy, groups string) string {
	return fmt.Sprintf("installStrategy: {type: %s, placement: {clusterSet: sandbox-fleet, decisionStrategy: %s}}", strategy, groups)
}

// TestInstallPlacementIsNotChangedUnderTheClusters: Open Cluster Management would take the addon
// from clusters, and the message leads to the steps with which it does not.
func TestInstallPlacementIsNotChangedUnderTheClusters(t *testing.T) {
	hub := ocmtest.New(t, server.Config(t))
	const (
		regroups = "has the addon, and OCM would take it from clusters that Placement"
		losesAll = "has the addon and would lose it, with its profiles, until Placement"
	)
	for name, test := range map[string]struct {
		has     string // the values of the release, or nothing
		live    string // the install strategy that the hub has, if not that of the release
		gets    string // the values of the upgrade
		addon   bool
		refused string
		decided bool
		missing int // clusters that the Placement counts, and no slice has
	}{
		"groups are added": {
			has: groupsOf("Placements", noGroups), gets: groupsOf("Placements", canary), addon: true, decided: true, refused: regroups,
		},
		"groups are removed": {
			has: groupsOf("Placements", canary), gets: groupsOf("Placements", noGroups), addon: true, decided: true, refused: regroups,
		},
		"groups become smaller": {
			has: groupsOf("Placements", noGroups), gets: groupsOf("Placements", ofTen), addon: true, decided: true, refused: regroups,
		},
		"groups are added in the step to Manual, which is first": {
			has: groupsOf("Placements", noGroups), gets: groupsOf("Manual", canary), addon: true, decided: true, refused: regroups,
		},
		"no cluster has the addon": {
			has: groupsOf("Placements", noGroups), gets: groupsOf("Placements", canary), decided: true,
		},
		"the same groups": {
			has: groupsOf("Placements", canary), gets: groupsOf("Placements", canary), addon: true, decided: true,
		},
		"the same groups, with the default written out": {
			has: groupsOf("Placements", canary), gets: groupsOf("Placements", sameCanary), addon: true, decided: true,
		},
		"GitOps, where changes are not watched": {
			has: groupsOf("Placements", noGroups), addon: true, decided: true,
			gets: "{gitOps: true, access: {clusterProxy: {enabled: false}}, " + strings.TrimPrefix(groupsOf("Placements", canary)+"}", "{"),
		},

		"first step: Manual": {
			has: groupsOf("Placements", noGroups), gets: groupsOf("Manual", noGroups), addon: true, decided: true,
		},
		"second step: other groups": {
			has: groupsOf("Manual", noGroups), gets: groupsOf("Manual", canary), addon: true, decided: true,
		},
		"second step, where a user has set Manual by hand": {
			has: groupsOf("Placements", noGroups), live: "Manual", gets: groupsOf("Manual", canary), addon: true, decided: true,
		},
		"third step, before the Placement has decided": {
			has: groupsOf("Manual", canary), gets: groupsOf("Placements", canary), addon: true, refused: losesAll,
		},
		"third step, while a slice is still to be written": {
			has: groupsOf("Manual", canary), gets: groupsOf("Placements", canary), addon: true, decided: true, missing: 1, refused: losesAll,
		},
		"third step": {
			has: groupsOf("Manual", canary), gets: groupsOf("Placements", canary), addon: true, decided: true,
		},
		"to a Placement that does not exist": {
			gets: groupsOf("Placements", noGroups), addon: true, refused: losesAll,
		},
	} {
		t.Run(name, func(t *testing.T) {
			h := hub.In(t)
			namespace := h.Namespace("strategy", nil)
			if test.has != "" {
				release(t, h, namespace, test.has, test.live)
			}
			if test.decided {
				decide(t, h, namespace, test.missing)
			}
			if test.addon {
				addon := ocmtest.Addon(h.Namespace("cluster", nil))
				h.MustCreate(addon)
				h.CleanUp(addon)
			}

			err := upgrade(t, namespace, test.gets)
			switch {
			case test.refused == "":
				apitest.Must(t, err)
			case err == nil:
				t.Error("not refused")
			case !strings.Contains(err.Error(), test.refused+" "+namespace+"/cluster-inventory "):
				t.Errorf("%v\ndoes not say %q", err, test.refused)
			default:
				for _, step := range []string{
					"type=Manual", "wait until", "status.numberOfSelectedClusters", "type=Placements",
				} {
					if _, after, found := strings.Cut(err.Error(), step); !found {
						t.Errorf("%v\ndoes not go on with %q", err, step)
					} else {
						err = fmt.Errorf("...%s", after) //nolint:err113 // the rest of a message
					}
				}
			}
		})
	}
}

// TestInstallPlacementKeepsItsSet: a Placement chooses nothing once it, or the binding of its set, is
// deleted. The message leads to what prevents that.
func TestInstallPlacementKeepsItsSet(t *testing.T) {
	hub := ocmtest.New(t, server.Config(t))
	const (
		set         = "managedclustersetbinding/sandbox-fleet"
		both        = "placement/cluster-inventory " + set
		present     = "{type: Placements, placement: {clusterSet: sandbox-fleet}}"
		nothingKept = "" // the remedy is not to keep something
	)
	makeSet := func(h *ocmtest.Hub, _ string) {
		another := ocmtest.ExclusiveSet("another")
		h.MustCreate(another)
		h.CleanUp(another)
	}
	edited := func(metadata string) func(h *ocmtest.Hub, namespace string) {
		return func(h *ocmtest.Hub, namespace string) {
			h.MustMerge(ocmtest.Binding(namespace, "sandbox-fleet"), `{"metadata":`+metadata+`}`)
		}
	}
	for name, test := range map[string]struct {
		has, gets string // installStrategy of the release, and of the upgrade
		before    func(h *ocmtest.Hub, namespace string)
		keep      string
		refused   string // nothing if it is allowed, and nothing is to be kept
		remedy    func(h *ocmtest.Hub, namespace string)
	}{
		"handover to a Placement of one's own": {
			has: present, gets: "{type: Placements, placement: {create: false, name: mine}}", keep: both,
		},
		"the same with the set named": {
			has: present, gets: "{type: Placements, placement: {create: false, name: mine, clusterSet: sandbox-fleet}}", keep: both,
		},
		"handover while the type was Manual": {
			has: "{placement: {clusterSet: sandbox-fleet}}", keep: set,
			gets: "{type: Placements, placement: {create: false, name: mine}}",
		},
		"takeover of the chart's Placement": {
			has: present, gets: "{type: Placements, placement: {create: false}}", keep: both,
		},
		"the chart's binding is taken for somebody else's": {
			has: present, gets: "{type: Placements, placement: {clusterSet: sandbox-fleet, createBinding: false}}", keep: set,
		},
		"a binding that belongs to no release": {
			has: present, gets: "{type: Placements, placement: {clusterSet: sandbox-fleet, createBinding: false}}", keep: nothingKept,
			before: edited(`{"annotations":null}`),
		},
		"a binding of this release that is not the chart's own": {
			has: present, gets: "{type: Placements, placement: {clusterSet: sandbox-fleet, createBinding: false}}", keep: nothingKept,
			before: edited(`{"labels":null}`),
		},
		"a set that does not exist": {
			has: present, gets: "{type: Placements, placement: {clusterSet: another}}", keep: nothingKept,
			refused: "from ManagedClusterSet another, which does not exist", remedy: makeSet,
		},
		"a set that is not bound": {
			has: present, gets: "{type: Placements, placement: {clusterSet: another, createBinding: false}}", keep: nothingKept,
			before: makeSet, refused: "clusteradm clusterset bind another --namespace ",
			remedy: func(h *ocmtest.Hub, namespace string) { h.CleanUp(h.Bind(namespace, "another")) },
		},
	} {
		t.Run(name, func(t *testing.T) {
			h := hub.In(t)
			namespace := h.Namespace("strategy", nil)
			gets := "installStrategy: " + test.gets
			release(t, h, namespace, "installStrategy: "+test.has, "")
			decide(t, h, namespace, 0)
			mine, decision := h.Placement(namespace, "mine", "cluster")
			h.CleanUp(mine, decision)
			apitest.Edit(h, mine, func(p *clusterv1beta1.Placement) { p.Spec.ClusterSets = []string{"sandbox-fleet"} })
			if test.before != nil {
				test.before(h, namespace)
			}
			apitest.Must(t, upgrade(t, namespace, gets)) // no cluster has the addon

			addon := ocmtest.Addon(h.Namespace("cluster", nil))
			h.MustCreate(addon)
			h.CleanUp(addon)
			refused := test.refused
			if test.keep != nothingKept {
				refused = fmt.Sprintf("kubectl annotate %s -n %s helm.sh/resource-policy=keep", test.keep, namespace)
			}
			err := upgrade(t, namespace, gets)
			if refused == "" {
				apitest.Must(t, err)
				return
			}
			if err == nil || !strings.Contains(err.Error(), "cluster "+addon.Namespace+" has the addon and would lose it") ||
				!strings.Contains(err.Error(), refused) {
				t.Fatalf("%v\ndoes not say %q", err, refused)
			}
			apitest.Must(t, upgrade(t, namespace, strings.Replace(gets, "type: Placements", "type: Manual", 1)))

			for _, kept := range strings.Fields(test.keep) {
				kind, name, _ := strings.Cut(kept, "/")
				var object client.Object = &clusterv1beta1.Placement{}
				if kind != "placement" {
					object = &clusterv1beta2.ManagedClusterSetBinding{}
				}
				object.SetNamespace(namespace)
				object.SetName(name)
				h.MustMerge(object, `{"metadata":{"annotations":{"helm.sh/resource-policy":"keep"}}}`)
			}
			if test.remedy != nil {
				test.remedy(h, namespace)
			}
			apitest.Must(t, upgrade(t, namespace, gets))
		})
	}
}

// release creates the ClusterManagementAddOn of a release, and its Placement and binding as Helm does.
func release(t *testing.T, h *ocmtest.Hub, namespace, values, live string) {
	t.Helper()
	objects := hubtest.MustRender(t, values)
	addon := manifesttest.Find[addonv1beta1.ClusterManagementAddOn](t, objects, "ClusterManagementAddOn", "cluster-inventory")
	for i := range addon.Spec.InstallStrategy.Placements {
		addon.Spec.InstallStrategy.Placements[i].Namespace = namespace
	}
	if live != "" {
		addon.Spec.InstallStrategy.Type = live
	}
	placement := manifesttest.Find[clusterv1beta1.Placement](t, objects, "Placement", "cluster-inventory")
	binding := manifesttest.Find[clusterv1beta2.ManagedClusterSetBinding](t, objects, "ManagedClusterSetBinding", "sandbox-fleet")
	for _, object := range []client.Object{placement, binding} {
		object.SetNamespace(namespace)
		object.SetAnnotations(map[string]string{
			"meta.helm.sh/release-name": "ci", "meta.helm.sh/release-namespace": namespace,
		})
	}
	h.MustCreate(addon, placement, binding)
	h.CleanUp(addon, placement, binding)
}

// decide plays the scheduler, which has selected 150 clusters, and has written its slices
// without some of them.
func decide(t *testing.T, h *ocmtest.Hub, namespace string, missing int) {
	t.Helper()
	slices := map[string]int{"cluster-inventory": 100, "another": 100}
	slices["cluster-inventory-2"] = 50 - missing
	for name, clusters := range slices {
		placement, _, _ := strings.Cut(name, "-2")
		slice := &clusterv1beta1.PlacementDecision{ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace, Name: name, Labels: map[string]string{"cluster.open-cluster-management.io/placement": placement},
		}}
		h.MustCreate(slice)
		apitest.EditStatus(h, slice, func(d *clusterv1beta1.PlacementDecision) {
			for i := range clusters {
				d.Status.Decisions = append(d.Status.Decisions, clusterv1beta1.ClusterDecision{ClusterName: fmt.Sprintf("%s-%d", name, i)})
			}
		})
	}
	placement := &clusterv1beta1.Placement{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "cluster-inventory"}}
	apitest.EditStatus(h, placement, func(p *clusterv1beta1.Placement) {
		p.Status.NumberOfSelectedClusters = 150
		p.Status.Conditions = []metav1.Condition{}
		p.Status.DecisionGroups = []clusterv1beta1.DecisionGroupStatus{}
	})
}

// upgrade renders an upgrade of the release as Helm does, which looks at the hub.
func upgrade(t *testing.T, namespace, values string) error {
	t.Helper()
	options := chartutil.ReleaseOptions{Name: "ci", Namespace: namespace, IsUpgrade: true}
	chart, all, err := hubtest.ForRelease(t, options, values,
		"addon.open-cluster-management.io/v1beta1", "inventory.open-cluster-management.io/v1alpha1")
	apitest.Must(t, err)
	_, err = engine.RenderWithClient(chart, all, server.Config(t))
	return err
}
