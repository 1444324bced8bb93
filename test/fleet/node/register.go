package node

import (
	"context"
	"runtime"
	"time"

	vk "github.com/virtual-kubelet/virtual-kubelet/node"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

// The node renews its lease, and far less often writes its status.
const (
	leaseSeconds   = 40
	statusInterval = 5 * time.Minute
)

// capacity is what the node reports. It does not limit anything.
func capacity() corev1.ResourceList {
	return corev1.ResourceList{
		corev1.ResourceCPU:              *resource.NewQuantity(int64(runtime.NumCPU()), resource.DecimalSI),
		corev1.ResourceMemory:           resource.MustParse("16Gi"),
		corev1.ResourceEphemeralStorage: resource.MustParse("100Gi"),
		corev1.ResourcePods:             resource.MustParse("250"),
	}
}

// nodeObject is the Node to register.
func nodeObject(name string, now time.Time) *corev1.Node {
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{
			corev1.LabelHostname:   name,
			corev1.LabelOSStable:   "linux",
			corev1.LabelArchStable: runtime.GOARCH,
		}},
		Status: corev1.NodeStatus{
			Capacity:    capacity(),
			Allocatable: capacity(),
			Addresses: []corev1.NodeAddress{
				{Type: corev1.NodeInternalIP, Address: hostIP},
				{Type: corev1.NodeHostName, Address: name},
			},
			NodeInfo: corev1.NodeSystemInfo{
				KubeletVersion:          "v1.35.4-process-node",
				OperatingSystem:         "linux",
				Architecture:            runtime.GOARCH,
				ContainerRuntimeVersion: "process://1",
			},
			Conditions: []corev1.NodeCondition{
				nodeCondition(corev1.NodeReady, corev1.ConditionTrue, "KubeletReady", "the process node runs pods", now),
				nodeCondition(
					corev1.NodeMemoryPressure, corev1.ConditionFalse, "KubeletHasSufficientMemory", "memory is not measured", now,
				),
				nodeCondition(
					corev1.NodeDiskPressure, corev1.ConditionFalse, "KubeletHasNoDiskPressure", "disk space is not measured", now,
				),
				nodeCondition(
					corev1.NodePIDPressure, corev1.ConditionFalse, "KubeletHasSufficientPID", "processes are not counted", now,
				),
			},
		},
	}
}

func nodeCondition(
	kind corev1.NodeConditionType, status corev1.ConditionStatus, reason, message string, now time.Time,
) corev1.NodeCondition {
	at := metav1.NewTime(now)
	return corev1.NodeCondition{
		Type:               kind,
		Status:             status,
		Reason:             reason,
		Message:            message,
		LastHeartbeatTime:  at,
		LastTransitionTime: at,
	}
}

// newNodeController maintains the Node and its lease. It registers a deleted Node again.
func newNodeController(client kubernetes.Interface, node *corev1.Node) (*vk.NodeController, error) {
	return vk.NewNodeController(vk.NaiveNodeProvider{}, node, client.CoreV1().Nodes(),
		vk.WithNodeEnableLeaseV1(client.CoordinationV1().Leases(corev1.NamespaceNodeLease), leaseSeconds),
		vk.WithNodeStatusUpdateInterval(statusInterval),
		vk.WithNodeStatusUpdateErrorHandler(func(ctx context.Context, err error) error {
			if !apierrors.IsNotFound(err) {
				return err
			}
			_, err = client.CoreV1().Nodes().Create(ctx, node.DeepCopy(), metav1.CreateOptions{})
			return err
		}),
	)
}
