package node

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"open-cluster-management.io/cluster-inventory-addon/test/fleet/node/sandbox"
)

// stableAfter is how long a container must have run for the back-off to start again.
const stableAfter = 2 * lastBackoff

// container runs one container of a pod, and restarts it as the restart policy says.
type container struct {
	worker *worker
	index  int
	init   bool

	state containerState // guarded by worker.mu
}

func (c *container) spec() *corev1.Container {
	pod := c.worker.current()
	if c.init {
		return &pod.Spec.InitContainers[c.index]
	}
	return &pod.Spec.Containers[c.index]
}

func (c *container) policy() corev1.RestartPolicy {
	policy := c.worker.current().Spec.RestartPolicy
	if c.init {
		return initPolicy(policy)
	}
	return policy
}

func (c *container) snapshot() containerState {
	c.worker.mu.Lock()
	defer c.worker.mu.Unlock()
	return c.state
}

// change edits the state and triggers a status report.
func (c *container) change(edit func(*containerState)) {
	c.worker.mu.Lock()
	edit(&c.state)
	c.worker.mu.Unlock()
	c.worker.poke()
}

// changeRunning edits the state unless the process has ended meanwhile: a late probe result must
// not affect the next process.
func (c *container) changeRunning(process *sandbox.Process, edit func(*containerState)) {
	c.change(func(s *containerState) {
		if s.running != nil && s.id == containerID(process) {
			edit(s)
		}
	})
}

func containerID(process *sandbox.Process) string {
	return fmt.Sprintf("process://%d.%d", process.PID, process.StartTicks)
}

func (c *container) wait(reason, message string) {
	c.change(func(s *containerState) {
		s.waiting, s.running, s.terminated = &corev1.ContainerStateWaiting{Reason: reason, Message: message}, nil, nil
	})
}

// run returns when the container will not run again, or the pod ends.
func (c *container) run(ctx context.Context) {
	for crashes := 0; !c.snapshot().settled(c.policy()); crashes++ {
		began := time.Now()
		if !c.once(ctx) || c.worker.ending.Err() != nil || c.snapshot().settled(c.policy()) {
			return
		}
		if time.Since(began) > stableAfter {
			crashes = 0
		}
		if !c.backOff(crashes) {
			return
		}
	}
}

// once runs the container until it exits. It returns false if the pod ended before the start.
func (c *container) once(ctx context.Context) bool {
	spec := c.spec()
	settings, ok := c.settings(spec)
	if !ok {
		return false
	}
	defer closeQuietly(settings.Output)
	began := time.Now()
	process, err := c.worker.launcher.Start(settings)
	if err != nil {
		c.change(func(s *containerState) {
			s.waiting, s.running = nil, nil
			s.terminated = terminatedState(exitStartError, began, time.Now(), "")
			s.terminated.Reason, s.terminated.Message = reasonStartError, err.Error()
		})
		c.worker.recorder.Event(c.worker.current(), corev1.EventTypeWarning, "Failed", err.Error())
		return true
	}
	id := containerID(process)
	c.change(func(s *containerState) {
		s.waiting, s.terminated, s.id = nil, nil, id
		s.running = &corev1.ContainerStateRunning{StartedAt: metav1.NewTime(began).Rfc3339Copy()}
		s.started = spec.StartupProbe == nil
		s.ready = s.started && spec.ReadinessProbe == nil && !c.init
	})
	c.notePID(process)
	c.supervise(ctx, spec, process)
	c.forgetPID()
	exit := process.Exit()
	c.change(func(s *containerState) {
		s.waiting, s.running, s.started, s.ready = nil, nil, false, false
		s.terminated = terminatedState(exit.Code, began, exit.At, id)
		s.terminated.Message = c.terminationMessage(spec, exit.Code)
	})
	return true
}

// settings resolves how to run the container and retries until it can. It returns false if the pod
// ends first.
func (c *container) settings(spec *corev1.Container) (sandbox.Spec, bool) {
	said := ""
	for {
		settings, reason, err := c.resolve(spec)
		if err == nil {
			return settings, true
		}
		if err.Error() != said {
			c.worker.recorder.Event(c.worker.current(), corev1.EventTypeWarning, "Failed", err.Error())
		} else if reason == reasonErrImagePull {
			reason = reasonImagePullBackOff
		}
		said = err.Error()
		c.wait(reason, said)
		select {
		case <-time.After(retryPeriod):
		case <-c.worker.ending.Done():
			return sandbox.Spec{}, false
		}
	}
}

// resolve returns how to run the container, or why it cannot run: the waiting reason and an error.
func (c *container) resolve(spec *corev1.Container) (sandbox.Spec, string, error) {
	w, pod := c.worker, c.worker.current()
	image, err := imageDir(w.cfg.Images, spec.Image)
	if err != nil {
		return sandbox.Spec{}, reasonErrImagePull, err
	}
	settings, err := c.configure(pod, spec)
	if err != nil {
		return sandbox.Spec{}, reasonCreateContainerError, err
	}
	settings.Image = image
	w.mu.Lock()
	settings.Network = w.network.namespace
	w.mu.Unlock()
	settings.Root = filepath.Join(w.dir, "roots", spec.Name)
	if err := makeDir(settings.Root); err != nil {
		return sandbox.Spec{}, reasonCreateContainerError, err
	}
	log := filepath.Join(w.cfg.LogDir, fmt.Sprintf("%s_%s_%s.log", pod.Namespace, pod.Name, spec.Name))
	if settings.Output, err = os.OpenFile(log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600); err != nil {
		return sandbox.Spec{}, reasonCreateContainerError, err
	}
	return settings, "", nil
}

func (c *container) configure(pod *corev1.Pod, spec *corev1.Container) (sandbox.Spec, error) {
	w := c.worker
	who, err := runAs(pod, spec)
	if err != nil {
		return sandbox.Spec{}, err
	}
	base := map[string]string{
		"PATH":     "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin:/",
		"HOME":     "/",
		"HOSTNAME": hostname(pod),
	}
	for name, value := range w.env {
		base[name] = value
	}
	vars, err := environment(pod, spec, base, w.sub.get)
	if err != nil {
		return sandbox.Spec{}, err
	}
	mounts, err := c.mounts(pod, spec, vars)
	if err != nil {
		return sandbox.Spec{}, err
	}
	return sandbox.Spec{
		Mounts: mounts, ReadOnlyRoot: readOnlyRoot(spec), Hostname: hostname(pod),
		Argv: commandLine(spec, vars), Env: assignments(vars), Dir: spec.WorkingDir,
		UID: who.uid, GID: who.gid, Groups: who.groups,
	}, nil
}

// mounts lists the container's bind mounts. Volumes with API content are always read-only, as with a
// kubelet.
func (c *container) mounts(pod *corev1.Pod, spec *corev1.Container, vars map[string]string) ([]sandbox.Mount, error) {
	w := c.worker
	var mounts []sandbox.Mount
	for _, name := range []string{"hosts", "resolv.conf", "hostname"} {
		source := filepath.Join(w.dir, "etc", name)
		mounts = append(mounts, sandbox.Mount{Source: source, Target: "/etc/" + name, ReadOnly: true})
	}
	message, err := c.messageFile(spec)
	if err != nil {
		return nil, err
	}
	mounts = append(mounts, message)
	for _, mount := range spec.VolumeMounts {
		source, err := w.volumeSource(pod, mount.Name)
		if err != nil {
			return nil, err
		}
		writable := isEmptyDir(pod, mount.Name)
		if sub := or(mount.SubPath, expand(mount.SubPathExpr, vars)); sub != "" {
			if source, err = subPath(source, sub, writable); err != nil {
				return nil, err
			}
		}
		mounts = append(mounts, sandbox.Mount{
			Source: source, Target: path.Clean(mount.MountPath), ReadOnly: mount.ReadOnly || !writable,
		})
	}
	return mounts, nil
}

func isEmptyDir(pod *corev1.Pod, volume string) bool {
	for _, v := range pod.Spec.Volumes {
		if v.Name == volume {
			return v.EmptyDir != nil
		}
	}
	return false
}

// subPath resolves links, so that later updates of the volume do not reach the mount, as with a
// kubelet.
func subPath(volume, sub string, writable bool) (string, error) {
	if !filepath.IsLocal(sub) {
		return "", fmt.Errorf("subPath %q leaves its volume", sub)
	}
	joined := filepath.Join(volume, sub)
	if writable {
		if _, err := os.Stat(joined); errors.Is(err, os.ErrNotExist) {
			if err := makeDir(joined); err != nil {
				return "", err
			}
			if err := os.Chmod(joined, 0o777); err != nil { //nolint:gosec // the container's user is not known here
				return "", err
			}
		}
	}
	return filepath.EvalSymlinks(joined)
}

func (c *container) messagePath(spec *corev1.Container) string {
	return filepath.Join(c.worker.dir, "termination", spec.Name)
}

func (c *container) messageFile(spec *corev1.Container) (sandbox.Mount, error) {
	file := c.messagePath(spec)
	if err := writeFile(file, ""); err != nil {
		return sandbox.Mount{}, err
	}
	if err := os.Chmod(file, 0o666); err != nil { //nolint:gosec // the container's user is not known here
		return sandbox.Mount{}, err
	}
	return sandbox.Mount{Source: file, Target: or(spec.TerminationMessagePath, corev1.TerminationMessagePathDefault)}, nil
}

// terminationMessage is what the container wrote to its file, or the end of its log if it failed and
// asks for that.
func (c *container) terminationMessage(spec *corev1.Container, code int32) string {
	const longest = 4096
	if message := tail(c.messagePath(spec), longest); message != "" {
		return message
	}
	if code == 0 || spec.TerminationMessagePolicy != corev1.TerminationMessageFallbackToLogsOnError {
		return ""
	}
	pod := c.worker.current()
	const shown = 2048
	return tail(filepath.Join(c.worker.cfg.LogDir, fmt.Sprintf("%s_%s_%s.log", pod.Namespace, pod.Name, spec.Name)), shown)
}

// tail returns the last bytes of a file, or nothing if it cannot be read.
func tail(name string, n int64) string {
	f, err := os.Open(name)
	if err != nil {
		return ""
	}
	defer closeQuietly(f)
	info, err := f.Stat()
	if err != nil {
		return ""
	}
	data, err := io.ReadAll(io.NewSectionReader(f, max(0, info.Size()-n), n))
	if err != nil {
		return ""
	}
	return strings.ToValidUTF8(string(data), "")
}

// supervise waits for the process to exit, and terminates it if the pod ends or a liveness or
// startup probe fails.
func (c *container) supervise(ctx context.Context, spec *corev1.Container, process *sandbox.Process) {
	probing, stopProbing := context.WithCancel(ctx)
	defer stopProbing()
	unhealthy := make(chan time.Duration, 1)
	go c.probe(probing, spec, process, unhealthy)
	select {
	case <-process.Done():
	case <-c.worker.ending.Done():
		stopProbing()
		c.terminate(process, nil)
	case grace := <-unhealthy:
		stopProbing()
		timer := time.NewTimer(grace)
		defer timer.Stop()
		c.terminate(process, timer.C)
	}
}

// terminate sends SIGTERM, and SIGKILL at the end of the pod's or the container's grace period.
func (c *container) terminate(process *sandbox.Process, over <-chan time.Time) {
	if err := process.Signal(syscall.SIGTERM); err != nil {
		c.worker.log.Error(err, "Cannot ask a container to end")
	}
	select {
	case <-process.Done():
		return
	case <-c.worker.killing.Done():
	case <-over:
	}
	if err := process.Signal(syscall.SIGKILL); err != nil {
		c.worker.log.Error(err, "Cannot kill a container")
	}
	<-process.Done()
}

// backOff waits before a restart and returns false when the pod ends meanwhile.
func (c *container) backOff(crashes int) bool {
	delay := backoff(crashes)
	name := c.spec().Name
	c.change(func(s *containerState) {
		s.last, s.terminated = s.terminated, nil
		s.waiting = &corev1.ContainerStateWaiting{
			Reason:  reasonCrashLoopBackOff,
			Message: fmt.Sprintf("back-off %s restarting failed container=%s", delay, name),
		}
	})
	select {
	case <-time.After(delay):
	case <-c.worker.ending.Done():
		return false
	}
	c.change(func(s *containerState) { s.restarts++ })
	return true
}

// probe runs the container's probes until ctx ends. If the container has to be restarted, it sends
// the grace period, once.
func (c *container) probe(
	ctx context.Context, spec *corev1.Container, process *sandbox.Process, unhealthy chan<- time.Duration,
) {
	fail := func(kind string, probe *corev1.Probe) func(verdict, error) bool {
		return func(v verdict, err error) bool {
			if v == failing {
				c.worker.recorder.Eventf(c.worker.current(), corev1.EventTypeWarning, "Unhealthy",
					"%s probe failed, the container is restarted: %v", kind, err)
				unhealthy <- c.grace(probe)
			}
			return v == failing
		}
	}
	if spec.StartupProbe != nil {
		started := false
		failed := fail("Startup", spec.StartupProbe)
		c.repeat(ctx, spec, spec.StartupProbe, process, func(v verdict, err error) bool {
			started = v == passing
			return failed(v, err) || started
		})
		if !started {
			return
		}
		c.changeRunning(process, func(s *containerState) { s.started, s.ready = true, spec.ReadinessProbe == nil && !c.init })
	}
	if spec.LivenessProbe != nil {
		go c.repeat(ctx, spec, spec.LivenessProbe, process, fail("Liveness", spec.LivenessProbe))
	}
	if spec.ReadinessProbe != nil {
		c.repeat(ctx, spec, spec.ReadinessProbe, process, func(v verdict, err error) bool {
			if v == failing {
				c.worker.recorder.Eventf(
					c.worker.current(), corev1.EventTypeWarning, "Unhealthy", "Readiness probe failed: %v", err,
				)
			}
			c.changeRunning(process, func(s *containerState) { s.ready = v == passing })
			return false
		})
	}
}

// repeat probes until ctx ends. It passes each new verdict to on, and ends if on returns true.
func (c *container) repeat(
	ctx context.Context, spec *corev1.Container, probe *corev1.Probe, process *sandbox.Process,
	on func(verdict, error) bool,
) {
	period := max(time.Duration(probe.PeriodSeconds)*time.Second, time.Second)
	next := time.NewTimer(time.Duration(probe.InitialDelaySeconds) * time.Second)
	defer next.Stop()
	run := func(ctx context.Context, argv []string) (int32, error) {
		return c.worker.launcher.Exec(ctx, process, argv, nil)
	}
	var seen streak
	for {
		select {
		case <-ctx.Done():
			return
		case <-next.C:
		}
		next.Reset(period)
		err := attempt(ctx, probe, c.worker.current().Status.PodIP, spec.Ports, c.worker.dial, run)
		if ctx.Err() != nil {
			return
		}
		before := seen.verdict
		seen = seen.count(err == nil, probe)
		if seen.verdict != before && on(seen.verdict, err) {
			return
		}
	}
}

// grace is the grace period of a container that failed a probe.
func (c *container) grace(probe *corev1.Probe) time.Duration {
	return gracePeriod(probe.TerminationGracePeriodSeconds, c.worker.current().Spec.TerminationGracePeriodSeconds)
}

func gracePeriod(choices ...*int64) time.Duration {
	for _, seconds := range choices {
		if seconds != nil {
			return time.Duration(*seconds) * time.Second
		}
	}
	return corev1.DefaultTerminationGracePeriodSeconds * time.Second
}

func (c *container) pidFile() string {
	return filepath.Join(c.worker.dir, c.spec().Name+".pid")
}

// notePID writes the process to a file, for tests.
func (c *container) notePID(process *sandbox.Process) {
	line := fmt.Sprintf("%d %d\n", process.PID, process.StartTicks)
	if err := writeFile(c.pidFile(), line); err != nil {
		c.worker.log.Error(err, "Cannot note the process id")
	}
}

func (c *container) forgetPID() {
	if err := os.Remove(c.pidFile()); err != nil {
		c.worker.log.Error(err, "Cannot remove the process id")
	}
}
