package addon

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"
	"open-cluster-management.io/addon-framework/pkg/utils"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	workv1 "open-cluster-management.io/api/work/v1"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/yaml"

	"open-cluster-management.io/cluster-inventory-addon/internal/apitest"
	"open-cluster-management.io/cluster-inventory-addon/internal/apitest/addontest"
	"open-cluster-management.io/cluster-inventory-addon/internal/apitest/ocmtest"
	"open-cluster-management.io/cluster-inventory-addon/pkg/contract"
	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/addon/configuration"
	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/addon/release"
)

// unwritten is how long nothing may be written for it to count as nothing.
const unwritten = 2 * time.Second

// rollout is a hub on which the framework runs. The test plays Open Cluster Management,
// which chooses each cluster's configuration.
type rollout struct {
	*world
	outcomes   *configuration.Outcomes
	definition *addonv1beta1.ClusterManagementAddOn
	configs    string // the namespace of the configurations

	// common is the AgentRevision that clusters get with their configurations.
	common *unstructured.Unstructured
}

func (r *rollout) in(t *testing.T) *rollout {
	inner := *r
	inner.world = &world{&addontest.World{World: r.In(t), Wire: r.Wire}}
	inner.configs = inner.Namespace("configs", nil)
	return &inner
}

// join creates a cluster with the addon, for which Open Cluster Management has not chosen a
// configuration yet.
func (r *rollout) join(change ...func(*addonv1beta1.ManagedClusterAddOn)) *addonv1beta1.ManagedClusterAddOn {
	r.T.Helper()
	addon := ocmtest.Addon(r.Namespace("cluster", nil))
	r.MustCreate(&clusterv1.ManagedCluster{
		ObjectMeta: metav1.ObjectMeta{Name: addon.Namespace}, Spec: clusterv1.ManagedClusterSpec{HubAcceptsClient: true},
	})
	addon.OwnerReferences = []metav1.OwnerReference{{
		APIVersion: "addon.open-cluster-management.io/v1beta1", Kind: "ClusterManagementAddOn",
		Name: r.definition.Name, UID: r.definition.UID, Controller: ptr.To(true),
	}}
	for _, apply := range change {
		apply(addon)
	}
	r.MustCreate(addon)
	return addon
}

// names makes an addon name a configuration itself.
func (r *rollout) names(name string) func(*addonv1beta1.ManagedClusterAddOn) {
	return func(a *addonv1beta1.ManagedClusterAddOn) {
		a.Spec.Configs = []addonv1beta1.AddOnConfig{{
			ConfigGroupResource: addontest.DeploymentConfigs,
			ConfigReferent:      addonv1beta1.ConfigReferent{Namespace: r.configs, Name: name},
		}}
	}
}

// isRegistered returns "" as long as a cluster is left alone: its agent would be registered
// in a namespace that may be the wrong one.
func (r *rollout) isRegistered(addon *addonv1beta1.ManagedClusterAddOn) string {
	r.T.Helper()
	r.MustGet(addon)
	if condition := apimeta.FindStatusCondition(addon.Status.Conditions, "RegistrationApplied"); condition != nil {
		return fmt.Sprintf("registered in namespace %q: %+v", addon.Status.Namespace, condition)
	}
	if agent := r.agent(addon); agent != nil {
		return fmt.Sprintf("deployed: %+v", agent.Spec)
	}
	return ""
}

// config creates or replaces a configuration.
func (r *rollout) config(name, text string) {
	r.T.Helper()
	config := &unstructured.Unstructured{Object: map[string]any{}}
	apitest.Must(r.T, yaml.Unmarshal([]byte(text), &config.Object))
	config.Object = map[string]any{"spec": config.Object}
	config.SetAPIVersion("addon.open-cluster-management.io/v1beta1")
	config.SetKind("AddOnDeploymentConfig")
	config.SetNamespace(r.configs)
	config.SetName(name)
	current := config.DeepCopy()
	if !r.Find(current) {
		r.MustCreate(config)
		return
	}
	config.SetResourceVersion(current.GetResourceVersion())
	apitest.Must(r.T, r.Update(r.T.Context(), config))
}

// desired returns the reference to the present content of a configuration; its hash is
// empty if there is none.
func (r *rollout) desired(name string) addonv1beta1.ConfigReference {
	r.T.Helper()
	desired := &addonv1beta1.ConfigSpecHash{ConfigReferent: addonv1beta1.ConfigReferent{Namespace: r.configs, Name: name}}
	config := &unstructured.Unstructured{}
	config.SetAPIVersion("addon.open-cluster-management.io/v1beta1")
	config.SetKind("AddOnDeploymentConfig")
	config.SetNamespace(r.configs)
	config.SetName(name)
	if r.Find(config) {
		hash, err := utils.GetSpecHash(config)
		apitest.Must(r.T, err)
		desired.SpecHash = hash
	}
	return addonv1beta1.ConfigReference{ConfigGroupResource: addontest.DeploymentConfigs, DesiredConfig: desired}
}

// refer makes it a cluster's turn to get the present content of these configurations.
func (r *rollout) refer(addon *addonv1beta1.ManagedClusterAddOn, configs ...string) {
	r.T.Helper()
	var references []addonv1beta1.ConfigReference
	for _, name := range configs {
		references = append(references, r.desired(name))
	}
	references = append(references, addontest.RevisionReference(r.common))
	apitest.EditStatus(r, addon, func(a *addonv1beta1.ManagedClusterAddOn) {
		a.Status.ConfigReferences = references
		apimeta.SetStatusCondition(&a.Status.Conditions, metav1.Condition{
			Type: "Configured", Status: metav1.ConditionTrue, Reason: "ConfigurationsConfigured",
		})
	})
}

// agent returns the agent's Deployment in the cluster's ManifestWork, or nil.
func (r *rollout) agent(addon *addonv1beta1.ManagedClusterAddOn) *appsv1.Deployment {
	r.T.Helper()
	work := r.deployWork(addon)
	if !r.Find(work) {
		return nil
	}
	return inWork[appsv1.Deployment](r, work, "Deployment")
}

func (r *rollout) deployWork(addon *addonv1beta1.ManagedClusterAddOn) *workv1.ManifestWork {
	return &workv1.ManifestWork{ObjectMeta: metav1.ObjectMeta{
		Namespace: addon.Namespace, Name: "addon-cluster-inventory-deploy-0",
	}}
}

func inWork[T any](r *rollout, work *workv1.ManifestWork, kind string) *T {
	r.T.Helper()
	for _, manifest := range work.Spec.Workload.Manifests {
		var meta metav1.TypeMeta
		apitest.Must(r.T, json.Unmarshal(manifest.Raw, &meta))
		if meta.Kind == kind {
			typed := new(T)
			apitest.Must(r.T, json.Unmarshal(manifest.Raw, typed))
			return typed
		}
	}
	r.T.Fatalf("no %s in ManifestWork %s", kind, work.Name)
	return nil
}

// runs waits until the agent of a cluster is configured to run in a zone.
func (r *rollout) runs(addon *addonv1beta1.ManagedClusterAddOn, zone string) {
	r.T.Helper()
	r.Eventually("the agent runs in zone "+zone, func() string {
		agent := r.agent(addon)
		if agent == nil {
			return "there is none"
		}
		return cmp.Diff(map[string]string{"zone": zone}, agent.Spec.Template.Spec.NodeSelector)
	})
}

// runsAnywhere waits until the agent of a cluster is deployed without a node selector.
func (r *rollout) runsAnywhere(addon *addonv1beta1.ManagedClusterAddOn) {
	r.T.Helper()
	r.Eventually("the agent runs", func() string {
		agent := r.agent(addon)
		if agent == nil {
			return "there is none"
		}
		return cmp.Diff(map[string]string{}, agent.Spec.Template.Spec.NodeSelector, cmpopts.EquateEmpty())
	})
}

// says waits until the condition of a cluster has a reason and a text.
func (r *rollout) says(addon *addonv1beta1.ManagedClusterAddOn, reason string, texts ...string) {
	r.T.Helper()
	r.Eventually("the condition is "+reason, func() string {
		desired, err := r.outcomes.Desired(r.T.Context(), addon.Namespace)
		if err != nil || desired == nil || desired.Reason != reason {
			return fmt.Sprintf("%+v, %v", desired, err)
		}
		for _, text := range texts {
			if !strings.Contains(desired.Message, text) {
				return fmt.Sprintf("no %q in %q", text, desired.Message)
			}
		}
		return ""
	})
}

// wrote waits until nothing more is written, and compares the framework's writes about
// these clusters, or all, with the expected ones.
func (r *rollout) wrote(want ...string) {
	r.T.Helper()
	r.Eventually("all is written", func() string {
		if sent := r.Wire.Sent(); len(sent) < len(want) {
			return fmt.Sprintf("only %v", sent)
		}
		return ""
	})
	r.Wire.Settle(r.T, apitest.Patience, unwritten)
	if diff := cmp.Diff(want, r.Wire.Sent(), cmpopts.EquateEmpty(), cmpopts.SortSlices(strings.Compare)); diff != "" {
		r.T.Errorf("writes (-want +got):\n%s", diff)
	}
	r.Wire.Reset()
}

const zoneA, zoneB = "nodePlacement: {nodeSelector: {zone: a}}", "nodePlacement: {nodeSelector: {zone: b}}"

// TestConfigurations runs one story after the other on one hub. Each has clusters and its own
// configurations.
func TestConfigurations(t *testing.T) {
	w := newWorld(t)
	w.Wire.Reset()
	definition := &addonv1beta1.ClusterManagementAddOn{ObjectMeta: metav1.ObjectMeta{Name: contract.AddonName}}
	definition.Spec.InstallStrategy.Type = addonv1beta1.AddonInstallStrategyManual
	revision := newRevision("configurations")
	w.MustCreate(revision)
	w.CleanUp(revision)
	definition.Spec.DefaultConfigs = []addonv1beta1.AddOnConfig{{
		ConfigGroupResource: addontest.AgentRevisions, ConfigReferent: addonv1beta1.ConfigReferent{Name: revision.GetName()},
	}}
	w.MustCreate(definition)
	w.CleanUp(definition)
	wire := &apitest.Wire{}
	r := &rollout{world: &world{&addontest.World{World: w.World.World, Wire: wire}}, outcomes: configuration.NewOutcomes(w), definition: definition, common: revision}
	cfg := wire.Tap(hub.Config(t))
	cached, err := cache.New(cfg, cache.Options{Scheme: w.Scheme(), ByObject: CacheOptions()})
	apitest.Must(t, err)
	apitest.Run(t, cached.Start)
	shell := &framework{
		cfg: cfg, shared: cached, client: w.Client, live: w.Client, outcomes: r.outcomes,
		opts: Options{
			AllowedRegistries: []string{"mirror.example.com"}, Release: release.Options{HostedAgents: true},
		},
	}
	apitest.Run(t, shell.Start)
	t.Run("a cluster's own", func(t *testing.T) { clustersOwn(r.in(t)) })
	t.Run("shared", func(t *testing.T) { shared(r.in(t)) })
	t.Run("wrong", func(t *testing.T) { wrong(r.in(t)) })
	t.Run("missing", func(t *testing.T) { missing(r.in(t)) })
	t.Run("not seen yet", func(t *testing.T) { unseen(r.in(t)) })
	t.Run("two", func(t *testing.T) { two(r.in(t)) })
	t.Run("another namespace", func(t *testing.T) { anotherNamespace(r.in(t)) })
	t.Run("registries", func(t *testing.T) { registries(r.in(t)) })
	t.Run("a cluster that changes", func(t *testing.T) { clusterChanges(r.in(t)) })
	t.Run("a spoke that refuses", func(t *testing.T) { refusingSpoke(r.in(t)) })
	t.Run("removal without it", func(t *testing.T) { removedWithout(r.in(t)) })
	t.Run("hosted", func(t *testing.T) { hosted(r.in(t)) })
	t.Run("hosted later", func(t *testing.T) { annotatedLater(r.in(t)) })
	t.Run("two in one namespace", func(t *testing.T) { twoInOneNamespace(r.in(t)) })
	t.Run("a hosting cluster that is deleted", func(t *testing.T) { hostGone(r.in(t)) })
	t.Run("a clean-up on a host that fails", func(t *testing.T) { letGo(r.in(t)) })
	t.Run("for all clusters", func(t *testing.T) { forAllClusters(r.in(t)) })
}

// A configuration that a cluster's addon names itself is that cluster's alone. The
// manager writes its hash, without which Open Cluster Management does not see that it
// has changed.
func clustersOwn(r *rollout) {
	r.config("own", zoneA)
	other := r.join()
	r.refer(other)
	r.runsAnywhere(other)
	addon := r.join(r.names("own"))
	r.Stays(unwritten, "no agent", func() string { return r.isRegistered(addon) })
	reference := r.desired("own")
	reference.DesiredConfig.SpecHash = "" // as Open Cluster Management does not know it
	apitest.EditStatus(r, addon, func(a *addonv1beta1.ManagedClusterAddOn) {
		a.Status.ConfigReferences = []addonv1beta1.ConfigReference{reference, addontest.RevisionReference(r.common)}
	})
	r.runs(addon, "a")
	r.says(addon, "Applied")
	r.Wire.Settle(r.T, apitest.Patience, unwritten)
	r.Wire.Reset()

	r.config("own", zoneB)
	r.runs(addon, "b")
	r.wrote("PATCH managedclusteraddons/status", "PATCH manifestworks")
	r.MustGet(addon)
	if diff := cmp.Diff(r.desired("own").DesiredConfig, addon.Status.ConfigReferences[0].DesiredConfig); diff != "" {
		r.T.Errorf("desired (-want +got):\n%s", diff)
	}
	r.runsAnywhere(other)
}

// An edit of a shared configuration reaches each cluster when its turn comes, with one
// write.
func shared(r *rollout) {
	r.config("shared", zoneA)
	first, second, other := r.join(), r.join(), r.join()
	for _, addon := range []*addonv1beta1.ManagedClusterAddOn{first, second} {
		r.refer(addon, "shared")
		r.runs(addon, "a")
	}
	r.refer(other)
	r.runsAnywhere(other)
	r.Wire.Settle(r.T, apitest.Patience, unwritten)
	r.Wire.Reset()

	r.config("shared", zoneB)
	r.wrote() // no cluster's turn has come
	r.refer(first, "shared")
	r.runs(first, "b")
	r.wrote("PATCH manifestworks")
	r.runs(second, "a")

	// Other changes of a cluster in the meantime write nothing, either.
	apitest.Edit(r, second, func(a *addonv1beta1.ManagedClusterAddOn) { a.Annotations = map[string]string{"a": "b"} })
	r.wrote()
	r.refer(second, "shared")
	r.runs(second, "b")
	r.wrote("PATCH manifestworks")
	r.runsAnywhere(other)
}

// An error changes nothing, is reported, and its correction is applied.
func wrong(r *rollout) {
	r.config("shared", zoneA)
	addon, other := r.join(), r.join()
	r.refer(addon, "shared")
	r.refer(other)
	r.runs(addon, "a")
	r.runsAnywhere(other)
	before := r.deployWork(addon)
	r.MustGet(before)
	r.Wire.Settle(r.T, apitest.Patience, unwritten)
	r.Wire.Reset()

	r.config("shared", zoneB+"\ncustomizedVariables: [{name: loglevel, value: '1'}]")
	r.wrote() // the manager sees it before the reference
	r.refer(addon, "shared")
	r.says(addon, "InvalidConfiguration", r.configs+"/shared", "spec.customizedVariables[loglevel]")
	r.wrote("PATCH managedclusteraddons/status") // ManifestApplied
	after := r.deployWork(addon)
	if r.MustGet(after); after.ResourceVersion != before.ResourceVersion {
		r.T.Errorf("the ManifestWork was changed: %+v", after)
	}
	r.MustGet(addon)
	applied := apimeta.FindStatusCondition(addon.Status.Conditions, "ManifestApplied")
	if applied == nil || applied.Status != metav1.ConditionFalse || !strings.Contains(applied.Message, "loglevel") {
		r.T.Errorf("ManifestApplied is %+v", applied)
	}

	r.config("shared", zoneB)
	r.refer(addon, "shared")
	r.runs(addon, "b")
	r.says(addon, "Applied")

	// A cluster on which nothing is installed yet gets nothing, and the condition says why.
	r.config("wrong", "proxyConfig: {httpsProxy: 'http://'}")
	fresh := r.join(r.names("wrong"))
	r.refer(fresh, "wrong")
	r.says(fresh, "InvalidConfiguration", "spec.proxyConfig.httpsProxy: has no host")
	if agent := r.agent(fresh); agent != nil {
		r.T.Errorf("installed: %+v", agent.Spec)
	}
	r.config("wrong", zoneA)
	r.refer(fresh, "wrong")
	r.runs(fresh, "a")
	r.Eventually("it is registered", func() string {
		r.MustGet(fresh)
		if !apimeta.IsStatusConditionTrue(fresh.Status.Conditions, "RegistrationApplied") ||
			fresh.Status.Namespace != "agents" {
			return fmt.Sprintf("status %+v", fresh.Status)
		}
		return ""
	})
	r.runsAnywhere(other)
}

// A configuration that is deleted although a cluster refers to it changes nothing, and
// causes no burst of writes for all these clusters: it may be replaced.
func missing(r *rollout) {
	r.config("shared", zoneA)
	addon := r.join()
	r.refer(addon, "shared")
	r.runs(addon, "a")
	r.says(addon, "Applied")
	r.Wire.Settle(r.T, apitest.Patience, unwritten)
	r.Wire.Reset()

	gone := &addonv1beta1.AddOnDeploymentConfig{ObjectMeta: metav1.ObjectMeta{Namespace: r.configs, Name: "shared"}}
	r.MustDelete(gone)
	r.says(addon, "ConfigurationMissing", r.configs+"/shared")
	r.wrote()
	r.config("shared", zoneA)
	r.says(addon, "Applied")
	r.wrote()
	r.MustDelete(gone)
	r.says(addon, "ConfigurationMissing", r.configs+"/shared")
	r.refer(addon, "shared")                     // of which Open Cluster Management has no hash any more
	r.wrote("PATCH managedclusteraddons/status") // ManifestApplied
	r.Stays(unwritten, "the agent", func() string {
		return cmp.Diff(map[string]string{"zone": "a"}, r.agent(addon).Spec.Template.Spec.NodeSelector)
	})
	r.config("shared", zoneB)
	r.refer(addon, "shared")
	r.runs(addon, "b")
	r.says(addon, "Applied")
}

// As long as the manager has not seen the content that a cluster should have, nothing
// claims that the cluster has it.
func unseen(r *rollout) {
	r.config("shared", zoneA)
	addon := r.join()
	r.refer(addon, "shared")
	r.runs(addon, "a")
	before := r.deployWork(addon)
	r.Wire.Settle(r.T, apitest.Patience, unwritten)
	r.MustGet(before)
	r.Wire.Reset()

	apitest.EditStatus(r, addon, func(a *addonv1beta1.ManagedClusterAddOn) {
		a.Status.ConfigReferences[0].DesiredConfig.SpecHash = "not seen yet"
	})
	r.wrote("PATCH managedclusteraddons/status") // ManifestApplied
	after := r.deployWork(addon)
	if r.MustGet(after); after.ResourceVersion != before.ResourceVersion {
		r.T.Errorf("the ManifestWork was changed: %v", after.Annotations)
	}
	r.MustGet(addon)
	if applied := apimeta.FindStatusCondition(addon.Status.Conditions, "ManifestApplied"); applied == nil ||
		applied.Status != metav1.ConditionFalse {
		r.T.Errorf("ManifestApplied is %+v", applied)
	}
	r.config("shared", zoneB)
	r.refer(addon, "shared")
	r.runs(addon, "b")
}

func two(r *rollout) {
	r.config("one", zoneA)
	r.config("another", zoneB)
	addon := r.join()
	r.refer(addon, "one")
	r.runs(addon, "a")
	r.refer(addon, "one", "another")
	r.says(addon, "InvalidConfiguration", r.configs+"/one, "+r.configs+"/another")
	r.runs(addon, "a")
	r.refer(addon, "another")
	r.runs(addon, "b")
}

// An agent does not move: it would run twice for a while.
func anotherNamespace(r *rollout) {
	r.config("shared", "agentInstallNamespace: elsewhere")
	addon := r.join(r.names("shared"))
	r.refer(addon, "shared")
	r.runsAnywhere(addon)
	if agent := r.agent(addon); agent.Namespace != "elsewhere" {
		r.T.Errorf("the agent is in %s", agent.Namespace)
	}
	r.MustGet(addon)
	if addon.Status.Namespace != "elsewhere" {
		r.T.Errorf("the klusterlet writes the kubeconfig to %s", addon.Status.Namespace)
	}
	r.config("shared", "{agentInstallNamespace: third, "+zoneA+"}")
	r.refer(addon, "shared")
	r.says(addon, "InstallNamespaceChanged", "third", "elsewhere")
	r.Stays(unwritten, "the agent and its namespace", func() string {
		r.MustGet(addon)
		agent := r.agent(addon)
		return cmp.Diff([]string{"elsewhere", "elsewhere"}, []string{agent.Namespace, addon.Status.Namespace})
	})
	r.config("shared", "{agentInstallNamespace: elsewhere, "+zoneA+"}")
	r.refer(addon, "shared")
	r.runs(addon, "a")
	r.says(addon, "Applied")
}

func registries(r *rollout) {
	addon := r.join()
	r.refer(addon)
	r.runsAnywhere(addon)
	cluster := &clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: addon.Namespace}}
	annotate := func(value string) {
		apitest.Edit(r, cluster, func(c *clusterv1.ManagedCluster) {
			c.Annotations = map[string]string{"open-cluster-management.io/image-registries": value}
		})
	}
	image := func(want string) {
		r.T.Helper()
		r.Eventually("the image is "+want, func() string {
			return cmp.Diff(want, r.agent(addon).Spec.Template.Spec.Containers[0].Image)
		})
	}
	annotate(`{"registries":[{"source":"example.com","mirror":"mirror.example.com"}]}`)
	image("mirror.example.com/inventory:v1")
	annotate(`{"registries":[{"source":"example.com","mirror":"evil.example.com"}]}`)
	r.says(addon, "InvalidConfiguration", "evil.example.com/inventory:v1", "agent.allowedRegistries")
	image("mirror.example.com/inventory:v1")
	annotate("mirror.example.com")
	r.says(addon, "InvalidConfiguration", "ManagedCluster "+addon.Namespace, "open-cluster-management.io/image-registries")
	image("mirror.example.com/inventory:v1")
	annotate(`{"registries":[]}`)
	image("example.com/inventory:v1")
}

// refusingSpoke: the namespace of the agent is being deleted there.
func refusingSpoke(r *rollout) {
	addon := r.join()
	r.refer(addon)
	r.runsAnywhere(addon)
	report := func(status, message string) {
		apitest.EditStatus(r, r.deployWork(addon), func(w *workv1.ManifestWork) {
			w.Status.Conditions = []metav1.Condition{ocmtest.Condition("Applied", status, "R", "")}
			w.Status.ResourceStatus.Manifests = []workv1.ManifestCondition{{
				ResourceMeta: workv1.ManifestResourceMeta{Resource: "deployments",
					Namespace: "agents", Name: "cluster-inventory-agent"},
				Conditions: []metav1.Condition{ocmtest.Condition("Applied", status, "R", message)},
			}}
		})
	}
	report("False", "namespace agents is being terminated")
	r.says(addon, "ManifestsRefused", "deployments agents/cluster-inventory-agent", "namespace agents is being terminated")
	report("True", "")
	r.Eventually("there is no condition", func() string {
		desired, err := r.outcomes.Desired(r.T.Context(), addon.Namespace)
		if err != nil || desired == nil || !desired.Absent {
			return fmt.Sprintf("%+v, %v", desired, err)
		}
		return ""
	})
}

// removedWithout: an addon is removed although its configuration is wrong or missing, and a
// Job with the agent's settings cleans up its spoke.
func removedWithout(r *rollout) {
	r.config("shared", "{"+zoneA+", registries: [{source: example.com, mirror: mirror.example.com}]}")
	addon := r.join()
	r.refer(addon, "shared")
	r.runs(addon, "a")
	r.Eventually("the addon waits for its clean-up", func() string {
		r.MustGet(addon)
		return cmp.Diff([]string{hookFinalizer}, addon.Finalizers)
	})
	r.MustDelete(&addonv1beta1.AddOnDeploymentConfig{ObjectMeta: metav1.ObjectMeta{Namespace: r.configs, Name: "shared"}})
	r.says(addon, "ConfigurationMissing")
	r.MustGet(addon)
	if !slices.Contains(addon.Finalizers, hookFinalizer) {
		r.T.Fatalf("finalizers %v: the spoke would not be cleaned up", addon.Finalizers)
	}
	r.MustDelete(addon)
	hook := &workv1.ManifestWork{ObjectMeta: metav1.ObjectMeta{
		Namespace: addon.Namespace, Name: "addon-cluster-inventory-pre-delete",
	}}
	r.EventuallyExists(hook)
	job := inWork[batchv1.Job](r, hook, "Job")
	pod := job.Spec.Template.Spec
	got := []string{job.Namespace, pod.NodeSelector["zone"], pod.Containers[0].Image}
	if diff := cmp.Diff([]string{"agents", "a", "mirror.example.com/inventory:v1"}, got); diff != "" {
		r.T.Errorf("the clean-up Job (-want +got):\n%s", diff)
	}
	if !slices.Contains(pod.Containers[0].Args, "--addon-uid="+string(addon.UID)) {
		r.T.Errorf("its arguments: %v", pod.Containers[0].Args)
	}
}

// The manager writes the hash of the configuration of all clusters, and no agent is
// installed without it.
func forAllClusters(r *rollout) {
	r.config("all", zoneA)
	apitest.Edit(r, r.definition, func(d *addonv1beta1.ClusterManagementAddOn) {
		d.Spec.DefaultConfigs = append(d.Spec.DefaultConfigs, addonv1beta1.AddOnConfig{
			ConfigGroupResource: addontest.DeploymentConfigs,
			ConfigReferent:      addonv1beta1.ConfigReferent{Namespace: r.configs, Name: "all"},
		})
	})
	reference := r.desired("all")
	apitest.EditStatus(r, r.definition, func(d *addonv1beta1.ClusterManagementAddOn) {
		d.Status.DefaultConfigReferences = []addonv1beta1.DefaultConfigReference{{
			ConfigGroupResource: addontest.DeploymentConfigs,
			DesiredConfig:       &addonv1beta1.ConfigSpecHash{ConfigReferent: reference.DesiredConfig.ConfigReferent},
		}}
	})
	r.Eventually("the hash is known", func() string {
		r.MustGet(r.definition)
		return cmp.Diff(reference.DesiredConfig, r.definition.Status.DefaultConfigReferences[0].DesiredConfig)
	})
	addon := r.join()
	r.Stays(unwritten, "no agent", func() string { return r.isRegistered(addon) })
	apitest.EditStatus(r, addon, func(a *addonv1beta1.ManagedClusterAddOn) { // in a progressive rollout
		apimeta.SetStatusCondition(&a.Status.Conditions, metav1.Condition{
			Type: "Configured", Status: metav1.ConditionFalse, Reason: "ConfigurationsNotConfigured",
		})
	})
	r.Stays(unwritten, "no agent before its turn", func() string { return r.isRegistered(addon) })
	r.refer(addon, "all")
	r.runs(addon, "a")
	r.MustGet(addon)
	if addon.Status.ConfigReferences[0].LastObservedGeneration != 0 {
		r.T.Error("the generation was written, at one write per cluster and edit")
	}
}
