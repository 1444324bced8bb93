package manifests

import (
	workv1 "open-cluster-management.io/api/work/v1"

	"open-cluster-management.io/cluster-inventory-addon/pkg/contract"
)

const (
	// AgentName is the agent's Deployment, Role and RoleBinding on the spoke.
	AgentName = "cluster-inventory-agent"

	// propertyCRD is created on spokes that lack it, and never changed afterwards.
	propertyCRD = "clusterproperties.about.k8s.io"

	// anyNamespace matches every namespace, as "*" does, which is the prober's.
	anyNamespace = "**"
)

// Options are how the work agent applies the manifests. They apply to all clusters, whatever
// their agent's namespace.
func Options() []workv1.ManifestConfigOption {
	return []workv1.ManifestConfigOption{
		// The klusterlet takes the feedback rules from the first matching entry, which is that
		// of the framework's prober, and the scrape type from the last, which is this one. With
		// the prober's identifier the framework would drop the scrape type. WithRules adds the
		// conditionRules to this one.
		{
			ResourceIdentifier: AgentDeployment(anyNamespace),
			FeedbackRules:      WellKnownStatus(),
			FeedbackScrapeType: workv1.FeedbackWatchType,
		},
		createOnly(workv1.ResourceIdentifier{
			Group: "apiextensions.k8s.io", Resource: "customresourcedefinitions", Name: propertyCRD,
		}),
		createOnly(workv1.ResourceIdentifier{
			Resource: "configmaps", Namespace: anyNamespace, Name: contract.CleanupMarkerName,
		}),
	}
}

// AgentDeployment identifies the agent's Deployment in a namespace, or in all for a pattern.
func AgentDeployment(namespace string) workv1.ResourceIdentifier {
	return workv1.ResourceIdentifier{Group: "apps", Resource: "deployments", Namespace: namespace, Name: AgentName}
}

// createOnly keeps the work agent from overwriting later changes of an object.
func createOnly(object workv1.ResourceIdentifier) workv1.ManifestConfigOption {
	return workv1.ManifestConfigOption{
		ResourceIdentifier: object,
		UpdateStrategy:     &workv1.UpdateStrategy{Type: workv1.UpdateStrategyTypeCreateOnly},
	}
}

// WellKnownStatus makes the work agent report the replicas of a Deployment.
func WellKnownStatus() []workv1.FeedbackRule {
	return []workv1.FeedbackRule{{Type: workv1.WellKnownStatusType}}
}
