package node

import (
	"context"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
)

// binder replaces the scheduler: it binds every pod without a node to this one. It ignores node
// selectors, affinity, tolerations and resources.
type binder struct {
	client kubernetes.Interface
	node   string
	log    logr.Logger
}

// run returns when ctx ends.
func (b *binder) run(ctx context.Context) {
	queue := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[cache.ObjectName]())
	unbound := cache.NewListWatchFromClient(
		b.client.CoreV1().RESTClient(), "pods", metav1.NamespaceAll, fields.OneTermEqualSelector("spec.nodeName", ""),
	)
	informer := cache.NewSharedIndexInformer(unbound, &corev1.Pod{}, 0, nil)
	enqueue := func(object any) {
		if pod := object.(*corev1.Pod); bindable(pod) {
			queue.Add(cache.MetaObjectToName(pod))
		}
	}
	_, err := informer.AddEventHandler(
		cache.ResourceEventHandlerFuncs{AddFunc: enqueue, UpdateFunc: func(_, object any) { enqueue(object) }},
	)
	if err != nil {
		b.log.Error(err, "Pods are not bound")
		return
	}
	go func() {
		<-ctx.Done()
		queue.ShutDown()
	}()
	go informer.RunWithContext(ctx)
	for b.next(ctx, queue) {
	}
}

func (b *binder) next(ctx context.Context, queue workqueue.TypedRateLimitingInterface[cache.ObjectName]) bool {
	name, shutdown := queue.Get()
	if shutdown {
		return false
	}
	defer queue.Done(name)
	err := b.bind(ctx, name)
	if err != nil && ctx.Err() == nil {
		b.log.Error(err, "Trying again to bind a pod", "namespace", name.Namespace, "pod", name.Name)
		queue.AddRateLimited(name)
		return true
	}
	queue.Forget(name)
	return true
}

// bind binds the pod. It succeeds, too, if the pod is bound already or gone.
func (b *binder) bind(ctx context.Context, name cache.ObjectName) error {
	binding := &corev1.Binding{
		ObjectMeta: metav1.ObjectMeta{Namespace: name.Namespace, Name: name.Name},
		Target:     corev1.ObjectReference{Kind: "Node", Name: b.node},
	}
	err := b.client.CoreV1().Pods(name.Namespace).Bind(ctx, binding, metav1.CreateOptions{})
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil
	}
	return err
}

// bindable excludes pods that are being deleted or have a scheduling gate.
func bindable(pod *corev1.Pod) bool {
	return pod.DeletionTimestamp == nil && len(pod.Spec.SchedulingGates) == 0
}
