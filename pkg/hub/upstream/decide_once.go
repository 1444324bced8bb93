package upstream

import (
	appsv1 "k8s.io/api/apps/v1"
	rbacv1 "k8s.io/api/rbac/v1"
)

// ProxyDeployment is the name of the Deployment whose command line shows whether
// cluster-proxy writes access providers.
const ProxyDeployment = proxyDeployment

// RegistrationVerdict judges the registration controller's ClusterRole, of that name and nil
// if there is none, for one-off checks, where a missing ClusterRole counts immediately.
func RegistrationVerdict(name string, role *rbacv1.ClusterRole, override Override) Verdict {
	return judgeRegistration(name, role, true, override)
}

// ProxyWrites reports whether the Deployment of cluster-proxy's manager, nil if there is
// none, has the gate for access providers on.
func ProxyWrites(deployment *appsv1.Deployment) bool {
	return deployment != nil && proxyGateOn(commandLine(deployment))
}
