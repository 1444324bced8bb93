package upstream

import (
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"open-cluster-management.io/cluster-inventory-addon/pkg/contract"
	"open-cluster-management.io/cluster-inventory-addon/pkg/kube"
)

var clusterRoleKind = schema.GroupVersionKind{Group: "rbac.authorization.k8s.io", Version: "v1", Kind: "ClusterRole"}

// Syncer tells whether managed-serviceaccount's own syncer of tokens may be on.
// Both would write Secrets of the same names, and upstream's overwrites what it
// finds.
type Syncer struct {
	followed
	override Override
}

// AddSyncer makes the manager follow the syncer's ClusterRole, unless the
// administrator says that the syncer is off. That the ClusterRole is missing from the
// first counts at once: most hubs are like that, and withdrawals would wait for it
// after every start.
func AddSyncer(mgr manager.Manager, override Override, clock clock.Clock) (*Syncer, error) {
	s := &Syncer{followed: followed{evidence: evidence{clock: clock, absentFirst: true}}, override: override}
	if override == OverrideOff {
		return s, nil
	}
	return s, s.add(mgr, "", contract.UpstreamSyncerClusterRole, kube.Follow{
		Object: kube.Partial(clusterRoleKind), List: kube.PartialList(clusterRoleKind),
	})
}

// Unknown says, as the end of a sentence about the syncer's ClusterRole, why On cannot be
// told; it is empty when it can.
func (s *Syncer) Unknown() string { return s.follower.Unknown() }

// On reports whether the syncer is on. It means nothing while that is Unknown.
func (s *Syncer) On() bool {
	if s.override == OverrideOff || s.Unknown() != "" {
		return judgeSyncer(false, s.override)
	}
	role, _ := s.object()
	return judgeSyncer(role != nil, s.override)
}
