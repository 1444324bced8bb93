package manifests

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"

	"open-cluster-management.io/cluster-inventory-addon/internal/apitest"
	"open-cluster-management.io/cluster-inventory-addon/internal/manifesttest"
	embedded "open-cluster-management.io/cluster-inventory-addon/manifests"
	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/addon/ownwork"
)

const locationAnnotation = "addon.open-cluster-management.io/hosted-manifest-location"

func hostedValues() Values {
	v := values()
	v.Hosted = true
	return v
}

func TestAHostedAgentIsSplitBetweenTwoClusters(t *testing.T) {
	got := map[string][]string{}
	for _, object := range rendered(t, hostedValues()) {
		location := object.GetAnnotations()[locationAnnotation]
		got[location] = append(got[location], manifesttest.Identify(object))
	}
	want := map[string][]string{
		"": {
			"CustomResourceDefinition /clusterproperties.about.k8s.io",
			"Namespace /agents",
			"ServiceAccount agents/cluster-inventory-agent",
			"ClusterRole /open-cluster-management:cluster-inventory:agent",
			"ClusterRoleBinding /open-cluster-management:cluster-inventory:agent",
			"Role agents/cluster-inventory-agent",
			"RoleBinding agents/cluster-inventory-agent",
			"ConfigMap agents/cluster-inventory-cleanup",
		},
		"hosting": {
			"Namespace /agents",
			"ServiceAccount agents/cluster-inventory-agent",
			"Deployment agents/cluster-inventory-agent",
			"Job agents/cluster-inventory-cleanup",
		},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("objects by their place (-want +got):\n%s", diff)
	}
	for _, object := range rendered(t, values()) {
		if location, ok := object.GetAnnotations()[locationAnnotation]; ok {
			t.Errorf("%s is placed at %q although nothing is hosted", manifesttest.Identify(object), location)
		}
	}
}

// On the hosting cluster the Pods have no token, and the administrator's kubeconfig.
func TestHostedPodsWorkOnTheManagedClusterOnly(t *testing.T) {
	objects := rendered(t, hostedValues())
	agent := manifesttest.Find[appsv1.Deployment](t, objects, "Deployment", "cluster-inventory-agent").Spec.Template.Spec
	cleanup := manifesttest.Find[batchv1.Job](t, objects, "Job", "cluster-inventory-cleanup").Spec.Template.Spec
	for name, test := range map[string]struct {
		pod  corev1.PodSpec
		args []string
	}{
		"agent": {agent, []string{
			"run", "--hub-kubeconfig=/var/run/hub/kubeconfig", "--health-probe-bind-address=$(POD_IP):8081",
			"--cluster-name=c1", "--claim-limit=7", "--addon-uid=uid-1", "--install-namespace=agents", "-v=3",
			"--hosted", "--kubeconfig=/var/run/managed/kubeconfig",
		}},
		"cleanup": {cleanup, []string{
			"cleanup", "--addon-uid=uid-1", "--install-namespace=agents", "-v=3", "--kubeconfig=/var/run/managed/kubeconfig",
		}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(test.args, test.pod.Containers[0].Args); diff != "" {
				t.Errorf("arguments (-want +got):\n%s", diff)
			}
			if ptr.Deref(test.pod.AutomountServiceAccountToken, true) ||
				test.pod.ServiceAccountName != "cluster-inventory-agent" {
				t.Errorf("it is %s, with a token: %v", test.pod.ServiceAccountName, test.pod.AutomountServiceAccountToken)
			}
			want := corev1.Volume{Name: "managed-kubeconfig", VolumeSource: corev1.VolumeSource{
				Secret: &corev1.SecretVolumeSource{SecretName: "cluster-inventory-managed-kubeconfig", Optional: ptr.To(true)},
			}}
			if diff := cmp.Diff(want, test.pod.Volumes[len(test.pod.Volumes)-1]); diff != "" {
				t.Errorf("volume (-want +got):\n%s", diff)
			}
		})
	}
}

// The hash of an agent's content does not depend on its cluster, and covers everything that
// a hosted agent adds.
func TestHashOfAHostedAgentCoversEverything(t *testing.T) {
	hash := func(v Values) string {
		agent := manifesttest.Find[appsv1.Deployment](t, rendered(t, v), "Deployment", "cluster-inventory-agent")
		return agent.Annotations["inventory.open-cluster-management.io/content"]
	}
	one, another := hostedValues(), hostedValues()
	one.InstallNamespace, another.InstallNamespace = ownwork.HostedNamespace("c1"), ownwork.HostedNamespace("c2")
	if hash(one) == "" || hash(one) != hash(another) {
		t.Errorf("those of two clusters are %q and %q", hash(one), hash(another))
	}
	v := values()
	v.InstallNamespace = anyHostedNamespace
	if hash(v) == hash(one) {
		t.Error("one that is not hosted has the same")
	}
}

// Clusters whose agents are hosted share a renderer, although each has its own namespace.
func TestARendererServesAllHostedAgents(t *testing.T) {
	tmpl, err := newTemplate(embedded.Revision)
	apitest.Must(t, err)
	r, err := newRenderer(tmpl, values().OnHost())
	apitest.Must(t, err)
	for _, cluster := range []string{"c1", "c2"} {
		v := hostedValues().of(cluster, "uid-of-"+cluster)
		v.InstallNamespace = ownwork.HostedNamespace(cluster)
		want := rendered(t, v)
		for n, object := range mustRender(t, r, v) {
			encoded, err := runtime.Encode(unstructured.UnstructuredJSONScheme, object)
			apitest.Must(t, err)
			got := &unstructured.Unstructured{}
			apitest.Must(t, got.UnmarshalJSON(encoded))
			if diff := cmp.Diff(normal(t, want[n].Object), normal(t, got.Object)); diff != "" {
				t.Errorf("manifest %d of cluster %s (-want +got):\n%s", n, cluster, diff)
			}
			said := object.(metav1.Object)
			if diff := cmp.Diff([]string{want[n].GetNamespace(), want[n].GetName()},
				[]string{said.GetNamespace(), said.GetName()}); diff != "" {
				t.Errorf("identity of manifest %d of cluster %s (-want +got):\n%s", n, cluster, diff)
			}
		}
	}
}

// An object of one cluster must not replace the one that all clusters share.
func TestManifestsOfHostedAgentsAreNotKept(t *testing.T) {
	tmpl, err := newTemplate(embedded.Revision)
	apitest.Must(t, err)
	r, err := newRenderer(tmpl, values().OnHost())
	apitest.Must(t, err)
	trimmer, kept := NewWorkTrimmer(), 0
	for n, cluster := range []string{"c1", "c2", "c3"} {
		v := values().of(cluster, "uid-of-"+cluster)
		own, onHost := cachedWork(t, r, v), cachedWork(t, r, v)
		onHost.Namespace, onHost.Name = "host", "addon-cluster-inventory-deploy-hosting-"+cluster+"-0"
		onHost.OwnerReferences = nil
		trimmedWork(t, trimmer, own)
		trimmedWork(t, trimmer, onHost)
		if n == 0 {
			kept = trimmer.manifests.Len()
		} else if trimmer.manifests.Len() != kept {
			t.Errorf("%d are kept after cluster %s, %d after the first", trimmer.manifests.Len(), cluster, kept)
		}
	}
	if kept == 0 {
		t.Error("nothing is kept that all have")
	}
}
