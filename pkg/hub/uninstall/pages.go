package uninstall

import (
	"cmp"
	"context"

	"golang.org/x/sync/errgroup"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	inventoryv1alpha1 "sigs.k8s.io/cluster-inventory-api/apis/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"open-cluster-management.io/cluster-inventory-addon/pkg/contract"
	"open-cluster-management.io/cluster-inventory-addon/pkg/kube"
)

// Kinds that are read as metadata only.
var (
	addonKind   = schema.GroupVersion(addonv1beta1.GroupVersion).WithKind("ManagedClusterAddOn")
	profileKind = inventoryv1alpha1.GroupVersion.WithKind("ClusterProfile")
	sliceKind   = inventoryv1alpha1.GroupVersion.WithKind("PlacementDecision")

	revisionKind = schema.GroupVersionKind{
		Group: contract.AgentRevisionGroup, Version: contract.AgentRevisionVersion, Kind: contract.AgentRevisionKind,
	}
	configMapKind = schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}

	roleKind    = rbacv1.SchemeGroupVersion.WithKind("Role")
	bindingKind = rbacv1.SchemeGroupVersion.WithKind("RoleBinding")
)

func ourAddons() client.ListOption {
	return client.MatchingFields{metav1.ObjectNameField: contract.AddonName}
}

func ourProfiles() client.ListOption {
	return client.MatchingLabels{
		contract.LabelManagedBy:      contract.ManagedBy,
		contract.LabelClusterManager: contract.ClusterManagerName,
	}
}

// imageRights selects the Roles and RoleBindings of AgentRevisions' images.
func imageRights(namespace string) client.ListOption {
	return &client.ListOptions{
		Namespace: namespace, LabelSelector: labels.SelectorFromSet(labels.Set{contract.LabelAgentImage: "true"}),
	}
}

// eachMetadata calls take with the metadata of the selected objects, page by page. Objects
// created meanwhile are found when the hub is observed again.
func (u *uninstaller) eachMetadata(
	ctx context.Context, kind schema.GroupVersionKind, selected client.ListOption,
	take func([]metav1.PartialObjectMetadata) error,
) error {
	return kube.EachPage(ctx, u.client, u.pageSize,
		func() *metav1.PartialObjectMetadataList { return kube.PartialList(kind) },
		func(page *metav1.PartialObjectMetadataList) error { return take(page.Items) }, selected)
}

// forEach calls do for every object, several at a time, and returns the first error. An
// error does not keep the others from their turn, unless trying them is pointless.
func forEach(
	ctx context.Context, objects []metav1.PartialObjectMetadata,
	do func(context.Context, *metav1.PartialObjectMetadata) error,
) error {
	group, final := errgroup.WithContext(ctx)
	group.SetLimit(workers)
	errs := make([]error, len(objects))
	for i := range objects {
		if errs[i] = final.Err(); errs[i] != nil {
			break
		}
		group.Go(func() error {
			if errs[i] = do(ctx, &objects[i]); isFinal(errs[i]) {
				return errs[i]
			}
			return nil
		})
	}
	return cmp.Or(group.Wait(), cmp.Or(errs...))
}
