package profiles

import (
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"

	"open-cluster-management.io/cluster-inventory-addon/pkg/contract"
	"open-cluster-management.io/cluster-inventory-addon/pkg/kube"
)

// maxDisplayNameBytes bounds the name that a cluster's annotation gives its profiles. The API
// has no limit, and a klusterlet may annotate its own cluster.
const maxDisplayNameBytes = 256

// displayName returns how a cluster's profiles call it: what its annotation says, with
// characters that do not print escaped, and otherwise its name.
func displayName(cluster *clusterv1.ManagedCluster) string {
	if text := strings.TrimSpace(cluster.Annotations[contract.AnnotationDisplayName]); text != "" {
		return kube.Shorten(text, maxDisplayNameBytes)
	}
	return cluster.Name
}

// keepDisplayName keeps what displayName needs of a cluster.
func keepDisplayName(trimmed, cluster *clusterv1.ManagedCluster) {
	if name := displayName(cluster); name != cluster.Name {
		metav1.SetMetaDataAnnotation(&trimmed.ObjectMeta, contract.AnnotationDisplayName, name)
	}
}
