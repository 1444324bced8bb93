package profiles

import (
	"fmt"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"

	"open-cluster-management.io/cluster-inventory-addon/pkg/contract"
	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/metrics"
)

// annotationRejected on a ManagedCluster in the cache says how many of its claims were left
// out, by the metrics' reasons: "Empty=2,Limit=7". Only the cache's transform sets it. A
// spoke that writes it changes a count that it could as well change by sending such claims.
const annotationRejected = contract.KeyPrefix + "rejected"

// maxRejected bounds how many claims of one cluster count for one reason: no ManagedCluster
// has room for more.
const maxRejected = 100_000

// rememberRejected records on a cached ManagedCluster how many of its claims were left out.
func rememberRejected(cluster *clusterv1.ManagedCluster, rejected map[string]int) {
	var counts []string
	for _, reason := range metrics.RejectionReasons() {
		if count := min(rejected[reason], maxRejected); count > 0 {
			counts = append(counts, fmt.Sprintf("%s=%d", reason, count))
		}
	}
	if len(counts) > 0 {
		metav1.SetMetaDataAnnotation(&cluster.ObjectMeta, annotationRejected, strings.Join(counts, ","))
	}
}

// Rejected returns how many claims were left out of a cached ManagedCluster.
func Rejected(cluster *clusterv1.ManagedCluster) map[string]int {
	text := cluster.Annotations[annotationRejected]
	if text == "" {
		return nil
	}
	rejected := map[string]int{}
	for part := range strings.SplitSeq(text, ",") {
		reason, number, _ := strings.Cut(part, "=")
		if count, err := strconv.Atoi(number); err == nil && count > 0 {
			rejected[reason] = min(count, maxRejected)
		}
	}
	return rejected
}
