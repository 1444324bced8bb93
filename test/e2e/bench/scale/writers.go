package scale

import (
	"context"
	"fmt"
	"os"
	"strings"
	"sync"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"open-cluster-management.io/cluster-inventory-addon/test/e2e/bench/scale/report"
	"open-cluster-management.io/cluster-inventory-addon/test/fleet"
	"open-cluster-management.io/cluster-inventory-addon/test/fleet/await"
	"open-cluster-management.io/cluster-inventory-addon/test/fleet/supervisor"
)

const (
	registrationProcess = fleet.HubName + "/registration"
	startLimit          = 2 * time.Minute
	startPoll           = 100 * time.Millisecond
)

// programs are the processes on the hub, which the benchmark switches on and off.
type programs struct {
	fleet *fleet.Fleet
	hub   client.Client
	// registration is OCM's registration controller as the fleet runs it.
	registration supervisor.Process

	mu   sync.Mutex
	pids map[string]int
}

func newPrograms(ctx context.Context, f *fleet.Fleet, hub client.Client) (*programs, error) {
	status, err := f.Process(ctx, registrationProcess)
	if err != nil {
		return nil, err
	}
	p := &programs{fleet: f, hub: hub, registration: status.Process}
	return p, p.refresh(ctx)
}

// current returns the processes to measure.
func (p *programs) current(context.Context) (map[string]int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.pids, nil
}

// refresh finds the processes again, after some were started or stopped.
func (p *programs) refresh(ctx context.Context) error {
	all, err := p.fleet.Processes(ctx)
	if err != nil {
		return err
	}
	pids := map[string]int{report.Benchmark: os.Getpid()}
	for _, process := range all {
		if name, onHub := strings.CutPrefix(process.Name, fleet.HubName+"/"); onHub && process.Running {
			pids[name] = process.PID
		}
	}
	pods, err := p.managers(ctx)
	if err != nil {
		return err
	}
	for _, pod := range pods {
		pid, err := p.fleet.ContainerPID(ctx, fleet.HubName, pod.Namespace, pod.Name)
		if err == nil { // otherwise it is starting or ending
			pids[report.Manager] = pid
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.pids = pids
	return nil
}

func (p *programs) managers(ctx context.Context) ([]corev1.Pod, error) {
	pods := &corev1.PodList{}
	err := p.hub.List(ctx, pods, client.InNamespace(fleet.ReleaseNamespace), client.MatchingLabels{
		"app.kubernetes.io/instance": fleet.Release, "app.kubernetes.io/component": "manager",
	})
	return pods.Items, err
}

func (p *programs) stopAddon(ctx context.Context) error {
	if err := p.scaleAddon(ctx, 0); err != nil {
		return err
	}
	err := p.await(ctx, "the manager to end", func(ctx context.Context) error {
		pods, err := p.managers(ctx)
		if err == nil && len(pods) > 0 {
			err = fmt.Errorf("%d pods", len(pods))
		}
		return err
	})
	if err != nil {
		return err
	}
	return p.refresh(ctx)
}

func (p *programs) startAddon(ctx context.Context) error {
	if err := p.scaleAddon(ctx, 1); err != nil {
		return err
	}
	err := p.await(ctx, "the manager to be ready", func(ctx context.Context) error {
		deployment := newDeployment()
		if err := p.hub.Get(ctx, client.ObjectKeyFromObject(deployment), deployment); err != nil {
			return err
		}
		if deployment.Status.ReadyReplicas != 1 {
			return fmt.Errorf("%d managers are ready", deployment.Status.ReadyReplicas)
		}
		return nil
	})
	if err != nil {
		return err
	}
	return p.refresh(ctx)
}

func (p *programs) await(ctx context.Context, what string, attempt func(context.Context) error) error {
	return await.Success(ctx, what, startLimit, startPoll, attempt)
}

func (p *programs) scaleAddon(ctx context.Context, replicas int) error {
	patch := fmt.Appendf(nil, `{"spec":{"replicas":%d}}`, replicas)
	return p.hub.Patch(ctx, newDeployment(), client.RawPatch(types.MergePatchType, patch))
}

func newDeployment() *appsv1.Deployment {
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: fleet.ReleaseNamespace, Name: "cluster-inventory-manager"},
	}
}

// startGate restarts OCM's registration controller with its ClusterProfile gate on.
func (p *programs) startGate(ctx context.Context) error {
	process := p.registration
	process.Args = withGate(process.Args)
	return p.ensure(ctx, process)
}

// withGate adds the gate to the arguments of the registration controller.
func withGate(args []string) []string {
	gated := make([]string, 0, len(args))
	for _, arg := range args {
		if strings.HasPrefix(arg, "--feature-gates=") {
			arg += ",ClusterProfile=true"
		}
		gated = append(gated, arg)
	}
	return gated
}

func (p *programs) stopGate(ctx context.Context) error { return p.ensure(ctx, p.registration) }

func (p *programs) ensure(ctx context.Context, process supervisor.Process) error {
	if err := p.fleet.Ensure(ctx, process); err != nil {
		return err
	}
	if err := p.fleet.WaitReady(ctx, process.Name); err != nil {
		return err
	}
	return p.refresh(ctx)
}

func (p *programs) stopSyncer(ctx context.Context, syncer supervisor.Process) error {
	if err := p.fleet.Stop(ctx, syncer.Name); err != nil {
		return err
	}
	return p.refresh(ctx)
}
