package node

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"runtime"
	"strings"
	"testing"
	"time"
)

// forwarding returns the address at which a forwarder listens for what dial connects to.
func forwarding(t *testing.T, f *forwarder, dial func(context.Context) (net.Conn, error)) string {
	t.Helper()
	listener, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { closeQuietly(listener) })
	f.serve(listener, hostNetwork, dial)
	return listener.Addr().String()
}

// server answers every connection with handle and returns its address.
func server(t *testing.T, handle func(*net.TCPConn)) string {
	t.Helper()
	listener, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { closeQuietly(listener) })
	go func() {
		for {
			connection, err := listener.Accept()
			if err != nil {
				return
			}
			go func() {
				defer closeQuietly(connection)
				handle(connection.(*net.TCPConn))
			}()
		}
	}()
	return listener.Addr().String()
}

func to(address string) func(context.Context) (net.Conn, error) {
	return func(ctx context.Context) (net.Conn, error) { return hostNetwork.dial(ctx, "tcp4", address) }
}

func connect(t *testing.T, address string) *net.TCPConn {
	t.Helper()
	connection, err := net.Dial("tcp4", address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { closeQuietly(connection) })
	if err := connection.SetDeadline(time.Now().Add(within)); err != nil {
		t.Fatal(err)
	}
	return connection.(*net.TCPConn)
}

// endForwarder proves that nothing of the forwarder is left.
func endForwarder(t *testing.T, f *forwarder) {
	t.Helper()
	ended := make(chan struct{})
	go func() {
		f.close()
		close(ended)
	}()
	select {
	case <-ended:
	case <-time.After(within):
		stacks := make([]byte, 1<<16)
		t.Fatalf("the forwarder does not end:\n%s", stacks[:runtime.Stack(stacks, true)])
	}
}

func TestForwarderPassesOnWhatIsSaidAtOnceAndEachEndByItself(t *testing.T) {
	f := newForwarder()
	backend := server(t, func(c *net.TCPConn) {
		_, _ = c.Write([]byte("hello "))
		question, _ := io.ReadAll(c) // ends when the client has said everything
		_, _ = c.Write(bytes.ToUpper(question))
	})
	listener, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	f.serve(listener, hostNetwork, to(backend))
	client := connect(t, listener.Addr().String())
	greeting := make([]byte, len("hello "))
	if _, err := io.ReadFull(client, greeting); err != nil {
		t.Fatalf("the backend's first words do not come: %v", err)
	}
	if _, err := client.Write([]byte("world")); err != nil {
		t.Fatal(err)
	}
	if err := client.CloseWrite(); err != nil {
		t.Fatal(err)
	}
	answer, err := io.ReadAll(client)
	if err != nil || string(answer) != "WORLD" {
		t.Errorf("after its end was said the client got %q, %v", answer, err)
	}
	closeQuietly(listener)
	endForwarder(t, f)
}

func TestForwarderResetsWhatCannotBeDialled(t *testing.T) {
	f := newForwarder()
	address := forwarding(t, f, func(context.Context) (net.Conn, error) { return nil, errors.New("nobody") })
	client, err := net.Dial("tcp4", address)
	if err == nil { // a reset may come as early as that
		defer closeQuietly(client)
		_, err = io.ReadAll(client)
	}
	if err == nil || !strings.Contains(err.Error(), "reset") {
		t.Errorf("the client got %v", err)
	}
}

func TestForwarderCutsWhatAPodHadToDoWithOthers(t *testing.T) {
	f := newForwarder()
	silent := server(t, func(c *net.TCPConn) { _, _ = io.Copy(io.Discard, c) })
	address := forwarding(t, f, to(silent))
	ends := func(c *net.TCPConn) error {
		_, err := c.Read(make([]byte, 1))
		return err
	}
	from := connect(t, address)
	eventually(t, "the connection is forwarded", func() error {
		f.mu.Lock()
		defer f.mu.Unlock()
		if len(f.links) != 1 {
			return errors.New("it is not")
		}
		return nil
	})
	f.cut(&network{}, "127.99.0.1")
	if err := from.SetReadDeadline(time.Now().Add(100 * time.Millisecond)); err != nil {
		t.Fatal(err)
	}
	if err := ends(from); !isTimeout(err) {
		t.Fatalf("the end of another pod ended it: %v", err)
	}
	if err := from.SetReadDeadline(time.Now().Add(within)); err != nil {
		t.Fatal(err)
	}
	f.cut(&network{}, "127.0.0.1")
	if err := ends(from); err == nil || isTimeout(err) {
		t.Errorf("the end of the pod did not end it: %v", err)
	}
}

func isTimeout(err error) bool {
	var timeout net.Error
	return errors.As(err, &timeout) && timeout.Timeout()
}
