package addon

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	toolscache "k8s.io/client-go/tools/cache"
	"open-cluster-management.io/addon-framework/pkg/addonmanager/constants"
	"open-cluster-management.io/addon-framework/pkg/addonmanager/controllers/agentdeploy"
	"open-cluster-management.io/addon-framework/pkg/agent"
	"open-cluster-management.io/addon-framework/pkg/index"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	workv1 "open-cluster-management.io/api/work/v1"

	"open-cluster-management.io/cluster-inventory-addon/pkg/contract"
	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/addon/configuration"
	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/addon/manifests"
	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/addon/ownwork"
)

// Options are those of the manager. Those of agents are in AgentRevisions and configurations.
type Options struct {
	// AllowedRegistries are the registries, or registry paths, from which configurations
	// and the annotations of clusters may pull the agent's image.
	AllowedRegistries []string

	// CleanupTimeout is how long an unreachable spoke delays the removal of its
	// addon.
	CleanupTimeout time.Duration

	// CleanupJobTimeout is how long a clean-up Job that does not succeed delays the
	// removal of its addon; at least CleanupTimeout.
	CleanupJobTimeout time.Duration

	// HostedAgents lets agents run on other clusters than their own. The manager must be able to
	// list and watch all ManifestWorks of the hub; otherwise it reads its own few by name.
	HostedAgents bool

	// Reinstalls says whether Open Cluster Management is about to create an addon again that
	// it is deleting; nil means that it never does.
	Reinstalls Reinstalls
}

// Reinstalls returns whether Open Cluster Management is about to create an addon again: known
// is false while that is unknown, which it does not stay.
type Reinstalls func(ctx context.Context, addon *addonv1beta1.ManagedClusterAddOn) (again, known bool, err error)

// observed holds the framework's caches.
type observed struct {
	addons  toolscache.Indexer // with hostIndexers
	works   toolscache.Indexer
	sources configuration.Sources
}

// inventoryAgent is this addon's implementation of addon-framework's AgentAddon.
//
// The values come from AgentRevisions and from AddOnDeploymentConfigs, which the install
// strategy rolls out. A cluster without an AgentRevision gets no agent.
type inventoryAgent struct {
	observed
	renderers *manifests.Renderers
	grants    *grants
	outcomes  *configuration.Outcomes
	options   agent.AgentAddonOptions

	allowedRegistries []string
	hosting           bool // hosted agents are managed

	reinstalls Reinstalls
	askAgain   func(cluster string) // makes the framework call Manifests again, a second later
}

var _ agent.AgentAddon = &inventoryAgent{}

func newAgent(
	renderers *manifests.Renderers, grants *grants, outcomes *configuration.Outcomes, caches observed,
) *inventoryAgent {
	a := &inventoryAgent{observed: caches, renderers: renderers, grants: grants, outcomes: outcomes}
	a.options = a.agentOptions()
	return a
}

// Manifests is called several times per event of an addon or its ManifestWorks.
//
// While the configuration is refused, it returns an error, so that nothing is written: a
// new ManifestWork would claim that the configuration was applied. While the applicable
// configuration is unknown, or does not exist because Helm replaces it, it returns the
// deployed manifests if they were written for the configuration to which the addon refers,
// and otherwise an error, too. It returns nothing only for an addon that has been cleaned
// up, which is how the framework understands that, or that needs no clean-up because it is
// about to be created again. The removal of an addon never waits for a configuration: the
// clean-up Job then uses the agent's settings.
func (a *inventoryAgent) Manifests(
	ctx context.Context, cluster *clusterv1.ManagedCluster, addon *addonv1beta1.ManagedClusterAddOn,
) ([]runtime.Object, error) {
	if !addon.DeletionTimestamp.IsZero() && !ownwork.WaitsForCleanup(addon) {
		return nil, nil // the framework would add a finalizer, which the API server now refuses
	}
	if again, err := a.isReinstalled(ctx, cluster, addon); again || err != nil {
		return nil, err
	}
	there, err := a.deployed(addon)
	if err != nil {
		return nil, err
	}
	at := a.location(addon, there)
	at.Registries = cluster.Annotations[clusterv1.ClusterImageRegistriesAnnotationKey]
	decided := a.sources.Decide(addon, at)
	a.report(addon, decided, there)
	refused := decided.Refused
	mayPass := refused == nil || refused.Reason == contract.ReasonConfigurationMissing
	switch {
	case refused == nil && decided.Known:
		return a.renderers.Render(decided.Values, cluster.Name, string(addon.UID))
	case !addon.DeletionTimestamp.IsZero():
		return a.manifestsForCleanup(cluster, addon, there)
	case mayPass && there.HasAgent() && there.Carries(agentdeploy.ConfigsToMap(addon.Status.ConfigReferences)):
		return a.renderers.Held(there, string(addon.UID))
	case refused != nil:
		return nil, refused
	default:
		return nil, configuration.ErrHeld
	}
}

// isReinstalled reports whether an addon that is being deleted is about to be created again,
// so that the spoke must not be cleaned up. ErrHeld says that this is not known yet. Once the
// clean-up has begun, it continues.
func (a *inventoryAgent) isReinstalled(
	ctx context.Context, cluster *clusterv1.ManagedCluster, addon *addonv1beta1.ManagedClusterAddOn,
) (bool, error) {
	if a.reinstalls == nil || addon.DeletionTimestamp.IsZero() || a.cleansUp(addon) ||
		!cluster.DeletionTimestamp.IsZero() || !cluster.Spec.HubAcceptsClient {
		return false, nil
	}
	definition := a.sources.Definition()
	if definition == nil || !definition.DeletionTimestamp.IsZero() ||
		definition.Spec.InstallStrategy.Type != addonv1beta1.AddonInstallStrategyPlacements {
		return false, nil
	}
	again, known, err := a.reinstalls(ctx, addon)
	if err == nil && !known {
		a.askAgain(addon.Namespace)
		return false, configuration.ErrHeld
	}
	return again, err
}

// cleansUp reports whether the clean-up Job of an addon has been sent to its spoke, or its
// hosting cluster.
func (a *inventoryAgent) cleansUp(addon *addonv1beta1.ManagedClusterAddOn) bool {
	key := addon.Namespace + "/" + constants.PreDeleteHookWorkName(contract.AddonName)
	if found, exists, err := a.works.GetByKey(key); err == nil && exists {
		if work, ok := found.(*workv1.ManifestWork); ok && isOwnedBy(work, addon) {
			return true
		}
	}
	// One on a hosting cluster has no owner, and may be left of a previous installation.
	onHost := worksBy(a.works, index.ManifestWorkHookByHostedAddon, addon.Namespace)
	return slices.ContainsFunc(onHost, func(work *workv1.ManifestWork) bool { return manifests.RunsFor(work, addon) })
}

// manifestsForCleanup returns the manifests of an addon that is removed without a valid
// configuration: the deployed ones or, if the ManifestWork was deleted before the spoke was
// cleaned up, those of a cluster without a configuration.
func (a *inventoryAgent) manifestsForCleanup(
	cluster *clusterv1.ManagedCluster, addon *addonv1beta1.ManagedClusterAddOn, there manifests.Deployed,
) ([]runtime.Object, error) {
	if there.HasAgent() || !ownwork.WaitsForCleanup(addon) {
		return a.renderers.Held(there, string(addon.UID))
	}
	values, err := a.sources.Present()
	if err != nil {
		return nil, err
	}
	if a.host(addon) != "" {
		values = values.OnHost()
	} else {
		values.InstallNamespace = cmp.Or(addon.Status.Namespace, values.InstallNamespace)
	}
	return a.renderers.Render(values, cluster.Name, string(addon.UID))
}

// report records the outcome.
func (a *inventoryAgent) report(
	addon *addonv1beta1.ManagedClusterAddOn, decided configuration.Decision, there manifests.Deployed,
) {
	a.outcomes.Record(addon.Namespace, decided, there.RefusedBySpoke())
	// The addon that the framework works on may be deleted and forgotten by now.
	if _, exists, err := a.addons.GetByKey(queueKey(addon.Namespace)); err == nil && !exists {
		a.outcomes.Forget(addon.Namespace)
	}
}

// deployed returns the ManifestWorks with which the agent is deployed. Those of a previous
// installation, which Kubernetes has not deleted yet, do not count.
func (a *inventoryAgent) deployed(addon *addonv1beta1.ManagedClusterAddOn) (manifests.Deployed, error) {
	found, err := a.works.ByIndex(index.ManifestWorkByAddon, addon.Namespace+"/"+addon.Name)
	if err != nil {
		return nil, err
	}
	var works manifests.Deployed
	for _, obj := range found {
		if work, ok := obj.(*workv1.ManifestWork); ok && isOwnedBy(work, addon) {
			works = append(works, work)
		}
	}
	if onHost := a.hostedWork(addon); onHost != nil {
		works = append(works, onHost)
	}
	return works, nil
}

func isOwnedBy(work *workv1.ManifestWork, addon *addonv1beta1.ManagedClusterAddOn) bool {
	return slices.ContainsFunc(work.OwnerReferences, func(o metav1.OwnerReference) bool { return o.UID == addon.UID })
}

// permit grants a cluster's agent its rights, unless the agent cannot be installed without
// a valid configuration. Then it says so in the addon's condition RegistrationApplied: the
// framework continues only once that condition exists.
func (a *inventoryAgent) permit(
	ctx context.Context, cluster *clusterv1.ManagedCluster, addon *addonv1beta1.ManagedClusterAddOn,
) error {
	if addon.Status.Namespace == "" {
		there, err := a.deployed(addon)
		if err != nil {
			return err
		}
		if _, refused := a.sources.DecideNamespace(addon, a.location(addon, there)); refused != nil {
			return refused
		}
	}
	return a.grants.apply(ctx, cluster, addon)
}

// namespace returns the agent's install namespace, which the klusterlet reads from the
// addon's status. The namespace in the ManagedClusterAddOn's spec is ignored: clusteradm
// writes its own default there.
func (a *inventoryAgent) namespace(_ context.Context, addon *addonv1beta1.ManagedClusterAddOn) (string, error) {
	there, err := a.deployed(addon)
	if err != nil {
		return "", err
	}
	at := a.location(addon, there)
	if at.Namespace != "" {
		return at.Namespace, nil
	}
	wanted, refused := a.sources.DecideNamespace(addon, at)
	if refused == nil && wanted != "" {
		return wanted, nil
	}
	// The framework has put a default into the addon it passed.
	if cached := a.addon(addon.Namespace); cached != nil && cached.Status.Namespace != "" {
		return cached.Status.Namespace, nil
	}
	if refused != nil {
		return "", refused
	}
	return "", configuration.ErrHeld
}

// GetAgentAddonOptions tells the framework how to treat the addon. It is called dozens of
// times per event.
func (a *inventoryAgent) GetAgentAddonOptions() agent.AgentAddonOptions { return a.options }

func (a *inventoryAgent) agentOptions() agent.AgentAddonOptions {
	return agent.AgentAddonOptions{
		AddonName: contract.AddonName,
		Registration: &agent.RegistrationOption{
			Configurations:   agent.KubeClientSignerConfigurations(contract.AddonName, contract.AddonName),
			PermissionConfig: a.permit,
		},
		SupportedConfigGVRs:             configuration.SupportedResources(),
		AgentInstallNamespace:           a.namespace,
		HostedModeEnabled:               true,
		HostedModeInfoFunc:              a.frameworkMode,
		AgentDeployTriggerClusterFilter: clusterMatters,
		HealthProber: &agent.HealthProber{
			Type: agent.HealthProberTypeWork,
			WorkProber: &agent.WorkHealthProber{
				ProbeFields: []agent.ProbeField{{
					ResourceIdentifier: manifests.AgentDeployment("*"), ProbeRules: manifests.WellKnownStatus(),
				}},
				HealthChecker: health,
			},
		},
		ManifestConfigs: manifests.Options(),
	}
}

// clusterMatters makes the framework reconcile a cluster's addon again.
func clusterMatters(before, after *clusterv1.ManagedCluster) bool {
	const registries = clusterv1.ClusterImageRegistriesAnnotationKey
	return reachableAgain(before, after) || before.Annotations[registries] != after.Annotations[registries]
}

// reachableAgain makes the framework check the health of a cluster's addon. While a
// cluster is unreachable, OCM sets the addon's condition Available to Unknown and the
// framework leaves it so; when the cluster is back, the spoke has nothing new to report.
func reachableAgain(before, after *clusterv1.ManagedCluster) bool {
	isUnknown := func(cluster *clusterv1.ManagedCluster) bool {
		return apimeta.IsStatusConditionPresentAndEqual(
			cluster.Status.Conditions, clusterv1.ManagedClusterConditionAvailable, metav1.ConditionUnknown)
	}
	return isUnknown(before) && !isUnknown(after)
}

// health checks the status that the spoke reported for the agent's Deployment. Its
// error becomes the message of the addon's condition Available. The framework calls it
// only once there is a report.
func health(results []agent.FieldResult, _ *clusterv1.ManagedCluster, _ *addonv1beta1.ManagedClusterAddOn) error {
	for _, result := range results {
		for _, value := range result.FeedbackResult.Values {
			if value.Name == "ReadyReplicas" && value.Value.Integer != nil && *value.Value.Integer > 0 {
				return nil
			}
		}
	}
	return fmt.Errorf("no pod of the Deployment %s on the spoke is ready", manifests.AgentName)
}
