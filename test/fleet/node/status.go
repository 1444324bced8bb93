package node

import (
	"fmt"
	"math"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Waiting reasons of containers, as a kubelet reports them.
const (
	reasonPodInitializing      = "PodInitializing"
	reasonContainerCreating    = "ContainerCreating"
	reasonCreateContainerError = "CreateContainerConfigError"
	reasonErrImagePull         = "ErrImagePull"
	reasonImagePullBackOff     = "ImagePullBackOff"
	reasonCrashLoopBackOff     = "CrashLoopBackOff"
)

// Termination reasons of containers.
const (
	reasonCompleted     = "Completed"
	reasonError         = "Error"
	reasonStartError    = "StartError"
	reasonStatusUnknown = "ContainerStatusUnknown"
)

// Exit codes of containers that did not end by themselves.
const (
	exitStartError = 128
	exitKilled     = 137
)

// containerState is the state of one container. Exactly one of waiting, running and terminated is set.
type containerState struct {
	waiting    *corev1.ContainerStateWaiting
	running    *corev1.ContainerStateRunning
	terminated *corev1.ContainerStateTerminated
	last       *corev1.ContainerStateTerminated
	restarts   int32
	id         string
	started    bool
	ready      bool
}

// settled reports whether the container will not run again under the policy.
func (s containerState) settled(policy corev1.RestartPolicy) bool {
	return s.terminated != nil && !restarts(policy, s.terminated.ExitCode)
}

// restarts reports whether a container that exited with the code is started again.
func restarts(policy corev1.RestartPolicy, code int32) bool {
	return policy == corev1.RestartPolicyAlways || policy == "" || policy == corev1.RestartPolicyOnFailure && code != 0
}

// initPolicy is the restart policy of init containers, which run again only if they failed.
func initPolicy(policy corev1.RestartPolicy) corev1.RestartPolicy {
	if policy == corev1.RestartPolicyNever {
		return policy
	}
	return corev1.RestartPolicyOnFailure
}

const (
	firstBackoff = time.Second
	lastBackoff  = 30 * time.Second
)

// backoff is the wait before the n-th restart in a row, n counted from 0.
func backoff(n int) time.Duration {
	return time.Duration(min(float64(firstBackoff)*math.Pow(2, float64(n)), float64(lastBackoff)))
}

// terminatedState describes the end of a process.
func terminatedState(code int32, started, finished time.Time, id string) *corev1.ContainerStateTerminated {
	reason := reasonError
	if code == 0 {
		reason = reasonCompleted
	}
	state := &corev1.ContainerStateTerminated{
		ExitCode: code, Reason: reason, ContainerID: id,
		StartedAt: metav1.NewTime(started).Rfc3339Copy(), FinishedAt: metav1.NewTime(finished).Rfc3339Copy(),
	}
	if code > exitStartError {
		state.Signal = code - exitStartError
	}
	return state
}

// inherited is the state of a container of a pod that an earlier node process ran. If it was
// running, it counts as killed; if it had ended and is not restarted, it stays so.
func inherited(
	policy corev1.RestartPolicy, status corev1.ContainerStatus, waiting string, now time.Time,
) containerState {
	state := containerState{
		restarts: status.RestartCount,
		last:     status.LastTerminationState.Terminated,
		waiting:  &corev1.ContainerStateWaiting{Reason: waiting},
	}
	switch {
	case status.State.Terminated != nil:
		state.last = status.State.Terminated
	case status.State.Running != nil:
		state.last = terminatedState(exitKilled, status.State.Running.StartedAt.Time, now, status.ContainerID)
		state.last.Reason, state.last.Message = reasonStatusUnknown, "the node that ran the container is gone"
	default:
		return state
	}
	if !restarts(policy, state.last.ExitCode) {
		state.terminated, state.last, state.waiting = state.last, status.LastTerminationState.Terminated, nil
		return state
	}
	state.restarts++
	return state
}

// observed is the input of podStatus.
type observed struct {
	pod       *corev1.Pod // spec and metadata; fields of its status that podStatus does not compute are kept
	podIP     string
	hostIP    string
	init      []containerState
	main      []containerState
	mounted   bool // volumes are there
	stopping  bool // no container will be started any more
	startTime time.Time
	now       time.Time
}

// podStatus computes the whole status of a pod.
func podStatus(o observed) corev1.PodStatus {
	status := *o.pod.Status.DeepCopy()
	status.ObservedGeneration = o.pod.Generation
	status.Reason, status.Message = "", ""
	status.HostIP, status.HostIPs = o.hostIP, []corev1.HostIP{{IP: o.hostIP}}
	status.PodIP, status.PodIPs = "", nil
	if o.podIP != "" {
		status.PodIP, status.PodIPs = o.podIP, []corev1.PodIP{{IP: o.podIP}}
	}
	if status.StartTime == nil {
		start := metav1.NewTime(o.startTime).Rfc3339Copy()
		status.StartTime = &start
	}
	status.InitContainerStatuses = containerStatuses(o.pod.Spec.InitContainers, o.init, true)
	status.ContainerStatuses = containerStatuses(o.pod.Spec.Containers, o.main, false)
	status.Phase = phase(o)
	for _, condition := range conditions(o, status) {
		setCondition(&status, condition, o.now)
	}
	return status
}

func containerStatuses(containers []corev1.Container, states []containerState, init bool) []corev1.ContainerStatus {
	var out []corev1.ContainerStatus
	for i, container := range containers {
		state := states[i]
		started := state.started
		status := corev1.ContainerStatus{
			Name: container.Name, Image: container.Image, ImageID: container.Image, ContainerID: state.id,
			RestartCount: state.restarts, Started: &started, Ready: state.ready,
			State: corev1.ContainerState{Waiting: state.waiting, Running: state.running, Terminated: state.terminated},
		}
		if init {
			status.Ready = succeeded(state)
		}
		status.LastTerminationState.Terminated = state.last
		out = append(out, status)
	}
	return out
}

func succeeded(s containerState) bool { return s.terminated != nil && s.terminated.ExitCode == 0 }

// phase follows the rules of the pod lifecycle: Pending until every container has run once, Running
// while one runs or will run again.
func phase(o observed) corev1.PodPhase {
	policy := o.pod.Spec.RestartPolicy
	initialized := true
	for _, state := range o.init {
		if o.stopping && state.running == nil && !succeeded(state) || state.settled(initPolicy(policy)) && !succeeded(state) {
			return corev1.PodFailed
		}
		initialized = initialized && succeeded(state)
	}
	if !initialized {
		return corev1.PodPending
	}
	all, good, waiting := true, true, false
	for _, state := range o.main {
		over := state.settled(policy) || o.stopping && state.running == nil
		all = all && over
		good = good && succeeded(state)
		waiting = waiting || state.waiting != nil && state.last == nil
	}
	switch {
	case all && good:
		return corev1.PodSucceeded
	case all:
		return corev1.PodFailed
	case waiting:
		return corev1.PodPending
	default:
		return corev1.PodRunning
	}
}

func conditions(o observed, status corev1.PodStatus) []corev1.PodCondition {
	mounted := condition(corev1.PodReadyToStartContainers, o.mounted, "", "")
	over := status.Phase == corev1.PodSucceeded || status.Phase == corev1.PodFailed
	initialized := condition(corev1.PodInitialized, true, "", "")
	if waitingFor := names(status.InitContainerStatuses); len(waitingFor) > 0 {
		initialized = condition(
			corev1.PodInitialized, false, "ContainersNotInitialized",
			fmt.Sprintf("containers with incomplete status: [%s]", strings.Join(waitingFor, " ")),
		)
	}
	ready := condition(corev1.ContainersReady, true, "", "")
	switch notReady := names(status.ContainerStatuses); {
	case status.Phase == corev1.PodSucceeded:
		initialized.Reason = "PodCompleted"
		ready = condition(corev1.ContainersReady, false, "PodCompleted", "")
	case over:
		ready = condition(corev1.ContainersReady, false, "PodFailed", "")
	case len(notReady) > 0:
		ready = condition(
			corev1.ContainersReady, false, "ContainersNotReady",
			fmt.Sprintf("containers with unready status: [%s]", strings.Join(notReady, " ")),
		)
	}
	podReady := ready
	podReady.Type = corev1.PodReady
	for _, gate := range o.pod.Spec.ReadinessGates {
		if podReady.Status == corev1.ConditionTrue && !isConditionTrue(status, gate.ConditionType) {
			podReady = condition(
				corev1.PodReady, false, "ReadinessGatesNotReady",
				fmt.Sprintf("the status of pod readiness gate %q is not \"True\"", gate.ConditionType),
			)
		}
	}
	return []corev1.PodCondition{mounted, initialized, ready, podReady}
}

func condition(kind corev1.PodConditionType, holds bool, reason, message string) corev1.PodCondition {
	status := corev1.ConditionFalse
	if holds {
		status = corev1.ConditionTrue
	}
	return corev1.PodCondition{Type: kind, Status: status, Reason: reason, Message: message}
}

func names(statuses []corev1.ContainerStatus) []string {
	var out []string
	for _, status := range statuses {
		if !status.Ready {
			out = append(out, status.Name)
		}
	}
	return out
}

func isConditionTrue(status corev1.PodStatus, kind corev1.PodConditionType) bool {
	for _, c := range status.Conditions {
		if c.Type == kind {
			return c.Status == corev1.ConditionTrue
		}
	}
	return false
}

// setCondition replaces the condition of the same type and keeps its transition time while the status is the same.
func setCondition(status *corev1.PodStatus, c corev1.PodCondition, now time.Time) {
	c.LastTransitionTime = metav1.NewTime(now).Rfc3339Copy()
	for i, old := range status.Conditions {
		if old.Type != c.Type {
			continue
		}
		if old.Status == c.Status {
			c.LastTransitionTime = old.LastTransitionTime
		}
		status.Conditions[i] = c
		return
	}
	status.Conditions = append(status.Conditions, c)
}
