package apitest

import (
	"slices"
	"strings"
	"sync"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// CheckPodSecurity checks that the pods of Deployments and Jobs, and Pods, are accepted
// without a warning in a namespace that enforces the Pod Security Standard "restricted". It
// returns how many it found.
func CheckPodSecurity(w *World, cfg *rest.Config, objects []*unstructured.Unstructured) (found int) {
	w.T.Helper()
	restricted := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "restricted-", Labels: map[string]string{
		"pod-security.kubernetes.io/enforce": "restricted", "pod-security.kubernetes.io/warn": "restricted",
	}}}
	w.MustCreate(restricted)
	warnings := &warningRecorder{}
	cfg = rest.CopyConfig(cfg)
	cfg.WarningHandler = warnings
	c := NewClient(w.T, cfg, scheme.Scheme)

	bare := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: restricted.Name, Name: "bare"}}
	bare.Spec.Containers = []corev1.Container{{Name: "c", Image: "example.com/i"}}
	if err := c.Create(w.ctx(), bare, client.DryRunAll); err == nil {
		w.T.Fatal("the API server enforces no Pod Security Standard")
	}
	for _, object := range objects {
		template, owner := workload(w, object)
		if template == nil {
			continue
		}
		found++
		pod := &corev1.Pod{ObjectMeta: *template.ObjectMeta.DeepCopy(), Spec: template.Spec}
		pod.Namespace, pod.Name, pod.GenerateName = restricted.Name, "", "p-"
		if err := c.Create(w.ctx(), pod, client.DryRunAll); err != nil {
			w.T.Errorf("a pod of %s: %v", w.identify(object), err)
		}
		if owner != nil {
			owner.SetNamespace(restricted.Name)
			if err := c.Create(w.ctx(), owner, client.DryRunAll); err != nil {
				w.T.Errorf("%s: %v", w.identify(object), err)
			}
		}
		if given := warnings.take(); len(given) > 0 {
			w.T.Errorf("%s: warnings %q", w.identify(object), given)
		}
	}
	return found
}

// workload returns the pod of an object and, unless it is a Pod, the object; nil if it has
// none.
func workload(w *World, object *unstructured.Unstructured) (*corev1.PodTemplateSpec, client.Object) {
	w.T.Helper()
	decode := func(into client.Object) {
		Must(w.T, runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, into))
	}
	switch object.GetKind() {
	case "Deployment":
		deployment := &appsv1.Deployment{}
		decode(deployment)
		return &deployment.Spec.Template, deployment
	case "Job":
		job := &batchv1.Job{}
		decode(job)
		return &job.Spec.Template, job
	case "Pod":
		pod := &corev1.Pod{}
		decode(pod)
		return &corev1.PodTemplateSpec{ObjectMeta: pod.ObjectMeta, Spec: pod.Spec}, nil
	default:
		return nil, nil
	}
}

// warningRecorder keeps the warnings in the API server's responses.
type warningRecorder struct {
	mu    sync.Mutex
	given []string
}

// HandleWarningHeader implements rest.WarningHandler.
func (r *warningRecorder) HandleWarningHeader(code int, _ string, text string) {
	if code != 299 || strings.TrimSpace(text) == "" {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.given = append(r.given, text)
}

// take returns the warnings since the last call.
func (r *warningRecorder) take() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	given := slices.Clone(r.given)
	r.given = nil
	return given
}
