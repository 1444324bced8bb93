package profiles

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

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

const (
	// maxConditionMessageBytes bounds how large a cluster can make the profile in every
	// namespace through a condition's message.
	maxConditionMessageBytes = 1024

	// maxCopiedLabels is how many labels of a ManagedCluster are copied, the first by key.
	// A klusterlet may label its own cluster.
	maxCopiedLabels = 100
)

// conditionReason is the API's pattern for a condition's reason.
var conditionReason = regexp.MustCompile(`^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$`)

// shownCondition is a condition of a profile and the ManagedCluster condition that it
// shows.
type shownCondition struct{ target, source string }

var profileConditions = []shownCondition{
	{inventoryv1alpha1.ClusterConditionControlPlaneHealthy, clusterv1.ManagedClusterConditionAvailable},
	{contract.ProfileConditionJoined, clusterv1.ManagedClusterConditionJoined},
}

// Desired returns what a pair's profile must be: the observed one, if any, with
// everything that this addon owns corrected and everything else unchanged. now is when a
// property's new value was first seen. The second result lists what was left out of the
// cluster, and why.
func Desired(o Observed, allow []string, now metav1.Time) (*inventoryv1alpha1.ClusterProfile, []string) {
	cluster := o.Cluster
	profile := o.Profile.DeepCopy()
	if profile == nil {
		profile = &inventoryv1alpha1.ClusterProfile{
			ObjectMeta: metav1.ObjectMeta{Namespace: o.Pair.Namespace, Name: cluster.Name},
			Spec: inventoryv1alpha1.ClusterProfileSpec{
				ClusterManager: inventoryv1alpha1.ClusterManager{Name: contract.ClusterManagerName},
			},
		}
	}
	if o.lacksStatus() {
		profile.Status.AccessProviders, _ = DesiredAccess(o)
		return profile, nil
	}
	member := o.Member
	if member == (MemberID{}) {
		member.ID = cmp.Or(WantedMemberID(cluster), cluster.Name)
	}
	leftOut := append(leftOutOf(cluster), setMetadata(profile, cluster, member.ID, allow)...)
	if problem := member.problem(); problem != "" {
		leftOut = append(leftOut, problem)
	}
	authors := authorshipOf(profile)
	claims, beyond := recordable(cluster.Status.ClusterClaims, profile.Status.Properties, authors)
	if beyond > 0 {
		leftOut = append(leftOut, fmt.Sprintf("%d properties: the names of all together have more than %d KiB",
			beyond, maxRecordBytes>>10))
	}
	setAnnotation(profile, contract.AnnotationProperties,
		desiredRecord(claims, profile.Status.Properties, authors, IsAdoption(o)))
	profile.Spec.DisplayName = displayName(cluster)
	profile.Status.Version.Kubernetes = cluster.Status.Version.Kubernetes
	for _, condition := range profileConditions {
		showCondition(profile, condition.target, meta.FindStatusCondition(cluster.Status.Conditions, condition.source), now)
	}
	profile.Status.Properties = desiredProperties(claims, profile.Status.Properties, authors, now)
	profile.Status.AccessProviders, _ = DesiredAccess(o)
	return profile, leftOut
}

// lacksStatus reports whether the cluster may only seem to have no properties, version and health: while
// objects are being restored, a cluster is created without its status, which follows later. Its profile stays as
// it is, but for access providers.
func (o Observed) lacksStatus() bool {
	return o.Profile != nil && (o.Restoring() || len(o.Unserved) > 0) && len(o.Cluster.Status.ClusterClaims) == 0 &&
		meta.FindStatusCondition(o.Cluster.Status.Conditions, clusterv1.ManagedClusterConditionJoined) == nil
}

// MaxAccessProviders is how many a ClusterProfile v1alpha2 may have (cluster-inventory-api,
// after v0.1.3). With more, writes of consumers that use this version may be refused.
const MaxAccessProviders = 64

// DesiredAccess returns the profile's access providers with this addon's own corrected. It
// leaves out its own, the last by name first, where other writers leave no room, and returns
// which.
func DesiredAccess(o Observed) (providers []inventoryv1alpha1.AccessProvider, leftOut []string) {
	if o.Profile != nil {
		providers = o.Profile.Status.AccessProviders
	}
	providers = access.Merge(providers, o.Cluster.Name, o.Access)
	var ours []string
	for _, state := range []access.ProviderState{o.Access.Proxy, o.Access.Direct} {
		if state.Provider != nil {
			ours = append(ours, state.Provider.Name)
		}
	}
	slices.Sort(ours)
	for len(providers) > MaxAccessProviders && len(ours) > 0 {
		name := ours[len(ours)-1]
		ours, leftOut = ours[:len(ours)-1], append(leftOut, name)
		providers = slices.DeleteFunc(slices.Clone(providers), func(p inventoryv1alpha1.AccessProvider) bool {
			return p.Name == name
		})
	}
	return providers, leftOut
}

// setMetadata sets our labels and our annotation, and returns which labels it left out.
func setMetadata(
	profile *inventoryv1alpha1.ClusterProfile, cluster *clusterv1.ManagedCluster, memberID string, allow []string,
) (leftOut []string) {
	if profile.Labels == nil {
		profile.Labels = map[string]string{}
	}
	labels := profile.Labels
	source, allow := withProperties(cluster, allow)
	copied, more := copyLabels(labels, copiedBefore(profile), source, allow)
	if more > 0 {
		leftOut = append(leftOut, fmt.Sprintf("%d labels: a profile has copies of at most %d", more, maxCopiedLabels))
	}

	labels[contract.LabelManagedBy] = contract.ManagedBy
	labels[contract.LabelClusterManager] = contract.ClusterManagerName
	labels[contract.LabelClusterName] = cluster.Name
	if memberID != "" {
		labels[contract.LabelInventoryMemberID] = memberID
	} else {
		delete(labels, contract.LabelInventoryMemberID)
	}
	if set := cluster.Labels[clusterv1beta2.ClusterSetLabel]; set != "" {
		labels[contract.LabelClusterSet] = set
	} else {
		delete(labels, contract.LabelClusterSet)
	}
	setAnnotation(profile, contract.AnnotationCopiedLabels, strings.Join(copied, ","))
	return leftOut
}

// setAnnotation sets an annotation, or removes it if the value is empty.
func setAnnotation(profile *inventoryv1alpha1.ClusterProfile, key, value string) {
	if value == "" {
		delete(profile.Annotations, key)
	} else {
		metav1.SetMetaDataAnnotation(&profile.ObjectMeta, key, value)
	}
}

// copyLabels copies the allowed labels of source into labels, removes earlier copies whose
// source is gone, and returns the sorted keys that are copies now, and how many exceed the
// limit. A label of the profile that is not a copy belongs to the client that set it and
// stays.
func copyLabels(
	labels map[string]string, before []string, source map[string]string, allow []string,
) (copied []string, more int) {
	for _, key := range slices.Sorted(maps.Keys(source)) {
		if isReserved(key) || !kube.MatchesAny(allow, key) {
			continue
		}
		if _, taken := labels[key]; taken && !slices.Contains(before, key) {
			continue
		}
		if len(copied) == maxCopiedLabels {
			more++
			continue
		}
		labels[key] = source[key]
		copied = append(copied, key)
	}
	for _, key := range before {
		if !slices.Contains(copied, key) {
			delete(labels, key)
		}
	}
	return copied, more
}

// copiedBefore returns the keys of the profile's labels that are earlier copies: those that
// the annotation lists, and those that this addon was the last to set, according to the API
// server's managed fields. The annotation alone does not suffice, because another client may
// remove it: its labels would then count as that client's, and stay forever. The managed
// fields alone do not suffice, because another client may change a copy, which is ours to
// repair.
func copiedBefore(profile *inventoryv1alpha1.ClusterProfile) []string {
	return kube.SortedNames(append(listedCopies(profile.Annotations), setByUs(profile.ManagedFields)...))
}

// listedCopies returns which labels the annotation lists. A reserved key in it must have
// been added by hand; its label is not ours to remove.
func listedCopies(annotations map[string]string) []string {
	var keys []string
	for key := range strings.SplitSeq(annotations[contract.AnnotationCopiedLabels], ",") {
		if key != "" && !isReserved(key) {
			keys = append(keys, key)
		}
	}
	return keys
}

// setByUs returns the keys of the unreserved labels whose present value this addon has set,
// according to the managed fields.
func setByUs(record []metav1.ManagedFieldsEntry) []string {
	var keys []string
	for _, entry := range record {
		if !isOurRecord(entry) {
			continue
		}
		var fields struct {
			Metadata struct {
				Labels map[string]struct{} `json:"f:labels"`
			} `json:"f:metadata"`
		}
		if err := json.Unmarshal(entry.FieldsV1.GetRawBytes(), &fields); err != nil {
			continue
		}
		for field := range fields.Metadata.Labels {
			if key, ok := strings.CutPrefix(field, "f:"); ok && key != "" && !isReserved(key) {
				keys = append(keys, key)
			}
		}
	}
	return keys
}

// isOurRecord reports whether an entry of the managed fields records what this addon has
// set outside the status.
func isOurRecord(entry metav1.ManagedFieldsEntry) bool {
	return entry.Manager == FieldOwner && entry.Subresource == "" && entry.FieldsV1 != nil
}

// hasUnlistedLabel reports whether a profile has a label that may be a copy although the
// annotation does not list it.
func hasUnlistedLabel(profile *inventoryv1alpha1.ClusterProfile) bool {
	listed := listedCopies(profile.Annotations)
	for key := range profile.Labels {
		if !isReserved(key) && !slices.Contains(listed, key) {
			return true
		}
	}
	return false
}

// isReserved reports whether a label's key has a meaning for this addon, for consumers of
// profiles or for tools that deploy objects. A spoke can label its ManagedCluster and must
// not be able to set such a key.
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

// showCondition makes the profile's condition of a type show the cluster's condition
// source, or removes it if the cluster has none.
func showCondition(
	profile *inventoryv1alpha1.ClusterProfile, conditionType string, source *metav1.Condition, now metav1.Time,
) {
	if source == nil {
		meta.RemoveStatusCondition(&profile.Status.Conditions, conditionType)
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
	meta.SetStatusCondition(&profile.Status.Conditions, metav1.Condition{
		Type:               conditionType,
		Status:             source.Status,
		Reason:             reason,
		Message:            source.Message,
		LastTransitionTime: since,
		ObservedGeneration: profile.Generation,
	})
}

// desiredProperties turns claims, which are sorted and valid, into properties, each with
// the time at which its value was first seen. The properties that other clients wrote
// follow, unless there is a claim of their name. If only the order differs, it returns
// current.
func desiredProperties(
	claims []clusterv1.ManagedClusterClaim, current []inventoryv1alpha1.Property, authors authorship, now metav1.Time,
) []inventoryv1alpha1.Property {
	known := make(map[string]inventoryv1alpha1.Property, len(current))
	for _, property := range current {
		known[property.Name] = property
	}
	var properties []inventoryv1alpha1.Property
	for _, claim := range claims {
		property := inventoryv1alpha1.Property{Name: claim.Name, Value: claim.Value, LastObservedTime: now}
		if before, ok := known[claim.Name]; ok && before.Value == claim.Value && !before.LastObservedTime.IsZero() {
			property.LastObservedTime = before.LastObservedTime
		}
		properties = append(properties, property)
	}
	for _, property := range current {
		if _, claimed := findClaim(claims, property.Name); !claimed && !authors.isOurs(property.Name) {
			properties = append(properties, property)
		}
	}
	byName := func(a, b inventoryv1alpha1.Property) int { return strings.Compare(a.Name, b.Name) }
	if apiequality.Semantic.DeepEqual(
		slices.SortedStableFunc(slices.Values(properties), byName), slices.SortedStableFunc(slices.Values(current), byName)) {
		return current
	}
	return properties
}

// MetadataChanges returns the part of a merge patch that turns current's metadata and spec
// into desired's, or nil if they already agree.
func MetadataChanges(current, desired *inventoryv1alpha1.ClusterProfile) map[string]any {
	metadata := map[string]any{}
	if labels := kube.MapChanges(current.Labels, desired.Labels); labels != nil {
		metadata["labels"] = labels
	}
	if annotations := kube.MapChanges(current.Annotations, desired.Annotations); annotations != nil {
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

// StatusChanges is MetadataChanges for the status subresource. A merge patch
// replaces lists as a whole, so they include other writers' entries of current.
func StatusChanges(current, desired *inventoryv1alpha1.ClusterProfile) map[string]any {
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

// IsAsDesired reports whether there is a profile in which nothing is to be changed.
func IsAsDesired(current, desired *inventoryv1alpha1.ClusterProfile) bool {
	return current != nil && MetadataChanges(current, desired) == nil && StatusChanges(current, desired) == nil
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
