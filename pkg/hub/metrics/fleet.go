package metrics

import (
	"slices"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"
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
	slices.Sort(degraded)
	own[contract.ConditionDegraded] = slices.Compact(degraded)
	return own
}

// addonKey identifies what cluster_inventory_addons counts together.
type addonKey struct{ condition, status, reason string }

// agentKey identifies what cluster_inventory_agents counts together.
type agentKey struct{ revision, state string }

// fleet counts addons by their conditions, and agents by their revisions. It is a
// prometheus.Collector.
type fleet struct {
	addonsDesc, agentsDesc *prometheus.Desc
	reasons                map[string][]string

	addons    kube.Memory[addonKey, int]
	agents    kube.Memory[agentKey, int] // by any revision
	revisions atomic.Pointer[[]string]
}

func newFleet() *fleet {
	return &fleet{
		addonsDesc: prometheus.NewDesc(prefix+"addons",
			"Clusters by the status and reason of the conditions on their addon.",
			[]string{"condition", "status", "reason"}, nil),
		agentsDesc: prometheus.NewDesc(prefix+"agents",
			"Clusters by the AgentRevision that they should have now, and how far it is rolled out.",
			[]string{"revision", "state"}, nil),
		reasons: Reasons(),
	}
}

func (f *fleet) addCondition(condition, status, reason string, more int) {
	reasons, counted := f.reasons[condition]
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
	add(&f.addons, addonKey{condition, status, reason}, more)
}

// add changes a count, and forgets one that is zero.
func add[K comparable](counts *kube.Memory[K, int], key K, more int) {
	counts.Update(key, func(before int, _ bool) (now int, keep bool) { return before + more, before+more != 0 })
}

// Describe implements prometheus.Collector.
func (f *fleet) Describe(into chan<- *prometheus.Desc) {
	into <- f.addonsDesc
	into <- f.agentsDesc
}

// Collect implements prometheus.Collector.
func (f *fleet) Collect(into chan<- prometheus.Metric) {
	for key, count := range f.addons.All() {
		into <- prometheus.MustNewConstMetric(
			f.addonsDesc, prometheus.GaugeValue, float64(count), key.condition, key.status, key.reason)
	}
	for key, count := range f.knownAgents() {
		into <- prometheus.MustNewConstMetric(f.agentsDesc, prometheus.GaugeValue, float64(count), key.revision, key.state)
	}
}

// knownAgents counts agents by revisions that are known.
func (f *fleet) knownAgents() map[agentKey]int {
	known := ptr.Deref(f.revisions.Load(), nil)
	agents := map[agentKey]int{}
	for key, count := range f.agents.All() {
		switch {
		case key.revision == "":
			key.revision = None
		case !slices.Contains(known, key.revision):
			key.revision = Other
		}
		agents[key] += count
	}
	return agents
}

// CountCondition counts more addons, or less if that is negative, that have a condition with a
// status and a reason. A reason that is not published counts as Other; other conditions do not
// count.
func (m *Metrics) CountCondition(condition, status, reason string, more int) {
	if m != nil {
		m.fleet.addCondition(condition, status, reason, more)
	}
}

// CountAgent counts more agents, or less if that is negative, with a revision and a state.
func (m *Metrics) CountAgent(revision, state string, more int) {
	if m != nil {
		add(&m.fleet.agents, agentKey{revision, state}, more)
	}
}

// NameRevisions says which revisions exist; agents with another one count as Other.
func (m *Metrics) NameRevisions(revisions []string) {
	if m != nil {
		m.fleet.revisions.Store(&revisions)
	}
}
