package node

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/record"

	"open-cluster-management.io/cluster-inventory-addon/test/fleet/node/sandbox"
)

// hostIP is the address of every process node: there is one network.
const hostIP = "127.0.0.1"

// retryPeriod is the wait after a failed call to the API server.
const retryPeriod = time.Second

// machine is what the pods of a node share.
type machine struct {
	cfg       Config
	client    kubernetes.Interface
	launcher  *sandbox.Launcher
	objects   *objects
	services  *services // nil when there are none
	addresses *addresses
	recorder  record.EventRecorder
	env       map[string]string // variables every container has
	log       logr.Logger
}

// worker runs one pod from its arrival to its end.
type worker struct {
	*machine
	name    types.NamespacedName
	uid     types.UID
	dir     string
	log     logr.Logger
	tokens  *tokens
	volumes map[string]*volumeDir
	sub     *subscription
	init    []*container
	main    []*container

	// ending is done when the pod has to end, killing when it has had time enough for that.
	ending, killing context.Context
	end, kill       context.CancelFunc
	done            chan struct{}

	changed   chan struct{} // the status may differ from the reported one
	refreshed chan struct{} // a referenced object may have changed

	mu        sync.Mutex
	pod       *corev1.Pod // newest spec and metadata
	podIP     string
	network   *network
	hosts     string // what /etc/hosts says apart from Services
	mounted   bool
	startTime time.Time
	killTimer *time.Timer

	reporting sync.Mutex
	reported  corev1.PodStatus
}

func newWorker(m *machine, pod *corev1.Pod) *worker {
	w := &worker{
		machine: m, pod: pod, reported: pod.Status, startTime: time.Now(), network: hostNetwork,
		name: types.NamespacedName{Namespace: pod.Namespace, Name: pod.Name}, uid: pod.UID,
		dir:       filepath.Join(m.cfg.Dir, string(pod.UID)),
		log:       m.log.WithValues("namespace", pod.Namespace, "pod", pod.Name),
		tokens:    &tokens{client: m.client, pod: pod, now: time.Now, issued: map[tokenKey]token{}},
		volumes:   map[string]*volumeDir{},
		done:      make(chan struct{}),
		changed:   make(chan struct{}, 1),
		refreshed: make(chan struct{}, 1),
	}
	w.ending, w.end = context.WithCancel(context.Background())
	w.killing, w.kill = context.WithCancel(context.Background())
	waiting := reasonContainerCreating
	if len(pod.Spec.InitContainers) > 0 {
		waiting = reasonPodInitializing
	}
	for i := range pod.Spec.InitContainers {
		// Init containers run again when a node takes a pod over, as after the loss of a pod's sandbox.
		state := containerState{waiting: &corev1.ContainerStateWaiting{Reason: waiting}}
		w.init = append(w.init, &container{worker: w, index: i, init: true, state: state})
	}
	for i, spec := range pod.Spec.Containers {
		state := inherited(pod.Spec.RestartPolicy, statusOf(pod, spec.Name), waiting, w.startTime)
		w.main = append(w.main, &container{worker: w, index: i, state: state})
	}
	return w
}

func statusOf(pod *corev1.Pod, container string) corev1.ContainerStatus {
	for _, status := range pod.Status.ContainerStatuses {
		if status.Name == container {
			return status
		}
	}
	return corev1.ContainerStatus{}
}

// run returns when the pod has ended, will not be restarted, and the API server was told. It stops talking to
// the API server when ctx ends.
func (w *worker) run(ctx context.Context) {
	defer close(w.done)
	defer w.end()
	defer w.kill()
	reporting, stopReporting := context.WithCancel(ctx)
	defer stopReporting()
	go w.reportChanges(reporting)

	working, stopWorking := context.WithCancel(ctx)
	var background sync.WaitGroup
	if !w.settled() && w.prepare(ctx) {
		background.Go(func() { w.keepFresh(working) })
		w.runContainers(ctx)
	}
	stopWorking()
	background.Wait()
	w.poke()
	<-w.ending.Done()
	w.release()
	w.finish(ctx)
}

// prepare gives the pod what its containers need, waiting for missing objects. It returns false
// when the pod has to end first.
func (w *worker) prepare(ctx context.Context) bool {
	pod := w.current()
	if reason := unsupported(pod); reason != "" {
		w.hold(reasonCreateContainerError, reason)
		w.recorder.Event(pod, corev1.EventTypeWarning, "Failed", reason)
		return false
	}
	if err := w.place(pod); err != nil {
		w.hold(reasonCreateContainerError, err.Error())
		w.recorder.Event(pod, corev1.EventTypeWarning, "FailedCreatePodSandBox", err.Error())
		return false
	}
	w.poke()
	sub, err := w.objects.subscribe(ctx, pod.Namespace, references(pod), func() { signal(w.refreshed) })
	if err != nil {
		w.hold(reasonCreateContainerError, err.Error())
		return false
	}
	w.sub = sub
	synced := sub.synced(w.ending) //nolint:contextcheck // a pod that has to end stops waiting, even if the node goes on
	return synced && w.mountAll(ctx)
}

// settled reports that a pod taken over had ended unnoticed.
func (w *worker) settled() bool {
	for _, c := range w.main {
		if !c.snapshot().settled(c.policy()) {
			return false
		}
	}
	return true
}

// place finds an address, a network and a directory for the pod.
func (w *worker) place(pod *corev1.Pod) error {
	in, address, err := w.connect(pod)
	if err != nil {
		return err
	}
	w.mu.Lock()
	w.podIP, w.network = address, in
	w.mu.Unlock()
	for _, dir := range []string{"etc", "roots", "termination", "volumes"} {
		if err := makeDir(filepath.Join(w.dir, dir)); err != nil {
			return err
		}
	}
	if err := w.writeHostFiles(); err != nil {
		return err
	}
	w.services.join(w, in)
	return nil
}

// connect finds an address for the pod, in a network of its own when one of its images wants that.
func (w *worker) connect(pod *corev1.Pod) (in *network, address string, err error) {
	own := func(c corev1.Container) bool { return slices.Contains(w.cfg.OwnNetwork, repository(c.Image)) }
	switch {
	case pod.Spec.HostNetwork:
		return hostNetwork, hostIP, nil
	case slices.ContainsFunc(pod.Spec.InitContainers, own) || slices.ContainsFunc(pod.Spec.Containers, own):
		return w.services.plugs.plug(pod.Status.PodIP)
	default:
		address, err = w.addresses.take(pod.Status.PodIP)
		return hostNetwork, address, err
	}
}

func (w *worker) writeHostFiles() error {
	pod := w.current()
	lines := []string{"127.0.0.1 localhost", "::1 localhost", pod.Status.PodIP + " " + hostname(pod)}
	for _, alias := range pod.Spec.HostAliases {
		lines = append(lines, alias.IP+" "+strings.Join(alias.Hostnames, " "))
	}
	hosts := strings.Join(lines, "\n") + "\n"
	if w.cfg.HostsFile != "" {
		more, err := os.ReadFile(w.cfg.HostsFile)
		if err != nil {
			return err
		}
		hosts += string(more)
	}
	w.mu.Lock()
	w.hosts = hosts
	own := w.network.own()
	w.mu.Unlock()
	// A host without the file resolves as with an empty one. In a network of its own there is no server to ask.
	var resolver []byte
	if !own {
		resolver, _ = os.ReadFile("/etc/resolv.conf")
	}
	files := map[string]string{"hosts": hosts, "resolv.conf": string(resolver), "hostname": hostname(pod) + "\n"}
	for name, data := range files {
		if err := writeFile(filepath.Join(w.dir, "etc", name), data); err != nil {
			return err
		}
	}
	return nil
}

// writeHosts makes the pod know the names of Services.
func (w *worker) writeHosts(services string) error {
	w.mu.Lock()
	hosts := w.hosts
	w.mu.Unlock()
	return overwriteFile(filepath.Join(w.dir, "etc", "hosts"), hosts+services)
}

// dial connects from the node, as a kubelet does for probes.
func (w *worker) dial(ctx context.Context, protocol, address string) (net.Conn, error) {
	w.mu.Lock()
	own := w.network.own()
	w.mu.Unlock()
	return w.services.wayTo(own).dial(ctx, protocol, address)
}

func hostname(pod *corev1.Pod) string {
	const longest = 63
	name := or(pod.Spec.Hostname, pod.Name)
	return strings.TrimRight(name[:min(len(name), longest)], "-.")
}

// mountAll writes all volumes, trying again whenever an object they need changes.
func (w *worker) mountAll(ctx context.Context) bool {
	said := ""
	for {
		err := w.mount(ctx)
		if err == nil {
			w.mu.Lock()
			w.mounted = true
			w.mu.Unlock()
			w.hold(reasonContainerCreating, "")
			return true
		}
		if err.Error() != said {
			said = err.Error()
			w.hold(reasonContainerCreating, said)
			w.recorder.Event(w.current(), corev1.EventTypeWarning, "FailedMount", said)
		}
		select {
		case <-w.refreshed:
		case <-time.After(retryPeriod):
		case <-w.ending.Done():
			return false
		}
	}
}

// mount brings every volume up to date.
func (w *worker) mount(ctx context.Context) error {
	pod := w.current()
	for _, volume := range pod.Spec.Volumes {
		if err := w.mountVolume(ctx, pod, volume); err != nil {
			return fmt.Errorf("volume %q: %w", volume.Name, err)
		}
	}
	return nil
}

func (w *worker) mountVolume(ctx context.Context, pod *corev1.Pod, volume corev1.Volume) error {
	if volume.Image != nil {
		_, err := imageDir(w.cfg.Images, volume.Image.Reference)
		return err
	}
	dir := w.volumes[volume.Name]
	if dir == nil {
		dir = &volumeDir{path: w.volumePath(volume.Name), group: fsGroup(pod)}
		w.volumes[volume.Name] = dir
	}
	if volume.EmptyDir != nil {
		return makeEmptyDir(dir)
	}
	files, err := volumePayload(pod, volume, w.sub.get, func(p *corev1.ServiceAccountTokenProjection) ([]byte, error) {
		return w.tokens.get(ctx, p)
	})
	if err != nil {
		return err
	}
	_, err = dir.write(files)
	return err
}

// makeEmptyDir makes, once, a directory everyone can write to, as a kubelet does.
func makeEmptyDir(dir *volumeDir) error {
	if dir.written {
		return nil
	}
	dir.written = true
	if err := makeDir(dir.path); err != nil {
		return err
	}
	return dir.own(dir.path, 0o777)
}

// fsGroup is the group volumes are given to, which only root can do.
func fsGroup(pod *corev1.Pod) *int {
	if os.Geteuid() != 0 || pod.Spec.SecurityContext == nil || pod.Spec.SecurityContext.FSGroup == nil {
		return nil
	}
	group := int(*pod.Spec.SecurityContext.FSGroup)
	return &group
}

func (w *worker) volumePath(name string) string { return filepath.Join(w.dir, "volumes", name) }

// volumeSource is what a container sees of a volume: the directory that mountVolume wrote, or an image.
func (w *worker) volumeSource(pod *corev1.Pod, name string) (string, error) {
	for _, volume := range pod.Spec.Volumes {
		if volume.Name == name && volume.Image != nil {
			return imageDir(w.cfg.Images, volume.Image.Reference)
		}
	}
	return w.volumePath(name), nil
}

// keepFresh writes volumes again when an object changed or a token is due. An object that has gone
// leaves its files, as with a kubelet.
func (w *worker) keepFresh(ctx context.Context) {
	for {
		wait := time.Hour
		if due, have := w.tokens.renewal(); have {
			wait = max(time.Until(due), retryPeriod)
		}
		select {
		case <-w.refreshed:
		case <-time.After(wait):
		case <-ctx.Done():
			return
		}
		if err := w.mount(ctx); err != nil {
			w.log.V(1).Info("Volumes stay as they were", "reason", err.Error())
		}
	}
}

// runContainers returns when no container will run any more.
func (w *worker) runContainers(ctx context.Context) {
	for _, c := range w.init {
		c.run(ctx)
		if !succeeded(c.snapshot()) {
			return
		}
	}
	w.hold(reasonContainerCreating, "")
	var group sync.WaitGroup
	for _, c := range w.main {
		group.Go(func() { c.run(ctx) })
	}
	group.Wait()
}

// stop ends the pod: containers are asked to, and killed when the grace period is over. A later
// call can only shorten it.
func (w *worker) stop(grace time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.killTimer == nil || w.killTimer.Stop() {
		w.killTimer = time.AfterFunc(grace, w.kill)
	}
	w.end()
}

// release gives back what the pod held.
func (w *worker) release() {
	if w.sub != nil {
		w.sub.close()
	}
	w.mu.Lock()
	in, address := w.network, w.podIP
	w.mu.Unlock()
	w.services.leave(w, in, address)
	w.addresses.release(address)
	if err := os.RemoveAll(w.dir); err != nil {
		w.log.Error(err, "Scratch directory stays")
	}
}

// finish reports how the pod ended and, as a kubelet does, removes the object that was only kept for that.
func (w *worker) finish(ctx context.Context) {
	for ctx.Err() == nil {
		err := w.report(ctx)
		if err == nil {
			err = finalize(ctx, w.client, w.current())
		}
		if err == nil {
			return
		}
		w.log.Error(err, "Trying again to report the end of the pod")
		select {
		case <-ctx.Done():
		case <-time.After(retryPeriod):
		}
	}
}

// finalize deletes a pod object without grace, unless it is another pod of the same name.
func finalize(ctx context.Context, client kubernetes.Interface, pod *corev1.Pod) error {
	options := *metav1.NewDeleteOptions(0)
	options.Preconditions = metav1.NewUIDPreconditions(string(pod.UID))
	err := client.CoreV1().Pods(pod.Namespace).Delete(ctx, pod.Name, options)
	if err == nil || apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil
	}
	return fmt.Errorf("delete pod %s/%s: %w", pod.Namespace, pod.Name, err)
}

// current returns the pod with its addresses, for reading only by the caller.
func (w *worker) current() *corev1.Pod {
	w.mu.Lock()
	defer w.mu.Unlock()
	pod := w.pod.DeepCopy()
	pod.Spec.NodeName = w.cfg.NodeName
	pod.Status.HostIP = hostIP
	if w.podIP != "" {
		pod.Status.PodIP = w.podIP
	}
	return pod
}

// spec returns the pod as virtual-kubelet last gave it, which it compares with the newest to find updates.
func (w *worker) spec() *corev1.Pod {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.pod.DeepCopy()
}

// update takes newer metadata and spec; the downward API may show them.
func (w *worker) update(pod *corev1.Pod) {
	w.mu.Lock()
	w.pod = pod
	w.mu.Unlock()
	signal(w.refreshed)
}

// endpoint is where the pod serves a port of a Service and whether that is in a network of its own;
// ok is false when the Service does not lead to it.
func (w *worker) endpoint(
	service *corev1.Service, selector labels.Selector, port corev1.ServicePort,
) (address string, own, ok bool) {
	w.mu.Lock()
	pod, in, ip := w.pod, w.network, w.podIP
	w.mu.Unlock()
	if ip == "" || w.ending.Err() != nil || pod.Namespace != service.Namespace ||
		!selector.Matches(labels.Set(pod.Labels)) {
		return "", false, false
	}
	if !service.Spec.PublishNotReadyAddresses && !isConditionTrue(w.status(), corev1.PodReady) {
		return "", false, false
	}
	number := int(port.Port)
	if port.TargetPort != (intstr.IntOrString{}) {
		var ports []corev1.ContainerPort
		for _, c := range pod.Spec.Containers {
			ports = append(ports, c.Ports...)
		}
		var err error
		if number, err = portNumber(port.TargetPort, ports); err != nil {
			return "", false, false
		}
	}
	return net.JoinHostPort(ip, strconv.Itoa(number)), in.own(), true
}

// hold makes every container that has not run yet wait for a reason.
func (w *worker) hold(reason, message string) {
	w.mu.Lock()
	for _, c := range append(append([]*container{}, w.init...), w.main...) {
		if s := &c.state; s.waiting != nil {
			s.waiting = &corev1.ContainerStateWaiting{Reason: reason, Message: message}
		}
	}
	w.mu.Unlock()
	w.poke()
}

func (w *worker) poke() { signal(w.changed) }

// signal notes in a channel of one place that there is something to do.
func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

func (w *worker) reportChanges(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-w.changed:
		}
		if err := w.report(ctx); err != nil && ctx.Err() == nil {
			w.log.Error(err, "Trying again to report the status")
			time.AfterFunc(retryPeriod, w.poke)
		}
	}
}

// status computes the pod's status as it is now.
func (w *worker) status() corev1.PodStatus {
	w.mu.Lock()
	defer w.mu.Unlock()
	pod := w.pod.DeepCopy()
	pod.Status = w.reported
	return podStatus(observed{
		pod: pod, podIP: w.podIP, hostIP: hostIP, init: states(w.init), main: states(w.main), mounted: w.mounted,
		stopping: w.ending.Err() != nil, startTime: w.startTime, now: time.Now(),
	})
}

func states(containers []*container) []containerState {
	out := make([]containerState, 0, len(containers))
	for _, c := range containers {
		out = append(out, c.state)
	}
	return out
}

// report patches what has changed since the last report, and nothing when nothing has. A pod that
// is gone or is another one needs no report.
func (w *worker) report(ctx context.Context) error {
	w.reporting.Lock()
	defer w.reporting.Unlock()
	patch, err := statusPatch(w.uid, w.reported, w.status())
	if err != nil || patch == nil {
		return err
	}
	updated, err := w.client.CoreV1().Pods(w.name.Namespace).Patch(
		ctx, w.name.Name, types.StrategicMergePatchType, patch, metav1.PatchOptions{}, "status",
	)
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("patch the status of pod %s: %w", w.name, err)
	}
	w.mu.Lock()
	w.reported = updated.Status
	w.mu.Unlock()
	return nil
}

// statusPatch returns nil when both are the same. The UID keeps it away from a later pod of the same name.
func statusPatch(uid types.UID, from, to corev1.PodStatus) ([]byte, error) {
	before, err := json.Marshal(corev1.Pod{Status: from})
	if err != nil {
		return nil, err
	}
	after, err := json.Marshal(corev1.Pod{Status: to})
	if err != nil {
		return nil, err
	}
	raw, err := strategicpatch.CreateTwoWayMergePatch(before, after, corev1.Pod{})
	if err != nil {
		return nil, err
	}
	var patch map[string]any
	if err := json.Unmarshal(raw, &patch); err != nil || len(patch) == 0 {
		return nil, err
	}
	patch["metadata"] = map[string]any{"uid": uid}
	return json.Marshal(patch)
}
