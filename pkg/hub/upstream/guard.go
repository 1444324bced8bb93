package upstream

import (
	"context"
	"fmt"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/fields"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Guard answers whether this addon may write ClusterProfiles now.
type Guard struct {
	// Reader reads ClusterRoles from a cache that holds RegistrationClusterRole.
	Reader client.Reader

	// RegistrationClusterRole is the name of the registration controller's
	// ClusterRole.
	RegistrationClusterRole string

	// Override is the administrator's word.
	Override Override
}

// Verdict reads the cache. An error means that the cache could not be read;
// the caller must not write profiles then.
func (g *Guard) Verdict(ctx context.Context) (Verdict, error) {
	role := &rbacv1.ClusterRole{}
	err := g.Reader.Get(ctx, client.ObjectKey{Name: g.RegistrationClusterRole}, role)
	switch {
	case apierrors.IsNotFound(err):
		role = nil
	case err != nil:
		return Verdict{}, fmt.Errorf("reading ClusterRole %q: %w", g.RegistrationClusterRole, err)
	}
	return decide(g.RegistrationClusterRole, role, g.Override), nil
}

// CacheOptions restricts the cache of ClusterRoles to the one that is read.
func CacheOptions(registrationClusterRole string) map[client.Object]cache.ByObject {
	return map[client.Object]cache.ByObject{
		&rbacv1.ClusterRole{}: {
			Field:     fields.OneTermEqualSelector("metadata.name", registrationClusterRole),
			Transform: cache.TransformStripManagedFields(),
		},
	}
}
