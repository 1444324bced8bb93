package fleet

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"
)

// startTimeout is the most that starting may take once binaries exist.
const startTimeout = 4 * time.Minute

// Up starts a fleet, or whatever a running one lacks, and returns when every
// spoke has joined the hub. Progress is told line by line.
func Up(ctx context.Context, o Options, out io.Writer) (*Fleet, error) {
	report := newProgress(out)
	if err := o.complete(); err != nil {
		return nil, err
	}
	f, err := locate(o.Name)
	if err != nil {
		return nil, err
	}
	access := o.Access || f.load() == nil && f.state.Access
	if err := f.checkSandbox(ctx, access); err != nil {
		return nil, err
	}
	if _, err := f.Processes(ctx); errors.Is(err, errNoSupervisor) {
		if err := checkWatches(o.Spokes, syscall.InotifyInit1); err != nil {
			return nil, err
		}
	}
	kube, err := f.toolPath(ctx, kubeTool, report)
	if err != nil {
		return nil, err
	}
	ocm, err := f.toolPath(ctx, ocmTool, report)
	if err != nil {
		return nil, err
	}
	module, err := f.moduleDir(ctx, ocmTool, "open-cluster-management.io/ocm")
	if err != nil {
		return nil, err
	}
	if access {
		if f.access, err = f.findAccess(ctx, report); err != nil {
			return nil, err
		}
	}

	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	unlock, err := lockFile(ctx, f.path("lock"))
	if err != nil {
		return nil, err
	}
	defer unlock()
	if err := f.plan(o.Spokes, access, report); err != nil {
		return nil, err
	}
	if err := f.start(ctx, kube, ocm, manifests{dir: filepath.Join(module, "manifests")}, report); err != nil {
		return nil, fmt.Errorf("%w\nlogs are in %s", err, f.LogDir())
	}
	return f, nil
}

// plan chooses what the fleet has not chosen yet.
func (f *Fleet) plan(spokes int, access bool, report *progress) error {
	switch err := f.load(); {
	case errors.Is(err, ErrNoFleet):
		f.state = state{Ports: map[string]int{}}
	case err != nil:
		return err
	case spokes < f.state.Spokes:
		report.line("fleet %s has %d spokes already and does not shrink", f.Name, f.state.Spokes)
	}
	f.state.Spokes = max(spokes, f.state.Spokes)
	f.state.Access = f.state.Access || access
	if f.state.Network == 0 {
		network, err := pickNetwork(f.Dir, claimNetwork)
		if err != nil {
			return err
		}
		f.state.Network = network
	}
	free := newPorts(f.Dir, f.takenPorts())
	for _, listener := range f.listeners() {
		if f.state.Ports[listener] != 0 {
			continue
		}
		port, err := free.pick()
		if err != nil {
			return err
		}
		f.state.Ports[listener] = port
	}
	return f.save()
}

// listeners are all that needs a port.
func (f *Fleet) listeners() []string {
	names := []string{"hub/webhooks", "hub/webhook-probes", "hub/registration", "hub/placement", "hub/addon-manager"}
	for _, cluster := range f.Clusters() {
		for _, server := range []string{"etcd", "etcd-peer", "apiserver", "controller-manager"} {
			names = append(names, cluster+"/"+server)
		}
	}
	for _, spoke := range f.Spokes() {
		names = append(names, spoke+"/registration-agent", spoke+"/work-agent")
	}
	if f.state.Access {
		names = append(names, proxyEntrypoint)
	}
	return names
}

// takenPorts are those that fleets of this repository chose, running or not.
func (f *Fleet) takenPorts() map[int]bool {
	taken := map[int]bool{}
	names, err := Names()
	if err != nil {
		return taken
	}
	for _, name := range names {
		other, err := Open(name)
		if err != nil {
			continue // going down at this moment
		}
		for _, port := range other.state.Ports {
			taken[port] = true
		}
	}
	return taken
}

func (f *Fleet) start(ctx context.Context, kube, ocm string, m manifests, report *progress) error {
	before, err := f.Processes(ctx)
	if errors.Is(err, errNoSupervisor) {
		report.line("starting fleet %s: a hub and %d spokes", f.Name, f.state.Spokes)
		err = f.startSupervisor(ctx)
	}
	if err != nil {
		return err
	}
	if err := f.startControlPlanes(ctx, kube, report); err != nil {
		return err
	}
	if err := f.startHubOCM(ctx, ocm, m, report); err != nil {
		return err
	}
	if err := f.installAccess(ctx, report); err != nil {
		return err
	}
	err = each(f.Spokes(), func(name string) error { return f.startSpokeOCM(ctx, ocm, name, m, report) })
	if err != nil {
		return err
	}
	if err := each(f.Clusters(), func(name string) error { return f.waitNode(ctx, name) }); err != nil {
		return err
	}
	if err := f.waitAccess(ctx, report); err != nil {
		return err
	}
	if err := f.linkKubectl(kube); err != nil {
		return err
	}
	after, err := f.Processes(ctx)
	if err != nil {
		return err
	}
	if fresh := started(before, after); len(fresh) == 0 {
		report.line("fleet %s was running already, nothing was missing", f.Name)
	} else {
		report.line("fleet %s is up: %d processes started, %d in all", f.Name, len(fresh), len(after))
	}
	return nil
}

// started lists the processes that run now and did not before.
func started(before, after []ProcessStatus) []string {
	was := map[identity]bool{}
	for _, p := range before {
		if p.Running {
			was[p.identity] = true
		}
	}
	var names []string
	for _, p := range after {
		if !was[p.identity] {
			names = append(names, p.Name)
		}
	}
	return names
}

// startSupervisor starts the process that outlives this one.
func (f *Fleet) startSupervisor(ctx context.Context) error {
	if err := f.killRecorded(ctx); err != nil { // of a supervisor that was killed
		return err
	}
	self, err := f.ownBinary(ctx)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(f.LogDir(), dirMode); err != nil {
		return err
	}
	logFile, err := os.OpenFile(filepath.Join(f.LogDir(), "supervisor.log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, fileMode)
	if err != nil {
		return err
	}
	defer func() { _ = logFile.Close() }()
	cmd := exec.Command(self, "supervise", "--name", f.Name)
	cmd.Dir = f.Dir
	cmd.Env = baseEnv(os.Environ())
	cmd.Stdout, cmd.Stderr = logFile, logFile
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		return err
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	return wait(ctx, "the supervisor", 20*time.Millisecond, func(ctx context.Context) (bool, error) {
		select {
		case err := <-ended:
			return false, fmt.Errorf("it ended: %w; see %s", err, logFile.Name())
		default:
		}
		_, err := f.Processes(ctx)
		return err == nil, err
	})
}

// ownBinary is this command, kept where "go run" does not remove it. A test
// that starts a fleet is another program, so it builds the command first.
func (f *Fleet) ownBinary(ctx context.Context) (string, error) {
	binary := f.path("bin", "fleet")
	if !ownProgram() {
		if err := os.MkdirAll(filepath.Dir(binary), dirMode); err != nil {
			return "", err
		}
		_, err := goCommand(ctx, filepath.Join(f.Root, "test", "e2e"), "build", "-o", binary, "./cmd/fleet")
		return binary, err
	}
	self, err := os.ReadFile("/proc/self/exe")
	if err != nil {
		return "", err
	}
	return binary, writeFile(binary, self, 0o700)
}
