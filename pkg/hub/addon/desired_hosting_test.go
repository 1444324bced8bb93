package addon

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"open-cluster-management.io/cluster-inventory-addon/internal/manifesttest"
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
			if ptr.Deref(test.pod.AutomountServiceAccountToken, true) || test.pod.ServiceAccountName != "cluster-inventory-agent" {
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

// What is held of a hosted agent comes with a Job that is hosted, too.
func TestWhatIsHeldOfAHostedAgentIsHosted(t *testing.T) {
	agent := manifesttest.Find[appsv1.Deployment](t, rendered(t, hostedValues()), "Deployment", "cluster-inventory-agent")
	got, err := valuesOf(agent)
	if err != nil || !got.Hosted {
		t.Errorf("hosted is %t, %v", got.Hosted, err)
	}
}
