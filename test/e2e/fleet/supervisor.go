package fleet

import (
	"context"
	"encoding/json"
	"fmt"
	"log"
	"maps"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"
)

// Supervise keeps the processes of a fleet running until it is told to stop,
// by its context or through its socket; then it ends them in order. It is the
// one process of a fleet that outlives the command that started it.
func Supervise(ctx context.Context, name string) error {
	f, err := Open(name)
	if err != nil {
		return err
	}
	network, err := claimNetwork(f.state.Network)
	if err != nil {
		return fmt.Errorf("the pods' part of loopback is taken: %w", err)
	}
	defer func() { _ = network.Close() }() // nothing is accepted on it
	listener, closeListener, err := listenControl(f.path("run"))
	if err != nil {
		return err
	}
	defer closeListener()

	ctx, stop := context.WithCancel(ctx)
	defer stop()
	s := &supervisor{fleet: f, children: map[string]*child{}, starter: newStarter(), log: log.New(os.Stderr, "", log.LstdFlags)}
	server := &http.Server{Handler: s.handler(stop), ReadHeaderTimeout: 10 * time.Second}
	go func() {
		if err := server.Serve(listener); err != nil && err != http.ErrServerClosed {
			s.log.Printf("control socket: %v", err)
			stop()
		}
	}()
	if err := s.record(); err != nil {
		return err
	}
	s.log.Printf("supervising fleet %s", name)
	<-ctx.Done()
	s.log.Printf("stopping")
	s.stopAll()
	return server.Close()
}

// supervisor owns the child processes of one fleet.
type supervisor struct {
	fleet   *Fleet
	starter *starter
	log     *log.Logger

	mu       sync.Mutex
	children map[string]*child
	stopping bool
}

// child is one process through all its lives.
type child struct {
	status ProcessStatus
	// end asks the present session to end, done tells that it did; both are
	// nil while none runs.
	end  context.CancelFunc
	done chan struct{}
}

// ensure makes a process run as described, restarting it if it runs otherwise.
func (s *supervisor) ensure(p Process) error {
	s.mu.Lock()
	c, known := s.children[p.Name]
	same := known && reflect.DeepEqual(c.status.Process, p)
	s.mu.Unlock()
	if known && !same {
		s.stop(p.Name)
	}
	s.mu.Lock()
	if !known {
		c = &child{}
		s.children[p.Name] = c
	}
	c.status.Process = p
	s.mu.Unlock()
	return s.start(p.Name)
}

func (s *supervisor) start(name string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	c, known := s.children[name]
	if !known {
		return fmt.Errorf("unknown process %q", name)
	}
	if s.stopping {
		return fmt.Errorf("the fleet is stopping")
	}
	if c.done != nil {
		return nil
	}
	ctx, end := context.WithCancel(context.Background())
	c.status.Wanted, c.end, c.done = true, end, make(chan struct{})
	go s.session(ctx, c, c.done)
	return s.recordLocked()
}

// stop returns when the process is gone.
func (s *supervisor) stop(name string) {
	s.mu.Lock()
	c, known := s.children[name]
	if !known || c.done == nil {
		s.mu.Unlock()
		return
	}
	c.status.Wanted = false
	end, done := c.end, c.done
	s.mu.Unlock()
	end()
	<-done
	s.mu.Lock()
	if c.done == done {
		c.end, c.done = nil, nil
	}
	s.mu.Unlock()
	if err := s.record(); err != nil {
		s.log.Printf("%v", err)
	}
}

func (s *supervisor) stopAll() {
	s.mu.Lock()
	s.stopping = true
	tiers := map[Tier][]string{}
	for name, c := range s.children {
		tiers[c.status.Tier] = append(tiers[c.status.Tier], name)
	}
	s.mu.Unlock()
	for _, tier := range slices.Backward(slices.Sorted(maps.Keys(tiers))) {
		var group sync.WaitGroup
		for _, name := range tiers[tier] {
			group.Go(func() { s.stop(name) })
		}
		group.Wait()
	}
}

// session runs a process again and again until it is ended.
func (s *supervisor) session(ctx context.Context, c *child, done chan struct{}) {
	defer close(done)
	for failures := 0; ; failures++ {
		started := time.Now()
		outcome := s.runOnce(ctx, c)
		if ctx.Err() != nil {
			s.log.Printf("%s: stopped (%s)", c.status.Name, outcome)
			return
		}
		if time.Since(started) > lasting {
			failures = 0
		}
		s.log.Printf("%s: ended unasked (%s), starting again in %s", c.status.Name, outcome, backoff(failures))
		select {
		case <-ctx.Done():
			return
		case <-time.After(backoff(failures)):
		}
		s.mu.Lock()
		c.status.Restarts++
		s.mu.Unlock()
	}
}

// runOnce starts the process, waits for its end and tells how it ended.
func (s *supervisor) runOnce(ctx context.Context, c *child) string {
	s.mu.Lock()
	p := c.status.Process
	s.mu.Unlock()
	cmd, closeLog, err := s.fleet.command(p)
	if err != nil {
		return err.Error()
	}
	defer closeLog()
	if err := s.starter.start(cmd); err != nil {
		return err.Error()
	}
	id, err := identify(cmd.Process.Pid)
	if err != nil {
		s.log.Printf("%s: %v", p.Name, err)
		id = identity{PID: cmd.Process.Pid}
	}
	s.changed(c, func(status *ProcessStatus) { status.identity, status.Running = id, true })

	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	var exit error
	select {
	case exit = <-ended:
	case <-ctx.Done():
		exit = terminate(cmd.Process.Pid, graceFor(p.Tier), ended)
	}
	outcome := "exit status 0"
	if exit != nil {
		outcome = exit.Error()
	}
	// What the process started in its group must not outlive it.
	_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) // no such group is the usual answer
	s.changed(c, func(status *ProcessStatus) {
		status.identity, status.Running, status.LastExit = identity{}, false, outcome
	})
	return outcome
}

func terminate(pid int, grace time.Duration, ended <-chan error) error {
	// A stopped process (SIGSTOP) would not see the request to end.
	_ = syscall.Kill(-pid, syscall.SIGTERM)
	_ = syscall.Kill(-pid, syscall.SIGCONT)
	select {
	case err := <-ended:
		return err
	case <-time.After(grace):
		_ = syscall.Kill(-pid, syscall.SIGKILL)
		return <-ended
	}
}

func (s *supervisor) changed(c *child, change func(*ProcessStatus)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change(&c.status)
	c.status.Since = time.Now()
	if err := s.recordLocked(); err != nil {
		s.log.Printf("%v", err)
	}
}

func (s *supervisor) statuses() []ProcessStatus {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.statusesLocked()
}

func (s *supervisor) statusesLocked() []ProcessStatus {
	all := make([]ProcessStatus, 0, len(s.children))
	for _, name := range slices.Sorted(maps.Keys(s.children)) {
		all = append(all, s.children[name].status)
	}
	return all
}

// records is what "down" goes by when the supervisor does not answer.
type records struct {
	Supervisor identity        `json:"supervisor"`
	Processes  []ProcessStatus `json:"processes"`
}

func (s *supervisor) record() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.recordLocked()
}

func (s *supervisor) recordLocked() error {
	self, err := identify(os.Getpid())
	if err != nil {
		return err
	}
	content, err := json.MarshalIndent(records{Supervisor: self, Processes: s.statusesLocked()}, "", " ")
	if err != nil {
		return err
	}
	if err := writeFile(s.fleet.path("run", "processes.json"), content, 0o644); err != nil {
		return fmt.Errorf("record processes: %w", err)
	}
	return nil
}

// command prepares a process of the fleet: its own group, its log, a temporary
// directory inside the fleet, and an end together with the supervisor's.
func (f *Fleet) command(p Process) (cmd *exec.Cmd, closeLog func(), err error) {
	logPath := filepath.Join(f.LogDir(), p.Name+".log")
	tmp := f.path("tmp", p.Name)
	for _, dir := range []string{filepath.Dir(logPath), tmp} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return nil, nil, err
		}
	}
	logFile, err := os.OpenFile(logPath, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return nil, nil, err
	}
	cmd = exec.Command(p.Args[0], p.Args[1:]...)
	cmd.Dir = f.Dir
	cmd.Env = append(baseEnv(os.Environ()), append([]string{"TMPDIR=" + tmp}, p.Env...)...)
	cmd.Stdout, cmd.Stderr = logFile, logFile
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	return cmd, func() { _ = logFile.Close() }, nil
}

// baseEnv is the part of the caller's environment that a process of the fleet
// may see: no KUBECONFIG, proxy or feature switch of the user's shell.
func baseEnv(environ []string) []string {
	var kept []string
	for _, name := range []string{"HOME", "LANG", "PATH", "TZ", "USER", "XDG_CACHE_HOME", "XDG_RUNTIME_DIR"} {
		for _, entry := range environ {
			if strings.HasPrefix(entry, name+"=") {
				kept = append(kept, entry)
			}
		}
	}
	return kept
}

// starter starts processes from one thread that never ends: the kernel sends
// the parent-death signal when the starting thread, not the process, is gone.
type starter struct {
	requests chan startRequest
}

type startRequest struct {
	cmd    *exec.Cmd
	result chan error
}

func newStarter() *starter {
	s := &starter{requests: make(chan startRequest)}
	go func() {
		runtime.LockOSThread()
		for r := range s.requests {
			r.result <- r.cmd.Start()
		}
	}()
	return s
}

func (s *starter) start(cmd *exec.Cmd) error {
	r := startRequest{cmd: cmd, result: make(chan error, 1)}
	s.requests <- r
	return <-r.result
}

// listenControl opens the fleet's control socket. The path goes through the
// directory's descriptor, because a socket's own path may not exceed 107 bytes.
func listenControl(dir string) (net.Listener, func(), error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, nil, err
	}
	handle, err := os.Open(dir)
	if err != nil {
		return nil, nil, err
	}
	path := fmt.Sprintf("/proc/self/fd/%d/%s", handle.Fd(), controlSocket)
	if err := os.Remove(path); err != nil && !os.IsNotExist(err) {
		return nil, nil, err
	}
	listener, err := net.Listen("unix", path)
	if err != nil {
		return nil, nil, err
	}
	return listener, func() {
		_ = listener.Close()
		_ = handle.Close()
	}, nil
}
