package upstream

import (
	"context"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"open-cluster-management.io/cluster-inventory-addon/pkg/contract"
	"open-cluster-management.io/cluster-inventory-addon/pkg/kube"
)

// DefaultRegistrationClusterRole is the ClusterRole that OCM's operator gives the
// registration controller of a ClusterManager with the default name,
// "cluster-manager".
const DefaultRegistrationClusterRole = "open-cluster-management:cluster-manager-registration:controller"

// RegistrationGate decides whether this addon may write ClusterProfiles now.
type RegistrationGate struct {
	indicator
	reader      client.Reader
	clusterRole string
	override    Override
}

// AddRegistrationGate adds a gate that decides by the registration controller's ClusterRole
// of that name. The manager's cache must hold it, as CacheOptions says.
func AddRegistrationGate(
	mgr manager.Manager, clusterRole string, override Override, clock clock.Clock, report func(on, unknown bool),
) (*RegistrationGate, error) {
	g := &RegistrationGate{
		indicator: indicator{clock: clock, report: report},
		reader:    mgr.GetCache(), clusterRole: clusterRole, override: override,
	}
	return g, mgr.Add(g)
}

// Verdict reads the cache. On an error profiles must not be written.
func (g *RegistrationGate) Verdict(ctx context.Context) (Verdict, error) {
	role, err := kube.Get(ctx, g.reader, client.ObjectKey{Name: g.clusterRole}, &rbacv1.ClusterRole{})
	if err != nil {
		return Verdict{}, err
	}
	counts, known := g.settle(kube.ObjectOrNil(role))
	role, _ = counts.(*rbacv1.ClusterRole)
	verdict := RegistrationVerdict(g.clusterRole, role, known, g.override)
	on := verdict.Reason == contract.ReasonUpstreamGateOn
	g.report(on, !on && !verdict.Allowed)
	return verdict, nil
}

// CacheOptions restricts the manager's cache of ClusterRoles to the registration
// controller's.
func CacheOptions(registrationClusterRole string) map[client.Object]cache.ByObject {
	return map[client.Object]cache.ByObject{
		&rbacv1.ClusterRole{}: {
			Field:     fields.OneTermEqualSelector("metadata.name", registrationClusterRole),
			Transform: cache.TransformStripManagedFields(),
		},
	}
}
