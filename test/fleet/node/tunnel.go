package node

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"time"
)

// askTimeout bounds how long a client of the tunnel may take to say what it wants.
const askTimeout = 10 * time.Second

// startTunnel listens at the socket, if there is to be one, until the services are closed.
func (s *services) startTunnel() error {
	if s.tunnelPath == "" {
		return nil
	}
	listener, err := net.Listen("unix", s.tunnelPath)
	if err != nil {
		return fmt.Errorf("the tunnel to Services: %w", err)
	}
	s.tunnel = listener
	s.forwarder.serveClients(listener, hostNetwork, s.dialAsked)
	return nil
}

// dialAsked connects to the Service that the client asks for.
func (s *services) dialAsked(ctx context.Context, client net.Conn) (net.Conn, error) {
	if err := client.SetReadDeadline(time.Now().Add(askTimeout)); err != nil {
		return nil, err
	}
	// The client says no more before it has an answer, so nothing is left in the buffer.
	request, err := http.ReadRequest(bufio.NewReader(client))
	if err != nil {
		return nil, err
	}
	peer, err := s.dialClusterAddress(ctx, request)
	answer := "200 OK"
	if err != nil {
		answer = "502 " + err.Error()
	}
	if _, failed := fmt.Fprintf(client, "HTTP/1.1 %s\r\n\r\n", answer); err == nil && failed != nil {
		closeQuietly(peer)
		err = failed
	}
	if err != nil {
		return nil, err
	}
	return peer, client.SetReadDeadline(time.Time{})
}

func (s *services) dialClusterAddress(ctx context.Context, request *http.Request) (net.Conn, error) {
	if request.Method != http.MethodConnect {
		return nil, fmt.Errorf("%s is not CONNECT", request.Method)
	}
	to, err := s.atClusterAddress(request.URL.Host)
	if err != nil {
		return nil, err
	}
	return s.dial(ctx, to)
}

// atClusterAddress is the port of a Service at a cluster address.
func (s *services) atClusterAddress(address string) (target, error) {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return target{}, err
	}
	number, err := strconv.ParseInt(port, 10, 32)
	if err != nil {
		return target{}, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for name := range s.known {
		if s.clusterAddress(name) == host {
			return target{service: name, port: int32(number)}, nil
		}
	}
	return target{}, fmt.Errorf("no Service has the address %s", host)
}
