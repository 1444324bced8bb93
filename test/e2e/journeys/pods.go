package journeys

import (
	"context"
	"fmt"
	"strings"
	"syscall"
	"testing"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"open-cluster-management.io/cluster-inventory-addon/internal/apitest"
)

// NoneOfOurs is an error when an object of the list is named after the addon.
func NoneOfOurs(list client.ObjectList) error {
	return meta.EachListItem(list, func(object runtime.Object) error {
		accessor, err := meta.Accessor(object)
		if err != nil {
			return err
		}
		if strings.Contains(accessor.GetName(), AddonName) {
			return fmt.Errorf("%T %s/%s is left", object, accessor.GetNamespace(), accessor.GetName())
		}
		return nil
	})
}

// AgentPod is the one running Pod of the agent.
func AgentPod(ctx context.Context, t *testing.T, cluster string) *corev1.Pod {
	t.Helper()
	return onePod(ctx, t, cluster, AgentNS)
}

// ManagerPod is the one running Pod of the manager.
func ManagerPod(ctx context.Context, t *testing.T) *corev1.Pod {
	t.Helper()
	return onePod(ctx, t, "hub", ManagerNS)
}

func onePod(ctx context.Context, t *testing.T, cluster, namespace string) *corev1.Pod {
	t.Helper()
	c := ClientOf(t, cluster)
	var pod *corev1.Pod
	apitest.Within(t, Eventually, "one running Pod in "+namespace+" of "+cluster, func(context.Context) error {
		pods := &corev1.PodList{}
		if err := c.List(ctx, pods, client.InNamespace(namespace)); err != nil {
			return err
		}
		pod = nil
		for i := range pods.Items {
			candidate := &pods.Items[i]
			ready := candidate.Status.Phase == corev1.PodRunning && candidate.DeletionTimestamp == nil && PodReady(candidate)
			switch {
			case !strings.HasPrefix(candidate.Name, AddonName) || !ready:
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

// PodReady is whether a Pod is ready.
func PodReady(pod *corev1.Pod) bool {
	for _, condition := range pod.Status.Conditions {
		if condition.Type == corev1.PodReady {
			return condition.Status == corev1.ConditionTrue
		}
	}
	return false
}

// Replaced deletes a Pod and returns the one that takes its place.
func Replaced(t *testing.T, cluster string, pod *corev1.Pod) *corev1.Pod {
	t.Helper()
	apitest.Must(t, ClientOf(t, cluster).Delete(t.Context(), pod))
	var next *corev1.Pod
	apitest.Within(t, Eventually, "a Pod after "+pod.Name, func(ctx context.Context) error {
		if next = onePod(ctx, t, cluster, pod.Namespace); next.UID == pod.UID {
			return fmt.Errorf("%s still runs", pod.Name)
		}
		return nil
	})
	return next
}

// Kill ends the process of a Pod as an out-of-memory killer would.
func Kill(t *testing.T, cluster, namespace, pod string) {
	t.Helper()
	pid, err := Fleet.ContainerPID(t.Context(), cluster, namespace, pod)
	apitest.Must(t, err)
	apitest.Must(t, syscall.Kill(pid, syscall.SIGKILL))
}

// AddonOf is a reference to the addon of a cluster.
func AddonOf(cluster string) *addonv1beta1.ManagedClusterAddOn {
	return &addonv1beta1.ManagedClusterAddOn{ObjectMeta: metav1.ObjectMeta{Namespace: cluster, Name: AddonName}}
}

// Leads is an error until the running manager holds the election's lease.
func Leads(ctx context.Context, t *testing.T) error {
	t.Helper()
	pod := ManagerPod(ctx, t)
	if holder := Holder(ctx, t); !strings.HasPrefix(holder, pod.Name) {
		return fmt.Errorf("%q leads, not %s", holder, pod.Name)
	}
	return nil
}

// Holder is who holds the election's lease.
func Holder(ctx context.Context, t *testing.T) string {
	t.Helper()
	lease := &coordinationv1.Lease{}
	apitest.Must(t, Hub(t).Get(ctx, types.NamespacedName{Namespace: ManagerNS, Name: "cluster-inventory-manager"}, lease))
	return ptr.Deref(lease.Spec.HolderIdentity, "")
}
