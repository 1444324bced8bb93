package upstream

import (
	"context"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/fields"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"open-cluster-management.io/cluster-inventory-addon/pkg/kube"
)

// DefaultRegistrationClusterRole is the ClusterRole that OCM's operator gives the
// registration controller of a ClusterManager with the default name,
// "cluster-manager".
const DefaultRegistrationClusterRole = "open-cluster-management:cluster-manager-registration:controller"

// RegistrationGate tells whether this addon may write ClusterProfiles now.
type RegistrationGate struct {
	// Reader reads ClusterRoles from a cache that holds the one named ClusterRole.
	Reader client.Reader

	// ClusterRole is the name of the registration controller's ClusterRole.
	ClusterRole string

	// Override is what the administrator says.
	Override Override
}

// Verdict reads the cache. On an error profiles must not be written.
func (g *RegistrationGate) Verdict(ctx context.Context) (Verdict, error) {
	role, err := kube.Get(ctx, g.Reader, client.ObjectKey{Name: g.ClusterRole}, &rbacv1.ClusterRole{})
	if err != nil {
		return Verdict{}, err
	}
	return judgeRegistration(g.ClusterRole, role, g.Override), nil
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
