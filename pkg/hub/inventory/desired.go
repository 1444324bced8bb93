package inventory

import (
	"cmp"
	"fmt"
	"maps"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	clusterv1beta2 "open-cluster-management.io/api/cluster/v1beta2"
	inventoryv1alpha1 "sigs.k8s.io/cluster-inventory-api/apis/v1alpha1"

	"open-cluster-management.io/cluster-inventory-addon/pkg/contract"
	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/access"
	"open-cluster-management.io/cluster-inventory-addon/pkg/kube"
)

// maxConditionMessageBytes bounds how large a cluster can make every namespace's
// profile through a condition's message.
const maxConditionMessageBytes = 1024

// conditionReason is the pattern the API gives a condition's reason.
var conditionReason = regexp.MustCompile(`^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$`)

// shownCondition is a condition of a profile and the ManagedCluster condition that
// it shows.
type shownCondition struct{ target, source string }

var profileConditions = []shownCondition{
	{inventoryv1alpha1.ClusterConditionControlPlaneHealthy, clusterv1.ManagedClusterConditionAvailable},
	{contract.ProfileConditionJoined, clusterv1.ManagedClusterConditionJoined},
}

// desiredProfile returns what a pair's profile must be: the observed one, if there
// is one, with everything this addon owns put right and everything else as it is.
// now is when a property that has a new value was first seen. The second result
// says which claims were left out and why. The Namespace, of which the cache may lag
// behind, is needed for a new profile only.
func desiredProfile(o observed, allow []string, now metav1.Time) (*inventoryv1alpha1.ClusterProfile, []string) {
	cluster := o.Cluster
	profile := o.Profile.DeepCopy()
	if profile == nil {
		profile = &inventoryv1alpha1.ClusterProfile{
			ObjectMeta: metav1.ObjectMeta{Namespace: o.Namespace.Name, Name: cluster.Name},
			Spec: inventoryv1alpha1.ClusterProfileSpec{
				ClusterManager: inventoryv1alpha1.ClusterManager{Name: contract.ClusterManagerName},
			},
		}
	}
	setMetadata(profile, cluster, allow)
	profile.Spec.DisplayName = cluster.Name
	profile.Status.Version.Kubernetes = cluster.Status.Version.Kubernetes
	for _, condition := range profileConditions {
		showCondition(profile, condition.target, meta.FindStatusCondition(cluster.Status.Conditions, condition.source), now)
	}
	properties, problems := desiredProperties(cluster.Status.ClusterClaims, profile.Status.Properties, now)
	profile.Status.Properties = properties
	profile.Status.AccessProviders = access.Merge(profile.Status.AccessProviders, cluster.Name, o.access)
	return profile, problems
}

// setMetadata sets our labels and our annotation.
func setMetadata(profile *inventoryv1alpha1.ClusterProfile, cluster *clusterv1.ManagedCluster, allow []string) {
	labels := maps.Clone(profile.Labels)
	if labels == nil {
		labels = map[string]string{}
	}
	copied := copyLabels(labels, copiedKeys(profile.Annotations), cluster.Labels, allow)

	labels[contract.LabelManagedBy] = contract.ManagedBy
	labels[contract.LabelClusterManager] = contract.ClusterManagerName
	labels[contract.LabelClusterName] = cluster.Name
	if set := cluster.Labels[clusterv1beta2.ClusterSetLabel]; set != "" {
		labels[contract.LabelClusterSet] = set
	} else {
		delete(labels, contract.LabelClusterSet)
	}
	profile.Labels = labels

	annotations := maps.Clone(profile.Annotations)
	delete(annotations, contract.AnnotationCopiedLabels)
	if len(copied) > 0 {
		if annotations == nil {
			annotations = map[string]string{}
		}
		annotations[contract.AnnotationCopiedLabels] = strings.Join(copied, ",")
	}
	profile.Annotations = annotations
}

// copyLabels copies the allowed labels of source into labels, removes earlier
// copies whose source is gone, and returns the sorted keys that are copies now. A
// label of the profile that is not a copy belongs to whoever set it and stays.
func copyLabels(labels map[string]string, before []string, source map[string]string, allow []string) []string {
	var copied []string
	for key, value := range source {
		if isReserved(key) || !isAllowed(key, allow) {
			continue
		}
		if _, taken := labels[key]; taken && !slices.Contains(before, key) {
			continue
		}
		labels[key] = value
		copied = append(copied, key)
	}
	for _, key := range before {
		if !slices.Contains(copied, key) {
			delete(labels, key)
		}
	}
	slices.Sort(copied)
	return copied
}

// copiedKeys reads which labels were copied before. Somebody must have added a
// reserved key by hand; its label is not ours to remove.
func copiedKeys(annotations map[string]string) []string {
	var keys []string
	for key := range strings.SplitSeq(annotations[contract.AnnotationCopiedLabels], ",") {
		if key != "" && !isReserved(key) {
			keys = append(keys, key)
		}
	}
	return keys
}

func isAllowed(key string, allow []string) bool {
	return slices.ContainsFunc(allow, func(pattern string) bool {
		matched, err := path.Match(pattern, key)
		return err == nil && matched
	})
}

// isReserved reports whether a label's key carries meaning for this addon, for
// consumers of profiles or for tools that deploy objects. A spoke can label its
// ManagedCluster and must not be able to set such a key.
func isReserved(key string) bool {
	prefix, _, found := strings.Cut(key, "/")
	if !found {
		return false
	}
	return key == contract.LabelClusterName ||
		prefix+"/" == contract.KeyPrefix ||
		prefix == "app.kubernetes.io" ||
		prefix == "x-k8s.io" || strings.HasSuffix(prefix, ".x-k8s.io")
}

// showCondition makes the profile's condition of a type show the cluster's
// condition source, or removes it if the cluster has none.
func showCondition(
	profile *inventoryv1alpha1.ClusterProfile, conditionType string, source *metav1.Condition, now metav1.Time,
) {
	conditions := slices.Clone(profile.Status.Conditions)
	if source == nil {
		meta.RemoveStatusCondition(&conditions, conditionType)
		profile.Status.Conditions = conditions
		return
	}
	since := source.LastTransitionTime
	if since.IsZero() {
		since = now
	}
	reason := source.Reason
	if !conditionReason.MatchString(reason) || len(reason) > maxConditionMessageBytes {
		reason = source.Type
	}
	meta.SetStatusCondition(&conditions, metav1.Condition{
		Type:               conditionType,
		Status:             source.Status,
		Reason:             reason,
		Message:            kube.Shorten(source.Message, maxConditionMessageBytes),
		LastTransitionTime: since,
		ObservedGeneration: profile.Generation,
	})
	profile.Status.Conditions = conditions
}

// desiredProperties turns claims into properties sorted by name, each with the time
// its value was first seen. A claim that the API would refuse is left out and
// reported; the others are kept.
func desiredProperties(
	claims []clusterv1.ManagedClusterClaim, current []inventoryv1alpha1.Property, now metav1.Time,
) (properties []inventoryv1alpha1.Property, problems []string) {
	times := make(map[string]int, len(claims))
	for _, claim := range claims {
		times[claim.Name]++
	}
	known := make(map[string]inventoryv1alpha1.Property, len(current))
	for _, property := range current {
		known[property.Name] = property
	}

	for _, claim := range claims {
		if problem := claimProblem(claim, times[claim.Name]); problem != "" {
			problems = append(problems, fmt.Sprintf("%s %s", quoteName(claim.Name), problem))
			continue
		}
		property := inventoryv1alpha1.Property{Name: claim.Name, Value: claim.Value, LastObservedTime: now}
		if before, ok := known[claim.Name]; ok && before.Value == claim.Value && !before.LastObservedTime.IsZero() {
			property.LastObservedTime = before.LastObservedTime
		}
		properties = append(properties, property)
	}
	slices.SortFunc(properties, func(a, b inventoryv1alpha1.Property) int { return cmp.Compare(a.Name, b.Name) })
	return properties, kube.SortedNames(problems)
}

// claimProblem says why a claim cannot be a property, or "".
func claimProblem(claim clusterv1.ManagedClusterClaim, times int) string {
	switch {
	case claim.Name == "":
		return "has no name"
	case len(claim.Name) > contract.MaxPropertyNameBytes:
		return fmt.Sprintf("has a name of %d bytes, more than %d", len(claim.Name), contract.MaxPropertyNameBytes)
	case !utf8.ValidString(claim.Name):
		return "has a name that is not UTF-8"
	case times > 1:
		return fmt.Sprintf("is there %d times", times)
	case claim.Value == "":
		return "has no value"
	case len(claim.Value) > contract.MaxPropertyValueBytes:
		return fmt.Sprintf("has a value of %d bytes, more than %d", len(claim.Value), contract.MaxPropertyValueBytes)
	case !utf8.ValidString(claim.Value):
		return "has a value that is not UTF-8"
	default:
		return ""
	}
}

// quoteName makes a name that a spoke chose safe and short enough to show.
func quoteName(name string) string {
	const limit = 80
	return strconv.QuoteToASCII(kube.Shorten(name, limit))
}

// metadataChanges returns the part of a merge patch that turns current's metadata
// and spec into desired's, or nil if they already agree.
func metadataChanges(current, desired *inventoryv1alpha1.ClusterProfile) map[string]any {
	metadata := map[string]any{}
	if labels := mapChanges(current.Labels, desired.Labels); labels != nil {
		metadata["labels"] = labels
	}
	if annotations := mapChanges(current.Annotations, desired.Annotations); annotations != nil {
		metadata["annotations"] = annotations
	}
	changes := map[string]any{}
	if len(metadata) > 0 {
		changes["metadata"] = metadata
	}
	if current.Spec.DisplayName != desired.Spec.DisplayName {
		changes["spec"] = map[string]any{"displayName": desired.Spec.DisplayName}
	}
	if len(changes) == 0 {
		return nil
	}
	return changes
}

// statusChanges is metadataChanges for the status subresource. A merge patch
// replaces lists as a whole, so they include other writers' entries of current.
func statusChanges(current, desired *inventoryv1alpha1.ClusterProfile) map[string]any {
	status := map[string]any{}
	if current.Status.Version.Kubernetes != desired.Status.Version.Kubernetes {
		status["version"] = map[string]any{"kubernetes": orNull(desired.Status.Version.Kubernetes)}
	}
	if !apiequality.Semantic.DeepEqual(current.Status.Conditions, desired.Status.Conditions) {
		status["conditions"] = orEmpty(desired.Status.Conditions)
	}
	if !apiequality.Semantic.DeepEqual(current.Status.Properties, desired.Status.Properties) {
		status["properties"] = orEmpty(desired.Status.Properties)
	}
	if !apiequality.Semantic.DeepEqual(current.Status.AccessProviders, desired.Status.AccessProviders) {
		status["accessProviders"] = orEmpty(desired.Status.AccessProviders)
	}
	if len(status) == 0 {
		return nil
	}
	return map[string]any{"status": status}
}

func mapChanges(current, desired map[string]string) map[string]any {
	changes := map[string]any{}
	for key, value := range desired {
		if have, ok := current[key]; !ok || have != value {
			changes[key] = value
		}
	}
	for key := range current {
		if _, ok := desired[key]; !ok {
			changes[key] = nil
		}
	}
	if len(changes) == 0 {
		return nil
	}
	return changes
}

func orNull(text string) any {
	if text == "" {
		return nil
	}
	return text
}

func orEmpty[T any](list []T) []T {
	if list == nil {
		return []T{}
	}
	return list
}
