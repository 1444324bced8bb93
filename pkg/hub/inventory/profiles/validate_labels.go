package profiles

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	clusterv1 "open-cluster-management.io/api/cluster/v1"

	"open-cluster-management.io/cluster-inventory-addon/pkg/contract"
	"open-cluster-management.io/cluster-inventory-addon/pkg/kube"
)

// reservedDomains are those whose label keys no property becomes, and of all domains below
// them. Kubernetes reserves the first two for itself, the third is SIG-Multicluster's, and
// Open Cluster Management and this addon select objects by the last.
var reservedDomains = []string{"kubernetes.io", "k8s.io", "x-k8s.io", "open-cluster-management.io"}

// LabelProblem returns why a property cannot become a label of its name, or "". A domain
// counts as reserved with and without a slash after it.
func LabelProblem(name string) string {
	domain, _, _ := strings.Cut(name, "/")
	for _, reserved := range reservedDomains {
		if domain == reserved || strings.HasSuffix(domain, "."+reserved) {
			return fmt.Sprintf("%q is reserved: no label of %s or a domain below comes from a property", name, reserved)
		}
	}
	if problems := validation.IsQualifiedName(name); len(problems) > 0 {
		return fmt.Sprintf("%q is not a label key: %s", name, problems[0])
	}
	return ""
}

// validateLabels returns the names of the claims that profiles show as labels, and which are left
// out, and why. Their properties are not left out.
func (l Limits) validateLabels(claims []clusterv1.ManagedClusterClaim) (labels, leftOut []string) {
	for _, claim := range claims {
		switch {
		case !slices.Contains(l.PropertyLabels, claim.Name):
		case len(validation.IsValidLabelValue(claim.Value)) > 0:
			leftOut = append(leftOut, fmt.Sprintf("the label %s, because the property's value is not a label value",
				kube.Quote(claim.Name)))
		default:
			labels = append(labels, claim.Name)
		}
	}
	return labels, leftOut
}

// annotationLabels on a ManagedCluster in the cache lists the claims that profiles show as
// labels. Only the cache's transform sets it: it drops what a spoke writes there.
const annotationLabels = contract.KeyPrefix + "property-labels"

// rememberLabels records on a cached ManagedCluster which claims profiles show as labels.
func rememberLabels(cluster *clusterv1.ManagedCluster, labels []string) {
	if len(labels) > 0 {
		metav1.SetMetaDataAnnotation(&cluster.ObjectMeta, annotationLabels, strings.Join(labels, ","))
	}
}

// withProperties returns the labels of a cached ManagedCluster with those that its claims make,
// and the patterns of the labels to copy with these. A claim takes precedence over a label.
func withProperties(
	cluster *clusterv1.ManagedCluster, allow []string,
) (labels map[string]string, allowed []string) {
	text := cluster.Annotations[annotationLabels]
	if text == "" {
		return cluster.Labels, allow
	}
	names := strings.Split(text, ",")
	labels = map[string]string{}
	maps.Copy(labels, cluster.Labels)
	for _, claim := range cluster.Status.ClusterClaims {
		if slices.Contains(names, claim.Name) {
			labels[claim.Name] = claim.Value
		}
	}
	return labels, slices.Concat(allow, names) // a label key has no character of a pattern
}
