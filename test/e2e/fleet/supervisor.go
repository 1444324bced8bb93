package fleet

import (
	"context"
	"encoding/json"
	"errors"
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
		if err := server.Serve(listener); err != nil && !errors.Is(err, http.ErrServerClosed) {
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
	// Closing stop asks the present session to end, done tells that it did;
	// both are nil while there is none.
	stop, done chan struct{}
	// turn is held by whoever starts or stops the process.
	turn sync.Mutex
}

// ensure makes a process run as described, restarting it if it runs otherwise.
func (s *supervisor) ensure(p Process) error {
	c := s.child(p.Name, true)
	c.turn.Lock()
	defer c.turn.Unlock()
	s.mu.Lock()
	same := reflect.DeepEqual(c.status.Process, p)
	s.mu.Unlock()
	if !same {
		s.end(c)
	}
	s.mu.Lock()
	c.status.Process = p
	s.mu.Unlock()
	return s.begin(c)
}

func (s *supervisor) start(name string) error {
	c := s.child(name, false)
	if c == nil {
		return unknown(name)
	}
	c.turn.Lock()
	defer c.turn.Unlock()
	return s.begin(c)
}

// stop returns when the process is gone.
func (s *supervisor) stop(name string) error {
	c := s.child(name, false)
	if c == nil {
		return unknown(name)
	}
	c.turn.Lock()
	defer c.turn.Unlock()
	s.end(c)
	return s.record()
}

func unknown(name string) error { return fmt.Errorf("unknown process %q", name) }

func (s *supervisor) child(name string, create bool) *child {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.children[name] == nil && create {
		s.children[name] = &child{status: ProcessStatus{Process: Process{Name: name}}}
	}
	return s.children[name]
}

// begin starts the session of a process that has none; its caller has the turn.
func (s *supervisor) begin(c *child) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stopping {
		return errors.New("the fleet is stopping")
	}
	if c.done != nil {
		return nil
	}
	c.status.Wanted, c.stop, c.done = true, make(chan struct{}), make(chan struct{})
	go s.session(c, c.stop, c.done)
	return s.recordLocked()
}

// end ends the session of a process, if it has one; its caller has the turn.
func (s *supervisor) end(c *child) {
	s.mu.Lock()
	c.status.Wanted = false
	done := c.done
	if done != nil {
		close(c.stop)
	}
	s.mu.Unlock()
	if done != nil {
		<-done
	}
	s.mu.Lock()
	c.stop, c.done = nil, nil
	s.mu.Unlock()
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
			group.Go(func() {
				if err := s.stop(name); err != nil {
					s.log.Printf("stop %s: %v", name, err)
				}
			})
		}
		group.Wait()
	}
}

// session runs a process again and again until it is ended.
func (s *supervisor) session(c *child, stop <-chan struct{}, done chan<- struct{}) {
	defer close(done)
	for failures := 0; ; failures++ {
		started := time.Now()
		name, outcome := s.runOnce(c, stop)
		if closed(stop) {
			s.log.Printf("%s: stopped (%s)", name, outcome)
			return
		}
		if time.Since(started) > lasting {
			failures = 0
		}
		s.log.Printf("%s: ended unasked (%s), starting again in %s", name, outcome, backoff(failures))
		select {
		case <-stop:
			return
		case <-time.After(backoff(failures)):
		}
		s.mu.Lock()
		c.status.Restarts++
		s.mu.Unlock()
	}
}

func closed(stop <-chan struct{}) bool {
	select {
	case <-stop:
		return true
	default:
		return false
	}
}

// runOnce starts the process, waits for its end and tells how it ended.
func (s *supervisor) runOnce(c *child, stop <-chan struct{}) (name, outcome string) {
	s.mu.Lock()
	p := c.status.Process
	s.mu.Unlock()
	cmd, closeLog, err := s.fleet.command(p)
	if err != nil {
		return p.Name, err.Error()
	}
	defer closeLog()
	if err := s.starter.start(cmd); err != nil {
		return p.Name, err.Error()
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
	case <-stop:
		exit = terminate(cmd.Process.Pid, graceFor(p.Tier), ended)
	}
	outcome = "exit status 0"
	if exit != nil {
		outcome = exit.Error()
	}
	// What the process started in its group must not outlive it.
	_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) // no such group is the usual answer
	s.changed(c, func(status *ProcessStatus) {
		status.identity, status.Running, status.LastExit = identity{}, false, outcome
	})
	return p.Name, outcome
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
	if err := writeFile(s.fleet.path("run", "processes.json"), content, fileMode); err != nil {
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
		if err := os.MkdirAll(dir, dirMode); err != nil {
			return nil, nil, err
		}
	}
	logFile, err := os.OpenFile(logPath, os.O_CREATE|os.O_APPEND|os.O_WRONLY, fileMode)
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
	if err := os.MkdirAll(dir, dirMode); err != nil {
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
