package doctor

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	clusterv1beta2 "open-cluster-management.io/api/cluster/v1beta2"

	"open-cluster-management.io/cluster-inventory-addon/internal/apitest/ocmtest"
	"open-cluster-management.io/cluster-inventory-addon/internal/facttest"
	"open-cluster-management.io/cluster-inventory-addon/pkg/inventoryctl/decide"
	"open-cluster-management.io/cluster-inventory-addon/pkg/inventoryctl/rollout"
	"open-cluster-management.io/cluster-inventory-addon/pkg/inventoryctl/settings"
)

// running are facts of a manager with two replicas, where the first leads, changed as given.
func running(changes ...func(*ManagerFacts)) ManagerFacts {
	deployment := &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Generation: 2, Labels: map[string]string{"app.kubernetes.io/version": "0.9.0"}},
		Spec:       appsv1.DeploymentSpec{Replicas: ptr.To[int32](2)},
		Status:     appsv1.DeploymentStatus{ObservedGeneration: 2, ReadyReplicas: 2, UpdatedReplicas: 2},
	}
	deployment.Spec.Template.Spec.Containers = []corev1.Container{{Name: "manager", Image: "example.com/inventory:v1.2.3"}}
	lease := &coordinationv1.Lease{Spec: coordinationv1.LeaseSpec{
		HolderIdentity: ptr.To("manager-1"), RenewTime: &metav1.MicroTime{Time: facttest.Now().Add(-2 * time.Second)},
	}}
	m := ManagerFacts{
		Namespace: "ns", Deployment: decide.Object[appsv1.Deployment]{Object: deployment},
		Lease: decide.Object[coordinationv1.Lease]{Object: lease}, Settings: settings.Of(deployment),
	}
	for _, change := range changes {
		change(&m)
	}
	return m
}

// boundTo are facts of one cluster in a bound set.
func boundTo(hasAddon bool) BoundFacts {
	var b BoundFacts
	facts := facttest.Published()
	b.AddBinding(facts.Bindings[0].Binding, facts.Bindings[0].Set)
	b.AddCluster(facts.Cluster, hasAddon, true)
	return b
}

// rolledOut are facts of clusters that have the revision that the ClusterManagementAddOn names.
func rolledOut(clusters ...string) rollout.Facts {
	revision := addonv1beta1.ConfigGroupResource{
		Group: "inventory.open-cluster-management.io", Resource: "agentrevisions",
	}
	f := rollout.Facts{Definition: &addonv1beta1.ClusterManagementAddOn{}}
	f.Definition.Spec.DefaultConfigs = []addonv1beta1.AddOnConfig{{
		ConfigGroupResource: revision, ConfigReferent: addonv1beta1.ConfigReferent{Name: "new"},
	}}
	for _, cluster := range clusters {
		f.Add(upgrading(cluster, "new", "False", "Completed"))
	}
	return f
}

// upgrading is an addon with a revision and OCM's condition about it.
func upgrading(cluster, revision, status, reason string) *addonv1beta1.ManagedClusterAddOn {
	addon := ocmtest.Addon(cluster)
	addon.Status.ConfigReferences = []addonv1beta1.ConfigReference{{
		ConfigGroupResource: addonv1beta1.ConfigGroupResource{
			Group: "inventory.open-cluster-management.io", Resource: "agentrevisions",
		},
		DesiredConfig: &addonv1beta1.ConfigSpecHash{ConfigReferent: addonv1beta1.ConfigReferent{Name: revision}},
	}}
	progressing := ocmtest.Condition("Progressing", status, reason, "")
	progressing.LastTransitionTime = metav1.NewTime(facttest.Now().Add(-time.Hour))
	addon.Status.Conditions = []metav1.Condition{ocmtest.Condition("Configured", "True", "R", ""), progressing}
	return addon
}

func TestCheckManager(t *testing.T) {
	const logs = "kubectl logs -n ns deployment/cluster-inventory-manager"
	edit := func(change func(*appsv1.Deployment)) func(*HubFacts) {
		return func(f *HubFacts) { change(f.Manager.Deployment.Object) }
	}
	tests := map[string]struct {
		change func(*HubFacts)
		check  string
		want   decide.Finding
	}{
		"all is well": {func(*HubFacts) {}, "manager", ok("", "version 1.2.3 in namespace ns, 2 of 2 replicas are ready")},
		"its image says nothing": {
			edit(func(d *appsv1.Deployment) { d.Spec.Template.Spec.Containers[0].Image = "inventory@sha256:00" }), "manager",
			ok("", "version 0.9.0 in namespace ns, 2 of 2 replicas are ready"),
		},
		"scaled to nothing": {
			edit(func(d *appsv1.Deployment) { d.Spec.Replicas, d.Status.ReadyReplicas = ptr.To[int32](0), 0 }), "manager",
			problem("", "Deployment ns/cluster-inventory-manager has 0 replicas, so no manager runs",
				"kubectl scale deployment cluster-inventory-manager -n ns --replicas=1"),
		},
		"one replica is not ready": {
			edit(func(d *appsv1.Deployment) { d.Status.ReadyReplicas = 1 }), "manager",
			problem("", "version 1.2.3: 1 of 2 replicas are ready",
				"kubectl describe pods -n ns -l app.kubernetes.io/component=manager"),
		},
		"the new pods are not there yet": {
			edit(func(d *appsv1.Deployment) { d.Generation = 3 }), "manager",
			problem("", "version 1.2.3 is still being rolled out",
				"kubectl rollout status deployment/cluster-inventory-manager -n ns"),
		},
		"there is no Deployment": {
			func(f *HubFacts) { f.Manager = running(func(m *ManagerFacts) { m.Deployment.Object = nil }) }, "manager",
			problem("", "there is no Deployment ns/cluster-inventory-manager", "install the addon's chart: "+decide.InstallChart()),
		},
		"no manager has ever led": {
			func(f *HubFacts) { f.Manager.Lease.Object.Spec = coordinationv1.LeaseSpec{} }, "leader",
			problem("", "no manager leads, so nothing is written: no one holds Lease ns/cluster-inventory-manager", logs),
		},
		"the leader released its Lease": {
			func(f *HubFacts) { f.Manager.Lease.Object.Spec.HolderIdentity = ptr.To("") }, "leader",
			problem("", "no manager leads, so nothing is written: no one holds Lease ns/cluster-inventory-manager", logs),
		},
		"the leader is gone": {
			func(f *HubFacts) { f.Manager.Lease.Object.Spec.RenewTime.Time = facttest.Now().Add(-5 * time.Minute) }, "leader",
			problem("", "no manager leads, so nothing is written: manager-1 renewed Lease ns/cluster-inventory-manager last "+
				"5m ago by this machine's clock", logs),
		},
		"the reader's clock is behind": {
			func(f *HubFacts) { f.Manager.Lease.Object.Spec.RenewTime.Time = facttest.Now().Add(5 * time.Minute) }, "leader",
			ok("", "manager-1 leads"),
		},
		"there is no Lease": {
			func(f *HubFacts) { f.Manager.Lease.Object = nil }, "leader",
			problem("", "no manager leads: there is no Lease ns/cluster-inventory-manager", logs),
		},
		"flags": {
			func(f *HubFacts) {
				deployment := f.Manager.Deployment.Object
				deployment.Spec.Template.Spec.Containers[0].Args = []string{"--max-properties=1", "--exclusive-sets-only"}
				f.Manager.Settings = settings.Of(deployment)
			}, "settings",
			ok("", "the manager runs with --exclusive-sets-only=true --max-properties=1"),
		},
		"a flag without meaning": {
			func(f *HubFacts) { f.Manager.Settings.Problem = "bad" }, "settings",
			problem("", "the manager cannot start with its flags: bad",
				"kubectl describe deployment cluster-inventory-manager -n ns"),
		},
		"flags are hidden": {
			func(f *HubFacts) { f.Manager.Deployment = decide.Object[appsv1.Deployment]{Hidden: true} }, "settings",
			notVisible("", "the manager's flags, so these checks assume its defaults"),
		},
		"the gate cannot be determined, and the administrator asserts that it is off": {
			func(f *HubFacts) { f.RegistrationRole.Object, f.Manager.Settings.UpstreamGates = nil, "off" },
			"OCM's gate ClusterProfile",
			ok("", "it is off according to upstreamGates=off, so this addon writes the ClusterProfiles"),
		},
		"the syncer's ClusterRole is a leftover": {
			func(f *HubFacts) { f.Syncer.Object, f.Manager.Settings.UpstreamSyncer = &rbacv1.ClusterRole{}, "off" },
			"managed-serviceaccount's gate",
			ok("", "it is off according to credentials.upstreamSyncer=off, so this addon copies tokens"),
		},
		"a cluster of a bound set has no addon": {
			func(f *HubFacts) { f.Bound = boundTo(false) }, "bound clusters",
			problem("", "1 of 1 clusters in bound sets do not have the addon (c)",
				"clusteradm addon enable --names cluster-inventory --clusters c"),
		},
		"no set is bound": {
			func(f *HubFacts) { f.Bound = BoundFacts{} }, "bound clusters",
			notConfigured("", "no cluster is in a ManagedClusterSet that is bound"),
		},
		"a rollout continues": {
			func(f *HubFacts) {
				moving := upgrading("d", "new", "True", "Progressing")
				moving.Status.Conditions[1].LastTransitionTime = metav1.NewTime(facttest.Now().Add(-time.Minute))
				f.Rollout.Add(moving)
				f.Rollout.Add(upgrading("e", "old", "False", "Completed"))
			}, "rollout",
			ok("", "1 of 3 clusters have AgentRevision new: 1 being upgraded, 1 waiting"),
		},
		"a rollout failed": {
			func(f *HubFacts) { f.Rollout.Add(upgrading("d", "new", "False", "Failed")) }, "rollout",
			problem("", "1 of 2 clusters have AgentRevision new: 1 failed (d)", "kubectl inventory rollout"),
		},
		"a rollout stands still": {
			func(f *HubFacts) { f.Rollout.Add(upgrading("d", "new", "True", "Progressing")) }, "rollout",
			problem("", "1 of 2 clusters have AgentRevision new: 1 being upgraded, and no cluster has begun for half an hour",
				"kubectl inventory rollout"),
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			test.want.Name = test.check
			for _, check := range CheckHub(healthy(t, test.change), facttest.Now()) {
				if diff := cmp.Diff(test.want, check); check.Name == test.check && diff != "" {
					t.Errorf("check (-want +got):\n%s", diff)
				}
			}
			if test.want.State == decide.Problem && !hasWay.MatchString(test.want.Fix) {
				t.Errorf("neither a command nor an address: %s", test.want.Fix)
			}
		})
	}
	t.Run("not installed at all", func(t *testing.T) {
		facts := healthy(t, func(f *HubFacts) {
			f.Installation.Object, f.Manager.Deployment.Object, f.Manager.Lease.Object = nil, nil, nil
		})
		for _, check := range CheckHub(facts, facttest.Now()) {
			if (check.Name == "manager" || check.Name == "leader") && check.State != decide.NotConfigured {
				t.Errorf("%+v", check)
			}
		}
	})
}

func TestManagerNamespace(t *testing.T) {
	const ours, helms = "inventory.open-cluster-management.io/manager-namespace", "meta.helm.sh/release-namespace"
	for name, test := range map[string]struct {
		annotations map[string]string
		want        string
	}{
		"the chart says it":       {map[string]string{ours: "a", helms: "b"}, "a"},
		"an earlier chart":        {map[string]string{helms: "b"}, "b"},
		"it is not a namespace":   {map[string]string{ours: "A/B"}, "open-cluster-management-cluster-inventory"},
		"nothing says it":         {nil, "open-cluster-management-cluster-inventory"},
		"an address, not a label": {map[string]string{ours: "../x", helms: "y"}, "y"},
	} {
		t.Run(name, func(t *testing.T) {
			definition := &addonv1beta1.ClusterManagementAddOn{ObjectMeta: metav1.ObjectMeta{Annotations: test.annotations}}
			if got := ManagerNamespace(definition); got != test.want {
				t.Errorf("got %s, want %s", got, test.want)
			}
		})
	}
	if got := ManagerNamespace(nil); got != "open-cluster-management-cluster-inventory" {
		t.Errorf("got %s", got)
	}
}

// Clusters that cannot be published do not need the addon.
func TestBoundClusters(t *testing.T) {
	base := facttest.Published()
	open := &clusterv1beta2.ManagedClusterSet{ObjectMeta: metav1.ObjectMeta{Name: "s"}}
	open.Spec.ClusterSelector = clusterv1beta2.ManagedClusterSelector{
		SelectorType: clusterv1beta2.LabelSelector, LabelSelector: &metav1.LabelSelector{},
	}
	for name, test := range map[string]struct {
		change func(*clusterv1.ManagedCluster, *clusterv1beta2.ManagedClusterSetBinding)
		set    *clusterv1beta2.ManagedClusterSet
		want   int
	}{
		"bound": {func(*clusterv1.ManagedCluster, *clusterv1beta2.ManagedClusterSetBinding) {}, base.Bindings[0].Set, 1},
		"not accepted": {func(c *clusterv1.ManagedCluster, _ *clusterv1beta2.ManagedClusterSetBinding) {
			c.Spec.HubAcceptsClient = false
		}, base.Bindings[0].Set, 0},
		"not published": {func(_ *clusterv1.ManagedCluster, b *clusterv1beta2.ManagedClusterSetBinding) {
			b.Labels = map[string]string{"inventory.open-cluster-management.io/publish": "false"}
		}, base.Bindings[0].Set, 0},
		"in no set": {func(c *clusterv1.ManagedCluster, _ *clusterv1beta2.ManagedClusterSetBinding) {
			c.Labels = nil
		}, base.Bindings[0].Set, 0},
		"a set that is not exclusive": {
			func(*clusterv1.ManagedCluster, *clusterv1beta2.ManagedClusterSetBinding) {}, open, 0,
		},
		"a set that does not exist": {
			func(*clusterv1.ManagedCluster, *clusterv1beta2.ManagedClusterSetBinding) {}, nil, 0,
		},
	} {
		t.Run(name, func(t *testing.T) {
			cluster, binding := base.Cluster.DeepCopy(), base.Bindings[0].Binding.DeepCopy()
			test.change(cluster, binding)
			var b BoundFacts
			for range 3 {
				b.AddBinding(binding, test.set)
			}
			b.AddCluster(cluster, false, true)
			if b.Total != test.want || len(b.Missing) != test.want || len(b.bindings) > 1 {
				t.Errorf("%d of %d, %d bindings", len(b.Missing), b.Total, len(b.bindings))
			}
		})
	}
}
