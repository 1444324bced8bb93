package agents

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"

	"open-cluster-management.io/cluster-inventory-addon/pkg/contract"
)

// State says how far a cluster's agent is with its AgentRevision.
type State string

// The states.
const (
	// Completed: the agent runs with the revision.
	Completed State = "Completed"

	// Progressing: the agent is being upgraded to the revision. A rollout with a deadline counts it
	// as failed later, which the addon does not show.
	Progressing State = "Progressing"

	// Waiting: the cluster's turn in the rollout has not come, so it keeps the revision.
	Waiting State = "Waiting"

	// Failed: Open Cluster Management could not apply the revision.
	Failed State = "Failed"

	// Unknown: Open Cluster Management has not reported.
	Unknown State = "Unknown"
)

// States returns all states.
func States() []State { return []State{Completed, Progressing, Waiting, Failed, Unknown} }

// Agent is how far the agent of one cluster is.
type Agent struct {
	// Revision is the name of the AgentRevision that the cluster should have now; "" if it has none.
	Revision string

	State State

	// Since is when the upgrade began, if the state is Progressing.
	Since time.Time

	// OwnChoice is true if the addon itself names its revision, which no rollout changes.
	OwnChoice bool
}

// Of returns how far the agent of an addon is.
func Of(addon *addonv1beta1.ManagedClusterAddOn) Agent {
	agent := Agent{State: Unknown, OwnChoice: len(named(addon.Spec.Configs)) > 0}
	for _, reference := range addon.Status.ConfigReferences {
		if isRevision(reference.ConfigGroupResource) && reference.DesiredConfig != nil {
			agent.Revision = reference.DesiredConfig.Name
		}
	}
	conditions := addon.Status.Conditions
	progressing := meta.FindStatusCondition(conditions, addonv1beta1.ManagedClusterAddOnConditionProgressing)
	switch {
	case meta.IsStatusConditionFalse(conditions, addonv1beta1.ManagedClusterAddOnConditionConfigured):
		agent.State = Waiting
	case progressing == nil:
	case progressing.Reason == addonv1beta1.ProgressingReasonCompleted:
		agent.State = Completed
	case progressing.Reason == addonv1beta1.ProgressingReasonFailed,
		progressing.Reason == addonv1beta1.ProgressingReasonConfigurationUnsupported:
		agent.State = Failed
	case progressing.Status == metav1.ConditionTrue:
		agent.State, agent.Since = Progressing, progressing.LastTransitionTime.Time
	}
	return agent
}

// Targets returns the AgentRevisions that the ClusterManagementAddOn names, for all clusters and for
// those of a Placement, by name.
func Targets(definition *addonv1beta1.ClusterManagementAddOn) []string {
	if definition == nil {
		return nil
	}
	names := named(definition.Spec.DefaultConfigs)
	for _, placement := range definition.Spec.InstallStrategy.Placements {
		names = append(names, named(placement.Configs)...)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// Known returns the AgentRevisions that the ClusterManagementAddOn names: the targets and, during a
// rollout, those before.
func Known(definition *addonv1beta1.ClusterManagementAddOn) []string {
	names := Targets(definition)
	for _, progression := range definition.Status.InstallProgressions {
		for _, reference := range progression.ConfigReferences {
			for _, config := range []*addonv1beta1.ConfigSpecHash{
				reference.DesiredConfig, reference.LastAppliedConfig, reference.LastKnownGoodConfig,
			} {
				if isRevision(reference.ConfigGroupResource) && config != nil {
					names = append(names, config.Name)
				}
			}
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

func named(configs []addonv1beta1.AddOnConfig) []string {
	var names []string
	for _, config := range configs {
		if isRevision(config.ConfigGroupResource) {
			names = append(names, config.Name)
		}
	}
	return names
}

func isRevision(kind addonv1beta1.ConfigGroupResource) bool {
	return kind.Group == contract.AgentRevisionGroup && kind.Resource == contract.AgentRevisionResource
}
