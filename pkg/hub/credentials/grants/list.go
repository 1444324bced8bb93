package grants

import (
	"context"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"open-cluster-management.io/cluster-inventory-addon/pkg/contract"
	"open-cluster-management.io/cluster-inventory-addon/pkg/kube"
)

// TargetNamespaces returns the namespaces, sorted, in which a manager may maintain copies.
func TargetNamespaces(ctx context.Context, reader client.Reader) ([]string, error) {
	return namespaces(ctx, reader, kube.LargeObjectsPerPage, isTargetGrant, contract.TokenTargetRole)
}

// Namespaces returns the namespaces, sorted, with a grant. It lists at most pageSize
// RoleBindings at a time.
func Namespaces(ctx context.Context, reader client.Reader, pageSize int64) ([]string, error) {
	size := min(pageSize, kube.LargeObjectsPerPage)
	return namespaces(ctx, reader, size, isGrant, contract.TokenSourceRole, contract.TokenTargetRole)
}

// namespaces lists RoleBindings by name. Users who may change RoleBindings of their namespace
// choose how large these are.
func namespaces(
	ctx context.Context, reader client.Reader, pageSize int64, wanted func(*rbacv1.RoleBinding) bool, names ...string,
) ([]string, error) {
	var found []string
	collect := func(page *rbacv1.RoleBindingList) error {
		for i := range page.Items {
			if wanted(&page.Items[i]) {
				found = append(found, page.Items[i].Namespace)
			}
		}
		return nil
	}
	newPage := func() *rbacv1.RoleBindingList { return &rbacv1.RoleBindingList{} }
	for _, name := range names {
		err := kube.EachPage(ctx, reader, pageSize, newPage, collect,
			client.MatchingFields{metav1.ObjectNameField: name})
		if err != nil {
			return nil, err
		}
	}
	return kube.SortedNames(found), nil
}
