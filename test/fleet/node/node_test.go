package node

import (
	"errors"
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
)

// TestNode proves against a real API server and the real controllers that pods of a node are what
// users of pods expect.
func TestNode(t *testing.T) {
	t.Parallel()
	c := startCluster(t)
	cfg, stop := c.startNode(t)

	t.Run("a Deployment becomes available, and its pod has an identity", func(t *testing.T) { testDeployment(t, c, cfg) })
	t.Run("a pod nothing happens to is not written", func(t *testing.T) { testQuiet(t, c) })
	t.Run("a changed Secret reaches the mounted file", func(t *testing.T) { testSecretUpdate(t, c) })
	t.Run("a pod waits for a missing Secret and starts when it comes", func(t *testing.T) { testMissingSecret(t, c) })
	t.Run("a Job completes and a Job fails", func(t *testing.T) { testJobs(t, c) })
	t.Run("init containers run in order, before the others", func(t *testing.T) { testInitContainers(t, c) })
	t.Run("a volume shows what is in an image", func(t *testing.T) { testImageVolume(t, c) })
	t.Run("a deleted pod ends", func(t *testing.T) { testDeletion(t, c, cfg) })
	t.Run("a failing liveness probe restarts, a failing readiness probe does not", func(t *testing.T) { testProbes(t, c) })
	t.Run("an exec probe runs in the container", func(t *testing.T) { testExecProbe(t, c) })
	t.Run("a crash is backed off from, an unknown image is not run", func(t *testing.T) { testWaiting(t, c) })
	t.Run("a new node process starts the pods again", func(t *testing.T) { testRestart(t, c, cfg, stop) })
}

func serving(name string) corev1.PodSpec {
	return corev1.PodSpec{Containers: []corev1.Container{{
		Name: name, Image: probeImage + ":v1", Command: []string{"/probe"}, Args: []string{"serve"},
		Ports: []corev1.ContainerPort{{Name: "http", ContainerPort: 8080}},
		Env: []corev1.EnvVar{
			{Name: "POD_IP", ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: "status.podIP"}}},
			{Name: "ADDRESS", Value: "$(POD_IP):8080"},
		},
		ReadinessProbe: httpProbe("/readyz"),
	}}}
}

func httpProbe(path string) *corev1.Probe {
	return &corev1.Probe{
		ProbeHandler:  corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Path: path, Port: intstr.FromString("http")}},
		PeriodSeconds: 1, FailureThreshold: 1, TimeoutSeconds: 30,
	}
}

func (c *cluster) createPod(t *testing.T, namespace, name string, spec corev1.PodSpec) *corev1.Pod {
	t.Helper()
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: map[string]string{"app": name}},
		Spec:       spec,
	}
	pod, err := c.client.CoreV1().Pods(namespace).Create(t.Context(), pod, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return pod
}

// readyPod waits until the pod is ready.
func (c *cluster) readyPod(t *testing.T, namespace, name string) *corev1.Pod {
	t.Helper()
	var pod *corev1.Pod
	eventually(t, "pod "+name+" is ready", func() error {
		pod = c.pod(t, namespace, name)
		if !isConditionTrue(pod.Status, corev1.PodReady) {
			return fmt.Errorf("status is %+v", pod.Status)
		}
		return nil
	})
	return pod
}

func testDeployment(t *testing.T, c *cluster, cfg Config) {
	ns := c.namespace(t, "deployment")
	labels := map[string]string{"app": "web"}
	spec := serving("web")
	spec.SecurityContext = &corev1.PodSecurityContext{RunAsNonRoot: ptr.To(true), RunAsUser: ptr.To(int64(4321))}
	spec.Containers[0].SecurityContext = &corev1.SecurityContext{ReadOnlyRootFilesystem: ptr.To(true)}
	_, err := c.client.AppsV1().Deployments(ns).Create(t.Context(), &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: "web"},
		Spec: appsv1.DeploymentSpec{
			Replicas: ptr.To(int32(2)),
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: spec,
			},
		},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	eventually(t, "both replicas are available", func() error {
		d, err := c.client.AppsV1().Deployments(ns).Get(t.Context(), "web", metav1.GetOptions{})
		if err == nil && d.Status.AvailableReplicas != 2 {
			err = fmt.Errorf("status is %+v", d.Status)
		}
		return err
	})
	pods, err := c.client.CoreV1().Pods(ns).List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if pods.Items[0].Status.PodIP == pods.Items[1].Status.PodIP {
		t.Errorf("both pods have the address %s", pods.Items[0].Status.PodIP)
	}
	pod := &pods.Items[0]
	for path, want := range map[string]string{
		"/whoami": "uid=4321 gid=4321",
		"/env":    "ADDRESS=" + pod.Status.PodIP + ":8080",
		"/api?path=/api/v1/namespaces/" + ns +
			"/secrets": `User \"system:serviceaccount:deployment:default\" cannot list resource`,
		"/api?path=/version": "200 OK",
		"/file?path=/var/run/secrets/kubernetes.io/serviceaccount/namespace": ns,
		"/file?path=/etc/hosts": pod.Status.PodIP + " " + pod.Name,
	} {
		if err := wantContains(mustGet(t, pod, path), want); err != nil {
			t.Errorf("%s: %v", path, err)
		}
	}
	if err := dead(pid(t, cfg, pod, "web")); err == nil {
		t.Error("the noted process does not run")
	}
}

// quiet is how long nothing may happen; probes and retries come every second.
const quiet = 4 * time.Second

func testQuiet(t *testing.T, c *cluster) {
	ns := c.namespace(t, "quiet")
	c.createPod(t, ns, "web", serving("web"))
	before := c.readyPod(t, ns, "web")
	<-time.After(quiet)
	if after := c.pod(t, ns, "web"); after.ResourceVersion != before.ResourceVersion {
		t.Errorf("the pod was written: %s", cmp.Diff(before, after))
	}
}

func (c *cluster) secret(t *testing.T, ns, name, value string) *corev1.Secret {
	t.Helper()
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: name},
		Data:       map[string][]byte{"key": []byte(value)},
	}
	secret, err := c.client.CoreV1().Secrets(ns).Create(t.Context(), secret, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return secret
}

func withSecret(spec corev1.PodSpec, name string) corev1.PodSpec {
	spec.Volumes = []corev1.Volume{
		{Name: "secret", VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: name}}},
	}
	spec.Containers[0].VolumeMounts = []corev1.VolumeMount{{Name: "secret", MountPath: "/var/run/hub", ReadOnly: true}}
	return spec
}

func testSecretUpdate(t *testing.T, c *cluster) {
	ns := c.namespace(t, "secret-update")
	secret := c.secret(t, ns, "hub", "first")
	c.createPod(t, ns, "reader", withSecret(serving("reader"), "hub"))
	pod := c.readyPod(t, ns, "reader")
	if got := mustGet(t, pod, "/file?path=/var/run/hub/key"); got != "first" {
		t.Fatalf("got %q", got)
	}
	secret.Data["key"] = []byte("second")
	if _, err := c.client.CoreV1().Secrets(ns).Update(t.Context(), secret, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the file changes", func() error {
		got, err := get(pod, "/file?path=/var/run/hub/key")
		if err == nil && got != "second" {
			err = fmt.Errorf("got %q", got)
		}
		return err
	})
}

func testMissingSecret(t *testing.T, c *cluster) {
	ns := c.namespace(t, "missing-secret")
	c.createPod(t, ns, "patient", withSecret(serving("patient"), "late"))
	eventually(t, "the pod waits", func() error {
		pod := c.pod(t, ns, "patient")
		got := statusOf(pod, "patient").State.Waiting
		want := &corev1.ContainerStateWaiting{
			Reason:  "ContainerCreating",
			Message: `volume "secret": secret "late" not found`,
		}
		if diff := cmp.Diff(want, got); diff != "" || pod.Status.Phase != corev1.PodPending {
			return errors.New(string(pod.Status.Phase) + diff)
		}
		return nil
	})
	c.secret(t, ns, "late", "there")
	if got := mustGet(t, c.readyPod(t, ns, "patient"), "/file?path=/var/run/hub/key"); got != "there" {
		t.Errorf("got %q", got)
	}
}

func (c *cluster) createJob(t *testing.T, ns, name string, args ...string) {
	t.Helper()
	_, err := c.client.BatchV1().Jobs(ns).Create(t.Context(), &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: batchv1.JobSpec{BackoffLimit: ptr.To(int32(0)), Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{
			RestartPolicy: corev1.RestartPolicyNever,
			Containers:    []corev1.Container{{Name: "main", Image: probeImage, Command: []string{"/probe"}, Args: args}},
		}}},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
}

func testJobs(t *testing.T, c *cluster) {
	ns := c.namespace(t, "jobs")
	c.createJob(t, ns, "good", "exit", "0")
	c.createJob(t, ns, "bad", "exit", "7")
	for name, want := range map[string]batchv1.JobConditionType{"good": batchv1.JobComplete, "bad": batchv1.JobFailed} {
		eventually(t, fmt.Sprintf("job %s is %s", name, want), func() error {
			job, err := c.client.BatchV1().Jobs(ns).Get(t.Context(), name, metav1.GetOptions{})
			if err != nil {
				return err
			}
			for _, condition := range job.Status.Conditions {
				if condition.Type == want && condition.Status == corev1.ConditionTrue {
					return nil
				}
			}
			return fmt.Errorf("status is %+v", job.Status)
		})
	}
	ofJob := metav1.ListOptions{LabelSelector: batchv1.JobNameLabel + "=bad"}
	pods, err := c.client.CoreV1().Pods(ns).List(t.Context(), ofJob)
	if err != nil || len(pods.Items) != 1 {
		t.Fatalf("%d pods, %v", len(pods.Items), err)
	}
	if got := pods.Items[0].Status.ContainerStatuses[0].State.Terminated; got == nil || got.ExitCode != 7 ||
		got.Reason != "Error" {
		t.Errorf("got %+v", got)
	}
	if err := c.client.BatchV1().Jobs(ns).Delete(
		t.Context(), "bad", metav1.DeleteOptions{PropagationPolicy: ptr.To(metav1.DeletePropagationForeground)},
	); err != nil {
		t.Fatal(err)
	}
	c.gone(t, ns, pods.Items[0].Name)
}

func testImageVolume(t *testing.T, c *cluster) {
	ns := c.namespace(t, "image-volume")
	volume := func(image string) corev1.Volume {
		source := &corev1.ImageVolumeSource{Reference: image + ":v1", PullPolicy: corev1.PullIfNotPresent}
		return corev1.Volume{Name: "tools", VolumeSource: corev1.VolumeSource{Image: source}}
	}
	spec := serving("main")
	spec.Volumes = []corev1.Volume{volume(probeImage)}
	spec.Containers[0].VolumeMounts = []corev1.VolumeMount{{Name: "tools", MountPath: "/tools"}}
	spec.Containers[0].Command = []string{"/tools/probe"}
	if created := c.createPod(t, ns, "main", spec); created.Spec.Volumes[0].Image == nil {
		t.Skip("Kubernetes before 1.35 drops image volumes unless a feature gate is on")
	}
	mustGet(t, c.readyPod(t, ns, "main"), "/whoami")

	spec.Volumes = []corev1.Volume{volume("example.com/none")}
	c.createPod(t, ns, "none", spec)
	eventually(t, "a pod waits for an image that does not exist", func() error {
		waiting := statusOf(c.pod(t, ns, "none"), "main").State.Waiting
		if waiting == nil {
			return errors.New("it does not wait")
		}
		return wantContains(waiting.Message, `no image "example.com/none"`)
	})
}

func testInitContainers(t *testing.T, c *cluster) {
	ns := c.namespace(t, "init")
	spec := serving("main")
	shared := corev1.VolumeMount{Name: "shared", MountPath: "/shared"}
	spec.Volumes = []corev1.Volume{
		{Name: "shared", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}},
	}
	spec.InitContainers = []corev1.Container{
		{
			Name:         "first",
			Image:        probeImage,
			Command:      []string{"/probe", "touch", "/shared/made"},
			VolumeMounts: []corev1.VolumeMount{shared},
		},
		{
			Name:         "second",
			Image:        probeImage,
			Command:      []string{"/probe", "cat", "/shared/made"},
			VolumeMounts: []corev1.VolumeMount{shared},
		},
	}
	spec.Containers[0].VolumeMounts = []corev1.VolumeMount{shared}
	c.createPod(t, ns, "main", spec)
	pod := c.readyPod(t, ns, "main")
	for _, status := range pod.Status.InitContainerStatuses {
		if status.State.Terminated == nil || status.State.Terminated.ExitCode != 0 || status.RestartCount != 0 {
			t.Errorf("got %+v", status)
		}
	}
	mustGet(t, pod, "/file?path=/shared/made")
}

func testDeletion(t *testing.T, c *cluster, cfg Config) {
	ns := c.namespace(t, "deletion")
	polite := serving("polite")
	polite.TerminationGracePeriodSeconds = ptr.To(int64(120))
	c.createPod(t, ns, "polite", polite)
	stubborn := corev1.PodSpec{
		TerminationGracePeriodSeconds: ptr.To(int64(2)),
		Containers: []corev1.Container{
			{Name: "stubborn", Image: probeImage, Command: []string{"/probe", "stubborn"}},
		},
	}
	c.createPod(t, ns, "stubborn", stubborn)
	for _, name := range []string{"polite", "stubborn"} {
		pod := c.readyPod(t, ns, name)
		process := pid(t, cfg, pod, name)
		if name == "stubborn" { // ready as soon as it runs, perhaps before it is stubborn
			eventually(t, "the process ignores SIGTERM", func() error { return ignores(process, syscall.SIGTERM) })
		}
		began := time.Now()
		if err := c.client.CoreV1().Pods(ns).Delete(t.Context(), name, metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		c.gone(t, ns, name)
		if err := dead(process); err != nil {
			t.Errorf("%s: the object is gone and %v", name, err)
		}
		took := time.Since(began)
		if name == "polite" && took > time.Minute || name == "stubborn" && took < time.Second {
			t.Errorf("%s: it took %s", name, took)
		}
	}
}

func testProbes(t *testing.T, c *cluster) {
	ns := c.namespace(t, "probes")
	spec := serving("web")
	spec.Containers[0].StartupProbe = httpProbe("/healthz")
	spec.Containers[0].StartupProbe.FailureThreshold = 30
	spec.Containers[0].LivenessProbe = httpProbe("/healthz")
	c.createPod(t, ns, "web", spec)
	pod := c.readyPod(t, ns, "web")
	mustGet(t, pod, "/unready")
	eventually(t, "the pod is not ready", func() error {
		pod = c.pod(t, ns, "web")
		if isConditionTrue(pod.Status, corev1.PodReady) || isConditionTrue(pod.Status, corev1.ContainersReady) {
			return errors.New("it is ready")
		}
		return nil
	})
	mustGet(t, pod, "/ready")
	pod = c.readyPod(t, ns, "web")
	if n := pod.Status.ContainerStatuses[0].RestartCount; n != 0 {
		t.Errorf("%d restarts", n)
	}
	mustGet(t, pod, "/sick")
	eventually(t, "the container is restarted", func() error {
		pod = c.pod(t, ns, "web")
		status := pod.Status.ContainerStatuses[0]
		if status.RestartCount != 1 || status.State.Running == nil || !status.Ready ||
			status.LastTerminationState.Terminated == nil {
			return fmt.Errorf("status is %+v", status)
		}
		return nil
	})
}

func testExecProbe(t *testing.T, c *cluster) {
	ns := c.namespace(t, "exec-probe")
	spec := serving("web")
	spec.Containers[0].ReadinessProbe = &corev1.Probe{
		PeriodSeconds: 1,
		ProbeHandler:  corev1.ProbeHandler{Exec: &corev1.ExecAction{Command: []string{"/probe", "cat", "/scratch/made"}}},
	}
	spec.Volumes = []corev1.Volume{
		{Name: "scratch", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}},
	}
	spec.Containers[0].VolumeMounts = []corev1.VolumeMount{{Name: "scratch", MountPath: "/scratch"}}
	maker := corev1.Container{
		Name:         "maker",
		Image:        probeImage,
		Command:      []string{"/probe", "touch", "/scratch/made"},
		VolumeMounts: spec.Containers[0].VolumeMounts,
	}
	missing := *spec.DeepCopy()
	spec.InitContainers = []corev1.Container{maker}
	c.createPod(t, ns, "missing", missing)
	c.createPod(t, ns, "web", spec)
	c.readyPod(t, ns, "web")
	if pod := c.pod(t, ns, "missing"); isConditionTrue(pod.Status, corev1.PodReady) {
		t.Error("a pod without the file is ready")
	}
}

func testWaiting(t *testing.T, c *cluster) {
	ns := c.namespace(t, "waiting")
	one := func(image string, command ...string) corev1.PodSpec {
		return corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: image, Command: command}}}
	}
	for name, tc := range map[string]struct {
		spec            corev1.PodSpec
		reason, message string
		restarts        bool
	}{
		"crash": {
			spec:     one(probeImage, "/probe", "exit", "3"),
			reason:   "CrashLoopBackOff",
			message:  "restarting failed container=main",
			restarts: true,
		},
		"image": {
			spec:    one("example.com/none:v1", "/none"),
			reason:  "ImagePullBackOff",
			message: `no image "example.com/none"`,
		},
		"binary": {
			spec:     one(probeImage, "/none"),
			reason:   "CrashLoopBackOff",
			message:  "restarting failed container=main",
			restarts: true,
		},
		"refused": {spec: one(probeImage), reason: "CreateContainerConfigError", message: "needs a command"},
	} {
		c.createPod(t, ns, name, tc.spec)
		eventually(t, name+" waits", func() error {
			status := statusOf(c.pod(t, ns, name), "main")
			if w := status.State.Waiting; w == nil || w.Reason != tc.reason || !strings.Contains(w.Message, tc.message) ||
				(status.RestartCount > 0) != tc.restarts {
				return fmt.Errorf("status is %+v", status)
			}
			return nil
		})
	}
}

func testRestart(t *testing.T, c *cluster, cfg Config, stop func()) {
	ns := c.namespace(t, "restart")
	c.createPod(t, ns, "web", serving("web"))
	before := c.readyPod(t, ns, "web")
	process := pid(t, cfg, before, "web")
	never := corev1.PodSpec{
		RestartPolicy: corev1.RestartPolicyNever,
		Containers:    []corev1.Container{{Name: "once", Image: probeImage, Command: []string{"/probe", "wait"}}},
	}
	c.createPod(t, ns, "once", never)
	c.readyPod(t, ns, "once")
	stop()
	if err := dead(process); err != nil {
		t.Errorf("the node has ended and %v", err)
	}
	c.startNode(t)
	var after *corev1.Pod
	eventually(t, "the pod runs again", func() error {
		after = c.pod(t, ns, "web")
		if status := after.Status.ContainerStatuses[0]; status.RestartCount != 1 || !status.Ready {
			return fmt.Errorf("status is %+v", status)
		}
		return nil
	})
	if after.Status.PodIP != before.Status.PodIP {
		t.Errorf("its address changed from %s to %s", before.Status.PodIP, after.Status.PodIP)
	}
	mustGet(t, after, "/whoami")
	eventually(t, "a pod that must not run twice has failed", func() error {
		pod := c.pod(t, ns, "once")
		if status := pod.Status.ContainerStatuses[0]; pod.Status.Phase != corev1.PodFailed ||
			status.State.Terminated == nil ||
			status.State.Terminated.Reason != "ContainerStatusUnknown" {
			return fmt.Errorf("status is %+v", pod.Status)
		}
		return nil
	})
}
