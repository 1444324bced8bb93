package metrics

import (
	"maps"
	"slices"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	"open-cluster-management.io/cluster-inventory-addon/pkg/contract"
	"open-cluster-management.io/cluster-inventory-addon/pkg/kube"
	"open-cluster-management.io/cluster-inventory-addon/pkg/version"
)

// prefix starts the names of all metrics of this addon.
const prefix = "cluster_inventory_"

// StateLeftAlone is the state of a profile of our cluster manager that this addon did not
// create and that should not exist. The other states are reasons of conditions.
const StateLeftAlone = "LeftAlone"

// Why a namespace that binds a cluster's set has no profile of the cluster.
const (
	WithheldClusterMissing     = "ClusterMissing"
	WithheldClusterDetaching   = "ClusterDetaching"
	WithheldClusterNotAccepted = "ClusterNotAccepted"
	WithheldAddonMissing       = "AddonMissing"
	WithheldAddonRemoving      = "AddonRemoving"
	WithheldNotBound           = "NotBound"
	WithheldNotExclusive       = "NotExclusive"
	WithheldPlacementMissing   = "PlacementMissing"
	WithheldNotPlaced          = "NotPlaced"
)

// Why a claim does not become a property.
const (
	RejectedName      = "Name"
	RejectedDuplicate = "Duplicate"
	RejectedEmpty     = "Empty"
	RejectedTooLong   = "TooLong"
	RejectedNotText   = "NotText"
	RejectedLimit     = "Limit"
)

// Whether one of OCM's own writers is on.
const (
	modeOn      = "On"
	modeOff     = "Off"
	modeUnknown = "Unknown"
)

func modes() []string { return []string{modeOn, modeOff, modeUnknown} }

// OCM's own writers, with which this addon must not compete.
const (
	WriterRegistration   = "registration"
	WriterClusterProxy   = "cluster-proxy"
	WriterServiceAccount = "managed-serviceaccount"
)

func profileStates() []string {
	return []string{
		contract.ReasonSynced, contract.ReasonSelectionUnknown, contract.ReasonForeignProfile, contract.ReasonWriteFailed,
		contract.ReasonContested, StateLeftAlone,
	}
}

func withheldReasons() []string {
	return []string{
		WithheldClusterMissing, WithheldClusterDetaching, WithheldClusterNotAccepted, WithheldAddonMissing,
		WithheldAddonRemoving, WithheldNotBound, WithheldNotExclusive, WithheldPlacementMissing, WithheldNotPlaced,
	}
}

// RejectionReasons are the reasons why claims do not become properties.
func RejectionReasons() []string {
	return []string{
		RejectedName, RejectedDuplicate, RejectedEmpty, RejectedTooLong, RejectedNotText, RejectedLimit,
	}
}

func credentialStates() []string {
	return []string{
		contract.ReasonCopied, contract.ReasonDraining, contract.ReasonUpstreamSyncerOn, contract.ReasonNameCollision,
		contract.ReasonNameTooLong, contract.ReasonForeignSecret, contract.ReasonInvalidSource, contract.ReasonNoTarget,
		contract.ReasonTargetNotEntitled, contract.ReasonContested, contract.ReasonCopyFailed,
		contract.ReasonSelectionUnknown,
	}
}

// Options configure the metrics.
type Options struct {
	// ByNamespace gives the metrics of profiles the label namespace. There may be
	// thousands of namespaces.
	ByNamespace bool

	// Clock is the time; nil means the real one.
	Clock clock.PassiveClock
}

// Metrics is a prometheus.Collector of all metrics. It is safe for concurrent use.
type Metrics struct {
	profiles    *gauge
	withheld    *gauge
	heldBack    prometheus.Gauge
	rejected    *gauge
	credentials *gauge
	expiry      collected
	ends        kube.Memory[types.NamespacedName, time.Time] // of copied tokens, by account
	changes     *changes
	delay       prometheus.Histogram
	writes      *prometheus.CounterVec
	upstream    collected
	modes       kube.Memory[string, string] // by writer
	policies    *prometheus.GaugeVec
	addons      *gauge
	agents      *gauge
	revisions   atomic.Pointer[[]string] // that exist
	build       prometheus.Collector
}

var _ prometheus.Collector = &Metrics{}

// New returns metrics that have counted nothing yet.
func New(opts Options) *Metrics {
	if opts.Clock == nil {
		opts.Clock = clock.RealClock{}
	}
	m := &Metrics{
		profiles: newPairGauge("profiles",
			"Pairs of namespace and cluster that have or should have a ClusterProfile, by its state.",
			"state", opts.ByNamespace, profileStates()),
		withheld: newPairGauge("withheld",
			"Pairs of a namespace and a cluster of a set bound there that must not have a ClusterProfile, by reason.",
			"reason", opts.ByNamespace, withheldReasons()),
		heldBack: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: prefix + "profiles_held_back",
			Help: "ClusterProfiles whose changes have had to wait for more than a minute, because their clusters change " +
				"more often than profiles.writeInterval allows.",
		}),
		rejected: newGauge("properties_rejected",
			"Claims of ManagedClusters that are left out of their ClusterProfiles, by reason.",
			"reason").from(RejectionReasons()),
		credentials: newGauge("credentials",
			"ManagedServiceAccounts that are labeled to be copied, by the state of their copies.",
			"state").from(credentialStates()),
		changes: newChanges(opts.Clock),
		delay: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: prefix + "profile_delay_seconds",
			Help: "Time between the manager's seeing a change of a ManagedCluster's claims, version or conditions " +
				"and its writing a ClusterProfile of the cluster.",
			Buckets: []float64{.005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60, 300},
		}),
		writes: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: prefix + "writes_total",
			Help: "The manager's write requests, by resource, verb and outcome.",
		}, []string{"resource", "verb", "outcome"}),
		addons: newGauge("addons", "Clusters by the status and reason of the conditions on their addon.",
			"condition", "status", "reason"),
		agents: newGauge("agents",
			"Clusters by the AgentRevision that they should have now, and how far it is rolled out.",
			"revision", "state"),
		policies: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: prefix + "policy_enforced",
			Help: "1 if the hub was found to enforce an admission policy of the chart at the last check, else 0.",
		}, []string{"policy"}),
		build: kube.BuildInfo(prefix+"build_info", "The version of the manager; always 1.", version.Get().Labels()),
	}
	m.agents.shown = m.knownRevision
	m.expiry = collected{
		desc: prometheus.NewDesc(prefix+"credential_expiry_seconds",
			"Time until the first copied token expires. Missing while no token is copied.", nil, nil),
		each: func(show func(value float64, labels ...string)) {
			ends := slices.Collect(maps.Values(m.ends.All()))
			if len(ends) > 0 {
				show(slices.MinFunc(ends, time.Time.Compare).Sub(opts.Clock.Now()).Seconds())
			}
		},
	}
	m.upstream = collected{
		desc: prometheus.NewDesc(prefix+"upstream_mode",
			"1 for the current mode of one of Open Cluster Management's own writers, 0 for its other modes.",
			[]string{"writer", "mode"}, nil),
		each: func(show func(value float64, labels ...string)) {
			for writer, now := range m.modes.All() {
				for _, mode := range modes() {
					value := 0.
					if mode == now {
						value = 1
					}
					show(value, writer, mode)
				}
			}
		},
	}
	return m
}

func (m *Metrics) all() []prometheus.Collector {
	return []prometheus.Collector{
		m.profiles, m.withheld, m.heldBack, m.rejected, m.credentials, m.expiry, m.delay, m.writes, m.upstream, m.policies,
		m.addons, m.agents, m.build,
	}
}

// Describe implements prometheus.Collector.
func (m *Metrics) Describe(into chan<- *prometheus.Desc) {
	for _, one := range m.all() {
		one.Describe(into)
	}
}

// Collect implements prometheus.Collector.
func (m *Metrics) Collect(into chan<- prometheus.Metric) {
	for _, one := range m.all() {
		one.Collect(into)
	}
}

// Pair is the state or the reason under which a pair of namespace and cluster counts: at
// most one of both. The zero value means that no profile of it is expected.
type Pair struct {
	State    string // of its profile
	Withheld string // why there is none
}

// MovePair moves a pair in a namespace from one state or reason to another.
func (m *Metrics) MovePair(namespace string, before, after Pair) {
	m.profiles.move(namespace, before.State, after.State)
	m.withheld.move(namespace, before.Withheld, after.Withheld)
}

// HoldBackProfiles changes the number of profiles whose changes have had to wait for long; more
// may be negative.
func (m *Metrics) HoldBackProfiles(more int) {
	m.heldBack.Add(float64(more))
}

// RejectClaims changes the number of claims left out for a reason; more may be negative.
func (m *Metrics) RejectClaims(reason string, more int) {
	if slices.Contains(RejectionReasons(), reason) {
		m.rejected.add(series{reason}, more)
	}
}

// MoveAccount moves an account from one state to another: its reason in the condition
// CredentialsSynced, or "" if it does not count.
func (m *Metrics) MoveAccount(before, after string) {
	m.credentials.move("", before, after)
}

// TokenEnds records when an account's token expires; the zero time means that none is
// copied.
func (m *Metrics) TokenEnds(account types.NamespacedName, at time.Time) {
	if at.IsZero() {
		m.ends.Forget(account)
	} else {
		m.ends.Set(account, at)
	}
}

// ClusterChanged records that a ManagedCluster, at this resource version, has changed in a
// way that its profiles show.
func (m *Metrics) ClusterChanged(cluster, version string) {
	m.changes.changed(cluster, version)
}

// ProfileServed records that the profile in a namespace shows its ManagedCluster as of this
// resource version, and whether it was patched for that.
func (m *Metrics) ProfileServed(pair types.NamespacedName, version string, patched bool) {
	if after, ok := m.changes.served(pair, version); ok && patched {
		m.delay.Observe(after.Seconds())
	}
}

// Upstream returns what records the mode of one of Open Cluster Management's writers, as its users
// see it.
func (m *Metrics) Upstream(writer string) func(on, unknown bool) {
	return func(on, unknown bool) {
		mode := modeOff
		switch {
		case unknown:
			mode = modeUnknown
		case on:
			mode = modeOn
		}
		m.modes.Set(writer, mode)
	}
}

// PolicyEnforced records whether the hub enforces one of the chart's admission policies.
func (m *Metrics) PolicyEnforced(policy string, enforced bool) {
	value := 0.
	if enforced {
		value = 1
	}
	m.policies.WithLabelValues(policy).Set(value)
}
