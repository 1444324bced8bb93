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

	"open-cluster-management.io/cluster-inventory-addon/test/fleet/await"
	"open-cluster-management.io/cluster-inventory-addon/test/fleet/internal/files"
	"open-cluster-management.io/cluster-inventory-addon/test/fleet/internal/progress"
	"open-cluster-management.io/cluster-inventory-addon/test/fleet/ocm"
	"open-cluster-management.io/cluster-inventory-addon/test/fleet/programs"
	"open-cluster-management.io/cluster-inventory-addon/test/fleet/supervisor"
)

// startTimeout is how long starting may take once the programs are built: half a minute
// alone, several on a machine where other fleets start and tests run.
const startTimeout = 10 * time.Minute

// Up starts a fleet, or whatever a running one lacks, and returns when every
// spoke has joined the hub. It reports its progress to out.
func Up(ctx context.Context, o Options, out io.Writer) (*Fleet, error) {
	report := progress.New(out)
	if err := o.complete(); err != nil {
		return nil, err
	}
	f, err := locate(o.Name)
	if err != nil {
		return nil, err
	}
	known := f.load() == nil
	o.Consumers = o.Consumers || known && f.state.Consumers
	access := o.Access || o.Consumers || known && f.state.Access
	if err := f.checkSandbox(ctx, access); err != nil {
		return nil, err
	}
	if err := f.checkWatches(ctx, o.Spokes); err != nil {
		return nil, err
	}
	kube, err := programs.Kube.Path(ctx, f.Root, report)
	if err != nil {
		return nil, err
	}
	ocmBinary, err := programs.OCM.Path(ctx, f.Root, report)
	if err != nil {
		return nil, err
	}
	sources, err := programs.OCM.ModuleDir(ctx, f.Root)
	if err != nil {
		return nil, err
	}
	if access {
		if f.access, err = f.findAccess(ctx, report); err != nil {
			return nil, err
		}
	}
	if o.Consumers {
		if f.consumers, err = f.findConsumers(ctx, report); err != nil {
			return nil, err
		}
	}

	// One fleet starts at a time: two that start at once would both find room for their watches.
	next, err := files.Lock(ctx, filepath.Join(filepath.Dir(f.Dir), "start.lock"))
	if err != nil {
		return nil, err
	}
	defer next()
	if err := f.checkWatches(ctx, o.Spokes); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	unlock, err := files.Lock(ctx, f.path("lock"))
	if err != nil {
		return nil, err
	}
	defer unlock()
	if err := f.plan(o, access, report); err != nil {
		return nil, err
	}
	f.credentialLifetime, f.audit = o.CredentialLifetime, o.Audit
	if err := f.start(ctx, kube, ocmBinary, ocm.Manifests{Dir: filepath.Join(sources, "manifests")}, report); err != nil {
		return nil, fmt.Errorf("%w\nlogs are in %s", err, f.LogDir())
	}
	return f, nil
}

// plan decides what the fleet's state leaves open.
func (f *Fleet) plan(o Options, access bool, report *progress.Report) error {
	switch err := f.load(); {
	case errors.Is(err, ErrNoFleet):
		f.state = state{Ports: map[string]int{}}
	case err != nil:
		return err
	case o.Spokes < f.state.Spokes:
		report.Line("fleet %s has %d spokes already and does not shrink", f.Name, f.state.Spokes)
	}
	f.state.Spokes = max(o.Spokes, f.state.Spokes)
	f.state.Access = f.state.Access || access
	f.state.Consumers = f.state.Consumers || o.Consumers
	f.state.Token = f.state.Token || o.Token
	f.state.Hosted = f.state.Hosted || o.Hosted
	f.state.LocalCluster = f.state.LocalCluster || o.LocalCluster
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

// listeners are everything that needs a port.
func (f *Fleet) listeners() []string {
	names := []string{"hub/webhooks", "hub/webhook-probes", "hub/registration", "hub/placement", "hub/addon-manager"}
	for _, cluster := range f.Clusters() {
		for _, server := range []string{"etcd", "etcd-peer", "apiserver", "controller-manager"} {
			names = append(names, cluster+"/"+server)
		}
	}
	for _, cluster := range f.Managed() {
		names = append(names, cluster+"/registration-agent", cluster+"/work-agent")
	}
	if f.state.Access {
		names = append(names, proxyEntrypoint)
	}
	return names
}

// takenPorts are the ports of all fleets of this repository, running or not.
func (f *Fleet) takenPorts() map[int]bool {
	taken := map[int]bool{}
	names, err := Names()
	if err != nil {
		return taken
	}
	for _, name := range names {
		other, err := Open(name)
		if err != nil {
			continue // it is being removed
		}
		for _, port := range other.state.Ports {
			taken[port] = true
		}
	}
	return taken
}

func (f *Fleet) start(ctx context.Context, kube, ocmBinary string, m ocm.Manifests, report *progress.Report) error {
	before, err := f.Processes(ctx)
	if errors.Is(err, supervisor.ErrNotRunning) {
		report.Line("starting fleet %s: a hub and %d spokes", f.Name, f.state.Spokes)
		err = f.startSupervisor(ctx)
	}
	if err != nil {
		return err
	}
	if err := f.startControlPlanes(ctx, kube, report); err != nil {
		return err
	}
	if err := f.startHubOCM(ctx, ocmBinary, m, report); err != nil {
		return err
	}
	if err := f.installAccess(ctx, report); err != nil {
		return err
	}
	err = each(f.Managed(), func(name string) error { return f.startSpokeOCM(ctx, ocmBinary, name, m, report) })
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
		report.Line("fleet %s was running already, nothing was missing", f.Name)
	} else {
		report.Line("fleet %s is up: %d processes started, %d in all", f.Name, len(fresh), len(after))
	}
	return nil
}

// started lists the processes that did not run before.
func started(before, after []supervisor.Status) []string {
	was := map[supervisor.Identity]bool{}
	for _, p := range before {
		if p.Running {
			was[p.Identity] = true
		}
	}
	var names []string
	for _, p := range after {
		if !was[p.Identity] {
			names = append(names, p.Name)
		}
	}
	return names
}

// startSupervisor starts the one process that outlives this command.
func (f *Fleet) startSupervisor(ctx context.Context) error {
	if err := f.KillRecorded(ctx); err != nil { // left by a supervisor that was killed
		return err
	}
	self, err := f.ownBinary(ctx)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(f.LogDir(), files.PrivateDir); err != nil {
		return err
	}
	logFile, err := os.OpenFile(
		filepath.Join(f.LogDir(), "supervisor.log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, files.Private,
	)
	if err != nil {
		return err
	}
	defer func() { _ = logFile.Close() }()
	cmd := exec.Command(self, "supervise", "--name", f.Name)
	cmd.Dir = f.Dir
	cmd.Env = supervisor.BaseEnv(os.Environ())
	cmd.Stdout, cmd.Stderr = logFile, logFile
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		return err
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	return await.Until(ctx, "the supervisor", 20*time.Millisecond, func(ctx context.Context) (bool, error) {
		select {
		case err := <-ended:
			return false, fmt.Errorf("it ended: %w; see %s", err, logFile.Name())
		default:
		}
		_, err := f.Processes(ctx)
		return err == nil, err
	})
}

// ownBinary is the fleet command, copied to where "go run" does not remove it. A
// program that only uses this package, such as a test, builds the command.
func (f *Fleet) ownBinary(ctx context.Context) (string, error) {
	binary := f.path("bin", "fleet")
	copied := func(from string) error {
		content, err := os.ReadFile(from)
		if err != nil {
			return err
		}
		return files.Write(binary, content, files.PrivateDir)
	}
	if ownProgram() {
		return binary, copied("/proc/self/exe")
	}
	return binary, f.Build(ctx, f.module(), []string{"./cmd/fleet"}, func(dir string) error {
		return copied(filepath.Join(dir, "fleet"))
	})
}
