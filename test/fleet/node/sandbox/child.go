package sandbox

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// childArgument tells a re-executed binary apart from one that a person started.
const childArgument = "process-node-sandbox-child"

// File descriptors the child is born with; one that it has no use for is closed.
const (
	ordersFD = 3 + iota
	answersFD
	networkFD
	rootFD
)

// Init takes over, and does not return, when this process is a re-execution made by a Launcher; else it does nothing.
// It belongs first thing in main and in TestMain.
func Init() {
	if len(os.Args) < 2 || os.Args[1] != childArgument {
		return
	}
	// Credentials, capabilities and the parent-death signal belong to a thread, and the one that executes wins.
	runtime.LockOSThread()
	unix.CloseOnExec(ordersFD)
	unix.CloseOnExec(answersFD)
	if err := child(); err != nil {
		_, _ = os.NewFile(answersFD, "answers").WriteString(err.Error())
		os.Exit(1) //nolint:forbidigo // this process exists for the sandbox alone
	}
	os.Exit(0) //nolint:forbidigo // this process exists for the sandbox alone
}

func child() error {
	// What the caller's is must not decide what the command's user may see.
	unix.Umask(0o022)
	var req request
	if err := json.NewDecoder(os.NewFile(ordersFD, "orders")).Decode(&req); err != nil {
		return fmt.Errorf("read what to run: %w", err)
	}
	if err := enterNetwork(req); err != nil {
		return err
	}
	enter := build
	if req.Join {
		enter = join
	}
	if err := enter(req.Spec); err != nil {
		return err
	}
	if req.Check {
		return nil
	}
	return execute(req)
}

// enterNetwork moves this thread, which is the one that executes, into the network namespace it is to have.
func enterNetwork(req request) error {
	if !req.OwnNetwork {
		return nil
	}
	unix.CloseOnExec(networkFD)
	if err := unix.Setns(networkFD, unix.CLONE_NEWNET); err != nil {
		return fmt.Errorf("enter the network namespace: %w", err)
	}
	return nil
}

// join enters the root of another process through a descriptor of its /proc/PID/root.
func join(Spec) error {
	unix.CloseOnExec(rootFD)
	if err := unix.Fchdir(rootFD); err != nil {
		return fmt.Errorf("enter the root of the process: %w", err)
	}
	if err := unix.Chroot("."); err != nil {
		return fmt.Errorf("enter the root of the process: %w", err)
	}
	return nil
}

func execute(req request) error {
	spec := req.Spec
	dir := spec.Dir
	if dir == "" {
		dir = "/"
	}
	if err := os.Chdir(dir); err != nil {
		return fmt.Errorf("enter the working directory: %w", err)
	}
	path, err := lookPath(spec)
	if err != nil {
		return err
	}
	if err := become(req); err != nil {
		return err
	}
	if err := syscall.Exec(path, spec.Argv, spec.Env); err != nil {
		return fmt.Errorf("exec %q: %w", path, err)
	}
	return nil
}

func lookPath(spec Spec) (string, error) {
	if len(spec.Argv) == 0 {
		return "", errors.New("no command to execute")
	}
	for _, variable := range spec.Env {
		if path, found := strings.CutPrefix(variable, "PATH="); found {
			if err := os.Setenv("PATH", path); err != nil {
				return "", err
			}
		}
	}
	path, err := exec.LookPath(spec.Argv[0])
	if err != nil {
		return "", err
	}
	return filepath.Abs(path)
}

// become takes on the wanted user permanently.
func become(req request) error {
	if !req.UserNamespace {
		if err := syscall.Setgroups(req.Spec.Groups); err != nil {
			return fmt.Errorf("set supplementary groups: %w", err)
		}
		if err := syscall.Setresgid(req.Spec.GID, req.Spec.GID, req.Spec.GID); err != nil {
			return fmt.Errorf("become group %d: %w", req.Spec.GID, err)
		}
		if err := syscall.Setresuid(req.Spec.UID, req.Spec.UID, req.Spec.UID); err != nil {
			return fmt.Errorf("become user %d: %w", req.Spec.UID, err)
		}
	}
	if err := unix.Prctl(unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0); err != nil {
		return fmt.Errorf("drop capabilities: %w", err)
	}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("give up new privileges: %w", err)
	}
	// A change of user clears it. The parent may have died meanwhile, and the parent of the first process of a PID
	// namespace cannot be asked for: its pipe can.
	if err := unix.Prctl(unix.PR_SET_PDEATHSIG, uintptr(unix.SIGKILL), 0, 0, 0); err != nil {
		return fmt.Errorf("ask to die with the parent: %w", err)
	}
	parent := []unix.PollFd{{Fd: ordersFD, Events: unix.POLLIN}}
	if _, err := unix.Poll(parent, 0); err != nil {
		return fmt.Errorf("look whether the parent lives: %w", err)
	}
	if parent[0].Revents&unix.POLLHUP != 0 {
		return errors.New("the parent died")
	}
	return nil
}
