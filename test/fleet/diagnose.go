package fleet

import (
	"context"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"open-cluster-management.io/cluster-inventory-addon/test/fleet/supervisor"
)

// logTail is how many lines of a log are shown.
const logTail = 25

// Diagnose writes what to look at first after a failure: pods that are not ready
// with the end of their logs, and the warning events of each cluster.
func (f *Fleet) Diagnose(ctx context.Context, out io.Writer) {
	if out == nil {
		return
	}
	// ctx may have ended: that may be the failure.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 20*time.Second)
	defer cancel()
	say := func(format string, args ...any) { _, _ = fmt.Fprintf(out, format+"\n", args...) }
	for _, cluster := range f.Clusters() {
		c, err := f.Client(cluster)
		if err != nil {
			say("%s: %v", cluster, err)
			continue
		}
		pods := &corev1.PodList{}
		if err := c.List(ctx, pods); err != nil {
			say("%s: %v", cluster, err)
			continue
		}
		for _, pod := range pods.Items {
			if podReady(&pod) || pod.Status.Phase == corev1.PodSucceeded {
				continue
			}
			say("%s: pod %s/%s is %s and not ready%s", cluster, pod.Namespace, pod.Name, pod.Status.Phase, waiting(&pod))
			pattern := filepath.Join(f.LogDir(), cluster, "pods", pod.Namespace+"_"+pod.Name+"_*.log")
			logs, _ := filepath.Glob(pattern) // the pattern is valid
			for _, log := range logs {
				say("  last lines of %s:\n%s", log, supervisor.Tail(log, logTail))
			}
		}
		say("%s", warnings(ctx, c, cluster))
	}
	say("all logs are in %s", f.LogDir())
}

func podReady(pod *corev1.Pod) bool {
	for _, condition := range pod.Status.Conditions {
		if condition.Type == corev1.PodReady {
			return condition.Status == corev1.ConditionTrue
		}
	}
	return false
}

func waiting(pod *corev1.Pod) string {
	var reasons strings.Builder
	for _, status := range pod.Status.ContainerStatuses {
		if state := status.State.Waiting; state != nil {
			fmt.Fprintf(&reasons, "; %s waits: %s %s", status.Name, state.Reason, state.Message)
		}
	}
	return reasons.String()
}

func warnings(ctx context.Context, c client.Client, cluster string) string {
	events := &corev1.EventList{}
	if err := c.List(ctx, events, client.MatchingFields{"type": corev1.EventTypeWarning}); err != nil {
		return fmt.Sprintf("%s: %v", cluster, err)
	}
	var lines strings.Builder
	fmt.Fprintf(&lines, "%s: %d warning events", cluster, len(events.Items))
	for _, event := range events.Items[max(0, len(events.Items)-logTail):] {
		at := event.InvolvedObject
		fmt.Fprintf(&lines, "\n  %s %s/%s: %s: %s", at.Kind, at.Namespace, at.Name, event.Reason, event.Message)
	}
	return lines.String()
}
