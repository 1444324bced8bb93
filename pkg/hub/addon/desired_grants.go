package addon

import (
	"maps"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"open-cluster-management.io/addon-framework/pkg/agent"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"

	"open-cluster-management.io/cluster-inventory-addon/pkg/contract"
	"open-cluster-management.io/cluster-inventory-addon/pkg/kube"
)

// desiredBinding grants the one user of the cluster's agent its rights in the cluster's
// namespace. A Role there would cost one more write for each cluster, and the API server
// searches all ClusterRoleBindings of the hub before it lets a client write one.
func desiredBinding(cluster string, addon *addonv1beta1.ManagedClusterAddOn) *rbacv1.RoleBinding {
	return &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{
			Name: contract.AgentRole, Namespace: addon.Namespace, Labels: grantLabels(),
			OwnerReferences: []metav1.OwnerReference{{ // so it is deleted with the addon
				APIVersion: addonv1beta1.GroupVersion.String(), Kind: "ManagedClusterAddOn", Name: addon.Name, UID: addon.UID,
			}},
		},
		RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: contract.AgentRole},
		Subjects: []rbacv1.Subject{{
			APIGroup: rbacv1.GroupName,
			Kind:     rbacv1.UserKind,
			Name:     agentUser(cluster, addon),
		}},
	}
}

// tokenDriver is the driver of a registration by token (OCM, pkg/registration/register/token).
const tokenDriver = "token"

// agentUser returns the user name of the agent on the hub: the one whose certificates are
// approved or, if the klusterlet registers addons by token, the ServiceAccount that OCM
// creates in the cluster namespace.
//
// The spoke can patch the addon's status and so choose the driver, which is its choice
// anyway: both users are its own. The subject in the status is never read. No group is
// granted anything, because a token has none of the addon's groups.
func agentUser(cluster string, addon *addonv1beta1.ManagedClusterAddOn) string {
	for _, registration := range addon.Status.Registrations {
		if registration.KubeClient != nil && registration.KubeClient.Driver == tokenDriver {
			return "system:serviceaccount:" + cluster + ":" + contract.AddonName + "-agent"
		}
	}
	return agent.DefaultUser(cluster, contract.AddonName, contract.AddonName)
}

func grantLabels() map[string]string {
	return map[string]string{contract.LabelManagedBy: contract.ManagedBy}
}

// sharedLabels are the labels that the cached RoleBindings of all clusters share, and that must not be changed.
var sharedLabels = grantLabels()

// trimGrant keeps what a RoleBinding is compared by.
func trimGrant(binding *rbacv1.RoleBinding) *rbacv1.RoleBinding {
	trimmed := kube.TrimRoleBinding(binding, contract.LabelManagedBy)
	if maps.Equal(trimmed.Labels, sharedLabels) {
		trimmed.Labels = sharedLabels
	}
	return trimmed
}
