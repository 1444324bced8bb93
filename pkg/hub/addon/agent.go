package addon

import (
	"context"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"open-cluster-management.io/addon-framework/pkg/agent"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	workv1 "open-cluster-management.io/api/work/v1"

	"open-cluster-management.io/cluster-inventory-addon/pkg/contract"
)

const (
	// agentName is the agent's Deployment on the spoke, and its Role and
	// RoleBinding in the cluster namespace on the hub.
	agentName = "cluster-inventory-agent"

	// propertyCRD is created on spokes that lack it, and never changed afterwards.
	propertyCRD = "clusterproperties.about.k8s.io"
)

// Options are the settings of the agents and of their clean-up.
type Options struct {
	// AgentImage and AgentImagePullPolicy are those of the agent on the spokes.
	AgentImage           string
	AgentImagePullPolicy string

	// InstallNamespace is the agent's namespace on every spoke. The namespace in the
	// ManagedClusterAddOn is ignored: clusteradm writes its own default there.
	InstallNamespace string

	// ClaimLimit is how many custom claims the klusterlets report.
	ClaimLimit int

	// AgentLogLevel is the agent's log verbosity.
	AgentLogLevel int

	// CleanupTimeout is how long an unreachable spoke delays the removal of its
	// addon.
	CleanupTimeout time.Duration

	// CleanupJobTimeout is how long a clean-up Job that does not succeed delays the
	// removal of its addon; at least CleanupTimeout.
	CleanupJobTimeout time.Duration
}

// inventoryAgent is this addon's implementation of addon-framework's AgentAddon.
//
// The values come from the manager's options, so a new image reaches all clusters at
// once. To roll it out by the install strategy, read an AddOnDeploymentConfig in values
// and name it in SupportedConfigGVRs.
type inventoryAgent struct {
	renderer *renderer
	options  agent.AgentAddonOptions
}

var _ agent.AgentAddon = &inventoryAgent{}

func newAgent(opts Options, grants *grants) (*inventoryAgent, error) {
	template, err := newTemplate()
	if err != nil {
		return nil, err
	}
	renderer, err := newRenderer(template, Values{
		InstallNamespace: opts.InstallNamespace,
		Image:            opts.AgentImage,
		PullPolicy:       opts.AgentImagePullPolicy,
		ClaimLimit:       opts.ClaimLimit,
		LogLevel:         opts.AgentLogLevel,
	})
	if err != nil {
		return nil, err
	}
	return &inventoryAgent{renderer: renderer, options: agentOptions(opts, grants)}, nil
}

// Manifests is called several times per event of an addon or its ManifestWorks.
func (a *inventoryAgent) Manifests(
	_ context.Context, cluster *clusterv1.ManagedCluster, addon *addonv1beta1.ManagedClusterAddOn,
) ([]runtime.Object, error) {
	return a.renderer.render(cluster.Name, string(addon.UID))
}

// GetAgentAddonOptions tells the framework how to treat the addon. It is called dozens
// of times per event.
func (a *inventoryAgent) GetAgentAddonOptions() agent.AgentAddonOptions { return a.options }

func agentOptions(opts Options, grants *grants) agent.AgentAddonOptions {
	return agent.AgentAddonOptions{
		AddonName: contract.AddonName,
		Registration: &agent.RegistrationOption{
			Configurations:   agent.KubeClientSignerConfigurations(contract.AddonName, contract.AddonName),
			PermissionConfig: grants.apply,
		},
		AgentInstallNamespace: func(context.Context, *addonv1beta1.ManagedClusterAddOn) (string, error) {
			return opts.InstallNamespace, nil
		},
		AgentDeployTriggerClusterFilter: reachableAgain,
		HealthProber: &agent.HealthProber{
			Type: agent.HealthProberTypeWork,
			WorkProber: &agent.WorkHealthProber{
				ProbeFields:   []agent.ProbeField{{ResourceIdentifier: agentDeployment("*"), ProbeRules: wellKnownStatus()}},
				HealthChecker: health,
			},
		},
		ManifestConfigs: []workv1.ManifestConfigOption{
			// The klusterlet takes the feedback rules from the first matching entry,
			// which is the prober's, and the scrape type from the last, which is this
			// one. With the prober's identifier the framework would drop the scrape type.
			{
				ResourceIdentifier: agentDeployment(opts.InstallNamespace),
				FeedbackRules:      wellKnownStatus(),
				FeedbackScrapeType: workv1.FeedbackWatchType,
			},
			createOnly(workv1.ResourceIdentifier{
				Group: "apiextensions.k8s.io", Resource: "customresourcedefinitions", Name: propertyCRD,
			}),
			createOnly(workv1.ResourceIdentifier{
				Resource: "configmaps", Namespace: opts.InstallNamespace, Name: contract.CleanupMarkerName,
			}),
		},
	}
}

func agentDeployment(namespace string) workv1.ResourceIdentifier {
	return workv1.ResourceIdentifier{Group: "apps", Resource: "deployments", Namespace: namespace, Name: agentName}
}

// createOnly keeps the work agent from overwriting later changes of an object.
func createOnly(object workv1.ResourceIdentifier) workv1.ManifestConfigOption {
	return workv1.ManifestConfigOption{
		ResourceIdentifier: object,
		UpdateStrategy:     &workv1.UpdateStrategy{Type: workv1.UpdateStrategyTypeCreateOnly},
	}
}

func wellKnownStatus() []workv1.FeedbackRule {
	return []workv1.FeedbackRule{{Type: workv1.WellKnownStatusType}}
}

// reachableAgain makes the framework check the health of a cluster's addon. While a
// cluster is unreachable, OCM sets the addon's condition Available to Unknown and the
// framework leaves it so; when the cluster is back, the spoke has nothing new to report.
func reachableAgain(before, after *clusterv1.ManagedCluster) bool {
	unknown := string(metav1.ConditionUnknown)
	return availability(before) == unknown && availability(after) != unknown
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
	return fmt.Errorf("no pod of the Deployment %s on the spoke is ready", agentName)
}
