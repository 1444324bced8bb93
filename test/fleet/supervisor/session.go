package supervisor

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"time"

	"open-cluster-management.io/cluster-inventory-addon/test/fleet/internal/files"
)

// session runs a process and restarts it until it is stopped.
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
		s.log.Printf("%s: ended (%s), restarting in %s", name, outcome, backoff(failures))
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

// runOnce starts the process, waits for its end and returns how it ended.
func (s *supervisor) runOnce(c *child, stop <-chan struct{}) (name, outcome string) {
	s.mu.Lock()
	p := c.status.Process
	s.mu.Unlock()
	cmd, closeLog, err := command(s.dir, p)
	if err != nil {
		return p.Name, err.Error()
	}
	defer closeLog()
	if err := s.starter.start(cmd); err != nil {
		return p.Name, err.Error()
	}
	id, err := Identify(cmd.Process.Pid)
	if err != nil {
		s.log.Printf("%s: %v", p.Name, err)
		id = Identity{PID: cmd.Process.Pid}
	}
	s.change(c, func(status *Status) { status.Identity, status.Running = id, true })

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
	_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) // usually there is no such group any more
	s.change(c, func(status *Status) {
		status.Identity, status.Running, status.LastExit = Identity{}, false, outcome
	})
	return p.Name, outcome
}

func terminate(pid int, grace time.Duration, ended <-chan error) error {
	_ = syscall.Kill(-pid, syscall.SIGTERM)
	// A stopped process (SIGSTOP) would not get the signal.
	_ = syscall.Kill(-pid, syscall.SIGCONT)
	select {
	case err := <-ended:
		return err
	case <-time.After(grace):
		_ = syscall.Kill(-pid, syscall.SIGKILL)
		return <-ended
	}
}

// command prepares a process of the fleet in dir: with a process group, a log
// and a temporary directory of its own, and killed when the supervisor dies.
func command(dir string, p Process) (cmd *exec.Cmd, closeLog func(), err error) {
	logPath := LogPath(dir, p.Name)
	tmp := filepath.Join(dir, "tmp", p.Name)
	for _, d := range []string{filepath.Dir(logPath), tmp} {
		if err := os.MkdirAll(d, files.PrivateDir); err != nil {
			return nil, nil, err
		}
	}
	logFile, err := os.OpenFile(logPath, os.O_CREATE|os.O_APPEND|os.O_WRONLY, files.Private)
	if err != nil {
		return nil, nil, err
	}
	cmd = exec.Command(p.Args[0], p.Args[1:]...)
	cmd.Dir = dir
	cmd.Env = append(BaseEnv(os.Environ()), append([]string{"TMPDIR=" + tmp}, p.Env...)...)
	cmd.Stdout, cmd.Stderr = logFile, logFile
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	return cmd, func() { _ = logFile.Close() }, nil
}

// BaseEnv is the part of the caller's environment that the fleet's processes
// see. KUBECONFIG, proxies and feature switches of the user's shell are not. Pods get only the
// environment of their containers.
func BaseEnv(environ []string) []string {
	var kept []string
	for _, name := range []string{"GOGC", "HOME", "LANG", "PATH", "TZ", "USER", "XDG_CACHE_HOME", "XDG_RUNTIME_DIR"} {
		for _, entry := range environ {
			if strings.HasPrefix(entry, name+"=") {
				kept = append(kept, entry)
			}
		}
	}
	return kept
}

// starter starts all processes from one thread that never ends: the kernel
// sends the parent-death signal when the starting thread ends, not the process.
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
