package metrics

import (
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	"open-cluster-management.io/cluster-inventory-addon/pkg/contract"
	"open-cluster-management.io/cluster-inventory-addon/pkg/kube"
	"open-cluster-management.io/cluster-inventory-addon/pkg/version"
)

// prefix begins the names of all metrics of this addon.
const prefix = "cluster_inventory_"

// StateLeftAlone is the state of a profile of our cluster manager that this addon did
// not make and that should not be there. The other states are reasons of conditions.
const StateLeftAlone = "LeftAlone"

// Why a namespace that binds a cluster's set has no profile of the cluster.
const (
	WithheldClusterMissing     = "ClusterMissing"
	WithheldClusterDetaching   = "ClusterDetaching"
	WithheldClusterNotAccepted = "ClusterNotAccepted"
	WithheldAddonMissing       = "AddonMissing"
	WithheldAddonRemoving      = "AddonRemoving"
	WithheldNotBound           = "NotBound"
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

// Writers of Open Cluster Management's own with which this addon must not compete.
const (
	WriterRegistration   = "registration"
	WriterClusterProxy   = "cluster-proxy"
	WriterServiceAccount = "managed-serviceaccount"
)

// Mode says whether such a writer is on.
type Mode string

// The modes.
const (
	On      Mode = "On"
	Off     Mode = "Off"
	Unknown Mode = "Unknown"
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
		WithheldAddonRemoving, WithheldNotBound, WithheldPlacementMissing, WithheldNotPlaced,
	}
}

// RejectionReasons are why claims do not become properties.
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

func modes() []Mode { return []Mode{On, Off, Unknown} }

// Options configure the metrics.
type Options struct {
	// ByNamespace gives the metrics of profiles the label namespace. There may be
	// thousands of namespaces.
	ByNamespace bool

	// Clock is the time; nil means the real one.
	Clock clock.PassiveClock
}

// Metric is one of the metrics, with all labels that it may have.
type Metric struct {
	Name   string
	Labels []string
}

// All is the table of the metrics, by name.
func All() []Metric {
	return []Metric{
		{prefix + "build_info", []string{"goversion", "revision", "version"}},
		{prefix + "credential_expiry_seconds", nil},
		{prefix + "credentials", []string{"state"}},
		{prefix + "profile_delay_seconds", nil},
		{prefix + "profiles", []string{"namespace", "state"}},
		{prefix + "properties_rejected", []string{"reason"}},
		{prefix + "upstream_mode", []string{"mode", "writer"}},
		{prefix + "withheld", []string{"namespace", "reason"}},
		{prefix + "writes_total", []string{"outcome", "resource", "verb"}},
	}
}

// Metrics is a prometheus.Collector of all of them. It is safe for concurrent use. A nil
// one counts nothing.
type Metrics struct {
	profiles    *tally
	withheld    *tally
	rejected    *tally
	credentials *tally
	expiry      *soonest
	changes     *changes
	delay       prometheus.Histogram
	writes      *prometheus.CounterVec
	upstream    *prometheus.GaugeVec
	build       prometheus.Collector
}

var _ prometheus.Collector = &Metrics{}

// New returns metrics of nothing yet.
func New(opts Options) *Metrics {
	if opts.Clock == nil {
		opts.Clock = clock.RealClock{}
	}
	return &Metrics{
		profiles: newTally("profiles",
			"Pairs of namespace and cluster that have a ClusterProfile, or should, by what has become of it.",
			"state", opts.ByNamespace, profileStates()),
		withheld: newTally("withheld",
			"Pairs of a namespace and a cluster of a set bound there that must have no ClusterProfile, by why.",
			"reason", opts.ByNamespace, withheldReasons()),
		rejected: newTally("properties_rejected",
			"Claims of ManagedClusters that are left out of their ClusterProfiles, by why.",
			"reason", false, RejectionReasons()),
		credentials: newTally("credentials",
			"ManagedServiceAccounts that are labelled to be copied, by what has become of that.",
			"state", false, credentialStates()),
		expiry:  newSoonest(opts.Clock),
		changes: newChanges(opts.Clock),
		delay: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: prefix + "profile_delay_seconds",
			Help: "From when the manager saw that a ManagedCluster's claims, version or conditions changed " +
				"to when a ClusterProfile of it was written.",
			Buckets: []float64{.005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60, 300},
		}),
		writes: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: prefix + "writes_total",
			Help: "Requests of the manager that write, by resource, verb and outcome.",
		}, []string{"resource", "verb", "outcome"}),
		upstream: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: prefix + "upstream_mode",
			Help: "1 for the mode in which one of Open Cluster Management's own writers is, 0 for the others.",
		}, []string{"writer", "mode"}),
		build: kube.BuildInfo(prefix+"build_info", "Of which version the manager is; always 1.", version.Get().Labels()),
	}
}

func (m *Metrics) all() []prometheus.Collector {
	return []prometheus.Collector{
		m.profiles, m.withheld, m.rejected, m.credentials, m.expiry, m.delay, m.writes, m.upstream, m.build,
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

// Pair is what a pair of namespace and cluster counts as: at most one of both. The zero
// value is that nobody expects a profile of it.
type Pair struct {
	State    string // of its profile
	Withheld string // why there is none
}

// MovePair says what a pair in a namespace counted as, and what it counts as now.
func (m *Metrics) MovePair(namespace string, before, after Pair) {
	if m == nil {
		return
	}
	m.profiles.move(namespace, before.State, after.State)
	m.withheld.move(namespace, before.Withheld, after.Withheld)
}

// RejectClaims says how many more claims than before are left out for a reason; the
// number may be negative.
func (m *Metrics) RejectClaims(reason string, more int) {
	if m != nil && slices.Contains(RejectionReasons(), reason) {
		m.rejected.add("", reason, more)
	}
}

// MoveAccount says what an account counted as, and what it counts as now: its reason in
// the condition CredentialsSynced, or "" where it does not count.
func (m *Metrics) MoveAccount(before, after string) {
	if m != nil {
		m.credentials.move("", before, after)
	}
}

// TokenEnds says when an account's token ends; the zero time is that none is copied.
func (m *Metrics) TokenEnds(account types.NamespacedName, at time.Time) {
	if m != nil {
		m.expiry.set(account, at)
	}
}

// ClusterChanged says that something has changed in a ManagedCluster, at this resource
// version, that its profiles show.
func (m *Metrics) ClusterChanged(cluster, version string) {
	if m != nil {
		m.changes.changed(cluster, version)
	}
}

// ProfileServed says that the profile in a namespace shows its ManagedCluster as of this
// resource version, and whether it was patched for that.
func (m *Metrics) ProfileServed(pair types.NamespacedName, version string, patched bool) {
	if m == nil {
		return
	}
	if after, ok := m.changes.served(pair, version); ok && patched {
		m.delay.Observe(after.Seconds())
	}
}

// Upstream says in which mode one of Open Cluster Management's writers is.
func (m *Metrics) Upstream(writer string, now Mode) {
	if m == nil {
		return
	}
	for _, mode := range modes() {
		value := 0.
		if mode == now {
			value = 1
		}
		m.upstream.WithLabelValues(writer, string(mode)).Set(value)
	}
}
