package addon

import (
	"context"
	"fmt"
	"slices"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"open-cluster-management.io/addon-framework/pkg/addonmanager/constants"
	"open-cluster-management.io/addon-framework/pkg/addonmanager/controllers/agentdeploy"
	"open-cluster-management.io/addon-framework/pkg/agent"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"open-cluster-management.io/cluster-inventory-addon/pkg/contract"
	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/addon/configuration"
	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/addon/manifests"
	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/addon/ownwork"
	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/addon/release"
)

// Options are those of the manager. Those of agents are in AgentRevisions and configurations.
type Options struct {
	// AllowedRegistries are the registries, or registry paths, from which configurations
	// and the annotations of clusters may pull the agent's image.
	AllowedRegistries []string

	// Release also says whether agents run on other clusters than their own. Then the manager must
	// be able to list and watch all ManifestWorks of the hub.
	Release release.Options

	// Reinstalls says whether Open Cluster Management is about to create an addon again that
	// it is deleting; nil means that it never does.
	Reinstalls Reinstalls
}

// inventoryAgent is this addon's implementation of addon-framework's AgentAddon.
//
// The values come from AgentRevisions and from AddOnDeploymentConfigs, which the install
// strategy rolls out. A cluster without an AgentRevision gets no agent.
type inventoryAgent struct {
	observed  observed
	renderers *manifests.Renderers
	grants    *grants
	outcomes  *configuration.Outcomes
	options   agent.AgentAddonOptions

	hosting bool // hosted agents are managed

	reinstalls Reinstalls
	askAgain   func(cluster string) // makes the framework call Manifests again, a second later
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
	at := a.observed.locate(addon)
	at.Registries = cluster.Annotations[clusterv1.ClusterImageRegistriesAnnotationKey]
	if again, err := a.isReinstalled(ctx, cluster, addon, at.There.CleansUp); again || err != nil {
		return nil, err
	}
	decided := a.observed.sources.Decide(addon, at)
	a.report(cluster.Name, decided, at.There.Refused)
	values, refused, isRemoved := decided.Values, decided.Refused, !addon.DeletionTimestamp.IsZero()
	mayPass := refused == nil || refused.Reason == contract.ReasonConfigurationMissing
	switch {
	case refused == nil && decided.Known:
	case at.There.Agent != nil && (isRemoved ||
		mayPass && at.Host == at.There.Host && // what a spoke wrote goes to no other cluster
			at.There.Carries(agentdeploy.ConfigsToMap(addon.Status.ConfigReferences))):
		return a.renderers.Held(at.There, string(addon.UID))
	case isRemoved: // and the ManifestWork was deleted before the spoke was cleaned up
		var err error
		if values, err = a.observed.sources.ForCleanup(at.Host, addon.Status.Namespace); err != nil {
			return nil, err
		}
	case refused != nil:
		return nil, refused
	default:
		return nil, configuration.ErrHeld
	}
	return a.renderers.Render(values, cluster.Name, string(addon.UID))
}

func (a *inventoryAgent) report(cluster string, decided configuration.Decision, refusedBySpoke string) {
	a.outcomes.Record(cluster, decided, refusedBySpoke)
	if a.observed.addon(cluster) == nil { // the addon that the framework works on was deleted, and forgotten, meanwhile
		a.outcomes.Forget(cluster)
	}
}

// permit grants a cluster's agent its rights, unless the agent cannot be installed without
// a valid configuration. Then it says so in the addon's condition RegistrationApplied: the
// framework continues only once that condition exists.
func (a *inventoryAgent) permit(
	ctx context.Context, cluster *clusterv1.ManagedCluster, addon *addonv1beta1.ManagedClusterAddOn,
) error {
	if addon.Status.Namespace == "" {
		if _, refused := a.observed.sources.DecideNamespace(addon, a.observed.locate(addon)); refused != nil {
			return refused
		}
	}
	return a.grants.apply(ctx, cluster, addon)
}

// namespace returns the agent's install namespace, which the klusterlet reads from the
// addon's status. The namespace in the ManagedClusterAddOn's spec is ignored: clusteradm
// writes its own default there.
func (a *inventoryAgent) namespace(_ context.Context, addon *addonv1beta1.ManagedClusterAddOn) (string, error) {
	at := a.observed.locate(addon)
	if namespace := at.Namespace(); namespace != "" {
		return namespace, nil
	}
	wanted, refused := a.observed.sources.DecideNamespace(addon, at)
	if refused == nil && wanted != "" {
		return wanted, nil
	}
	// The framework has put a default into the addon it passed.
	if cached := a.observed.addon(addon.Namespace); cached != nil && cached.Status.Namespace != "" {
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

// frameworkMode tells the framework where a cluster's agent runs. When an agent is no
// longer hosted, the framework leaves one of the finalizers that it added for that, and
// would wait for a clean-up on the host when the addon is removed. So frameworkMode drops
// it from the copy of the addon that the framework is about to write.
func (a *inventoryAgent) frameworkMode(
	addon *addonv1beta1.ManagedClusterAddOn, _ *clusterv1.ManagedCluster,
) (string, string) {
	there := a.observed.deployed(addon)
	if host := configuration.Host(addon, there); host != "" {
		return constants.InstallModeHosted, host
	}
	if ownwork.IsHosted(addon) && there.Host == "" && there.FormerHost == "" {
		addon.Finalizers = slices.Clone(addon.Finalizers)
		controllerutil.RemoveFinalizer(addon, addonv1beta1.AddonHostingPreDeleteHookFinalizer)
	}
	return constants.InstallModeDefault, ""
}

// isManaged reports whether the framework may process an addon. If not, the condition
// ConfigurationApplied says why, and nothing is created or removed.
func (a *inventoryAgent) isManaged(addon *addonv1beta1.ManagedClusterAddOn) bool {
	if a.hosting {
		return true
	}
	refused := configuration.ValidateUnhosted(addon)
	if refused != nil {
		a.report(addon.Namespace, configuration.Decision{Refused: refused}, "")
	}
	return refused == nil
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
