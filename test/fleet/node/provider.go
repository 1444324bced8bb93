package node

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
	vk "github.com/virtual-kubelet/virtual-kubelet/node"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// provider starts and stops workers for virtual-kubelet's pod controller.
//
// Statuses do not go through virtual-kubelet. It writes a copy of the whole pod without a resource
// version, which would bring back finalizers that the job controller has just removed, and it
// deletes the object of an ended pod only when its grace period is over. So every worker patches
// its own pod's status and removes the object once its processes are gone. NotifyPods, which does
// nothing, makes virtual-kubelet leave statuses to the provider.
type provider struct {
	*machine

	mu      sync.Mutex
	workers map[types.UID]*worker
	run     func(*worker) // starts a worker; set once, before the first pod
	closed  bool
}

var (
	_ vk.PodLifecycleHandler = &provider{}
	_ vk.PodNotifier         = &provider{}
)

func newProvider(ctx context.Context, m *machine) *provider {
	p := &provider{machine: m, workers: map[types.UID]*worker{}}
	p.run = func(w *worker) {
		w.run(ctx)
		p.mu.Lock()
		defer p.mu.Unlock()
		delete(p.workers, w.uid)
	}
	return p
}

// CreatePod starts a pod.
func (p *provider) CreatePod(_ context.Context, pod *corev1.Pod) error {
	p.ensure(pod)
	return nil
}

// UpdatePod applies a change of a running pod. It also starts a pod that replaces one of the same
// name that is still ending.
func (p *provider) UpdatePod(_ context.Context, pod *corev1.Pod) error {
	p.ensure(pod)
	return nil
}

func (p *provider) ensure(pod *corev1.Pod) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if w := p.workers[pod.UID]; w != nil {
		w.update(pod)
		return
	}
	if p.closed {
		return
	}
	w := newWorker(p.machine, pod)
	p.workers[pod.UID] = w
	go p.run(w)
}

// early is how long before the end of the grace period processes are killed: at its end
// virtual-kubelet removes the object, and no process may be left by then.
const early = 500 * time.Millisecond

// DeletePod starts to end a pod within its grace period, and returns at once. It removes a pod that
// only an earlier node process ran.
func (p *provider) DeletePod(ctx context.Context, pod *corev1.Pod) error {
	p.mu.Lock()
	w := p.workers[pod.UID]
	p.mu.Unlock()
	if w == nil {
		return finalize(ctx, p.client, pod)
	}
	var grace time.Duration
	if pod.DeletionTimestamp != nil {
		grace = gracePeriod(pod.DeletionGracePeriodSeconds)
	}
	w.stop(max(grace-early, 0))
	return nil
}

// GetPod returns the pod of that name, unless it is ending.
func (p *provider) GetPod(_ context.Context, namespace, name string) (*corev1.Pod, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	var found *worker
	key := types.NamespacedName{Namespace: namespace, Name: name}
	for _, w := range p.workers {
		if w.name == key && (found == nil || w.ending.Err() == nil) {
			found = w
		}
	}
	if found == nil {
		return nil, errdefs.NotFoundf("pod %s/%s does not run here", namespace, name)
	}
	return found.spec(), nil
}

// GetPodStatus returns the status as it is now.
func (p *provider) GetPodStatus(ctx context.Context, namespace, name string) (*corev1.PodStatus, error) {
	pod, err := p.GetPod(ctx, namespace, name)
	if err != nil {
		return nil, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	w := p.workers[pod.UID]
	if w == nil {
		return nil, errdefs.NotFoundf("pod %s/%s does not run here", namespace, name)
	}
	status := w.status()
	return &status, nil
}

// GetPods returns every pod that runs here.
func (p *provider) GetPods(context.Context) ([]*corev1.Pod, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	var pods []*corev1.Pod
	for _, w := range p.workers {
		pods = append(pods, w.spec())
	}
	return pods, nil
}

// list returns the workers there are.
func (p *provider) list() []*worker {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Collect(maps.Values(p.workers))
}

// NotifyPods is not used: see provider.
func (p *provider) NotifyPods(context.Context, func(*corev1.Pod)) {}

// close ends every pod and waits until no process is left.
func (p *provider) close(grace time.Duration) {
	p.mu.Lock()
	p.closed = true
	var ending []*worker
	for _, w := range p.workers {
		ending = append(ending, w)
	}
	p.mu.Unlock()
	for _, w := range ending {
		w.stop(grace)
	}
	for _, w := range ending {
		<-w.done
	}
}
