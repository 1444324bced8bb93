package manifests

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	workv1 "open-cluster-management.io/api/work/v1"

	"open-cluster-management.io/cluster-inventory-addon/internal/apitest/addontest"
	"open-cluster-management.io/cluster-inventory-addon/internal/apitest/ocmtest"
	"open-cluster-management.io/cluster-inventory-addon/internal/manifesttest"
	embedded "open-cluster-management.io/cluster-inventory-addon/manifests"
)

// configured are values of a cluster that has everything configured.
func configured() Values {
	v := values()
	v.PullSecrets = []string{"one", "another"}
	v.NodeSelector = map[string]string{"zone": "a"}
	v.Tolerations = []corev1.Toleration{{Key: "dedicated", Operator: "Exists"}}
	v.AgentResources = &corev1.ResourceRequirements{Limits: corev1.ResourceList{"memory": resource.MustParse("256Mi")}}
	v.CleanupResources = &corev1.ResourceRequirements{
		Limits:   corev1.ResourceList{"cpu": resource.MustParse("0.5"), "memory": resource.MustParse("64Mi")},
		Requests: corev1.ResourceList{"cpu": resource.MustParse("10m")},
	}
	v.Proxy = Proxy{HTTP: "http://proxy:1", HTTPS: "https://user:pa$$$(HOME)@proxy:2", No: "localhost", CABundle: "a CA"}
	return v
}

// work returns the ManifestWork with which an agent is deployed, as it is cached.
func deployedWork(t *testing.T, v Values) *workv1.ManifestWork {
	t.Helper()
	tmpl, err := newTemplate(embedded.Revision)
	if err != nil {
		t.Fatal(err)
	}
	r, err := newRenderer(tmpl, v)
	if err != nil {
		t.Fatal(err)
	}
	full := cachedWork(t, r, v)
	manifests := full.Spec.Workload.Manifests
	full.Spec.Workload.Manifests = manifests[:len(manifests)-1] // the Job is in a separate work
	return trimmedWork(t, NewWorkTrimmer(), full)
}

// deployedBy is what works say that are owned by the addon.
func deployedBy(v Values, works ...*workv1.ManifestWork) Deployed {
	addon := &addonv1beta1.ManagedClusterAddOn{ObjectMeta: metav1.ObjectMeta{
		Namespace: v.ClusterName, UID: types.UID(v.AddonUID),
	}}
	for _, work := range works {
		work.OwnerReferences = []metav1.OwnerReference{{UID: addon.UID}}
	}
	return DeployedFor(addon, works)
}

// The held manifests are exactly the deployed ones, and a clean-up Job that matches the
// agent.
func TestHeldManifestsAreTheDeployedOnes(t *testing.T) {
	v := configured()
	v.JSONLogs = true
	work := deployedWork(t, v)
	there := deployedBy(v, work)
	if got := there.Namespace; got != "agents" {
		t.Errorf("namespace %q", got)
	}
	templates, err := newTemplates()
	if err != nil {
		t.Fatal(err)
	}
	held, err := (&Renderers{templates: templates}).Held(there, v.AddonUID)
	if err != nil {
		t.Fatal(err)
	}
	want := rendered(t, v)
	if len(held) != len(want) {
		t.Fatalf("%d manifests, want %d", len(held), len(want))
	}
	for i, object := range held {
		encoded, err := runtime.Encode(unstructured.UnstructuredJSONScheme, object)
		if err != nil {
			t.Fatal(err)
		}
		got := &unstructured.Unstructured{}
		if err := got.UnmarshalJSON(encoded); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(normal(t, want[i].Object), normal(t, got.Object)); diff != "" {
			t.Errorf("manifest %d (-want +got):\n%s", i, diff)
		}
		if i < len(work.Spec.Workload.Manifests) && string(work.Spec.Workload.Manifests[i].Raw)+"\n" != string(encoded) &&
			string(work.Spec.Workload.Manifests[i].Raw) != string(encoded) {
			t.Errorf("manifest %d is written differently: %s", i, encoded)
		}
	}
	job := manifesttest.Find[batchv1.Job](t, want, "Job", "cluster-inventory-cleanup").Spec.Template.Spec
	if job.NodeSelector["zone"] != "a" || len(job.Tolerations) != 1 || len(job.Containers[0].Env) != 4 {
		t.Errorf("the clean-up Job is not placed like the agent: %+v", job)
	}
	if limits := job.Containers[0].Resources.Limits; limits.Cpu().String() != "500m" {
		t.Errorf("the clean-up Job's limits: %v", limits)
	}
}

// Resources of a Job in another agent's ManifestWork, or unreadable ones, are replaced by
// those in the manifests: the removal of the addon must not wait for that.
func TestUnreadableResourcesFallBackToTheManifests(t *testing.T) {
	for name, note := range map[string]map[string]string{
		"none": nil, "unreadable": {"inventory.open-cluster-management.io/cleanup-resources": `{"limits":{"cpu":"much"}}`},
	} {
		t.Run(name, func(t *testing.T) {
			agent := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Annotations: note}}
			agent.Spec.Template.Spec.Containers = []corev1.Container{{Image: "i"}}
			values, err := valuesOf(agent)
			if err != nil || values.CleanupResources != nil || values.Image != "i" {
				t.Errorf("%+v, %v", values, err)
			}
		})
	}
}

// A manager that was rolled back holds what the later one deployed. Without a clean-up Job
// the framework would release the addon at once, and leave its objects on the spoke.
func TestLaterManagersAgentIsCleanedUpLikeThePresentOne(t *testing.T) {
	templates, err := newTemplates()
	if err != nil {
		t.Fatal(err)
	}
	v := configured()
	v.JSONLogs = true
	want := manifesttest.Find[batchv1.Job](t, rendered(t, v), "Job", "cluster-inventory-cleanup")
	for _, revision := range []string{"1", "2", "3"} {
		t.Run(revision, func(t *testing.T) {
			there := deployedBy(v, addontest.OfRevision(t, deployedWork(t, v), revision))
			held, err := (&Renderers{templates: templates}).Held(there, v.AddonUID)
			if err != nil {
				t.Fatal(err)
			}
			if len(held) != len(there.Works[0].Spec.Workload.Manifests)+1 {
				t.Fatalf("%d manifests are held, %d are there", len(held), len(there.Works[0].Spec.Workload.Manifests))
			}
			got := manifesttest.Find[batchv1.Job](t, []*unstructured.Unstructured{
				held[len(held)-1].(*unstructured.Unstructured)}, "Job", "cluster-inventory-cleanup")
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("the clean-up Job (-want +got):\n%s", diff)
			}
		})
	}
}

func TestWithoutACleanupJobNothingIsHeld(t *testing.T) {
	v := values()
	held, err := (&Renderers{}).Held(deployedBy(v, deployedWork(t, v)), "u")
	if err == nil || held != nil {
		t.Errorf("%d manifests are held without a clean-up Job (%v)", len(held), err)
	}
}

func TestWithoutAnAgentNothingIsHeld(t *testing.T) {
	there := deployedBy(values(), &workv1.ManifestWork{})
	held, err := (&Renderers{}).Held(there, "u")
	if err != nil || held != nil || there.Namespace != "" {
		t.Errorf("%v, %v, namespace %q", held, err, there.Namespace)
	}
}

func TestWorksCarryTheConfigurationsTheyWereWrittenFor(t *testing.T) {
	work := func(note string) *workv1.ManifestWork {
		work := &workv1.ManifestWork{}
		if note != "" {
			work.Annotations = map[string]string{"open-cluster-management.io/config-spec-hash": note}
		}
		return work
	}
	tests := map[string]struct {
		works  []*workv1.ManifestWork
		hashes map[string]string
		want   bool
	}{
		"none":                      {works: []*workv1.ManifestWork{work("")}, hashes: map[string]string{}, want: true},
		"none, as an empty list":    {works: []*workv1.ManifestWork{work("{}")}, hashes: map[string]string{}, want: true},
		"the same":                  {works: []*workv1.ManifestWork{work(`{"a":"h1"}`)}, hashes: map[string]string{"a": "h1"}, want: true},
		"another content":           {works: []*workv1.ManifestWork{work(`{"a":"h1"}`)}, hashes: map[string]string{"a": "h2"}},
		"another configuration":     {works: []*workv1.ManifestWork{work(`{"a":"h1"}`)}, hashes: map[string]string{"b": "h1"}},
		"none any more":             {works: []*workv1.ManifestWork{work(`{"a":"h1"}`)}, hashes: map[string]string{}},
		"one after none":            {works: []*workv1.ManifestWork{work("")}, hashes: map[string]string{"a": "h1"}},
		"only one of several works": {works: []*workv1.ManifestWork{work(`{"a":"h1"}`), work("")}, hashes: map[string]string{"a": "h1"}},
		"what cannot be read":       {works: []*workv1.ManifestWork{work("a")}, hashes: map[string]string{}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := (Deployed{Works: test.works}).Carries(test.hashes); got != test.want {
				t.Errorf("carries them: %t", got)
			}
		})
	}
}

func TestRefusedBySpoke(t *testing.T) {
	manifest := func(namespace, status, message string) workv1.ManifestCondition {
		return workv1.ManifestCondition{
			ResourceMeta: workv1.ManifestResourceMeta{Resource: "deployments", Namespace: namespace, Name: "d"},
			Conditions:   []metav1.Condition{ocmtest.Condition("Applied", status, "R", message)},
		}
	}
	work := &workv1.ManifestWork{}
	work.Status.ResourceStatus.Manifests = []workv1.ManifestCondition{manifest("n", "True", "fine")}
	if got := refusedBySpoke([]*workv1.ManifestWork{work}); got != "" {
		t.Errorf("got %q", got)
	}
	work.Status.ResourceStatus.Manifests = append(work.Status.ResourceStatus.Manifests, manifest("n", "False", "no"))
	if got := refusedBySpoke([]*workv1.ManifestWork{work}); got != "deployments n/d: no" {
		t.Errorf("got %q", got)
	}
	work.Status.ResourceStatus.Manifests = []workv1.ManifestCondition{manifest("", "False", "no")}
	if got := refusedBySpoke([]*workv1.ManifestWork{work}); got != "deployments d: no" {
		t.Errorf("got %q", got)
	}
}
