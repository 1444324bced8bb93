package faults

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	workv1 "open-cluster-management.io/api/work/v1"

	"open-cluster-management.io/cluster-inventory-addon/internal/apitest"
)

// agentWork is the ManifestWork that deploys the agent of an AgentRevision.
func agentWork(revision string) *workv1.ManifestWork {
	return &workv1.ManifestWork{ObjectMeta: metav1.ObjectMeta{
		Namespace: "c1", Name: deployWork, Generation: 2, ResourceVersion: "5",
		Finalizers: []string{workv1.ManifestWorkFinalizer},
		Annotations: map[string]string{
			"open-cluster-management.io/config-spec-hash": `{"addondeploymentconfigs.addon.open-cluster-management.io/n/x":"h",` +
				`"agentrevisions.inventory.open-cluster-management.io//` + revision + `":"h"}`,
		},
		OwnerReferences: []metav1.OwnerReference{{UID: "of-addon"}},
	}}
}

func TestSpokesReactLikeWorkAgents(t *testing.T) {
	reported := agentWork("r1")
	reported.Status.Conditions = []metav1.Condition{{Type: workv1.WorkApplied, ObservedGeneration: 2}}
	changed := reported.DeepCopy()
	changed.Generation = 3
	created := agentWork("r1")
	created.Finalizers = []string{"example.com/other"}
	going := reported.DeepCopy()
	going.DeletionTimestamp = &metav1.Time{Time: time.Now()}
	going.Finalizers = append(going.Finalizers, "example.com/other")
	gone := going.DeepCopy()
	gone.Finalizers = []string{"example.com/other"}
	cleanup := agentWork("r1")
	cleanup.Name = cleanupWork
	type reaction struct {
		Finalizers       []string
		Conditions       map[string]string
		Observed         int64
		Resource, Result string
	}
	available := reaction{
		Conditions: map[string]string{"Applied": "True", "Available": "True"}, Observed: 2,
		Resource: "deployments", Result: "ReadyReplicas",
	}
	failing, again, complete := available, available, available
	failing.Conditions = map[string]string{"Applied": "True", "Available": "False"}
	again.Observed = 3
	complete.Resource, complete.Result = "jobs", "JobComplete"
	for name, test := range map[string]struct {
		work *workv1.ManifestWork
		want reaction
	}{
		"a new one is held": {
			work: created, want: reaction{Finalizers: []string{"example.com/other", workv1.ManifestWorkFinalizer}},
		},
		"it is reported":           {work: agentWork("r1"), want: available},
		"once":                     {work: reported},
		"again when it changes":    {work: changed, want: again},
		"an agent that fails":      {work: agentWork("bad"), want: failing},
		"a clean-up is complete":   {work: cleanup, want: complete},
		"what is deleted is freed": {work: going, want: reaction{Finalizers: []string{"example.com/other"}}},
		"and that once":            {work: gone},
	} {
		t.Run(name, func(t *testing.T) {
			s := &spokes{failing: map[string]string{"c1": "bad", "c2": "r1"}}
			patch, status := s.reaction(test.work)
			var got reaction
			if patch != "" {
				var read struct {
					Metadata metav1.ObjectMeta
					Status   workv1.ManifestWorkStatus
				}
				apitest.Must(t, json.Unmarshal([]byte(patch), &read))
				got.Finalizers = read.Metadata.Finalizers
				for _, c := range read.Status.Conditions {
					if got.Conditions == nil {
						got.Conditions = map[string]string{}
					}
					got.Conditions[c.Type], got.Observed = string(c.Status), c.ObservedGeneration
				}
				for _, manifest := range read.Status.ResourceStatus.Manifests {
					got.Resource, got.Result = manifest.ResourceMeta.Resource, manifest.StatusFeedbacks.Values[0].Name
				}
			}
			if diff := cmp.Diff(test.want, got); diff != "" || status != (got.Conditions != nil) {
				t.Errorf("of the status: %t (-want +got):\n%s", status, diff)
			}
		})
	}
}

func TestWorksGoWithTheirAddon(t *testing.T) {
	addon, another := &unstructured.Unstructured{Object: map[string]any{}}, &unstructured.Unstructured{Object: map[string]any{}}
	addon.SetUID("of-addon")
	another.SetUID("of-the-next-addon")
	if !hasOwner(agentWork("r1"), []*unstructured.Unstructured{another, addon}) {
		t.Error("the work of an addon that exists has no owner")
	}
	if hasOwner(agentWork("r1"), []*unstructured.Unstructured{another}) {
		t.Error("the work of an addon that was created again has an owner")
	}
}

func TestRevisionOfAWork(t *testing.T) {
	for revision, work := range map[string]*workv1.ManifestWork{
		"cluster-inventory-1": agentWork("cluster-inventory-1"), "": {},
	} {
		if got := revisionIn(work.Annotations); got != revision {
			t.Errorf("got %q, want %q", got, revision)
		}
	}
}
