package sandbox

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Mount binds a file or directory of the host into the private root.
type Mount struct {
	Source   string // host path; it must exist
	Target   string // absolute path inside the root; made when missing
	ReadOnly bool
}

// Spec describes one process and the root it runs in.
type Spec struct {
	Image        string   // host directory whose content appears, read-only, at /
	Root         string   // empty host directory the root is mounted on, in the private mount namespace only
	Mounts       []Mount  // in any order
	ReadOnlyRoot bool     // no file can be made outside of Mounts
	Hostname     string   // empty keeps the host's
	Argv         []string // a first word without a slash is looked up in PATH inside the root
	Env          []string // KEY=value; nothing is inherited
	Dir          string   // working directory inside the root, "/" when empty
	UID, GID     int
	Groups       []int    // supplementary groups; without root they cannot be given and are left out
	Output       *os.File // receives standard output and standard error; nil discards them
	Network      *os.File `json:"-"` // the network namespace to run in, for root alone; nil shares the caller's
}

// Exit says how a process ended.
type Exit struct {
	Code int32     // exit status, or 128 + the signal
	At   time.Time // when it was reaped
}

// Process is a started process.
type Process struct {
	PID int // on the host
	// StartTicks is field 22 of /proc/PID/stat: together with PID it names this process and no later one.
	StartTicks uint64

	process *os.Process
	spec    Spec
	done    chan struct{}
	exit    Exit

	mu   sync.Mutex
	root *os.File // nil once the process has ended
}

// Done is closed once the process has ended and was reaped.
func (p *Process) Done() <-chan struct{} { return p.done }

// Exit returns how the process ended. It may be called only after Done is closed.
func (p *Process) Exit() Exit { return p.exit }

// Signal sends a signal to the process; a process that has already ended is no error.
func (p *Process) Signal(sig syscall.Signal) error {
	if err := p.process.Signal(sig); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("signal process %d: %w", p.PID, err)
	}
	return nil
}

func (p *Process) reap(cmd *exec.Cmd) {
	// Wait's error repeats what ProcessState says in a less useful form.
	_ = cmd.Wait()
	p.exit = Exit{Code: exitCode(cmd.ProcessState), At: time.Now()}
	p.mu.Lock()
	if p.root != nil {
		_ = p.root.Close()
		p.root = nil
	}
	p.mu.Unlock()
	close(p.done)
}

// observe notes what can be read only while the process is there; one that has already ended has neither.
func (p *Process) observe() {
	p.StartTicks, _ = startTicks(p.PID)
	p.root, _ = os.Open(fmt.Sprintf("/proc/%d/root", p.PID))
}

// openRoot returns a descriptor of the process's root that stays good when the process ends.
func (p *Process) openRoot() (*os.File, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.root == nil {
		return nil, fmt.Errorf("process %d has ended", p.PID)
	}
	fd, err := unix.FcntlInt(p.root.Fd(), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("open the root of process %d: %w", p.PID, err)
	}
	return os.NewFile(uintptr(fd), p.root.Name()), nil
}

func exitCode(state *os.ProcessState) int32 {
	if status, ok := state.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		return 128 + int32(status.Signal()) //nolint:gosec // signals are below 128
	}
	return int32(state.ExitCode()) //nolint:gosec // exit codes are below 256
}

// startTicks reads field 22 of /proc/PID/stat. The second field is the command in parentheses and
// may hold anything, so fields are counted from the last parenthesis.
func startTicks(pid int) (uint64, error) {
	raw, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "stat"))
	if err != nil {
		return 0, fmt.Errorf("read the start time of process %d: %w", pid, err)
	}
	text := string(raw)
	fields := strings.Fields(text[strings.LastIndexByte(text, ')')+1:])
	const startTime = 22 - 3
	if len(fields) <= startTime {
		return 0, fmt.Errorf("read the start time of process %d: /proc/%d/stat has %d fields", pid, pid, len(fields)+2)
	}
	return strconv.ParseUint(fields[startTime], 10, 64)
}
