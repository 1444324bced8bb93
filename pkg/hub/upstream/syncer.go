package upstream

import (
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"open-cluster-management.io/cluster-inventory-addon/pkg/contract"
	"open-cluster-management.io/cluster-inventory-addon/pkg/kube"
	"open-cluster-management.io/cluster-inventory-addon/pkg/kube/watch"
)

var clusterRoleKind = schema.GroupVersionKind{Group: "rbac.authorization.k8s.io", Version: "v1", Kind: "ClusterRole"}

// Syncer finds out whether managed-serviceaccount's own syncer of tokens may be on. Both
// would write Secrets of the same names, and upstream's overwrites existing ones.
type Syncer struct {
	followed
	override Override
}

// AddSyncer makes the manager follow the syncer's ClusterRole, unless the administrator
// asserts that the syncer is off. A ClusterRole that is missing at the start counts as
// absent at once: most hubs have none, and withdrawals would wait for it after every start.
func AddSyncer(
	mgr manager.Manager, override Override, clock clock.Clock, report func(on, unknown bool),
) (*Syncer, error) {
	s := &Syncer{override: override}
	s.indicator = indicator{clock: clock, report: report, absentFirst: true}
	if override == OverrideOff {
		return s, nil
	}
	return s, s.add(mgr, "", contract.UpstreamSyncerClusterRole, watch.Follow{
		Object: kube.Partial(clusterRoleKind), List: kube.PartialList(clusterRoleKind),
	})
}

// Unknown says, as the end of a sentence about the syncer's ClusterRole, why On is not
// known; it is empty when it is.
func (s *Syncer) Unknown() string { return s.follower.Unknown() }

// On reports whether the syncer is on. It is meaningless while Unknown is not empty.
func (s *Syncer) On() bool {
	on, unknown := false, s.Unknown() != ""
	if s.override != OverrideOff && !unknown {
		role, _ := s.object()
		on = role != nil
	}
	s.report(on, unknown)
	return on
}
