package faults

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	workv1 "open-cluster-management.io/api/work/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	works = "manifestworks.work.open-cluster-management.io"
	// deployWork and cleanupWork are the addon's ManifestWorks in the namespace of each cluster.
	deployWork, cleanupWork = "addon-cluster-inventory-deploy-0", "addon-cluster-inventory-pre-delete"
	// spokesPoll is how often stories look at what comes of ManifestWorks: addons are converted, which is dear.
	spokesPoll = 300 * time.Millisecond
)

// spokes play the work agents of all clusters: they report each ManifestWork as applied and its
// agent as available, and let go of those that are deleted. They also delete those whose addon is
// gone, which the garbage collector does on other hubs. They write past the proxies. It is safe for
// concurrent use.
type spokes struct {
	hub client.Client

	mu sync.Mutex
	// watcher has seen the ManifestWorks and the addons.
	watcher *watcher
	// failing is the AgentRevision whose agent never becomes available, by cluster.
	failing map[string]string
}

// startSpokes starts the spokes of a story in which agents are deployed, and returns a function that
// ends them.
func (r *running) startSpokes(tb testing.TB) (stop func()) {
	tb.Helper()
	if !r.story.runs(addonManager) {
		return func() {}
	}
	r.world.spokes = &spokes{hub: r.lane.past(tb), failing: map[string]string{}, watcher: r.lane.watcher}
	ctx, cancel := context.WithCancel(tb.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for {
			r.world.spokes.look(ctx)
			if pause(ctx, poll) != nil {
				return
			}
		}
	}()
	return func() {
		cancel()
		<-ended
	}
}

// fails makes the agents of an AgentRevision never become available on a cluster.
func (s *spokes) fails(cluster, revision string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.failing[cluster] = revision
}

// sees makes the spokes look at what a new watcher sees.
func (s *spokes) sees(by *watcher) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.watcher = by
}

// look reports all ManifestWorks of which there is something to say. What fails, such as while the
// hub is away or because more has changed, is tried again with the next look.
func (s *spokes) look(ctx context.Context) {
	s.mu.Lock()
	by := s.watcher
	s.mu.Unlock()
	all, addons := by.objectsOf(works), by.objectsOf("managedclusteraddons.addon.open-cluster-management.io")
	for _, object := range all {
		work := &workv1.ManifestWork{}
		if runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, work) != nil {
			continue // impossible for what the hub has stored
		}
		if work.DeletionTimestamp == nil && !hasOwner(work, addons) {
			s.collect(ctx, work)
			continue
		}
		patch, status := s.reaction(work)
		switch {
		case patch == "":
		case status:
			_ = s.hub.Status().Patch(ctx, work, client.RawPatch(types.MergePatchType, []byte(patch)))
		default:
			_ = s.hub.Patch(ctx, work, client.RawPatch(types.MergePatchType, []byte(patch)))
		}
	}
}

// hasOwner reports whether one of the addons owns a ManifestWork.
func hasOwner(work *workv1.ManifestWork, addons []*unstructured.Unstructured) bool {
	return slices.ContainsFunc(work.OwnerReferences, func(owner metav1.OwnerReference) bool {
		return slices.ContainsFunc(addons, func(of *unstructured.Unstructured) bool { return of.GetUID() == owner.UID })
	})
}

// collect deletes a ManifestWork if the hub, too, does not have its owner: as for the garbage collector, its
// addon may only not have been seen yet.
func (s *spokes) collect(ctx context.Context, work *workv1.ManifestWork) {
	found := &unstructured.UnstructuredList{}
	found.SetAPIVersion(addonv1beta1.GroupVersion.String())
	found.SetKind("ManagedClusterAddOnList")
	if s.hub.List(ctx, found, client.InNamespace(work.Namespace)) != nil {
		return
	}
	present := make([]*unstructured.Unstructured, 0, len(found.Items))
	for i := range found.Items {
		present = append(present, &found.Items[i])
	}
	if !hasOwner(work, present) {
		_ = s.hub.Delete(ctx, work, client.Preconditions{UID: &work.UID})
	}
}

// reaction is how a work agent changes a ManifestWork, or its status; "" if it does not.
func (s *spokes) reaction(work *workv1.ManifestWork) (patch string, status bool) {
	held := slices.Contains(work.Finalizers, workv1.ManifestWorkFinalizer)
	var finalizers []string
	switch {
	case work.DeletionTimestamp == nil && !held:
		finalizers = append(slices.Clone(work.Finalizers), workv1.ManifestWorkFinalizer)
	case work.DeletionTimestamp != nil && held:
		finalizers = slices.DeleteFunc(slices.Clone(work.Finalizers), func(of string) bool {
			return of == workv1.ManifestWorkFinalizer
		})
	case work.DeletionTimestamp != nil || isReported(work):
		return "", false
	default:
		return s.report(work), true
	}
	return merging(map[string]any{"metadata": map[string]any{
		"finalizers": finalizers, "resourceVersion": work.ResourceVersion,
	}}), false
}

// isReported reports whether the status is that of the present generation.
func isReported(work *workv1.ManifestWork) bool {
	return slices.ContainsFunc(work.Status.Conditions, func(c metav1.Condition) bool {
		return c.Type == workv1.WorkApplied && c.ObservedGeneration == work.Generation
	})
}

// report is the status of a ManifestWork that has been applied.
func (s *spokes) report(work *workv1.ManifestWork) string {
	s.mu.Lock()
	fails := s.failing[work.Namespace] != "" && s.failing[work.Namespace] == revisionIn(work.Annotations)
	s.mu.Unlock()
	condition := func(of string, is bool) metav1.Condition {
		c := metav1.Condition{
			Type: of, Status: metav1.ConditionFalse, Reason: "Simulated", Message: "by the suite",
			ObservedGeneration: work.Generation, LastTransitionTime: metav1.NewTime(time.Now()),
		}
		if is {
			c.Status = metav1.ConditionTrue
		}
		return c
	}
	resource := workv1.ManifestResourceMeta{
		Group: "apps", Version: "v1", Kind: "Deployment", Resource: "deployments",
		Namespace: agentNamespace, Name: "cluster-inventory-agent",
	}
	ready := int64(1)
	value := workv1.FeedbackValue{Name: "ReadyReplicas", Value: workv1.FieldValue{Type: workv1.Integer, Integer: &ready}}
	if work.Name == cleanupWork {
		complete := "True"
		resource.Group, resource.Kind, resource.Resource = "batch", "Job", "jobs"
		resource.Name = "cluster-inventory-cleanup"
		value = workv1.FeedbackValue{
			Name: "JobComplete", Value: workv1.FieldValue{Type: workv1.String, String: &complete},
		}
	}
	version := map[string]any{"resourceVersion": work.ResourceVersion}
	return merging(map[string]any{"metadata": version, "status": workv1.ManifestWorkStatus{
		Conditions: []metav1.Condition{condition(workv1.WorkApplied, true), condition(workv1.WorkAvailable, !fails)},
		ResourceStatus: workv1.ManifestResourceStatus{Manifests: []workv1.ManifestCondition{{
			ResourceMeta: resource, Conditions: []metav1.Condition{},
			StatusFeedbacks: workv1.StatusFeedbackResult{Values: []workv1.FeedbackValue{value}},
		}}},
	}})
}

func merging(patch map[string]any) string {
	text, err := json.Marshal(patch)
	if err != nil {
		return fmt.Sprintf("{%q", err.Error()) // impossible for these types; the hub refuses it
	}
	return string(text)
}

// revisionIn is the AgentRevision of which a ManifestWork with these annotations deploys the agent,
// or "".
func revisionIn(annotations map[string]string) string {
	hashes := map[string]string{}
	_ = json.Unmarshal([]byte(annotations[workv1.ManifestConfigSpecHashAnnotationKey]), &hashes) // or none
	for of := range hashes {
		if resource, name, _ := strings.Cut(of, "/"); strings.HasPrefix(resource, "agentrevisions.") {
			return strings.TrimLeft(name, "/")
		}
	}
	return ""
}
