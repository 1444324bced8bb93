package bench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	clusterv1alpha1 "open-cluster-management.io/api/cluster/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"open-cluster-management.io/cluster-inventory-addon/test/fleet"
	"open-cluster-management.io/cluster-inventory-addon/test/fleet/await"
)

const (
	agentNamespace = "open-cluster-management-agent-addon"
	// atRest is how long an agent must be idle before its memory is read: Go returns freed
	// memory to the kernel over minutes, and most of it in the first.
	atRest = time.Minute
	// manyLimit is how long many properties may take to be published.
	manyLimit = 5 * time.Minute
)

// AgentMemory holds the anonymous resident memory of an agent, in bytes.
type AgentMemory struct {
	Properties int
	// Without is its size before there are properties, With is its size with all of them,
	// and Restarted is that of a new agent that finds them.
	Without, With, Restarted int64
}

// Print writes the report.
func (m AgentMemory) Print(out io.Writer) {
	const mib = 1 << 20
	fmt.Fprintf(out, "agent without properties           %5.1f MiB\n", float64(m.Without)/mib)
	fmt.Fprintf(out, "agent with %5d properties         %5.1f MiB\n", m.Properties, float64(m.With)/mib)
	fmt.Fprintf(out, "agent that starts with them         %5.1f MiB\n", float64(m.Restarted)/mib)
}

// Agent measures the memory of the agent on a spoke that gets n properties of a hundred
// bytes each.
func Agent(ctx context.Context, f *fleet.Fleet, cluster string, n int) (memory AgentMemory, err error) {
	hub, err := f.Client(fleet.HubName)
	if err != nil {
		return AgentMemory{}, err
	}
	spoke, err := f.Client(cluster)
	if err != nil {
		return AgentMemory{}, err
	}
	a := &agent{fleet: f, spoke: spoke, cluster: cluster}
	err = await.Success(ctx, "the addon to be enabled", lost, retryPeriod, func(ctx context.Context) error {
		return client.IgnoreAlreadyExists(hub.Create(ctx, addonOf(cluster)))
	})
	if err != nil {
		return AgentMemory{}, err
	}
	memory.Properties = n
	if memory.Without, err = a.memory(ctx); err != nil {
		return AgentMemory{}, err
	}
	defer func() { err = errors.Join(err, a.remove(context.WithoutCancel(ctx), n)) }()
	if err := a.publish(ctx, n); err != nil {
		return AgentMemory{}, err
	}
	if memory.With, err = a.memory(ctx); err != nil {
		return AgentMemory{}, err
	}
	if err := a.restart(ctx); err != nil {
		return AgentMemory{}, err
	}
	memory.Restarted, err = a.memory(ctx)
	return memory, err
}

// agent is the agent of one spoke.
type agent struct {
	fleet   *fleet.Fleet
	spoke   client.Client
	cluster string
}

func (a *agent) property(i int) *unstructured.Unstructured {
	object := newProperty()
	object.SetName(fmt.Sprintf("property-%04d.bench.example", i))
	object.Object["spec"] = map[string]any{"value": fmt.Sprintf("%0100d", i)}
	return object
}

func (a *agent) publish(ctx context.Context, n int) error {
	for i := range n {
		if err := a.spoke.Create(ctx, a.property(i)); err != nil {
			return err
		}
	}
	return await.Success(ctx, "all properties to be published", manyLimit, time.Second, func(ctx context.Context) error {
		claims := &clusterv1alpha1.ClusterClaimList{}
		if err := a.spoke.List(ctx, claims); err != nil {
			return err
		}
		published := 0
		for i := range claims.Items {
			if strings.HasPrefix(claims.Items[i].Name, "property-") {
				published++
			}
		}
		if published < n {
			return fmt.Errorf("%d of %d", published, n)
		}
		return nil
	})
}

func (a *agent) remove(ctx context.Context, n int) error {
	var problems []error
	for i := range n {
		problems = append(problems, ignoreMissing(a.spoke.Delete(ctx, a.property(i))))
	}
	return errors.Join(problems...)
}

// memory reads the agent's memory once it is ready and has been idle for a while.
func (a *agent) memory(ctx context.Context) (int64, error) {
	pod, err := a.pod(ctx)
	if err != nil {
		return 0, err
	}
	rest := time.NewTimer(atRest)
	defer rest.Stop()
	select {
	case <-rest.C:
	case <-ctx.Done():
		return 0, ctx.Err()
	}
	return a.fleet.AnonymousRSS(ctx, a.cluster, pod.Namespace, pod.Name)
}

// pod waits for the ready pod of the agent.
func (a *agent) pod(ctx context.Context) (*corev1.Pod, error) {
	var ready *corev1.Pod
	err := await.Success(ctx, "the agent to be ready", manyLimit, time.Second, func(ctx context.Context) error {
		pods := &corev1.PodList{}
		if err := a.spoke.List(ctx, pods, client.InNamespace(agentNamespace)); err != nil {
			return err
		}
		ready = nil
		for i := range pods.Items {
			pod := &pods.Items[i]
			if !strings.HasPrefix(pod.Name, "cluster-inventory-agent") || pod.DeletionTimestamp != nil {
				continue
			}
			for _, condition := range pod.Status.Conditions {
				if condition.Type == corev1.PodReady && condition.Status == corev1.ConditionTrue {
					ready = pod
				}
			}
		}
		if ready == nil {
			return errors.New("no agent is ready")
		}
		return nil
	})
	return ready, err
}

// restart deletes the agent's pod and waits until another has taken its place.
func (a *agent) restart(ctx context.Context) error {
	before, err := a.pod(ctx)
	if err != nil {
		return err
	}
	if err := a.spoke.Delete(ctx, before, client.Preconditions{UID: &before.UID}); err != nil {
		return err
	}
	return await.Success(ctx, "the agent to be replaced", manyLimit, time.Second, func(ctx context.Context) error {
		now := &metav1.PartialObjectMetadata{}
		now.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Pod"))
		err := a.spoke.Get(ctx, client.ObjectKeyFromObject(before), now)
		if err == nil {
			return errors.New("it is still there")
		}
		return client.IgnoreNotFound(err)
	})
}
