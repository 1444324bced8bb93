package fleet

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"open-cluster-management.io/cluster-inventory-addon/test/fleet/node"
)

// ServiceProxy returns a proxy (HTTP CONNECT) through which people outside a cluster reach its
// Services by the names that its pods know.
func (f *Fleet) ServiceProxy(cluster string) http.Handler {
	dial := f.ServiceDialer(cluster)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		there, err := dial(r.Context(), "tcp", r.Host)
		if err != nil || r.Method != http.MethodConnect {
			http.Error(w, "no way", http.StatusBadGateway)
			return
		}
		here, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			_ = there.Close()
			return
		}
		_, _ = io.WriteString(here, "HTTP/1.1 200 OK\r\n\r\n")
		go pipe(there, here)
		pipe(here, there)
	})
}

func pipe(to, from net.Conn) {
	_, _ = io.Copy(to, from)
	_ = to.Close()
}

// ServiceDialer returns a function that connects a process of this machine to
// Services of a cluster by the names that its pods know, for an http.Transport
// or a rest.Config. Other addresses are dialled as they are.
func (f *Fleet) ServiceDialer(cluster string) func(ctx context.Context, network, address string) (net.Conn, error) {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		host, port, err := net.SplitHostPort(address)
		if err != nil {
			return nil, err
		}
		names, err := os.ReadFile(filepath.Join(f.podDir(cluster), node.ServiceHosts))
		if err != nil {
			return nil, fmt.Errorf("the Services of %s have no addresses: %w", cluster, err)
		}
		if found := hostAddress(string(names), host); found != "" {
			host = found
		}
		return (&net.Dialer{}).DialContext(ctx, network, net.JoinHostPort(host, port))
	}
}

// hostAddress looks a name up in lines of /etc/hosts.
func hostAddress(hosts, name string) string {
	for line := range strings.Lines(hosts) {
		if words := strings.Fields(line); len(words) > 1 && slices.Contains(words[1:], name) {
			return words[0]
		}
	}
	return ""
}
