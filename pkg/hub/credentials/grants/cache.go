package grants

import (
	rbacv1 "k8s.io/api/rbac/v1"

	"open-cluster-management.io/cluster-inventory-addon/pkg/contract"
	"open-cluster-management.io/cluster-inventory-addon/pkg/kube"
)

// Trim is the transform of a cache that selects RoleBindings by Labels. It keeps what this
// package reads of the manager's own. Anybody who may write RoleBindings may label and fill
// any number of them: of those with other names it keeps only the name.
func Trim(in any) (any, error) {
	binding, ok := in.(*rbacv1.RoleBinding)
	if !ok {
		return in, nil
	}
	if !IsName(binding.Name) {
		trimmed := &rbacv1.RoleBinding{TypeMeta: binding.TypeMeta, ObjectMeta: kube.TrimMeta(binding.ObjectMeta)}
		trimmed.Labels = nil
		return trimmed, nil
	}
	trimmed := kube.TrimRoleBinding(binding, contract.LabelManagedBy, contract.LabelCredential)
	trimmed.OwnerReferences = nil
	return trimmed, nil
}

// IsName reports whether RoleBindings of this name are grants.
func IsName(name string) bool {
	return name == contract.TokenSourceRole || name == contract.TokenTargetRole
}
