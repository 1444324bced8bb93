package kube

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"open-cluster-management.io/cluster-inventory-addon/internal/predicatetest"
)

func TestOnChangePassesCreationAndDeletion(t *testing.T) {
	p := OnChange(Never)
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p", UID: "1"}}
	if !p.Create(event.CreateEvent{Object: pod}) || !p.Create(event.CreateEvent{Object: pod, IsInInitialList: true}) ||
		!p.Delete(event.DeleteEvent{Object: pod}) {
		t.Error("creation, the initial list and deletion must pass")
	}
	now := metav1.Now()
	predicatetest.Check(t, p, map[string]predicatetest.Update{
		"only a version":             {Before: pod},
		"deletion begins":            {Before: pod, Edit: func(o client.Object) { o.SetDeletionTimestamp(&now) }, Want: true},
		"another object of the name": {Before: pod, Edit: func(o client.Object) { o.SetUID("2") }, Want: true},
		"its status": {Before: pod, Edit: predicatetest.As(func(p *corev1.Pod) {
			p.Status.Phase = corev1.PodRunning
		})},
	})
	byPhase := OnChange(func(before, after client.Object) bool {
		return before.(*corev1.Pod).Status.Phase != after.(*corev1.Pod).Status.Phase
	})
	predicatetest.Check(t, byPhase, map[string]predicatetest.Update{
		"what changed says matters": {Before: pod, Want: true, Edit: predicatetest.As(func(p *corev1.Pod) {
			p.Status.Phase = corev1.PodRunning
		})},
		"what changed says does not matter": {Before: pod, Edit: predicatetest.As(func(p *corev1.Pod) {
			p.Labels = map[string]string{"a": "b"}
		})},
	})
}

func TestAfterStartDropsTheInitialListAlone(t *testing.T) {
	p := AfterStart()
	pod := &corev1.Pod{}
	if p.Create(event.CreateEvent{Object: pod, IsInInitialList: true}) {
		t.Error("the initial list passes")
	}
	if !p.Create(event.CreateEvent{Object: pod}) || !p.Delete(event.DeleteEvent{Object: pod}) ||
		!p.Update(event.UpdateEvent{ObjectOld: pod, ObjectNew: pod}) {
		t.Error("what comes later does not pass")
	}
}
