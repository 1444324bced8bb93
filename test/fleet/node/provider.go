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

// provider is what virtual-kubelet's pod controller drives: it starts and stops workers.
//
// Statuses do not go through virtual-kubelet. It writes a copy of the whole pod without a resource
// version, which would bring back finalizers that the job controller has just removed, and it
// deletes the object of an ended pod only when its grace period is over. So every worker patches
// its own pod's status and removes the object once its processes are gone; NotifyPods is there to
// say so.
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

// UpdatePod takes over what may change in a running pod. It also starts a pod that replaces one of
// the same name which is still ending.
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

// early is how much before the end of the grace period processes are killed: when it is over
// virtual-kubelet removes the object, and no process may be left then.
const early = 500 * time.Millisecond

// DeletePod makes a pod end within its grace period and returns at once. A pod nobody runs, because
// an earlier node process did, is removed.
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

// GetPod returns the pod of the name that has not been told to end, if there is one.
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
