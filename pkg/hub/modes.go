package hub

import (
	"open-cluster-management.io/cluster-inventory-addon/pkg/contract"
	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/metrics"
	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/upstream"
)

// The metrics show the modes of upstream's writers as their users see them.

// countedProxyGate reports the gate's verdicts to the metrics.
type countedProxyGate struct {
	*upstream.ProxyGate
	counts *metrics.Metrics
}

// Verdict implements access.ProxyGate.
func (g countedProxyGate) Verdict() (on bool, problem string, transient bool) {
	on, problem, transient = g.ProxyGate.Verdict()
	g.counts.Upstream(metrics.WriterClusterProxy, modeOf(on, !on && problem != ""))
	return on, problem, transient
}

// countedSyncer reports the syncer's mode to the metrics.
type countedSyncer struct {
	*upstream.Syncer
	counts *metrics.Metrics
}

// On implements credentials.UpstreamSyncer.
func (s countedSyncer) On() bool {
	on := s.Syncer.On()
	s.counts.Upstream(metrics.WriterServiceAccount, modeOf(on, s.Unknown() != ""))
	return on
}

// countVerdict reports the verdict of the gate for OCM's own profiles to the metrics.
func countVerdict(verdict upstream.Verdict, counts *metrics.Metrics) {
	on := verdict.Reason == contract.ReasonUpstreamGateOn
	counts.Upstream(metrics.WriterRegistration, modeOf(on, !on && !verdict.Allowed))
}

func modeOf(on, unknown bool) metrics.Mode {
	switch {
	case unknown:
		return metrics.Unknown
	case on:
		return metrics.On
	default:
		return metrics.Off
	}
}
