package uninstall

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"open-cluster-management.io/cluster-inventory-addon/pkg/contract"
)

// Kept says whether every ClusterProfile must stay as it is because of an uninstallation.
type Kept struct {
	// Why is empty if they need not.
	Why string
	// Missing is true if there is no ClusterManagementAddOn, perhaps because it is being recreated.
	Missing bool
}

// ProfilesKept reports whether every ClusterProfile must stay as it is because of an
// uninstallation. It is so while the ClusterManagementAddOn says so, and while
// there is none: then the clusters' addons are deleted with it, which is not a decision
// about the profiles. The reader is a cache of the ClusterManagementAddOn
// contract.AddonName.
func ProfilesKept(ctx context.Context, reader client.Reader) (Kept, error) {
	definition := &addonv1beta1.ClusterManagementAddOn{}
	err := reader.Get(ctx, client.ObjectKey{Name: contract.AddonName}, definition)
	switch {
	case apierrors.IsNotFound(err):
		return Kept{Missing: true, Why: fmt.Sprintf("there is no ClusterManagementAddOn %q, so the addon is not installed, "+
			"and profiles stay as they are", contract.AddonName)}, nil
	case err != nil:
		return Kept{}, fmt.Errorf("reading ClusterManagementAddOn %q: %w", contract.AddonName, err)
	case saysKeep(definition):
		return Kept{Why: fmt.Sprintf("ClusterManagementAddOn %q is annotated %s=true, so profiles stay as they are",
			contract.AddonName, contract.AnnotationKeepProfiles)}, nil
	default:
		return Kept{}, nil
	}
}
