package manifests

import (
	"bytes"
	"slices"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/lru"
	workv1 "open-cluster-management.io/api/work/v1"

	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/addon/ownwork"
	"open-cluster-management.io/cluster-inventory-addon/pkg/kube"
)

// keptManifests is how many manifests that several ManifestWorks have in common are kept:
// more than enough for a few revisions in a few install namespaces.
const keptManifests = 512

// WorkTrimmer gives ManifestWorks the form in which they are cached: it drops what the
// framework does not read, and makes one of what they repeat.
type WorkTrimmer struct {
	manifests   *lru.Cache // of workv1.Manifest, by JSON
	labels      kube.Repeats[map[string]string]
	annotations kube.Repeats[map[string]string]
	configs     kube.Repeats[[]workv1.ManifestConfigOption]
	conditions  kube.Repeats[[]metav1.Condition]
	statuses    kube.Repeats[[]workv1.ManifestCondition]
}

// NewWorkTrimmer returns one for the ManifestWorks of all clusters.
func NewWorkTrimmer() *WorkTrimmer { return &WorkTrimmer{manifests: lru.New(keptManifests)} }

// Trim is for the transform of an informer. It also removes what the framework did not write
// itself: the conditionRules of WithRules, and defaults that the API server set. The framework
// compares a ManifestWork with what it renders, and would otherwise send a patch for every
// ManifestWork each time the manager starts.
func (t *WorkTrimmer) Trim(work *workv1.ManifestWork) *workv1.ManifestWork {
	work.ManagedFields, work.Finalizers = nil, nil
	work.Spec.ManifestConfigs = withoutRules(work.Spec.ManifestConfigs)
	for i := range work.Spec.ManifestConfigs {
		if config := &work.Spec.ManifestConfigs[i]; config.FeedbackScrapeType == workv1.FeedbackPollType {
			config.FeedbackScrapeType = ""
		}
	}
	work.Spec.Workload.Manifests = slices.Clone(work.Spec.Workload.Manifests) // decoding leaves room for more
	for i, inWork := range work.Spec.Workload.Manifests {
		if inWork.Object != nil {
			continue // trimmed before
		}
		if manifest, err := t.manifest(work, inWork.Raw); err == nil {
			work.Spec.Workload.Manifests[i] = manifest
		} // otherwise the framework fails to decode it, and says so
	}
	work.Status = trimWorkStatus(work.Status)
	work.Labels, work.Annotations = t.labels.Of(work.Labels), t.annotations.Of(work.Annotations)
	work.Spec.ManifestConfigs = t.configs.Of(work.Spec.ManifestConfigs)
	work.Status.Conditions = t.conditions.Of(work.Status.Conditions)
	work.Status.ResourceStatus.Manifests = t.statuses.Of(work.Status.ResourceStatus.Manifests)
	return work
}

// manifest returns a manifest of a ManifestWork in the form in which the framework reads
// it most cheaply, with its identity decoded. If all clusters have the same, it is one for
// all of them. The others contain the UID of the cluster's addon, which owns the work, or
// the namespace that only its hosted agent has.
func (t *WorkTrimmer) manifest(work *workv1.ManifestWork, raw []byte) (workv1.Manifest, error) {
	for _, owner := range work.OwnerReferences {
		if bytes.Contains(raw, []byte(owner.UID)) {
			return decodedInWork(raw)
		}
	}
	key := string(raw)
	if known, ok := t.manifests.Get(key); ok {
		return known.(workv1.Manifest), nil
	}
	manifest, err := decodedInWork(raw)
	if err == nil && !bytes.Contains(raw, []byte(ownwork.HostedNamespace(ownwork.ClusterOf(work)))) {
		t.manifests.Add(key, manifest)
	}
	return manifest, err
}

func decodedInWork(raw []byte) (workv1.Manifest, error) {
	decoded := &unstructured.Unstructured{}
	if err := decoded.UnmarshalJSON(raw); err != nil {
		return workv1.Manifest{}, err
	}
	return newManifest(decoded, raw).inWork(), nil
}

// trimWorkStatus keeps whether the work was applied and is available, the message if
// it is not, the feedback, and which manifests the spoke refused.
func trimWorkStatus(status workv1.ManifestWorkStatus) workv1.ManifestWorkStatus {
	trimmed := workv1.ManifestWorkStatus{Conditions: statuses(status.Conditions, workv1.WorkApplied, workv1.WorkAvailable)}
	if available := apimeta.FindStatusCondition(trimmed.Conditions, workv1.WorkAvailable); available != nil &&
		available.Status == metav1.ConditionFalse {
		if onlyAgentUnavailable(status.ResourceStatus.Manifests) {
			available.Status = metav1.ConditionTrue
		} else {
			available.Message = apimeta.FindStatusCondition(status.Conditions, workv1.WorkAvailable).Message
		}
	}
	for _, manifest := range status.ResourceStatus.Manifests {
		refused := refusedManifest(manifest.Conditions)
		if len(manifest.StatusFeedbacks.Values) == 0 && refused == nil {
			continue
		}
		trimmed.ResourceStatus.Manifests = append(trimmed.ResourceStatus.Manifests, workv1.ManifestCondition{
			ResourceMeta: workv1.ManifestResourceMeta{
				Group:     manifest.ResourceMeta.Group,
				Resource:  manifest.ResourceMeta.Resource,
				Namespace: manifest.ResourceMeta.Namespace,
				Name:      manifest.ResourceMeta.Name,
			},
			StatusFeedbacks: manifest.StatusFeedbacks,
			Conditions:      refused,
		})
	}
	return trimmed
}

// onlyAgentUnavailable reports whether nothing but the agent's health makes a ManifestWork
// not available: the framework learns of that from the feedback, which says more.
func onlyAgentUnavailable(manifests []workv1.ManifestCondition) bool {
	byRule := false
	for _, manifest := range manifests {
		available := apimeta.FindStatusCondition(manifest.Conditions, workv1.ManifestAvailable)
		if available == nil || available.Status != metav1.ConditionFalse {
			continue
		}
		if available.Reason != workv1.ConditionRuleEvaluated {
			return false
		}
		byRule = true
	}
	return byRule
}

// refusedManifest keeps the condition that says why the spoke refused a manifest, in the
// length in which it is repeated.
func refusedManifest(conditions []metav1.Condition) []metav1.Condition {
	applied := apimeta.FindStatusCondition(conditions, workv1.ManifestApplied)
	if applied == nil || applied.Status != metav1.ConditionFalse {
		return nil
	}
	return []metav1.Condition{{
		Type: applied.Type, Status: applied.Status, Message: ownwork.Refusal(conditions),
	}}
}

// statuses returns the conditions of the given types without their texts and times.
func statuses(conditions []metav1.Condition, types ...string) []metav1.Condition {
	var kept []metav1.Condition
	for _, conditionType := range types {
		if condition := apimeta.FindStatusCondition(conditions, conditionType); condition != nil {
			kept = append(kept, metav1.Condition{Type: conditionType, Status: condition.Status})
		}
	}
	return kept
}
