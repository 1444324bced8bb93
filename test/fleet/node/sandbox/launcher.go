package sandbox

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Launcher starts processes. They all die with it.
type Launcher struct {
	starts chan func()
	closed chan struct{}
}

// NewLauncher returns a Launcher; Close ends it.
func NewLauncher() *Launcher {
	l := &Launcher{starts: make(chan func()), closed: make(chan struct{})}
	go l.loop()
	return l
}

// loop owns one operating system thread for the whole life of the Launcher, because a parent-death
// signal is sent when the thread that started the child ends. It returns without unlocking the
// thread, which ends the thread.
func (l *Launcher) loop() {
	runtime.LockOSThread()
	for {
		select {
		case start := <-l.starts:
			start()
		case <-l.closed:
			return
		}
	}
}

// Close kills every process that still runs. Call it once.
func (l *Launcher) Close() { close(l.closed) }

// Start runs spec and returns once its command has been executed, or with the reason why it could not be.
func (l *Launcher) Start(spec Spec) (*Process, error) {
	return l.launch(request{Spec: spec})
}

// Exec runs argv as the same user in the root of a running process and returns its exit code. A
// command that has not ended when ctx does is killed and reported as an error.
func (l *Launcher) Exec(ctx context.Context, in *Process, argv []string, output *os.File) (int32, error) {
	root, err := in.openRoot()
	if err != nil {
		return 0, err
	}
	defer closeQuietly(root)
	spec := in.spec
	spec.Argv, spec.Output = argv, output
	process, err := l.launch(request{Spec: spec, Join: true, root: root})
	if err != nil {
		return 0, err
	}
	select {
	case <-process.Done():
		return process.Exit().Code, nil
	case <-ctx.Done():
		_ = process.Signal(syscall.SIGKILL)
		<-process.Done()
		return 0, ctx.Err()
	}
}

// request is what the re-executed binary reads from its parent.
type request struct {
	Spec  Spec
	Join  bool // run in the root that root stands for instead of building one
	Check bool // build the root, execute nothing

	UserNamespace bool
	OwnNetwork    bool

	root *os.File
}

// launch forks on the launcher's thread and follows the child until it has executed its command.
func (l *Launcher) launch(req request) (*Process, error) {
	req.UserNamespace, req.OwnNetwork = os.Geteuid() != 0, req.Spec.Network != nil
	orders, ordersWriter, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer closeQuietly(orders)
	// The child takes the closing of this pipe before it has executed its command as the death of its parent.
	defer closeQuietly(ordersWriter)
	answers, answersWriter, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer closeQuietly(answers)
	defer closeQuietly(answersWriter)

	cmd := command(req, orders, answersWriter)
	if err := l.fork(cmd); err != nil {
		return nil, err
	}
	process := &Process{PID: cmd.Process.Pid, process: cmd.Process, spec: req.Spec, done: make(chan struct{})}
	closeQuietly(orders)
	closeQuietly(answersWriter)

	if err := direct(req, ordersWriter, answers); err != nil {
		_ = process.Signal(syscall.SIGKILL)
		process.reap(cmd)
		return nil, err
	}
	if !req.Join && !req.Check {
		process.observe()
	}
	go process.reap(cmd)
	return process, nil
}

func (l *Launcher) fork(cmd *exec.Cmd) error {
	result := make(chan error, 1)
	select {
	case l.starts <- func() { result <- cmd.Start() }:
	case <-l.closed:
		return errors.New("the launcher is closed")
	}
	if err := <-result; err != nil {
		return fmt.Errorf("start a process in namespaces of its own: %w", err)
	}
	return nil
}

func command(req request, orders, answers *os.File) *exec.Cmd {
	cmd := exec.Command("/proc/self/exe", childArgument)
	cmd.Env = []string{}
	cmd.ExtraFiles = []*os.File{orders, answers, req.Spec.Network}
	if req.Join {
		cmd.ExtraFiles = append(cmd.ExtraFiles, req.root)
	}
	if req.Spec.Output != nil {
		cmd.Stdout, cmd.Stderr = req.Spec.Output, req.Spec.Output
	}
	cmd.SysProcAttr = attributes(req)
	return cmd
}

// direct sends the request and reads the answer: nothing when the command was executed, else the reason.
func direct(req request, orders io.Writer, answers *os.File) error {
	sent := json.NewEncoder(orders).Encode(req)
	const slow = 30 * time.Second
	if err := answers.SetReadDeadline(time.Now().Add(slow)); err != nil {
		return err
	}
	answer, err := io.ReadAll(answers)
	switch {
	case err != nil:
		return fmt.Errorf("wait for the process to start: %w", err)
	case len(answer) > 0:
		return errors.New(strings.TrimSpace(string(answer)))
	case sent != nil:
		return fmt.Errorf("tell the process what to do: %w", sent)
	default:
		return nil
	}
}

func attributes(req request) *syscall.SysProcAttr {
	attr := &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setsid: true}
	if !req.Join {
		attr.Cloneflags = unix.CLONE_NEWNS | unix.CLONE_NEWPID | unix.CLONE_NEWUTS
	}
	if req.UserNamespace {
		attr.Cloneflags |= unix.CLONE_NEWUSER
		attr.UidMappings = []syscall.SysProcIDMap{{ContainerID: req.Spec.UID, HostID: os.Geteuid(), Size: 1}}
		attr.GidMappings = []syscall.SysProcIDMap{{ContainerID: req.Spec.GID, HostID: os.Getegid(), Size: 1}}
		// A user other than 0 would lose the namespace's capabilities with the re-execution.
		attr.AmbientCaps = []uintptr{unix.CAP_SYS_ADMIN, unix.CAP_SYS_CHROOT}
	}
	return attr
}

// closeQuietly is for pipes, whose closing says all there is to say and may come twice.
func closeQuietly(c io.Closer) { _ = c.Close() }
