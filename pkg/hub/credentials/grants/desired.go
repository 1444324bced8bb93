package grants

import (
	"errors"
	"fmt"
	"slices"

	rbacv1 "k8s.io/api/rbac/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"open-cluster-management.io/cluster-inventory-addon/pkg/contract"
	"open-cluster-management.io/cluster-inventory-addon/pkg/kube"
)

// Grant is a right of the manager in one namespace. The RoleBinding that grants it and the
// ClusterRole it refers to have the same name.
type Grant struct {
	Namespace string
	role      string
}

// Source is the right to read tokens in a cluster's namespace.
func Source(namespace string) Grant { return Grant{namespace, contract.TokenSourceRole} }

// Target is the right to maintain copies in a namespace.
func Target(namespace string) Grant { return Grant{namespace, contract.TokenTargetRole} }

// Of returns the grant of a RoleBinding with one of the two names.
func Of(binding types.NamespacedName) Grant { return Grant{binding.Namespace, binding.Name} }

// Key returns the key of the grant's RoleBinding.
func (g Grant) Key() types.NamespacedName {
	return types.NamespacedName{Namespace: g.Namespace, Name: g.role}
}

// IsTarget reports whether the grant is for copies.
func (g Grant) IsTarget() bool { return g.role == contract.TokenTargetRole }

// isGrant reports whether a RoleBinding with one of the two names grants that role. Only
// users who may bind the role can create one: a ValidatingAdmissionPolicy of the chart
// demands that.
func isGrant(binding *rbacv1.RoleBinding) bool {
	return binding.RoleRef.Kind == "ClusterRole" && binding.RoleRef.Name == binding.Name
}

// isTargetGrant reports whether a RoleBinding grants a manager the right to maintain copies,
// regardless of that manager's namespace.
func isTargetGrant(binding *rbacv1.RoleBinding) bool {
	return isGrant(binding) &&
		slices.ContainsFunc(binding.Subjects, func(subject rbacv1.Subject) bool {
			return subject.Kind == rbacv1.ServiceAccountKind && subject.Name == contract.ManagerServiceAccount
		})
}

// labels are on every RoleBinding of the manager, for its users. The manager itself uses the
// names.
func labels() map[string]string {
	return map[string]string{contract.LabelManagedBy: contract.ManagedBy, contract.LabelCredential: "true"}
}

// ErrNotOurs is the error of a foreign RoleBinding with the name of the manager's own.
var ErrNotOurs = errors.New("the RoleBinding in the place of the manager's own is not this addon's")

// maxNameBytes is how much of a role's name an error shows.
const maxNameBytes = 253

func desiredBinding(g Grant, subject rbacv1.Subject) *rbacv1.RoleBinding {
	return &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: g.Namespace, Name: g.role, Labels: labels()},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: g.role},
		Subjects:   []rbacv1.Subject{subject},
	}
}

// compare reports whether a RoleBinding differs from the desired one in a way that a patch
// of its subjects repairs. It fails with ErrNotOurs if no patch can.
func compare(current, desired *rbacv1.RoleBinding) (differs bool, err error) {
	if current.RoleRef != desired.RoleRef {
		return false, fmt.Errorf("%w: it refers to %s %q, which cannot be changed; delete RoleBinding %s",
			ErrNotOurs, current.RoleRef.Kind, kube.Shorten(current.RoleRef.Name, maxNameBytes), desired.Name)
	}
	return !apiequality.Semantic.DeepEqual(current.Subjects, desired.Subjects), nil
}
