package addon

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"open-cluster-management.io/addon-framework/pkg/addonmanager/controllers/agentdeploy"
	"open-cluster-management.io/addon-framework/pkg/utils"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	workv1 "open-cluster-management.io/api/work/v1"
	"sigs.k8s.io/controller-runtime/pkg/cache"

	"open-cluster-management.io/cluster-inventory-addon/internal/apitest"
	"open-cluster-management.io/cluster-inventory-addon/internal/apitest/addontest"
	"open-cluster-management.io/cluster-inventory-addon/pkg/contract"
	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/addon/configuration"
	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/addon/manifests"
)

// TestRevisions runs on one hub, on which clusters get their agents by AgentRevisions. The
// test plays Open Cluster Management, which chooses each cluster's revision.
func TestRevisions(t *testing.T) {
	r := newRevisionStory(t)
	r.offers(r.named("first"))
	r.restart(Options{})
	r.settle()
	t.Run("step by step", func(t *testing.T) { r.in(t).stepByStep() })
	t.Run("an AddOnDeploymentConfig of one's own", func(t *testing.T) { r.in(t).ownConfiguration() })
	t.Run("clusters that join", func(t *testing.T) { r.in(t).newcomers() })
	t.Run("another manager", func(t *testing.T) { r.in(t).anotherManager() })
	t.Run("a manager after this one", func(t *testing.T) { r.in(t).laterManager() })
	t.Run("wrong", func(t *testing.T) { r.in(t).wrongRevision() })
	t.Run("missing", func(t *testing.T) { r.in(t).missingRevision() })
	t.Run("edited in place", func(t *testing.T) { r.in(t).editedInPlace() })
	t.Run("none for all clusters", func(t *testing.T) { r.in(t).noneOffered() })
}

// TestRevisionsWithoutTheirDefinition, which the chart installs, and which a forced upgrade may
// remove for a while: agents stay, spokes are cleaned up, and what has to wait continues once
// it exists.
func TestRevisionsWithoutTheirDefinition(t *testing.T) {
	r := newRevisionStory(t)
	r.Patience = 2 * apitest.Patience // the framework looks for them every half a minute
	one := r.named("one")
	r.fill(one, "v1", "2")
	r.MustCreate(one)
	r.offers(one)
	r.restart(Options{})
	held, removed, waits := r.joined(one, "v1"), r.joined(one, "v1"), r.join()
	r.settle()

	r.shell.stop()
	crd := &unstructured.Unstructured{}
	crd.SetAPIVersion("apiextensions.k8s.io/v1")
	crd.SetKind("CustomResourceDefinition")
	crd.SetName("agentrevisions.inventory.open-cluster-management.io")
	r.MustDelete(crd)
	r.EventuallyGone(crd)
	r.restart(Options{})
	r.settle()
	two := r.named("two")
	r.fill(two, "v2", "2")
	r.offers(two)
	offered := []addonv1beta1.DefaultConfigReference{{ConfigGroupResource: addontest.AgentRevisions, DesiredConfig: r.hashOf(two)}}
	apitest.EditStatus(r, r.definition, func(d *addonv1beta1.ClusterManagementAddOn) {
		d.Status.DefaultConfigReferences = offered
	})
	for _, addon := range []*addonv1beta1.ManagedClusterAddOn{held, removed} {
		r.gets(addon, two)
	}
	r.gets(waits, r.named("gone"))
	r.MustDelete(removed)
	r.isCleanedUp(removed)
	r.settle()
	r.has(held, "v1")
	if agent := r.agent(waits); agent != nil {
		t.Errorf("without an AgentRevision there is the agent %+v", agent.Spec)
	}
	r.MustGet(r.definition)
	if diff := cmp.Diff(offered, r.definition.Status.DefaultConfigReferences); diff != "" {
		t.Errorf("revisions of all clusters, from which OCM takes the hash (-want +got):\n%s", diff)
	}

	hub.Install(t, apitest.AgentRevision())
	r.says(waits, "ConfigurationMissing", "AgentRevision gone")
	r.MustCreate(two)
	r.has(held, "v2")
}

func newRevisionStory(t *testing.T) *revisions {
	t.Helper()
	w := newWorld(t)
	definition := &addonv1beta1.ClusterManagementAddOn{ObjectMeta: metav1.ObjectMeta{Name: contract.AddonName}}
	definition.Spec.InstallStrategy.Type = addonv1beta1.AddonInstallStrategyManual
	w.MustCreate(definition)
	w.CleanUp(definition)
	unseen := &world{&addontest.World{World: w.World.World, Wire: &apitest.Wire{}}}
	return &revisions{&rollout{world: unseen, definition: definition}, &shell{}}
}

type revisions struct {
	*rollout
	shell *shell
}

// shell is the framework that runs.
type shell struct {
	on       testing.TB
	outcomes *configuration.Outcomes
	stop     func()
}

func (r *revisions) in(t *testing.T) *revisions {
	inner := &revisions{r.rollout.in(t), r.shell}
	inner.outcomes = r.shell.outcomes
	return inner
}

// restart starts another framework in place of the one that runs.
func (r *revisions) restart(opts Options) {
	r.T.Helper()
	if r.shell.on == nil {
		r.shell.on = r.T // until all stories end
	} else {
		r.shell.stop()
	}
	cfg := r.Wire.Tap(hub.Config(r.T))
	cached, err := cache.New(cfg, cache.Options{Scheme: r.Scheme(), ByObject: CacheOptions()})
	apitest.Must(r.T, err)
	r.shell.outcomes = configuration.NewOutcomes(r.Client)
	r.outcomes = r.shell.outcomes
	stopCache := apitest.Run(r.shell.on, cached.Start)
	shell := &framework{
		cfg: cfg, shared: cached, client: r.Client, live: r.Client, outcomes: r.outcomes, opts: opts,
	}
	r.Wire.Reset()
	stopShell := apitest.Run(r.shell.on, shell.Start)
	r.Eventually("the framework reads ManifestWorks", func() string {
		for _, call := range r.Wire.Calls() {
			if call.Resource == "manifestworks" && call.IsWatch() {
				return ""
			}
		}
		return "it does not"
	})
	r.shell.stop = func() {
		stopShell()
		stopCache()
	}
}

// named is an AgentRevision that need not exist.
func (r *revisions) named(name string) *unstructured.Unstructured {
	revision := newRevision(name)
	delete(revision.Object, "spec")
	return revision
}

// newRevision has agents of version v1.
func newRevision(name string) *unstructured.Unstructured {
	revision := &unstructured.Unstructured{Object: map[string]any{"spec": revisionSpecOf("v1", "2")}}
	revision.SetAPIVersion("inventory.open-cluster-management.io/v1alpha1")
	revision.SetKind("AgentRevision")
	revision.SetName(name)
	return revision
}

func revisionSpecOf(version, manifests string) map[string]any {
	return map[string]any{
		"manifests": manifests, "image": "example.com/inventory:" + version, "imagePullPolicy": "IfNotPresent",
		"imagePullSecrets": []any{"pull"}, "installNamespace": "agents", "claimLimit": int64(20), "logLevel": int64(0),
	}
}

// revision creates an AgentRevision with agents of a version, and the manifests of a
// revision.
func (r *revisions) revision(version, manifests string) *unstructured.Unstructured {
	r.T.Helper()
	revision := r.named("")
	revision.SetGenerateName("revision-")
	r.fill(revision, version, manifests)
	r.MustCreate(revision)
	r.CleanUp(revision)
	return revision
}

func (r *revisions) fill(revision *unstructured.Unstructured, version, manifests string) {
	revision.Object["spec"] = revisionSpecOf(version, manifests)
}

// offers makes an AgentRevision the one of all clusters.
func (r *revisions) offers(revisions ...*unstructured.Unstructured) {
	r.T.Helper()
	apitest.Edit(r, r.definition, func(d *addonv1beta1.ClusterManagementAddOn) {
		d.Spec.DefaultConfigs = nil
		for _, revision := range revisions {
			d.Spec.DefaultConfigs = append(d.Spec.DefaultConfigs, addonv1beta1.AddOnConfig{
				ConfigGroupResource: addontest.AgentRevisions, ConfigReferent: addonv1beta1.ConfigReferent{Name: revision.GetName()},
			})
		}
	})
}

// hashOf refers to a revision with its present content.
func (r *revisions) hashOf(revision *unstructured.Unstructured) *addonv1beta1.ConfigSpecHash {
	r.T.Helper()
	hash, err := utils.GetSpecHash(revision)
	apitest.Must(r.T, err)
	return &addonv1beta1.ConfigSpecHash{
		ConfigReferent: addonv1beta1.ConfigReferent{Name: revision.GetName()}, SpecHash: hash,
	}
}

// gets makes it a cluster's turn.
func (r *revisions) gets(
	addon *addonv1beta1.ManagedClusterAddOn, revision *unstructured.Unstructured, more ...addonv1beta1.ConfigReference,
) {
	r.T.Helper()
	r.isToHave(addon, r.hashOf(revision), more...)
}

// getsWithoutHash makes it a cluster's turn before the manager has written the hash of a
// new revision into the ClusterManagementAddOn.
func (r *revisions) getsWithoutHash(addon *addonv1beta1.ManagedClusterAddOn, revision *unstructured.Unstructured) {
	r.T.Helper()
	desired := r.hashOf(revision)
	desired.SpecHash = ""
	r.isToHave(addon, desired)
}

func (r *revisions) isToHave(
	addon *addonv1beta1.ManagedClusterAddOn, desired *addonv1beta1.ConfigSpecHash, more ...addonv1beta1.ConfigReference,
) {
	r.T.Helper()
	references := append([]addonv1beta1.ConfigReference{{
		ConfigGroupResource: addontest.AgentRevisions, DesiredConfig: desired,
	}}, more...)
	apitest.EditStatus(r, addon, func(a *addonv1beta1.ManagedClusterAddOn) {
		a.Status.ConfigReferences = references
		apimeta.SetStatusCondition(&a.Status.Conditions, metav1.Condition{
			Type: "Configured", Status: metav1.ConditionTrue, Reason: "ConfigurationsConfigured",
		})
	})
}

// has waits until the agent of a cluster is of a version.
func (r *revisions) has(addon *addonv1beta1.ManagedClusterAddOn, version string) {
	r.T.Helper()
	r.Eventually("the agent is "+version, func() string {
		agent := r.agent(addon)
		if agent == nil {
			return "there is none"
		}
		return cmp.Diff("example.com/inventory:"+version, agent.Spec.Template.Spec.Containers[0].Image)
	})
}

// joined is a cluster with the agent of a revision.
func (r *revisions) joined(
	revision *unstructured.Unstructured, version string, change ...func(*addonv1beta1.ManagedClusterAddOn),
) *addonv1beta1.ManagedClusterAddOn {
	r.T.Helper()
	addon := r.join(change...)
	r.gets(addon, revision)
	r.has(addon, version)
	return addon
}

func (r *revisions) settle() {
	r.T.Helper()
	r.Wire.Settle(r.T, apitest.Patience, unwritten)
	r.Wire.Reset()
}

// A new revision reaches each cluster when its turn comes, with one write, and with rules
// that require the agent of that revision to be available.
func (r *revisions) stepByStep() {
	one, two := r.revision("v1", "2"), r.revision("v2", "2")
	first, second := r.joined(one, "v1"), r.joined(one, "v1")
	r.rulesFit(first)
	r.settle()

	r.offers(two)
	r.wrote() // no cluster's turn has come
	r.getsWithoutHash(first, two)
	r.wrote() // the hash follows
	r.gets(first, two)
	r.has(first, "v2")
	r.wrote("PATCH manifestworks")
	r.rulesFit(first)
	r.has(second, "v1")

	// Other changes of a cluster in the meantime write nothing.
	apitest.Edit(r, second, func(a *addonv1beta1.ManagedClusterAddOn) { a.Annotations = map[string]string{"a": "b"} })
	r.wrote()
	r.gets(second, two)
	r.has(second, "v2")
	r.wrote("PATCH manifestworks")

	r.gets(first, one) // a rollback
	r.has(first, "v1")
	r.wrote("PATCH manifestworks")
	r.rulesFit(first)
}

// rulesFit checks that the conditionRules of a ManifestWork are for the agent in it.
func (r *revisions) rulesFit(addon *addonv1beta1.ManagedClusterAddOn) {
	r.T.Helper()
	work := r.deployWork(addon)
	r.MustGet(work)
	var rules []workv1.ConditionRule
	for _, option := range work.Spec.ManifestConfigs {
		if len(option.ConditionRules) > 0 && option.ResourceIdentifier.Name != manifests.AgentName {
			r.T.Errorf("rules for %+v", option.ResourceIdentifier)
		}
		rules = append(rules, option.ConditionRules...)
	}
	content := r.agent(addon).Annotations["inventory.open-cluster-management.io/content"]
	if len(rules) != 1 || rules[0].Condition != "Available" || rules[0].Type != "CEL" || content == "" ||
		!strings.Contains(rules[0].CelExpressions[0], "== '"+content+"'") {
		r.T.Errorf("the agent has content %q, and its rules are %+v", content, rules)
	}
}

// A cluster that names an AddOnDeploymentConfig is upgraded in its turn, too, and keeps
// that.
func (r *revisions) ownConfiguration() {
	r.config("own", zoneA)
	one, two := r.revision("v1", "2"), r.revision("v2", "2")
	own := r.desired("own")
	addon := r.join(r.names("own"))
	r.gets(addon, one, own)
	r.has(addon, "v1")
	r.runs(addon, "a")
	r.settle()

	r.offers(two)
	r.wrote()
	r.gets(addon, two, own)
	r.has(addon, "v2")
	r.runs(addon, "a")

	// An edit of the configuration before the cluster's turn keeps the old revision.
	three := r.revision("v3", "2")
	r.offers(three)
	r.settle()
	r.config("own", zoneB)
	r.runs(addon, "b")
	r.has(addon, "v2")
}

// Clusters that join wait for their turn, too: OCM throttles installations as well. The
// condition Configured may claim that there is nothing to wait for, because it lags behind
// a change of the definition.
func (r *revisions) newcomers() {
	one := r.revision("v1", "2")
	r.offers(one)
	addon := r.join()
	apitest.EditStatus(r, addon, func(a *addonv1beta1.ManagedClusterAddOn) {
		apimeta.SetStatusCondition(&a.Status.Conditions, metav1.Condition{
			Type: "Configured", Status: metav1.ConditionTrue, Reason: "ConfigurationsConfigured",
		})
	})
	r.Stays(unwritten, "no agent", func() string { return r.isRegistered(addon) })
	r.gets(addon, one)
	r.has(addon, "v1")
	if agent := r.agent(addon); agent.Namespace != "agents" ||
		agent.Spec.Template.Spec.ImagePullSecrets[0].Name != "pull" {
		r.T.Errorf("the agent is %+v", agent)
	}
}

// Another manager changes no cluster.
func (r *revisions) anotherManager() {
	one := r.revision("v1", "1")
	addon := r.joined(one, "v1")
	r.settle()
	before := r.deployWork(addon)
	r.MustGet(before)
	r.restart(Options{AllowedRegistries: []string{"mirror.example.com"}})
	apitest.Edit(r, addon, func(a *addonv1beta1.ManagedClusterAddOn) { a.Annotations = map[string]string{"a": "b"} })
	r.wrote()
	after := r.deployWork(addon)
	if r.MustGet(after); after.ResourceVersion != before.ResourceVersion {
		r.T.Errorf("the ManifestWork was changed: %s", cmp.Diff(before, after))
	}
	r.restart(Options{})
}

// A hub is downgraded to this manager from a later one, with manifests that this one lacks.
// The spokes are still cleaned up when their addons are removed, whether the AgentRevision
// exists or not.
func (r *revisions) laterManager() {
	one, later := r.revision("v1", "2"), r.revision("v9", "3")
	refused, missing := r.joined(one, "v1"), r.joined(one, "v1")
	for _, addon := range []*addonv1beta1.ManagedClusterAddOn{refused, missing} {
		r.Eventually("the addon waits for its clean-up", func() string {
			r.MustGet(addon)
			return cmp.Diff([]string{hookFinalizer}, addon.Finalizers)
		})
	}
	r.settle()
	r.shell.stop()
	for _, addon := range []*addonv1beta1.ManagedClusterAddOn{refused, missing} {
		r.gets(addon, later)
		noted, err := json.Marshal(agentdeploy.ConfigsToMap(addon.Status.ConfigReferences))
		apitest.Must(r.T, err)
		apitest.Edit(r, r.deployWork(addon), func(w *workv1.ManifestWork) {
			w.Annotations[workv1.ManifestConfigSpecHashAnnotationKey] = string(noted)
			w.Spec = addontest.OfRevision(r.T, w, "3").Spec
		})
	}
	r.restart(Options{})
	r.says(refused, "InvalidConfiguration", "spec.manifests")
	r.MustDelete(refused)
	r.isCleanedUp(refused)

	r.MustDelete(later)
	r.says(missing, "ConfigurationMissing", later.GetName())
	r.settle()
	r.MustDelete(missing)
	r.isCleanedUp(missing)
}

// isCleanedUp waits until a removed addon waits for its clean-up Job.
func (r *revisions) isCleanedUp(addon *addonv1beta1.ManagedClusterAddOn) {
	r.T.Helper()
	hook := &workv1.ManifestWork{ObjectMeta: metav1.ObjectMeta{
		Namespace: addon.Namespace, Name: "addon-cluster-inventory-pre-delete",
	}}
	r.EventuallyExists(hook)
	args := inWork[batchv1.Job](r.rollout, hook, "Job").Spec.Template.Spec.Containers[0].Args
	if !slices.Contains(args, "--addon-uid="+string(addon.UID)) {
		r.T.Errorf("the arguments of the clean-up Job: %v", args)
	}
	r.MustGet(addon)
	if !slices.Contains(addon.Finalizers, hookFinalizer) {
		r.T.Errorf("finalizers %v: nothing waits for the clean-up", addon.Finalizers)
	}
}

// An error in a revision changes nothing, and is reported.
func (r *revisions) wrongRevision() {
	one, unknown := r.revision("v1", "2"), r.revision("v2", "99")
	addon := r.joined(one, "v1")
	r.settle()
	before := r.deployWork(addon)
	r.MustGet(before)
	r.gets(addon, unknown)
	r.says(addon, "InvalidConfiguration", "AgentRevision "+unknown.GetName(), "spec.manifests", `"99"`, "1 and 2")
	r.wrote("PATCH managedclusteraddons/status") // ManifestApplied
	after := r.deployWork(addon)
	if r.MustGet(after); after.ResourceVersion != before.ResourceVersion {
		r.T.Errorf("the ManifestWork was changed: %+v", after)
	}
	r.gets(addon, r.revision("v3", "2"))
	r.has(addon, "v3")
	r.Eventually("there is no condition", func() string {
		desired, err := r.outcomes.Desired(r.T.Context(), addon.Namespace)
		if err != nil || desired == nil || !desired.Absent {
			return fmt.Sprintf("%+v, %v", desired, err)
		}
		return ""
	})
}

// A revision that is deleted although a cluster refers to it changes nothing.
func (r *revisions) missingRevision() {
	one := r.revision("v1", "2")
	addon := r.joined(one, "v1")
	r.settle()
	r.MustDelete(one)
	r.says(addon, "ConfigurationMissing", "AgentRevision "+one.GetName())
	r.wrote()
	again := r.named(one.GetName())
	r.fill(again, "v1", "2")
	r.MustCreate(again)
	r.wrote()
	r.has(addon, "v1")

	r.getsWithoutHash(addon, r.named("never")) // whose hash does not follow
	r.says(addon, "ConfigurationMissing", "AgentRevision never")
	r.has(addon, "v1")
}

// A revision cannot be edited. One that is recreated with other content reaches no agent
// before OCM says so.
func (r *revisions) editedInPlace() {
	one := r.revision("v1", "2")
	addon := r.joined(one, "v1")
	r.settle()
	edited := one.DeepCopy()
	r.fill(edited, "v2", "2")
	if err := r.Update(r.T.Context(), edited); !apierrors.IsInvalid(err) ||
		!strings.Contains(err.Error(), "make another one") {
		r.T.Errorf("an edit: %v", err)
	}
	r.MustDelete(one)
	again := r.named(one.GetName())
	r.fill(again, "v2", "2")
	r.MustCreate(again)
	apitest.Edit(r, addon, func(a *addonv1beta1.ManagedClusterAddOn) { a.Annotations = map[string]string{"a": "b"} })
	r.wrote()
	r.has(addon, "v1")
	r.gets(addon, again)
	r.has(addon, "v2")
	r.wrote("PATCH manifestworks")
}

// Where no revision is offered, deployed agents stay, and newcomers get a message.
func (r *revisions) noneOffered() {
	one := r.revision("v1", "2")
	r.offers(one)
	addon := r.joined(one, "v1")
	r.settle()
	r.offers()
	r.wrote()
	fresh := r.join()
	r.says(fresh, "ConfigurationMissing", "ClusterManagementAddOn cluster-inventory names no AgentRevision")
	r.has(addon, "v1")
	r.gets(fresh, one) // as a cluster can name one itself
	r.has(fresh, "v1")
}
