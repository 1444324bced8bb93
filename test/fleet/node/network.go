package node

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"runtime"
	"time"

	"golang.org/x/sys/unix"
)

// network is the host's network, or a pod's own.
type network struct {
	// namespace is nil for the host's.
	namespace *os.File
}

// hostNetwork is the network of the node process itself.
var hostNetwork = &network{}

// dialTimeout bounds a connection attempt; all of them are local.
const dialTimeout = 10 * time.Second

// newNetwork creates a network with only a loopback interface. It needs root. The kernel deletes the
// network when it is closed and contains no process.
func newNetwork() (*network, error) {
	made := &network{}
	err := onThread(func() error {
		if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
			return fmt.Errorf("make a network namespace: %w", err)
		}
		namespace, err := os.Open(threadNetwork())
		if err != nil {
			return err
		}
		made.namespace = namespace
		return raiseLoopback()
	})
	if err != nil {
		return nil, errors.Join(err, made.close())
	}
	return made, nil
}

// CheckOwnNetworks returns why this user cannot give pods their own networks, in one line, or nil.
func CheckOwnNetworks() error {
	if os.Geteuid() != 0 {
		return errors.New("pods with a network of their own need root")
	}
	s, err := newPodSwitch()
	if err != nil {
		return fmt.Errorf("pods cannot have networks of their own here: %w", err)
	}
	pod, _, err := s.plug("")
	if err == nil {
		err = pod.close()
	}
	if err = errors.Join(err, s.close()); err != nil {
		return fmt.Errorf("pods cannot have networks of their own here: %w", err)
	}
	return nil
}

func (n *network) close() error {
	if n.namespace == nil {
		return nil
	}
	return n.namespace.Close()
}

// own reports whether the network is a pod's own.
func (n *network) own() bool { return n.namespace != nil }

// dial connects from inside the network. The address must be numeric.
func (n *network) dial(ctx context.Context, protocol, address string) (connection net.Conn, err error) {
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	err = n.inside(func() error {
		connection, err = (&net.Dialer{}).DialContext(ctx, protocol, address)
		return err
	})
	return connection, err
}

// listen listens inside the network. The address must be numeric.
func (n *network) listen(address string) (listener net.Listener, err error) {
	err = n.inside(func() error {
		listener, err = net.Listen("tcp4", address)
		return err
	})
	return listener, err
}

// inside runs do on a thread in the network: a socket belongs to the namespace of the thread that
// creates it.
func (n *network) inside(do func() error) error {
	if !n.own() {
		return do()
	}
	return onThread(func() error {
		if err := enter(n.namespace); err != nil {
			return fmt.Errorf("enter the network of a pod: %w", err)
		}
		return do()
	})
}

// enter moves this thread into a network namespace.
func enter(namespace *os.File) error {
	raw, err := namespace.SyscallConn() // keeps the descriptor from being closed meanwhile
	if err != nil {
		return err
	}
	var entered error
	err = raw.Control(func(fd uintptr) { entered = unix.Setns(int(fd), unix.CLONE_NEWNET) })
	return errors.Join(err, entered)
}

// onThread runs do on a thread that may change its network namespace. A thread that cannot return to
// its old namespace is not used again.
func onThread(do func() error) error {
	result := make(chan error, 1)
	go func() {
		runtime.LockOSThread() // a goroutine that ends without unlocking takes its thread along
		home, err := os.Open(threadNetwork())
		if err != nil {
			result <- err
			return
		}
		defer closeQuietly(home)
		result <- do()
		if enter(home) == nil {
			runtime.UnlockOSThread()
		}
	}()
	return <-result
}

func threadNetwork() string { return fmt.Sprintf("/proc/self/task/%d/ns/net", unix.Gettid()) }

// raiseLoopback brings up the loopback interface of the network of this thread.
func raiseLoopback() error {
	socket, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("open a socket in the network of a pod: %w", err)
	}
	defer func() { _ = unix.Close(socket) }() // nothing was written to it
	request, err := unix.NewIfreq("lo")
	if err != nil {
		return err
	}
	request.SetUint16(unix.IFF_UP | unix.IFF_RUNNING)
	if err := unix.IoctlIfreq(socket, unix.SIOCSIFFLAGS, request); err != nil {
		return fmt.Errorf("bring up loopback in the network of a pod: %w", err)
	}
	return nil
}
