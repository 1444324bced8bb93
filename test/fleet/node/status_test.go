package node

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

var (
	earlier = time.Date(2030, 1, 1, 12, 0, 0, 0, time.UTC)
	later   = earlier.Add(time.Minute)
)

func waitingFor(reason string) containerState {
	return containerState{waiting: &corev1.ContainerStateWaiting{Reason: reason}}
}

func runningState(ready bool) containerState {
	return containerState{
		running: &corev1.ContainerStateRunning{StartedAt: metav1.NewTime(earlier)},
		started: true,
		ready:   ready,
		id:      "process://1.1",
	}
}

func ended(code int32) containerState {
	return containerState{terminated: terminatedState(code, earlier, later, "process://1.1")}
}

func crashed(reason string) containerState {
	state := waitingFor(reason)
	state.last, state.restarts = terminatedState(1, earlier, later, "process://1.1"), 1
	return state
}

func TestPhaseAndReadiness(t *testing.T) {
	type states = []containerState
	for name, tc := range map[string]struct {
		policy     corev1.RestartPolicy
		init, main states
		stopping   bool
		phase      corev1.PodPhase
		ready      string // status and reason of Ready
	}{
		"nothing started, Pending": {
			main:  states{waitingFor("ContainerCreating")},
			phase: "Pending",
			ready: "False ContainersNotReady",
		},
		"one of two started, Pending": {
			main:  states{runningState(true), waitingFor("ErrImagePull")},
			phase: "Pending",
			ready: "False ContainersNotReady",
		},
		"all run and are ready, Running": {
			main:  states{runningState(true), runningState(true)},
			phase: "Running",
			ready: "True ",
		},
		"one is not ready, Running": {
			main:  states{runningState(true), runningState(false)},
			phase: "Running",
			ready: "False ContainersNotReady",
		},
		"an init container runs, Pending": {
			init:  states{runningState(false)},
			main:  states{waitingFor("PodInitializing")},
			phase: "Pending",
			ready: "False ContainersNotReady",
		},
		"an init container crashes, Pending": {
			init:  states{crashed("CrashLoopBackOff")},
			main:  states{waitingFor("PodInitializing")},
			phase: "Pending",
			ready: "False ContainersNotReady",
		},
		"an init container failed for good, Failed": {
			policy: "Never",
			init:   states{ended(1)},
			main:   states{waitingFor("PodInitializing")},
			phase:  "Failed",
			ready:  "False PodFailed",
		},
		"an init container is done, what follows counts": {
			init:  states{ended(0)},
			main:  states{runningState(true)},
			phase: "Running",
			ready: "True ",
		},
		"crashed and restarted soon, Running": {
			main:  states{crashed("CrashLoopBackOff")},
			phase: "Running",
			ready: "False ContainersNotReady",
		},
		"ended well and restarted, Running": {
			main:  states{ended(0)},
			phase: "Running",
			ready: "False ContainersNotReady",
		},
		"all ended well and stay so, Succeeded": {
			policy: "OnFailure",
			main:   states{ended(0), ended(0)},
			phase:  "Succeeded",
			ready:  "False PodCompleted",
		},
		"one ended badly and stays so, Failed": {
			policy: "Never",
			main:   states{ended(0), ended(1)},
			phase:  "Failed",
			ready:  "False PodFailed",
		},
		"one ended and one runs, Running": {
			policy: "Never",
			main:   states{ended(1), runningState(true)},
			phase:  "Running",
			ready:  "False ContainersNotReady",
		},
		"ended badly and is retried, Running": {
			policy: "OnFailure",
			main:   states{ended(1)},
			phase:  "Running",
			ready:  "False ContainersNotReady",
		},
		"told to end and one still runs, Running": {
			main:     states{runningState(true), ended(0)},
			stopping: true,
			phase:    "Running",
			ready:    "False ContainersNotReady",
		},
		"told to end and all did well, Succeeded": {
			main:     states{ended(0)},
			stopping: true,
			phase:    "Succeeded",
			ready:    "False PodCompleted",
		},
		"told to end and killed, Failed": {
			main:     states{ended(137)},
			stopping: true,
			phase:    "Failed",
			ready:    "False PodFailed",
		},
		"told to end before the start, Failed": {
			main:     states{waitingFor("ContainerCreating")},
			stopping: true,
			phase:    "Failed",
			ready:    "False PodFailed",
		},
		"told to end while it initializes, Pending until that is over": {
			init:     states{runningState(false)},
			main:     states{waitingFor("PodInitializing")},
			stopping: true,
			phase:    "Pending",
			ready:    "False ContainersNotReady",
		},
	} {
		t.Run(name, func(t *testing.T) {
			pod := &corev1.Pod{
				Spec: corev1.PodSpec{
					RestartPolicy:  tc.policy,
					InitContainers: make([]corev1.Container, len(tc.init)),
					Containers:     make([]corev1.Container, len(tc.main)),
				},
			}
			got := podStatus(observed{pod: pod, init: tc.init, main: tc.main, stopping: tc.stopping, now: later})
			ready := ""
			for _, c := range got.Conditions {
				if c.Type == corev1.PodReady {
					ready = string(c.Status) + " " + c.Reason
				}
			}
			if diff := cmp.Diff([]string{string(tc.phase), tc.ready}, []string{string(got.Phase), ready}); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestPodStatusIsWhole(t *testing.T) {
	foreign := corev1.PodCondition{
		Type:               "example.com/Foreign",
		Status:             corev1.ConditionTrue,
		LastTransitionTime: metav1.NewTime(earlier),
	}
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Generation: 2},
		Spec: corev1.PodSpec{
			RestartPolicy:  corev1.RestartPolicyAlways,
			ReadinessGates: []corev1.PodReadinessGate{{ConditionType: "example.com/Gate"}},
			Containers:     []corev1.Container{{Name: "main", Image: "example.com/image:v1"}},
		},
		Status: corev1.PodStatus{QOSClass: corev1.PodQOSBestEffort, Conditions: []corev1.PodCondition{
			foreign,
			{Type: corev1.PodInitialized, Status: corev1.ConditionTrue, LastTransitionTime: metav1.NewTime(earlier)},
			{Type: corev1.ContainersReady, Status: corev1.ConditionFalse, LastTransitionTime: metav1.NewTime(earlier)},
		}},
	}
	got := podStatus(observed{
		pod:       pod,
		podIP:     "127.20.1.1",
		hostIP:    "127.0.0.1",
		main:      []containerState{runningState(true)},
		mounted:   true,
		startTime: earlier,
		now:       later,
	})
	at := func(when time.Time, kind corev1.PodConditionType, status corev1.ConditionStatus, reason, message string) corev1.PodCondition {
		return corev1.PodCondition{
			Type:               kind,
			Status:             status,
			Reason:             reason,
			Message:            message,
			LastTransitionTime: metav1.NewTime(when),
		}
	}
	want := corev1.PodStatus{
		ObservedGeneration: 2,
		Phase:              corev1.PodRunning,
		QOSClass:           corev1.PodQOSBestEffort,
		HostIP:             "127.0.0.1",
		HostIPs:            []corev1.HostIP{{IP: "127.0.0.1"}},
		PodIP:              "127.20.1.1",
		PodIPs:             []corev1.PodIP{{IP: "127.20.1.1"}},
		StartTime:          ptr.To(metav1.NewTime(earlier)),
		Conditions: []corev1.PodCondition{
			foreign,
			at(earlier, "Initialized", "True", "", ""),
			at(later, "ContainersReady", "True", "", ""),
			at(later, "PodReadyToStartContainers", "True", "", ""),
			at(
				later,
				"Ready",
				"False",
				"ReadinessGatesNotReady",
				`the status of pod readiness gate "example.com/Gate" is not "True"`,
			),
		},
		ContainerStatuses: []corev1.ContainerStatus{
			{
				Name:        "main",
				Image:       "example.com/image:v1",
				ImageID:     "example.com/image:v1",
				ContainerID: "process://1.1",
				Ready:       true,
				Started:     ptr.To(true),
				State:       corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: metav1.NewTime(earlier)}},
			},
		},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestInherited(t *testing.T) {
	killed := terminatedState(137, earlier, later, "process://1.1")
	killed.Reason, killed.Message = "ContainerStatusUnknown", "the node that ran the container is gone"
	ran := corev1.ContainerStatus{
		ContainerID:  "process://1.1",
		RestartCount: 4,
		State: corev1.ContainerState{
			Running: &corev1.ContainerStateRunning{StartedAt: metav1.NewTime(earlier)},
		},
		LastTerminationState: corev1.ContainerState{Terminated: ended(1).terminated},
	}
	over := corev1.ContainerStatus{RestartCount: 1, State: corev1.ContainerState{Terminated: ended(0).terminated}}
	waiting := &corev1.ContainerStateWaiting{Reason: "ContainerCreating"}
	for name, tc := range map[string]struct {
		policy corev1.RestartPolicy
		status corev1.ContainerStatus
		want   containerState
	}{
		"never ran, it starts": {want: containerState{waiting: waiting}},
		"was running, it is restarted": {
			policy: "Always",
			status: ran,
			want:   containerState{waiting: waiting, restarts: 5, last: killed},
		},
		"was running and must not again, failed": {
			policy: "Never",
			status: ran,
			want:   containerState{terminated: killed, restarts: 4, last: ended(1).terminated},
		},
		"had ended well, stays ended": {
			policy: "OnFailure",
			status: over,
			want:   containerState{terminated: ended(0).terminated, restarts: 1},
		},
		"had ended well and always runs": {
			policy: "Always",
			status: over,
			want:   containerState{waiting: waiting, restarts: 2, last: ended(0).terminated},
		},
	} {
		t.Run(name, func(t *testing.T) {
			got := inherited(tc.policy, tc.status, "ContainerCreating", later)
			if diff := cmp.Diff(tc.want, got, cmp.AllowUnexported(containerState{})); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestTerminatedState(t *testing.T) {
	for name, tc := range map[string]struct {
		code   int32
		reason string
		signal int32
	}{
		"zero is completion":       {code: 0, reason: "Completed"},
		"a code is an error":       {code: 7, reason: "Error"},
		"a signal is an error too": {code: 143, reason: "Error", signal: 15},
	} {
		t.Run(name, func(t *testing.T) {
			got := terminatedState(tc.code, earlier, later, "process://1.1")
			want := &corev1.ContainerStateTerminated{
				ExitCode: tc.code, Reason: tc.reason, Signal: tc.signal, ContainerID: "process://1.1",
				StartedAt: metav1.NewTime(earlier), FinishedAt: metav1.NewTime(later),
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestBackoff(t *testing.T) {
	var got []time.Duration
	for n := range 7 {
		got = append(got, backoff(n))
	}
	want := []time.Duration{
		time.Second,
		2 * time.Second,
		4 * time.Second,
		8 * time.Second,
		16 * time.Second,
		30 * time.Second,
		30 * time.Second,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestStatusPatch(t *testing.T) {
	base := corev1.PodStatus{Phase: corev1.PodPending, PodIPs: []corev1.PodIP{{IP: "127.20.1.1"}}}
	moved := corev1.PodStatus{Phase: corev1.PodRunning, PodIPs: []corev1.PodIP{{IP: "127.20.1.2"}}}
	for name, tc := range map[string]struct {
		to   corev1.PodStatus
		want map[string]any
	}{
		"nothing changed, no patch": {to: base},
		"a change is tied to the pod's UID, and an old address goes": {to: moved, want: map[string]any{
			"metadata": map[string]any{"uid": "uid-1"},
			"status": map[string]any{
				"phase":                   "Running",
				"$setElementOrder/podIPs": []any{map[string]any{"ip": "127.20.1.2"}},
				"podIPs": []any{
					map[string]any{"ip": "127.20.1.2"}, map[string]any{"$patch": "delete", "ip": "127.20.1.1"},
				},
			},
		}},
	} {
		t.Run(name, func(t *testing.T) {
			raw, err := statusPatch("uid-1", base, tc.to)
			if err != nil {
				t.Fatal(err)
			}
			var got map[string]any
			if raw != nil {
				if err := json.Unmarshal(raw, &got); err != nil {
					t.Fatal(err)
				}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}
