package profiles

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	clusterv1 "open-cluster-management.io/api/cluster/v1"

	"open-cluster-management.io/cluster-inventory-addon/pkg/contract"
	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/metrics"
	"open-cluster-management.io/cluster-inventory-addon/pkg/kube"
)

// Limits bound what one spoke makes the hub store, and write to every namespace that
// publishes its cluster. A klusterlet may send everything that fits into a ManagedCluster.
type Limits struct {
	// Properties is the maximum number of properties of a profile.
	Properties int

	// PropertyBytes is the maximum size of their names and values together.
	PropertyBytes int

	// PropertyLabels are the names of the properties that profiles show as labels, too, if
	// their values are label values. LabelProblem must accept each.
	PropertyLabels []string
}

// MaxNames bounds how many names a message or an event lists.
const MaxNames = 10

// How many invalid claims are named, and in how many bytes. The others are counted.
const (
	maxNamedClaims      = 6
	maxNamedClaimsBytes = 400
)

// validateClaims returns, sorted by name, the claims that become properties, what is left out, and
// why, and how many are, by the metrics' reasons.
//
// A claim that the API would refuse, or whose name does not print, is left out by itself. Of
// the others, the first by name are kept, as many as the limits allow: so the same claims
// give the same properties in any order, and one more claim displaces only as many of the
// last ones as it needs room. No value is cut. Validating the kept claims again leaves nothing
// out.
func (l Limits) validateClaims(
	claims []clusterv1.ManagedClusterClaim,
) (kept []clusterv1.ManagedClusterClaim, leftOut []string, rejected map[string]int) {
	rejected = map[string]int{}
	sorted := slices.Clone(claims)
	slices.SortStableFunc(sorted, func(a, b clusterv1.ManagedClusterClaim) int { return cmp.Compare(a.Name, b.Name) })
	var invalid []string
	kept = sorted[:0:len(sorted)]
	for len(sorted) > 0 {
		name := sorted[0].Name
		times := 1
		for times < len(sorted) && sorted[times].Name == name {
			times++
		}
		for _, claim := range sorted[:times] {
			if reason, problem := claimProblem(claim, times); problem != "" {
				rejected[reason]++
				invalid = append(invalid, kube.Quote(name)+" "+problem)
				continue
			}
			kept = append(kept, claim)
		}
		sorted = sorted[times:]
	}
	leftOut = firstProblems(kube.SortedNames(invalid))
	if fit := l.fit(kept); fit < len(kept) {
		rejected[metrics.RejectedLimit] = len(kept) - fit
		leftOut = append(leftOut, fmt.Sprintf("%d of %d claims, from %s on: a profile has at most %d, with %d bytes in all",
			len(kept)-fit, len(kept), kube.Quote(kept[fit].Name), l.Properties, l.PropertyBytes))
		kept = slices.Clip(slices.Clone(kept[:fit])) // otherwise the others would stay in memory
	}
	return kept, leftOut, rejected
}

// fit returns how many claims, from the first on, are within the limits.
func (l Limits) fit(claims []clusterv1.ManagedClusterClaim) int {
	bytes := 0
	for i, claim := range claims {
		bytes += len(claim.Name) + len(claim.Value)
		if i == l.Properties || bytes > l.PropertyBytes {
			return i
		}
	}
	return len(claims)
}

// firstProblems returns the first problems, and how many others there are.
func firstProblems(problems []string) []string {
	bytes := 0
	for i, problem := range problems {
		bytes += len(problem)
		if i == maxNamedClaims || bytes > maxNamedClaimsBytes {
			return append(problems[:i:i], fmt.Sprintf("other invalid claims: %d", len(problems)-i))
		}
	}
	return problems
}

// claimProblem returns why a claim by itself cannot become a property, or "", and the
// corresponding reason of the metrics. times is how many claims have its name.
func claimProblem(claim clusterv1.ManagedClusterClaim, times int) (reason, problem string) {
	switch {
	case claim.Name == "":
		return metrics.RejectedName, "has no name"
	case len(claim.Name) > contract.MaxPropertyNameBytes:
		return metrics.RejectedName,
			fmt.Sprintf("has a name of %d bytes, more than %d", len(claim.Name), contract.MaxPropertyNameBytes)
	case !utf8.ValidString(claim.Name):
		return metrics.RejectedName, "has a name that is not UTF-8"
	case !kube.IsPrintable(claim.Name):
		return metrics.RejectedName, "has a name with unprintable characters"
	case times > 1:
		return metrics.RejectedDuplicate, fmt.Sprintf("occurs %d times", times)
	case claim.Value == "":
		return metrics.RejectedEmpty, "has no value"
	case len(claim.Value) > contract.MaxPropertyValueBytes:
		return metrics.RejectedTooLong,
			fmt.Sprintf("has a value of %d bytes, more than %d", len(claim.Value), contract.MaxPropertyValueBytes)
	case !utf8.ValidString(claim.Value):
		return metrics.RejectedNotText, "has a value that is not UTF-8"
	default:
		return "", ""
	}
}

// validateVersion returns the Kubernetes version to show, or why it is left out.
func validateVersion(version string) (kept, leftOut string) {
	switch {
	case len(version) > contract.MaxVersionBytes:
		return "", fmt.Sprintf("the Kubernetes version has %d bytes, more than %d", len(version), contract.MaxVersionBytes)
	case !kube.IsPrintable(version):
		return "", "the Kubernetes version has unprintable characters"
	default:
		return version, ""
	}
}

// annotationLeftOut on a ManagedCluster in the cache lists, one per line, what was left out
// of it. Only the cache's transform sets it. A spoke that writes it changes the condition
// of its own addon, which its agent may write anyway.
const annotationLeftOut = contract.KeyPrefix + "left-out"

// rememberLeftOut records on a cached ManagedCluster what was left out of it.
func rememberLeftOut(cluster *clusterv1.ManagedCluster, leftOut []string) {
	if len(leftOut) == 0 {
		return
	}
	var lines []string
	for _, line := range leftOut[:min(len(leftOut), MaxNames)] {
		lines = append(lines, kube.Shorten(line, maxNamedClaimsBytes))
	}
	cluster.Annotations = map[string]string{annotationLeftOut: strings.Join(lines, "\n")}
}

// leftOutOf returns what was left out of a cached ManagedCluster.
func leftOutOf(cluster *clusterv1.ManagedCluster) []string {
	if text := cluster.Annotations[annotationLeftOut]; text != "" {
		return strings.Split(text, "\n")
	}
	return nil
}
