package spoke

import (
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/rest"

	"open-cluster-management.io/cluster-inventory-addon/internal/apitest"
	"open-cluster-management.io/cluster-inventory-addon/internal/certtest"
)

// serve starts a server on localhost with a certificate of a CA of its own, and returns
// its URL and that CA.
func serve(t *testing.T, name string, handler http.Handler) (address string, ca []byte) {
	t.Helper()
	issuer := certtest.NewCA(t, name, time.Now().Add(time.Hour))
	leaf := certtest.NewLeaf(t, issuer, "localhost")
	certificate, err := tls.X509KeyPair(leaf.PEM(), leaf.KeyPEM(t))
	apitest.Must(t, err)
	server := httptest.NewUnstartedServer(handler)
	server.TLS = &tls.Config{Certificates: []tls.Certificate{certificate}, MinVersion: tls.VersionTLS12}
	server.Config.ErrorLog = nil
	server.StartTLS()
	t.Cleanup(server.Close)
	_, port, err := net.SplitHostPort(server.Listener.Addr().String())
	apitest.Must(t, err)
	return "https://localhost:" + port, issuer.PEM()
}

// tunnel is a proxy that connects to whatever it is asked for.
func tunnel(w http.ResponseWriter, r *http.Request) {
	far, err := (&net.Dialer{}).DialContext(r.Context(), "tcp", r.Host)
	if err != nil || r.Method != http.MethodConnect {
		w.WriteHeader(http.StatusBadGateway)
		return
	}
	near, _, err := w.(http.Hijacker).Hijack()
	if err != nil {
		_ = far.Close()
		return
	}
	_, _ = near.Write([]byte("HTTP/1.1 200 OK\r\n\r\n"))
	go func() { _, _ = io.Copy(far, near); _ = far.Close() }()
	go func() { _, _ = io.Copy(near, far); _ = near.Close() }()
}

// The hub is behind a proxy that is reached by https, each with a CA of its own.
func TestTheHubIsReachedThroughAProxyWithItsOwnCA(t *testing.T) {
	hub, hubCA := serve(t, "hub", http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("hub")) }))
	proxy, proxyCA := serve(t, "proxy", http.HandlerFunc(tunnel))
	dir := t.TempDir()
	apitest.Must(t, os.WriteFile(filepath.Join(dir, "ca.crt"), hubCA, 0o600))
	inline := apitest.Kubeconfig(t, &rest.Config{Host: hub, TLSClientConfig: rest.TLSClientConfig{CAData: hubCA}}, "")
	named := strings.Replace(string(apitest.Kubeconfig(t, &rest.Config{Host: hub}, "")),
		"server: ", "certificate-authority: ca.crt\n    server: ", 1)

	for name, test := range map[string]struct {
		kubeconfig string
		ca         string
		reached    bool
	}{
		"with its CA": {kubeconfig: string(inline), ca: string(proxyCA), reached: true},
		"with its CA, and that of the hub in a file": {kubeconfig: named, ca: string(proxyCA), reached: true},
		"without its CA": {kubeconfig: string(inline)},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(dir, "kubeconfig")
			apitest.Must(t, os.WriteFile(path, []byte(test.kubeconfig), 0o600))
			cfg, err := (&hubAccess{path: path, proxyCA: test.ca}).current()
			apitest.Must(t, err)
			through, err := url.Parse(proxy)
			apitest.Must(t, err)
			cfg.Proxy = http.ProxyURL(through) // as the environment or the kubeconfig says
			client, err := rest.HTTPClientFor(cfg)
			apitest.Must(t, err)
			request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, hub, nil)
			apitest.Must(t, err)
			response, err := client.Do(request)
			if err == nil {
				_ = response.Body.Close()
			}
			if (err == nil) != test.reached {
				t.Errorf("reached is %t, want %t: %v", err == nil, test.reached, err)
			}
		})
	}
}

// Where the kubeconfig has no CA, the system's count, and must go on to do so.
func TestACAOfAProxyReplacesNoOther(t *testing.T) {
	cfg := &rest.Config{}
	apitest.Must(t, trust(cfg, "a CA"))
	if len(cfg.CAData) > 0 {
		t.Errorf("only %q is trusted now", cfg.CAData)
	}
	cfg.CAFile = filepath.Join(t.TempDir(), "gone")
	if err := trust(cfg, "a CA"); err == nil {
		t.Error("a missing file is no error")
	}
}

func TestTheSpokeIsReachedWithoutProxy(t *testing.T) {
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://kubernetes.default.svc", nil)
	apitest.Must(t, err)
	if through, err := withoutProxy(&rest.Config{}).Proxy(request); err != nil || through != nil {
		t.Errorf("through %v, %v", through, err)
	}
}
