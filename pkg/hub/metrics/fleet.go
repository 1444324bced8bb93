package metrics

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"

	"open-cluster-management.io/cluster-inventory-addon/pkg/contract"
	"open-cluster-management.io/cluster-inventory-addon/pkg/kube"
)

// Other stands for every reason and every revision that is not among those that are known. An agent
// may write the status of its addon, so it may write any text there.
const Other = "Other"

// None stands for no revision.
const None = "None"

// reasonsOf are the published reasons of each condition that is counted.
var reasonsOf = Reasons()

// Reasons returns the published reasons of each condition that is counted.
func Reasons() map[string][]string {
	own := map[string][]string{
		contract.ConditionPropertiesPublished: {
			contract.ReasonPublished, contract.ReasonPartiallyPublished, contract.ReasonClaimLimitExceeded,
			contract.ReasonPropertyAPIMissing, contract.ReasonHubKubeconfigInvalid,
			contract.ReasonManagedKubeconfigInvalid, contract.ReasonPublishingStopped,
		},
		contract.ConditionProfilesSynced: {
			contract.ReasonSynced, contract.ReasonInvalidProperties, contract.ReasonAccessUnavailable,
			contract.ReasonForeignProfile, contract.ReasonSelectionUnknown, contract.ReasonWriteFailed,
			contract.ReasonContested, contract.ReasonUpstreamGateOn, contract.ReasonUpstreamGateUnknown,
			contract.ReasonProfilesKept, contract.ReasonProfileAPIMissing,
		},
		contract.ConditionCredentialsSynced: credentialStates(),
		contract.ConditionConfigurationApplied: {
			contract.ReasonConfigurationApplied, contract.ReasonInvalidConfiguration, contract.ReasonConfigurationMissing,
			contract.ReasonInstallNamespaceChanged, contract.ReasonHostingRefused, contract.ReasonHostingDisabled,
			contract.ReasonInstallNamespaceTaken, contract.ReasonManifestsRefused,
		},
		// Those of Open Cluster Management and of addon-framework.
		addonv1beta1.ManagedClusterAddOnConditionAvailable: {
			addonv1beta1.AddonAvailableReasonWorkNotFound, addonv1beta1.AddonAvailableReasonWorkApplyFailed,
			addonv1beta1.AddonAvailableReasonWorkNotApply, addonv1beta1.AddonAvailableReasonWorkApply,
			addonv1beta1.AddonAvailableReasonNoProbeResult, addonv1beta1.AddonAvailableReasonProbeUnavailable,
			addonv1beta1.AddonAvailableReasonProbeAvailable, addonv1beta1.AddonAvailableReasonLeaseUpdateStopped,
			addonv1beta1.AddonAvailableReasonLeaseLeaseNotFound, addonv1beta1.AddonAvailableReasonLeaseLeaseUpdated,
		},
	}
	degraded := []string{contract.ReasonAsExpected}
	for condition, reasons := range own {
		if condition != addonv1beta1.ManagedClusterAddOnConditionAvailable {
			degraded = append(degraded, reasons...)
		}
	}
	own[contract.ConditionDegraded] = kube.SortedNames(degraded)
	return own
}

// CountCondition counts more addons, or less if that is negative, that have a condition with a
// status and a reason. A reason that is not published counts as Other; other conditions do not
// count.
func (m *Metrics) CountCondition(condition, status, reason string, more int) {
	reasons, counted := reasonsOf[condition]
	if !counted {
		return
	}
	if !slices.Contains(reasons, reason) {
		reason = Other
	}
	switch metav1.ConditionStatus(status) {
	case metav1.ConditionTrue, metav1.ConditionFalse:
	default:
		status = string(metav1.ConditionUnknown)
	}
	m.addons.add(series{condition, status, reason}, more)
}

// CountAgent counts more agents, or less if that is negative, with a revision and a state.
func (m *Metrics) CountAgent(revision, state string, more int) {
	m.agents.add(series{revision, state}, more)
}

// NameRevisions says which revisions exist; agents with another one count as Other.
func (m *Metrics) NameRevisions(revisions []string) {
	m.revisions.Store(&revisions)
}

// knownRevision returns the labels of agents of a revision that may not be known.
func (m *Metrics) knownRevision(agents series) series {
	switch revision := agents[0]; {
	case revision == "":
		agents[0] = None
	case !slices.Contains(ptr.Deref(m.revisions.Load(), nil), revision):
		agents[0] = Other
	}
	return agents
}
