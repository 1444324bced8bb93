package placement

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/client-go/util/cert"

	"open-cluster-management.io/cluster-inventory-addon/test/fleet"
	"open-cluster-management.io/cluster-inventory-addon/test/fleet/supervisor"
)

const (
	// placementProcess is OCM's placement controller.
	placementProcess = fleet.HubName + "/placement"
	// slowSlice ends the path of the writes that are delayed: those of a Placement's second
	// slice, which follow those of its first. Open Cluster Management counts from one.
	slowSlice = "-decision-2"

	headerTimeout = 10 * time.Second
	privateFile   = 0o600
)

// forever delays a write until it is refused.
const forever = time.Duration(-1)

// slowWrites stands between OCM's placement controller and the hub's API server, and delays
// one slice's writes, as an overloaded etcd or a slow webhook does, or refuses them.
type slowWrites struct {
	fleet *fleet.Fleet
	// given is the placement controller as the fleet runs it.
	given  supervisor.Process
	server *http.Server
	token  string

	mu    sync.Mutex
	delay time.Duration
	count int
}

// newSlowWrites makes the placement controller write through a proxy on loopback, which
// delays nothing yet.
func newSlowWrites(ctx context.Context, f *fleet.Fleet) (*slowWrites, error) {
	status, err := f.Process(ctx, placementProcess)
	if err != nil {
		return nil, err
	}
	s := &slowWrites{fleet: f, given: status.Process, token: rand.Text()}
	cfg, err := f.Hub()
	if err != nil {
		return nil, err
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	// Clients send tokens only where the server proves itself.
	certificate, key, err := cert.GenerateSelfSignedCertKey("127.0.0.1", []net.IP{net.IPv4(127, 0, 0, 1)}, nil)
	if err != nil {
		return nil, err
	}
	pair, err := tls.X509KeyPair(certificate, key)
	if err != nil {
		return nil, err
	}
	secure := tls.NewListener(listener, &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS13})
	if err := s.serve(cfg, secure); err != nil {
		return nil, err
	}
	return s, s.interpose(ctx, "https://"+listener.Addr().String(), certificate)
}

func (s *slowWrites) serve(cfg *rest.Config, listener net.Listener) error {
	transport, err := rest.TransportFor(cfg)
	if err != nil {
		return err
	}
	target, err := url.Parse(cfg.Host)
	if err != nil {
		return err
	}
	proxy := &httputil.ReverseProxy{
		Transport: transport,
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(target)
			r.Out.Header.Del("Authorization")
		},
		FlushInterval: -1, // watches
	}
	s.server = &http.Server{ReadHeaderTimeout: headerTimeout, Handler: http.HandlerFunc(
		func(w http.ResponseWriter, r *http.Request) {
			if r.Header.Get("Authorization") != "Bearer "+s.token {
				http.Error(w, "the token is wrong", http.StatusUnauthorized)
				return
			}
			if isSlow(r.Method, r.URL.Path) && !s.pass(r.Context()) {
				http.Error(w, "refused by the benchmark", http.StatusInternalServerError)
				return
			}
			proxy.ServeHTTP(w, r)
		})}
	go func() { _ = s.server.Serve(listener) }() // until Close
	return nil
}

// isSlow reports whether a request writes the second slice of a Placement.
func isSlow(method, path string) bool {
	write := method == http.MethodPut || method == http.MethodPatch || method == http.MethodPost
	return write && strings.Contains(path, "/placementdecisions") &&
		strings.HasSuffix(strings.TrimSuffix(path, "/status"), slowSlice)
}

// pass waits for the delay; false if the write is refused.
func (s *slowWrites) pass(ctx context.Context) bool {
	s.mu.Lock()
	delay := s.delay
	if delay != 0 {
		s.count++
	}
	s.mu.Unlock()
	if delay == forever {
		return false
	}
	timer := time.NewTimer(delay)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// set delays the writes from now on.
func (s *slowWrites) set(delay time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.delay, s.count = delay, 0
}

// delayed is how many writes were delayed or refused since the last set.
func (s *slowWrites) delayed() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.count
}

// interpose restarts the placement controller with access through the proxy.
func (s *slowWrites) interpose(ctx context.Context, server string, ca []byte) error {
	cfg := api.NewConfig()
	cfg.Clusters["slow"] = &api.Cluster{Server: server, CertificateAuthorityData: ca}
	cfg.AuthInfos["slow"] = &api.AuthInfo{Token: s.token}
	cfg.Contexts["slow"] = &api.Context{Cluster: "slow", AuthInfo: "slow"}
	cfg.CurrentContext = "slow"
	content, err := clientcmd.Write(*cfg)
	if err != nil {
		return err
	}
	file := filepath.Join(s.fleet.Dir, "slow-placement.kubeconfig")
	if err := os.WriteFile(file, content, privateFile); err != nil {
		return err
	}
	process := s.given
	process.Args = withKubeconfig(process.Args, file)
	return s.ensure(ctx, process)
}

// withKubeconfig replaces a program's kubeconfig.
func withKubeconfig(args []string, file string) []string {
	replaced := make([]string, 0, len(args))
	for _, arg := range args {
		if strings.HasPrefix(arg, "--kubeconfig=") {
			arg = "--kubeconfig=" + file
		}
		replaced = append(replaced, arg)
	}
	return replaced
}

func (s *slowWrites) ensure(ctx context.Context, process supervisor.Process) error {
	if err := s.fleet.Ensure(ctx, process); err != nil {
		return err
	}
	if err := s.fleet.WaitReady(ctx, process.Name); err != nil {
		return fmt.Errorf("the placement controller: %w", err)
	}
	return nil
}

// close makes the placement controller write directly again.
func (s *slowWrites) close(ctx context.Context) error {
	err := s.ensure(ctx, s.given)
	_ = s.server.Close() // nothing uses it any more
	return err
}
