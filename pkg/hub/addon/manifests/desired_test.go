package manifests

import (
	"encoding/json"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"

	"open-cluster-management.io/cluster-inventory-addon/internal/apitest"
	"open-cluster-management.io/cluster-inventory-addon/internal/apitest/addontest"
	"open-cluster-management.io/cluster-inventory-addon/internal/manifesttest"
	embedded "open-cluster-management.io/cluster-inventory-addon/manifests"
)

func values() Values {
	return Values{
		ClusterName: "c1",
		AddonUID:    "uid-1",
		Revision: Revision{
			InstallNamespace: "agents",
			Image:            "example.com/inventory:v1",
			PullPolicy:       "Always",
			ClaimLimit:       7,
			LogLevel:         3,
		},
	}
}

func rendered(t *testing.T, v Values) []*unstructured.Unstructured {
	t.Helper()
	tmpl, err := newTemplate(embedded.Revision)
	if err != nil {
		t.Fatal(err)
	}
	objects, err := tmpl.render(v)
	if err != nil {
		t.Fatal(err)
	}
	return objects
}

func TestRenderUsesTheRightNamespaces(t *testing.T) {
	var got []string
	for _, object := range rendered(t, values()) {
		got = append(got, manifesttest.Identify(object))
	}
	want := []string{
		"CustomResourceDefinition /clusterproperties.about.k8s.io",
		"Namespace /agents",
		"ServiceAccount agents/cluster-inventory-agent",
		"ClusterRole /open-cluster-management:cluster-inventory:agent",
		"ClusterRoleBinding /open-cluster-management:cluster-inventory:agent",
		"Role agents/cluster-inventory-agent",
		"RoleBinding agents/cluster-inventory-agent",
		"Deployment agents/cluster-inventory-agent",
		"ConfigMap agents/cluster-inventory-cleanup",
		"ServiceAccount agents/cluster-inventory-cleanup",
		"ClusterRole /open-cluster-management:cluster-inventory:cleanup",
		"ClusterRoleBinding /open-cluster-management:cluster-inventory:cleanup",
		"Role agents/cluster-inventory-cleanup",
		"RoleBinding agents/cluster-inventory-cleanup",
		"Job agents/cluster-inventory-cleanup",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("objects (-want +got):\n%s", diff)
	}
}

func TestRenderMarksOurObjectsAndOrphansSharedOnes(t *testing.T) {
	shared := []string{"CustomResourceDefinition", "Namespace"}
	for _, object := range rendered(t, values()) {
		isShared := slices.Contains(shared, object.GetKind())
		if _, orphaned := object.GetAnnotations()["addon.open-cluster-management.io/deletion-orphan"]; orphaned != isShared {
			t.Errorf("%s: left behind is %t, want %t", manifesttest.Identify(object), orphaned, isShared)
		}
		if marked := object.GetLabels()["app.kubernetes.io/managed-by"] == "cluster-inventory-addon"; marked == isShared {
			t.Errorf("%s: marked is %t, want %t", manifesttest.Identify(object), marked, !isShared)
		}
	}
}

func TestRenderPassesValuesToAgentAndCleanup(t *testing.T) {
	objects := rendered(t, values())
	agent := manifesttest.Find[appsv1.Deployment](t, objects, "Deployment", "cluster-inventory-agent").Spec.Template.Spec
	cleanup := manifesttest.Find[batchv1.Job](t, objects, "Job", "cluster-inventory-cleanup").Spec.Template.Spec
	tests := map[string]struct {
		pod  corev1.PodSpec
		args []string
	}{
		"agent": {pod: agent, args: []string{
			"run", "--hub-kubeconfig=/var/run/hub/kubeconfig", "--health-probe-bind-address=$(POD_IP):8081",
			"--cluster-name=c1", "--claim-limit=7", "--addon-uid=uid-1", "--install-namespace=agents", "-v=3",
		}},
		"cleanup": {pod: cleanup, args: []string{"cleanup", "--addon-uid=uid-1", "--install-namespace=agents", "-v=3"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			container := test.pod.Containers[0]
			if diff := cmp.Diff(test.args, container.Args); diff != "" {
				t.Errorf("arguments (-want +got):\n%s", diff)
			}
			if container.Image != "example.com/inventory:v1" || container.ImagePullPolicy != "Always" {
				t.Errorf("image %s, pulled %s", container.Image, container.ImagePullPolicy)
			}
			if diff := cmp.Diff([]string{"/agent"}, container.Command); diff != "" {
				t.Errorf("command (-want +got):\n%s", diff)
			}
		})
	}
}

// A configuration reaches both Pods.
func TestRenderAppliesPodSettings(t *testing.T) {
	v := configured()
	resources := func(memory string) *corev1.ResourceRequirements {
		return &corev1.ResourceRequirements{Limits: corev1.ResourceList{"memory": resource.MustParse(memory)}}
	}
	v.AgentResources, v.CleanupResources = resources("1Gi"), resources("2Gi")
	objects := rendered(t, v)
	agent := manifesttest.Find[appsv1.Deployment](t, objects, "Deployment", "cluster-inventory-agent").Spec.Template.Spec
	cleanup := manifesttest.Find[batchv1.Job](t, objects, "Job", "cluster-inventory-cleanup").Spec.Template.Spec
	for memory, pod := range map[string]corev1.PodSpec{"1Gi": agent, "2Gi": cleanup} {
		if diff := cmp.Diff(map[string]string{"zone": "a"}, pod.NodeSelector); diff != "" {
			t.Errorf("node selector (-want +got):\n%s", diff)
		}
		if diff := cmp.Diff([]corev1.LocalObjectReference{{Name: "one"}, {Name: "another"}}, pod.ImagePullSecrets); diff != "" {
			t.Errorf("pull secrets (-want +got):\n%s", diff)
		}
		if diff := cmp.Diff([]corev1.Toleration{{Key: "dedicated", Operator: "Exists"}}, pod.Tolerations); diff != "" {
			t.Errorf("tolerations (-want +got):\n%s", diff)
		}
		container := pod.Containers[0]
		if got := container.Resources.Limits.Memory().String(); got != memory || len(container.Resources.Requests) > 0 {
			t.Errorf("resources %+v, want a limit of %s alone", container.Resources, memory)
		}
		proxy := slices.DeleteFunc(slices.Clone(container.Env), func(v corev1.EnvVar) bool { return v.Name == "POD_IP" })
		if diff := cmp.Diff([]corev1.EnvVar{
			{Name: "HTTP_PROXY", Value: "http://proxy:1"},
			{Name: "HTTPS_PROXY", Value: "https://user:pa$$$$$$(HOME)@proxy:2"}, // Kubernetes halves the dollar signs
			{Name: "NO_PROXY", Value: "localhost"},
			{Name: "PROXY_CA_BUNDLE", Value: "a CA"},
		}, proxy); diff != "" {
			t.Errorf("environment (-want +got):\n%s", diff)
		}
	}
}

// TestRenderKeepsPodsRestricted holds the pods to the Pod Security Standard
// "restricted".
func TestRenderKeepsPodsRestricted(t *testing.T) {
	objects := rendered(t, values())
	pods := map[string]corev1.PodSpec{
		"agent":   manifesttest.Find[appsv1.Deployment](t, objects, "Deployment", "cluster-inventory-agent").Spec.Template.Spec,
		"cleanup": manifesttest.Find[batchv1.Job](t, objects, "Job", "cluster-inventory-cleanup").Spec.Template.Spec,
	}
	for name, pod := range pods {
		t.Run(name, func(t *testing.T) {
			manifesttest.CheckRestricted(t, pod)
			manifesttest.CheckNamesNoUser(t, pod)
		})
	}
}

// The namespaces of agents may enforce that standard.
func TestPodsAreAcceptedWhereRestricted(t *testing.T) {
	w := addontest.New(t, hub).World
	for _, v := range []Values{values(), configured()} {
		// The agent and the clean-up Job.
		if found := apitest.CheckPodSecurity(w, hub.Config(t), rendered(t, v)); found != 2 {
			t.Errorf("%d workloads, want 2", found)
		}
	}
}

func TestRenderGivesPodsTheirUsers(t *testing.T) {
	v := values()
	v.Users = PodUsers{RunAsUser: ptr.To[int64](5), RunAsGroup: ptr.To[int64](6), FSGroup: ptr.To[int64](7)}
	objects := rendered(t, v)
	agent := manifesttest.Find[appsv1.Deployment](t, objects, "Deployment", "cluster-inventory-agent")
	cleanup := manifesttest.Find[batchv1.Job](t, objects, "Job", "cluster-inventory-cleanup")
	for name, pod := range map[string]corev1.PodSpec{
		"agent": agent.Spec.Template.Spec, "cleanup": cleanup.Spec.Template.Spec,
	} {
		manifesttest.CheckRestricted(t, pod)
		got := PodUsers{pod.SecurityContext.RunAsUser, pod.SecurityContext.RunAsGroup, pod.SecurityContext.FSGroup}
		if diff := cmp.Diff(v.Users, got); diff != "" {
			t.Errorf("users of the %s (-want +got):\n%s", name, diff)
		}
	}
	held, err := valuesOf(agent)
	if diff := cmp.Diff(v.Users, held.Users); diff != "" || err != nil {
		t.Errorf("users of a Job that is made later, %v (-want +got):\n%s", err, diff)
	}
}

func TestRenderGrantsNoMoreThanIsUsed(t *testing.T) {
	rule := func(group, resource, name string, verbs ...string) rbacv1.PolicyRule {
		r := rbacv1.PolicyRule{APIGroups: []string{group}, Resources: []string{resource}, Verbs: verbs}
		if name != "" {
			r.ResourceNames = []string{name}
		}
		return r
	}
	tests := map[string]struct {
		kind, name string
		want       []rbacv1.PolicyRule
	}{
		"agent, on the cluster": {
			kind: "ClusterRole",
			name: "open-cluster-management:cluster-inventory:agent",
			want: []rbacv1.PolicyRule{
				rule("about.k8s.io", "clusterproperties", "", "get", "list", "watch"),
				rule(
					"cluster.open-cluster-management.io", "clusterclaims", "", "list", "watch", "create", "patch", "delete",
				),
				rule("apiextensions.k8s.io", "customresourcedefinitions", "clusterproperties.about.k8s.io", "get", "list", "watch"),
				rule("events.k8s.io", "events", "", "create"),
			},
		},
		"agent, in its namespace": {kind: "Role", name: "cluster-inventory-agent", want: []rbacv1.PolicyRule{
			rule("", "configmaps", "cluster-inventory-cleanup", "list", "watch", "patch"),
		}},
		"cleanup, on the cluster": {
			kind: "ClusterRole",
			name: "open-cluster-management:cluster-inventory:cleanup",
			want: []rbacv1.PolicyRule{
				rule("cluster.open-cluster-management.io", "clusterclaims", "", "list", "delete"),
			},
		},
		"cleanup, in its namespace": {kind: "Role", name: "cluster-inventory-cleanup", want: []rbacv1.PolicyRule{
			rule("", "configmaps", "cluster-inventory-cleanup", "list", "patch"),
		}},
	}
	objects := rendered(t, values())
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got := manifesttest.Find[rbacv1.ClusterRole](t, objects, test.kind, test.name).Rules
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("rules (-want +got):\n%s", diff)
			}
		})
	}
	for _, object := range objects {
		if kind := object.GetKind(); kind != "RoleBinding" && kind != "ClusterRoleBinding" {
			continue
		}
		binding := manifesttest.Find[rbacv1.RoleBinding](t, objects, object.GetKind(), object.GetName())
		if len(binding.Subjects) != 1 || binding.Subjects[0].Namespace != "agents" {
			t.Errorf("%s has subjects %+v", manifesttest.Identify(object), binding.Subjects)
		}
	}
}

func TestRenderChangesOnlyWhatAValueChanges(t *testing.T) {
	pods := []string{"Deployment agents/cluster-inventory-agent", "Job agents/cluster-inventory-cleanup"}
	agent := pods[:1]
	tests := map[string]struct {
		change func(*Values)
		want   []string
	}{
		"nothing":            {change: func(*Values) {}},
		"image":              {change: func(v *Values) { v.Image = "example.com/inventory:v2" }, want: pods},
		"pull policy":        {change: func(v *Values) { v.PullPolicy = "Never" }, want: pods},
		"a new installation": {change: func(v *Values) { v.AddonUID = "uid-2" }, want: pods},
		"log level":          {change: func(v *Values) { v.LogLevel = 4 }, want: pods},
		"log format":         {change: func(v *Values) { v.JSONLogs = true }, want: pods},
		"pull secrets":       {change: func(v *Values) { v.PullSecrets = []string{"a"} }, want: pods},
		"node selector":      {change: func(v *Values) { v.NodeSelector = map[string]string{"a": "b"} }, want: pods},
		"tolerations":        {change: func(v *Values) { v.Tolerations = []corev1.Toleration{{Key: "a"}} }, want: pods},
		"user":               {change: func(v *Values) { v.Users.RunAsUser = ptr.To[int64](5) }, want: pods},
		"proxy":              {change: func(v *Values) { v.Proxy.HTTPS = "http://proxy" }, want: pods},
		"CA of the proxy":    {change: func(v *Values) { v.Proxy.CABundle = "a CA" }, want: pods},
		"agent's resources":  {change: func(v *Values) { v.AgentResources = &corev1.ResourceRequirements{} }, want: agent},
		// The Deployment, whose Pods stay, keeps them for a Job that is made without a configuration.
		"Job's resources": {change: func(v *Values) { v.CleanupResources = &corev1.ResourceRequirements{} }, want: pods},
		"claim limit":     {change: func(v *Values) { v.ClaimLimit = 8 }, want: agent},
		"reserved names":  {change: func(v *Values) { v.ReservedProperties = []string{"*.example.com", "x"} }, want: agent},
		"cluster":         {change: func(v *Values) { v.ClusterName = "c2" }, want: agent},
	}
	before := rendered(t, values())
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			v := values()
			test.change(&v)
			var changed []string
			for i, after := range rendered(t, v) {
				if wire(t, before[i]) != wire(t, after) {
					changed = append(changed, manifesttest.Identify(after))
				}
			}
			if diff := cmp.Diff(test.want, changed); diff != "" {
				t.Errorf("changed (-want +got):\n%s", diff)
			}
		})
	}
}

func wire(t *testing.T, object *unstructured.Unstructured) string {
	t.Helper()
	data, err := json.Marshal(object)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// TestPropertyCRDFitsTheKlusterlets checks the CRD for what the klusterlet's own later
// install needs: its one version, v1alpha1, is the stored one.
func TestPropertyCRDFitsTheKlusterlets(t *testing.T) {
	crd := manifesttest.Find[apiextensionsv1.CustomResourceDefinition](
		t, rendered(t, values()), "CustomResourceDefinition", "clusterproperties.about.k8s.io",
	)
	var versions []string
	for _, version := range crd.Spec.Versions {
		if !version.Served {
			t.Errorf("%s is not served", version.Name)
		}
		if version.Storage {
			versions = append(versions, version.Name+" stored")
		} else {
			versions = append(versions, version.Name)
		}
	}
	if diff := cmp.Diff([]string{"v1beta1", "v1alpha1 stored"}, versions); diff != "" {
		t.Errorf("versions (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(crd.Spec.Versions[0].Schema, crd.Spec.Versions[1].Schema); diff != "" {
		t.Errorf("the versions' schemas differ, and nothing converts:\n%s", diff)
	}
	if crd.Spec.Conversion.Strategy != apiextensionsv1.NoneConverter {
		t.Errorf("conversion %s", crd.Spec.Conversion.Strategy)
	}
	if crd.Annotations["api-approved.kubernetes.io"] == "" {
		t.Error("a *.k8s.io API needs the annotation of its approval, or it is not served")
	}
}
