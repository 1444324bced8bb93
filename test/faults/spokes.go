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
	"k8s.io/apimachinery/pkg/types"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	workv1 "open-cluster-management.io/api/work/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	works = "manifestworks.work.open-cluster-management.io"
	// deployWork and cleanupWork are the addon's ManifestWorks in the namespace of each cluster.
	deployWork, cleanupWork = "addon-cluster-inventory-deploy-0", "addon-cluster-inventory-pre-delete"
	// spokesPoll is how often the spokes look at their ManifestWorks, and stories at what comes of that:
	// lists of ManifestWorks and addons, which are converted, are dear.
	spokesPoll = 300 * time.Millisecond
)

// spokes play the work agents of all clusters: they report each ManifestWork as applied and its
// agent as available, and let go of those that are deleted. They also delete those whose addon is
// gone, which the garbage collector does on other hubs. They write past the proxies. It is safe for
// concurrent use.
type spokes struct {
	hub client.Client

	mu sync.Mutex
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
	r.world.spokes = &spokes{hub: r.lane.past(tb), failing: map[string]string{}}
	ctx, cancel := context.WithCancel(tb.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for {
			r.world.spokes.look(ctx)
			if pause(ctx, spokesPoll) != nil {
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

// look reports all ManifestWorks of which there is something to say. What fails, such as while the
// hub is away, is tried again with the next look.
func (s *spokes) look(ctx context.Context) {
	list, addons := &workv1.ManifestWorkList{}, &addonv1beta1.ManagedClusterAddOnList{}
	if s.hub.List(ctx, list) != nil || len(list.Items) == 0 || s.hub.List(ctx, addons) != nil {
		return
	}
	for i := range list.Items {
		work := &list.Items[i]
		if work.DeletionTimestamp == nil && isGarbage(work, addons.Items) {
			_ = s.hub.Delete(ctx, work, client.Preconditions{UID: &work.UID})
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

// isGarbage reports whether the addon that owns a ManifestWork is gone. The addons are those of a
// moment after the ManifestWork was read.
func isGarbage(work *workv1.ManifestWork, addons []addonv1beta1.ManagedClusterAddOn) bool {
	return !slices.ContainsFunc(work.OwnerReferences, func(owner metav1.OwnerReference) bool {
		return slices.ContainsFunc(addons, func(of addonv1beta1.ManagedClusterAddOn) bool { return of.UID == owner.UID })
	})
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
	return merging(map[string]any{"status": workv1.ManifestWorkStatus{
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
