package journeys

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	clusterv1alpha1 "open-cluster-management.io/api/cluster/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"open-cluster-management.io/cluster-inventory-addon/internal/apitest"
)

// noneOfOurs is an error when an object of the list is named after the addon.
func noneOfOurs(list client.ObjectList) error {
	return meta.EachListItem(list, func(object runtime.Object) error {
		accessor, err := meta.Accessor(object)
		if err != nil {
			return err
		}
		if strings.Contains(accessor.GetName(), addonName) {
			return fmt.Errorf("%T %s/%s is left", object, accessor.GetNamespace(), accessor.GetName())
		}
		return nil
	})
}

// foreignPropertyCRD is a ClusterProperty CRD as the klusterlet's operator would
// have installed it: v1alpha1 alone.
func foreignPropertyCRD() *apiextensionsv1.CustomResourceDefinition {
	text := apiextensionsv1.JSONSchemaProps{Type: "string"}
	return &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{
			Name:        aboutCRD,
			Annotations: map[string]string{"api-approved.kubernetes.io": "unapproved, installed by somebody else"},
		},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: aboutGroup,
			Names: apiextensionsv1.CustomResourceDefinitionNames{Plural: "clusterproperties", Singular: "clusterproperty", Kind: "ClusterProperty", ListKind: "ClusterPropertyList"},
			Scope: apiextensionsv1.ClusterScoped,
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{
				Name: "v1alpha1", Served: true, Storage: true,
				Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{
					Type: "object",
					Properties: map[string]apiextensionsv1.JSONSchemaProps{
						"spec": {Type: "object", Properties: map[string]apiextensionsv1.JSONSchemaProps{"value": text}},
					},
				}},
			}},
		},
	}
}

func oldProperty(name, value string) *unstructured.Unstructured {
	object := property(name, value)
	object.SetAPIVersion(aboutGroup + "/v1alpha1")
	return object
}

func claimOf(t *testing.T, cluster, name string) *clusterv1alpha1.ClusterClaim {
	t.Helper()
	claim := &clusterv1alpha1.ClusterClaim{}
	apitest.Must(t, clientOf(t, cluster).Get(t.Context(), types.NamespacedName{Name: name}, claim))
	return claim
}

// agentPod is the one running Pod of the agent.
func agentPod(ctx context.Context, t *testing.T, cluster string) *corev1.Pod {
	t.Helper()
	return onePod(ctx, t, cluster, agentNS)
}

func managerPod(ctx context.Context, t *testing.T) *corev1.Pod {
	t.Helper()
	return onePod(ctx, t, "hub", managerNS)
}

func onePod(ctx context.Context, t *testing.T, cluster, namespace string) *corev1.Pod {
	t.Helper()
	c := clientOf(t, cluster)
	var pod *corev1.Pod
	apitest.Within(t, eventually, "one running Pod in "+namespace+" of "+cluster, func(context.Context) error {
		pods := &corev1.PodList{}
		if err := c.List(ctx, pods, client.InNamespace(namespace)); err != nil {
			return err
		}
		pod = nil
		for i := range pods.Items {
			candidate := &pods.Items[i]
			ready := candidate.Status.Phase == corev1.PodRunning && candidate.DeletionTimestamp == nil && podReady(candidate)
			switch {
			case !strings.HasPrefix(candidate.Name, addonName) || !ready:
			case pod != nil:
				return fmt.Errorf("both %s and %s run", pod.Name, candidate.Name)
			default:
				pod = candidate
			}
		}
		if pod == nil {
			return fmt.Errorf("none of %d Pods", len(pods.Items))
		}
		return nil
	})
	return pod
}

func podReady(pod *corev1.Pod) bool {
	for _, condition := range pod.Status.Conditions {
		if condition.Type == corev1.PodReady {
			return condition.Status == corev1.ConditionTrue
		}
	}
	return false
}

func agentRestarts(t *testing.T, cluster string) int32 {
	t.Helper()
	return agentPod(t.Context(), t, cluster).Status.ContainerStatuses[0].RestartCount
}

// replaced deletes a Pod and returns the one that takes its place.
func replaced(t *testing.T, cluster string, pod *corev1.Pod) *corev1.Pod {
	t.Helper()
	apitest.Must(t, clientOf(t, cluster).Delete(t.Context(), pod))
	var next *corev1.Pod
	apitest.Within(t, eventually, "a Pod after "+pod.Name, func(ctx context.Context) error {
		if next = onePod(ctx, t, cluster, pod.Namespace); next.UID == pod.UID {
			return fmt.Errorf("%s still runs", pod.Name)
		}
		return nil
	})
	return next
}

// lease sets how often, in seconds, a cluster must renew its lease.
func lease(t *testing.T, cluster string, seconds int) {
	t.Helper()
	object := &clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: cluster}}
	patch := fmt.Appendf(nil, `{"spec":{"leaseDurationSeconds":%d}}`, seconds)
	apitest.Must(t, hub(t).Patch(t.Context(), object, client.RawPatch(types.MergePatchType, patch)))
}

// renewed makes a cluster's lease fresh, so that one which must be renewed more often
// from now on has not run out already: with it, every addon of the cluster would count
// as lost for a while.
func renewed(t *testing.T, cluster string) {
	t.Helper()
	object := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: cluster, Name: "managed-cluster-lease"}}
	patch := fmt.Appendf(nil, `{"spec":{"renewTime":%q}}`, time.Now().UTC().Format(metav1.RFC3339Micro))
	apitest.Must(t, hub(t).Patch(t.Context(), object, client.RawPatch(types.MergePatchType, patch)))
}

// detach deletes the ManagedCluster, as a hub admin does.
func detach(t *testing.T, cluster string) {
	t.Helper()
	apitest.Must(t, hub(t).Delete(t.Context(), &clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: cluster}}))
}

func addonOf(cluster string) *addonv1beta1.ManagedClusterAddOn {
	return &addonv1beta1.ManagedClusterAddOn{ObjectMeta: metav1.ObjectMeta{Namespace: cluster, Name: addonName}}
}

// letGoEvent is an error until an event about the cluster tells that it was let go
// and what stays on it.
func letGoEvent(ctx context.Context, c client.Client, cluster string) error {
	events := &eventsv1.EventList{}
	if err := c.List(ctx, events); err != nil {
		return err
	}
	for _, event := range events.Items {
		if event.Reason == "CleanupAbandoned" && event.Regarding.Kind == "ManagedCluster" && event.Regarding.Name == cluster && strings.Contains(event.Note, "ClusterClaim") {
			return nil
		}
	}
	return fmt.Errorf("none among %d events", len(events.Items))
}

// leads is an error until the running manager holds the election's lease.
func leads(ctx context.Context, t *testing.T) error {
	t.Helper()
	pod := managerPod(ctx, t)
	if holder := holder(ctx, t); !strings.HasPrefix(holder, pod.Name) {
		return fmt.Errorf("%q leads, not %s", holder, pod.Name)
	}
	return nil
}

// holder is who holds the election's lease.
func holder(ctx context.Context, t *testing.T) string {
	t.Helper()
	lease := &coordinationv1.Lease{}
	apitest.Must(t, hub(t).Get(ctx, types.NamespacedName{Namespace: managerNS, Name: "cluster-inventory-manager"}, lease))
	return ptr.Deref(lease.Spec.HolderIdentity, "")
}
