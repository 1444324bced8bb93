package node

import (
	"context"
	"errors"
	"io"
	"net"
	"sync"
	"time"
)

// forwarder accepts connections and forwards their bytes in both directions, without buffering; each
// direction is closed on its own.
type forwarder struct {
	ctx  context.Context //nolint:containedctx // connections live as long as the forwarder, not as the caller of listen
	stop context.CancelFunc

	group sync.WaitGroup
	mu    sync.Mutex
	links map[*link]bool
}

// link is a connection accepted in a network, and the one dialled for it.
type link struct {
	in           *network
	client, peer net.Conn
}

func newForwarder() *forwarder {
	f := &forwarder{links: map[*link]bool{}}
	f.ctx, f.stop = context.WithCancel(context.Background())
	return f
}

// serve forwards every connection that the listener accepts to the one that dial returns, until the
// listener is closed. If dial fails, it resets the connection: it cannot be refused any more.
func (f *forwarder) serve(listener net.Listener, in *network, dial func(context.Context) (net.Conn, error)) {
	f.serveClients(listener, in, func(ctx context.Context, _ net.Conn) (net.Conn, error) { return dial(ctx) })
}

// clientDial connects to what a client asks for on its connection.
type clientDial func(ctx context.Context, client net.Conn) (net.Conn, error)

// serveClients is serve for a dial that depends on the client.
func (f *forwarder) serveClients(listener net.Listener, in *network, dial clientDial) {
	f.group.Go(func() {
		for {
			client, err := listener.Accept()
			if errors.Is(err, net.ErrClosed) {
				return
			}
			if err != nil { // too many open files: they may be fewer soon
				<-time.After(acceptRetry)
				continue
			}
			f.group.Go(func() { f.forward(client, in, dial) })
		}
	})
}

const acceptRetry = 50 * time.Millisecond

func (f *forwarder) forward(client net.Conn, in *network, dial clientDial) {
	defer closeQuietly(client)
	peer, err := dial(f.ctx, client)
	if err != nil {
		if tcp, ok := client.(*net.TCPConn); ok {
			_ = tcp.SetLinger(0) // closing then resets
		}
		return
	}
	defer closeQuietly(peer)
	l := &link{in: in, client: client, peer: peer}
	if !f.add(l) {
		return
	}
	defer f.remove(l)
	var back sync.WaitGroup
	back.Go(func() { pour(l.client, l.peer) })
	pour(l.peer, l.client)
	back.Wait()
}

// pour copies until the source ends, and passes that on. If either side fails, it closes both.
func pour(to, from net.Conn) {
	_, err := io.Copy(to, from)
	if err == nil {
		if half, ok := to.(interface{ CloseWrite() error }); ok && half.CloseWrite() == nil {
			return
		}
	}
	closeQuietly(to)
	closeQuietly(from)
}

// add returns false when the forwarder has ended.
func (f *forwarder) add(l *link) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.ctx.Err() != nil {
		return false
	}
	f.links[l] = true
	return true
}

func (f *forwarder) remove(l *link) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.links, l)
}

// cut closes every connection of a pod with its own network: those accepted in it, and those from or
// to its address.
func (f *forwarder) cut(n *network, ip string) {
	of := func(c net.Conn) bool {
		host, _, err := net.SplitHostPort(c.RemoteAddr().String())
		return err == nil && host == ip
	}
	f.cutIf(func(l *link) bool { return l.in == n || of(l.client) || of(l.peer) })
}

func (f *forwarder) cutIf(hit func(*link) bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for l := range f.links {
		if hit(l) {
			closeQuietly(l.client)
			closeQuietly(l.peer)
		}
	}
}

// close closes every connection and waits for its goroutines. The listeners must be closed before.
func (f *forwarder) close() {
	f.mu.Lock()
	f.stop()
	f.mu.Unlock()
	f.cutIf(func(*link) bool { return true })
	f.group.Wait()
}
