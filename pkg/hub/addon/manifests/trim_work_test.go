package manifests

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	workv1 "open-cluster-management.io/api/work/v1"

	"open-cluster-management.io/cluster-inventory-addon/internal/apitest/addontest"
	"open-cluster-management.io/cluster-inventory-addon/internal/apitest/ocmtest"
)

// cachedWork is the deploy work of a cluster as the API server returns it.
func cachedWork(t *testing.T, r *renderer, v Values) *workv1.ManifestWork {
	t.Helper()
	return addontest.Work(t, v.ClusterName, v.AddonUID, mustRender(t, r, v))
}

func trimmedWork(t *testing.T, trimmer *WorkTrimmer, work *workv1.ManifestWork) *workv1.ManifestWork {
	t.Helper()
	return addontest.Transformed(trimmer.Trim, work)
}

func TestTrimWorkSharesEqualManifests(t *testing.T) {
	r, trimmer := newTestRenderer(t), NewWorkTrimmer()
	one := trimmedWork(t, trimmer, cachedWork(t, r, values().of("c1", "uid-of-c1")))
	another := trimmedWork(t, trimmer, cachedWork(t, r, values().of("c2", "uid-of-c2")))
	full := cachedWork(t, r, values().of("c1", "uid-of-c1"))
	if len(one.Finalizers)+len(one.ManagedFields) > 0 {
		t.Errorf("metadata %+v", one.ObjectMeta)
	}
	for i, manifest := range one.Spec.Workload.Manifests {
		if string(manifest.Raw) != string(full.Spec.Workload.Manifests[i].Raw) {
			t.Errorf("manifest %d is now %s", i, manifest.Raw)
		}
		identity, ok := manifest.Object.(*metav1.PartialObjectMetadata)
		if !ok || identity.Kind == "" || identity.Name == "" {
			t.Fatalf("identity of manifest %d: %+v", i, manifest.Object)
		}
		own := identity.Kind == "Deployment" || identity.Kind == "Job"
		if shared := manifest.Object == another.Spec.Workload.Manifests[i].Object; shared == own {
			t.Errorf("%s of two clusters is the same: %t", identity.Kind, shared)
		}
	}
}

func TestTrimWorkKeepsWhatTheFrameworkReads(t *testing.T) {
	trimmer := NewWorkTrimmer()
	feedback := workv1.StatusFeedbackResult{Values: []workv1.FeedbackValue{{Name: "ReadyReplicas"}}}
	resource := workv1.ManifestResourceMeta{Group: "apps", Resource: "deployments", Namespace: "n", Name: "d"}
	status := func(available string) workv1.ManifestWorkStatus {
		full := resource
		full.Ordinal, full.Version, full.Kind = 7, "v1", "Deployment"
		return workv1.ManifestWorkStatus{
			Conditions: []metav1.Condition{
				ocmtest.Condition("Applied", "True", "R", "applied"),
				ocmtest.Condition("Available", available, "R", "available or not"),
				ocmtest.Condition("Progressing", "False", "R", ""),
			},
			ResourceStatus: workv1.ManifestResourceStatus{Manifests: []workv1.ManifestCondition{
				{ResourceMeta: workv1.ManifestResourceMeta{Kind: "ConfigMap"}},
				{ResourceMeta: full, StatusFeedbacks: feedback, Conditions: []metav1.Condition{{Type: "Applied"}}},
				{ResourceMeta: full, Conditions: []metav1.Condition{
					ocmtest.Condition("Applied", "False", "R", "namespace agents\nis being terminated"),
					ocmtest.Condition("Available", "False", "R", ""),
				}},
			}},
		}
	}
	for available, message := range map[string]string{"True": "", "False": "available or not"} {
		work := &workv1.ManifestWork{Status: status(available)}
		work.Spec.ManifestConfigs = []workv1.ManifestConfigOption{{FeedbackScrapeType: "Poll"}, {FeedbackScrapeType: "Watch"}}
		want := &workv1.ManifestWork{Status: workv1.ManifestWorkStatus{
			Conditions: []metav1.Condition{
				{Type: "Applied", Status: "True"},
				{Type: "Available", Status: metav1.ConditionStatus(available), Message: message},
			},
			ResourceStatus: workv1.ManifestResourceStatus{
				Manifests: []workv1.ManifestCondition{
					{ResourceMeta: resource, StatusFeedbacks: feedback},
					{ResourceMeta: resource, Conditions: []metav1.Condition{
						{Type: "Applied", Status: "False", Message: `namespace agents\nis being terminated`},
					}},
				},
			},
		}}
		want.Spec.ManifestConfigs = []workv1.ManifestConfigOption{{}, {FeedbackScrapeType: "Watch"}}
		if diff := cmp.Diff(want, trimmedWork(t, trimmer, work)); diff != "" {
			t.Errorf("available %s (-want +got):\n%s", available, diff)
		}
	}
}

// An unavailable agent makes the ManifestWork unavailable, which ends a rollout. The
// framework takes the addon's availability from the feedback, and says why it is not
// available.
func TestTrimWorkLeavesHealthToTheFeedback(t *testing.T) {
	condition := func(reason string) workv1.ManifestCondition {
		return workv1.ManifestCondition{Conditions: []metav1.Condition{ocmtest.Condition("Available", "False", reason, "")}}
	}
	exists := workv1.ManifestCondition{Conditions: []metav1.Condition{ocmtest.Condition("Available", "True", "R", "")}}
	for name, test := range map[string]struct {
		manifests []workv1.ManifestCondition
		want      string
	}{
		"the agent is not available": {[]workv1.ManifestCondition{exists, condition("ConditionRuleEvaluated")}, "True"},
		"something is missing": {
			[]workv1.ManifestCondition{condition("ResourceNotAvailable"), condition("ConditionRuleEvaluated")}, "False",
		},
		"the rules do not work": {[]workv1.ManifestCondition{exists, condition("ConditionRuleExpressionError")}, "False"},
	} {
		t.Run(name, func(t *testing.T) {
			work := &workv1.ManifestWork{}
			work.Status.Conditions = []metav1.Condition{ocmtest.Condition("Available", "False", "R", "")}
			work.Status.ResourceStatus.Manifests = test.manifests
			if got := trimmedWork(t, NewWorkTrimmer(), work).Status.Conditions[0].Status; string(got) != test.want {
				t.Errorf("available: %s, want %s", got, test.want)
			}
		})
	}
}

// The shared content that is kept is bounded, even if works have no owners.
func TestTrimWorkKeepsLittle(t *testing.T) {
	trimmer := NewWorkTrimmer()
	for i := range keptManifests + 10 {
		work := &workv1.ManifestWork{}
		work.Spec.Workload.Manifests = []workv1.Manifest{{RawExtension: runtime.RawExtension{
			Raw: fmt.Appendf(nil, `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"m%d"}}`, i),
		}}}
		trimmedWork(t, trimmer, work)
	}
	if got := trimmer.manifests.Len(); got != keptManifests {
		t.Errorf("%d are kept", got)
	}
}
