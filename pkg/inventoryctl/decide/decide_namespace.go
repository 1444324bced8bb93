package decide

import (
	"fmt"

	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"

	"open-cluster-management.io/cluster-inventory-addon/pkg/kube"
)

// clusteradmNamespace is what clusteradm writes if it is given no namespace.
const clusteradmNamespace = "open-cluster-management-agent-addon"

// ignoredNamespace says where the agent is, if a user asked for another namespace by
// spec.installNamespace of the older API, as "clusteradm addon enable -n" does. The newer API keeps
// that in an annotation, and nothing reads it.
func ignoredNamespace(addon *addonv1beta1.ManagedClusterAddOn) string {
	if addon == nil {
		return ""
	}
	wanted, used := addon.Annotations[addonv1beta1.InstallNamespaceAnnotation], addon.Status.Namespace
	if wanted == "" || wanted == clusteradmNamespace || used == "" || wanted == used {
		return ""
	}
	return fmt.Sprintf("; its spec.installNamespace %s is ignored: the agent is in namespace %s (agent.installNamespace)",
		kube.Shorten(wanted, MaxMessageBytes), kube.Shorten(used, MaxMessageBytes))
}
