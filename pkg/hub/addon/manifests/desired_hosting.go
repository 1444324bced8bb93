package manifests

import (
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"
	"open-cluster-management.io/addon-framework/pkg/addonmanager/constants"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"

	"open-cluster-management.io/cluster-inventory-addon/pkg/contract"
)

const (
	managedVolume = "managed-kubeconfig"
	managedMount  = "/var/run/managed"

	// cleanupRole is the ClusterRole, and ClusterRoleBinding, of the clean-up Job.
	cleanupRole = "open-cluster-management:cluster-inventory:cleanup"
)

// split returns the manifests that replace one: itself, if the agent runs on its own
// cluster.
//
// Otherwise the agent and the clean-up Job run on the hosting cluster, without any right
// there, and work on the managed cluster as the agent's ServiceAccount there, whose
// kubeconfig the administrator provides. So the managed cluster gets all of the agent's
// rights, the marker and the CustomResourceDefinition, and nothing for the Job itself.
func (v Values) split(object runtime.Object) []runtime.Object {
	if !v.Hosted {
		return []runtime.Object{object}
	}
	switch o := object.(type) {
	case *appsv1.Deployment:
		return []runtime.Object{onHost(o)}
	case *networkingv1.NetworkPolicy:
		return []runtime.Object{onHost(o)}
	case *batchv1.Job:
		hostPod(&o.Spec.Template.Spec)
		return []runtime.Object{onHost(o)}
	case *corev1.Namespace:
		return []runtime.Object{o, onHost(o.DeepCopy())}
	case *corev1.ServiceAccount:
		if o.Name != AgentName {
			return nil
		}
		return []runtime.Object{o, onHost(o.DeepCopy())}
	case *rbacv1.ClusterRole, *rbacv1.ClusterRoleBinding, *rbacv1.Role, *rbacv1.RoleBinding:
		if name := o.(metav1.Object).GetName(); name == contract.CleanupMarkerName || name == cleanupRole {
			return nil
		}
	}
	return []runtime.Object{object}
}

func onHost[T metav1.Object](object T) T {
	annotations := object.GetAnnotations()
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[addonv1beta1.HostedManifestLocationAnnotationKey] = addonv1beta1.HostedManifestLocationHostingValue
	object.SetAnnotations(annotations)
	return object
}

// hostPod gives a pod the kubeconfig of the managed cluster, and no token of the hosting
// one. The Secret may be missing: the agent reports what it lacks.
func hostPod(pod *corev1.PodSpec, args ...string) {
	pod.ServiceAccountName, pod.AutomountServiceAccountToken = AgentName, ptr.To(false)
	pod.Volumes = append(pod.Volumes, corev1.Volume{
		Name: managedVolume,
		VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{
			SecretName: contract.ManagedKubeconfigSecret, Optional: ptr.To(true),
		}},
	})
	c := &pod.Containers[0]
	c.VolumeMounts = append(c.VolumeMounts,
		corev1.VolumeMount{Name: managedVolume, MountPath: managedMount, ReadOnly: true})
	c.Args = append(append(c.Args, args...), "--kubeconfig="+managedMount+"/kubeconfig")
}

// CanBeHosted reports whether the agent of a manifest revision can run on a hosting
// cluster.
func CanBeHosted(manifests string) bool { return manifests != "1" }

// isHosted reports whether a manifest is for the hosting cluster, as the framework does.
// sound is false if the manifest is for no cluster, or has a location that the framework
// does not understand.
func isHosted(object metav1.Object) (hosted, sound bool) {
	location, hasLocation, err := constants.GetHostedManifestLocation(object.GetLabels(), object.GetAnnotations())
	switch {
	case err != nil:
		return false, false
	case !hasLocation || location == addonv1beta1.HostedManifestLocationManagedValue:
		return false, true
	default:
		return true, location == addonv1beta1.HostedManifestLocationHostingValue
	}
}
