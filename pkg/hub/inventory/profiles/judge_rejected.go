package profiles

import (
	"fmt"
	"strconv"
	"strings"

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

// rejectedOf counts the claims of a ManagedCluster that are left out of its profiles, by
// reason. kept is how many are not. For a cluster that was trimmed before, it returns the
// recorded counts.
func (l Limits) rejectedOf(cluster *clusterv1.ManagedCluster, kept int) map[string]int {
	claims := cluster.Status.ClusterClaims
	if len(claims) == kept {
		return Rejected(cluster)
	}
	times := make(map[string]int, len(claims))
	for _, claim := range claims {
		times[claim.Name]++
	}
	rejected := map[string]int{}
	beyond := len(claims) - kept
	for _, claim := range claims {
		if reason, _ := claimProblem(claim, times[claim.Name]); reason != "" {
			rejected[reason]++
			beyond--
		}
	}
	if beyond > 0 {
		rejected[metrics.RejectedLimit] = beyond
	}
	return rejected
}

// rememberRejected records on a cached ManagedCluster how many of its claims were left out.
func rememberRejected(cluster *clusterv1.ManagedCluster, rejected map[string]int) {
	var counts []string
	for _, reason := range metrics.RejectionReasons() {
		if count := min(rejected[reason], maxRejected); count > 0 {
			counts = append(counts, fmt.Sprintf("%s=%d", reason, count))
		}
	}
	if len(counts) == 0 {
		return
	}
	if cluster.Annotations == nil {
		cluster.Annotations = map[string]string{}
	}
	cluster.Annotations[annotationRejected] = strings.Join(counts, ",")
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
