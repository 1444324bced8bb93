package spoke

import (
	"crypto/tls"
	"fmt"
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
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"open-cluster-management.io/cluster-inventory-addon/internal/apitest"
	"open-cluster-management.io/cluster-inventory-addon/internal/certtest"
)

// serve starts a server on localhost with a certificate of its own CA, and returns its URL
// and that CA.
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

// tunnel is a proxy that connects to every requested address.
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

// The hub is behind an https proxy, each with its own CA.
func TestTheHubIsReachedThroughAProxyWithItsOwnCA(t *testing.T) {
	hub, hubCA := serve(t, "hub",
		http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("hub")) }))
	proxy, proxyCA := serve(t, "proxy", http.HandlerFunc(tunnel))
	dir := t.TempDir()
	apitest.Must(t, os.WriteFile(filepath.Join(dir, "ca.crt"), hubCA, 0o600))
	agent := agentWithCertificate(t, certtest.NewCA(t, "users", time.Now().Add(time.Hour)), hub)
	named := strings.Replace(string(apitest.Kubeconfig(t, agent, "")),
		"server: ", "certificate-authority: ca.crt\n    server: ", 1)
	agent.CAData = hubCA
	inline := apitest.Kubeconfig(t, agent, "")

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
			cfg, err := (&clusterAccess{path: path, proxyCA: test.ca}).current()
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

// A kubeconfig without a CA relies on the system's, and must continue to do so.
func TestProxyCAReplacesNoOther(t *testing.T) {
	cfg := &rest.Config{}
	trust(cfg, "a CA")
	if len(cfg.CAData) > 0 {
		t.Errorf("only %q is trusted now", cfg.CAData)
	}
}

// agentWithCertificate returns a configuration for a hub with a new certificate of this CA.
func agentWithCertificate(t *testing.T, issuer *certtest.Pair, hub string) *rest.Config {
	t.Helper()
	leaf := certtest.NewLeaf(t, issuer, "agent")
	return &rest.Config{Host: hub, TLSClientConfig: rest.TLSClientConfig{CertData: leaf.PEM(), KeyData: leaf.KeyPEM(t)}}
}

// mounted is a directory as the kubelet mounts a Secret: what is visible leads through one
// link, which is replaced as a whole.
type mounted struct {
	t   *testing.T
	dir string
	n   int
}

func (m *mounted) replace(files map[string]string) {
	m.t.Helper()
	m.n++
	fresh := fmt.Sprintf("..%d", m.n)
	apitest.Must(m.t, os.Mkdir(filepath.Join(m.dir, fresh), 0o700))
	for name, content := range files {
		apitest.Must(m.t, os.WriteFile(filepath.Join(m.dir, fresh, name), []byte(content), 0o600))
		if err := os.Symlink(filepath.Join("..data", name), filepath.Join(m.dir, name)); !os.IsExist(err) {
			apitest.Must(m.t, err)
		}
	}
	apitest.Must(m.t, os.Symlink(fresh, filepath.Join(m.dir, "..next")))
	apitest.Must(m.t, os.Rename(filepath.Join(m.dir, "..next"), filepath.Join(m.dir, "..data")))
}

// byFiles is a kubeconfig that names the files of its credentials, as the klusterlet writes it.
func byFiles(t *testing.T, cfg *rest.Config, user *clientcmdapi.AuthInfo) string {
	t.Helper()
	content, err := clientcmd.Write(clientcmdapi.Config{
		Clusters: map[string]*clientcmdapi.Cluster{
			"hub": {Server: cfg.Host, CertificateAuthorityData: cfg.CAData},
		},
		AuthInfos:      map[string]*clientcmdapi.AuthInfo{"default-auth": user},
		Contexts:       map[string]*clientcmdapi.Context{"default-context": {Cluster: "hub", AuthInfo: "default-auth"}},
		CurrentContext: "default-context",
	})
	apitest.Must(t, err)
	return string(content)
}

// secretByCertificate and secretByToken are what the klusterlet's Secret contains.
func secretByCertificate(t *testing.T, cfg *rest.Config) map[string]string {
	user := &clientcmdapi.AuthInfo{ClientCertificate: "tls.crt", ClientKey: "tls.key"}
	return map[string]string{
		"kubeconfig": byFiles(t, cfg, user), "tls.crt": string(cfg.CertData), "tls.key": string(cfg.KeyData),
	}
}

func secretByToken(t *testing.T, cfg *rest.Config, token string) map[string]string {
	return map[string]string{"kubeconfig": byFiles(t, cfg, &clientcmdapi.AuthInfo{TokenFile: "token"}), "token": token}
}

func TestKubeconfigIsFollowedWithItsFiles(t *testing.T) {
	issuer := certtest.NewCA(t, "hub", time.Now().Add(time.Hour))
	// No error in the kubeconfig may make the agent use its pod's own cluster.
	t.Setenv("KUBERNETES_SERVICE_HOST", "127.0.0.1")
	t.Setenv("KUBERNETES_SERVICE_PORT", "1")
	pair := func() *rest.Config {
		cfg := agentWithCertificate(t, issuer, "https://hub.example")
		cfg.CAData = issuer.PEM()
		return cfg
	}
	first, second := pair(), pair()
	secret := &mounted{t: t, dir: t.TempDir()}
	hub := &clusterAccess{path: filepath.Join(secret.dir, "kubeconfig")}
	var last *rest.Config
	for _, step := range []struct {
		name    string
		secret  map[string]string
		change  bool
		problem string
	}{
		{name: "by certificate", secret: secretByCertificate(t, first), change: true},
		{name: "the same again", secret: secretByCertificate(t, first)},
		{name: "another certificate", secret: secretByCertificate(t, second), change: true},
		{
			name: "a key of another certificate", problem: "its certificate and key are not a pair",
			secret: with(secretByCertificate(t, second), "tls.key", string(first.KeyData)),
		},
		{
			name: "a certificate that is none", problem: "its certificate and key are not a pair",
			secret: with(secretByCertificate(t, second), "tls.crt", "no certificate"),
		},
		{name: "right again", secret: secretByCertificate(t, second)},
		{
			name: "no kubeconfig", problem: "its kubeconfig cannot be read",
			secret: with(secretByCertificate(t, second), "kubeconfig", "no kubeconfig"),
		},
		{
			name: "an empty kubeconfig", problem: "its kubeconfig cannot be read",
			secret: with(secretByCertificate(t, second), "kubeconfig", ""),
		},
		{
			name: "a kubeconfig with a token in a wrong place", problem: "its kubeconfig cannot be read",
			secret: with(secretByCertificate(t, second), "kubeconfig", "users: !!binary a-secret-token"),
		},
		{
			name: "a token in the URL", problem: "its server is not an https URL",
			secret: altered(t, secretByCertificate(t, second), "https://hub.example", "https://x:a-secret-token@hub.example:port"),
		},
		{
			name: "a kubeconfig that says nothing", problem: "its kubeconfig cannot be read",
			secret: with(secretByCertificate(t, second), "kubeconfig", "{}"),
		},
		{
			name: "a kubeconfig without current context", problem: "its kubeconfig cannot be read",
			secret: altered(t, secretByCertificate(t, second), "current-context: default-context", ""),
		},
		{
			name: "a kubeconfig with an empty cluster", problem: "its kubeconfig cannot be read",
			secret: with(secretByCertificate(t, second), "kubeconfig",
				byFiles(t, &rest.Config{}, &clientcmdapi.AuthInfo{ClientCertificate: "tls.crt", ClientKey: "tls.key"})),
		},
		{
			name: "a CA that is none", problem: "its CA certificates cannot be read",
			secret: secretByCertificate(t, withCA(second, "no certificate")),
		},
		{
			name: "a CA that is none, with a token", problem: "its CA certificates cannot be read",
			secret: secretByToken(t, withCA(second, "no certificate"), "one"),
		},
		{
			name: "a file with a CA, which is empty", problem: "its CA certificates cannot be read",
			secret: altered(t, with(secretByCertificate(t, withCA(second, "")), "ca.crt", ""),
				"server: ", "certificate-authority: ca.crt\n    server: "),
		},
		{
			name: "a server that is no URL", problem: "its server is not an https URL",
			secret: altered(t, secretByCertificate(t, second), "https://hub.example", "https://hub.example:port"),
		},
		{
			name: "a server without https", problem: "its server is not an https URL",
			secret: altered(t, secretByToken(t, second, "one"), "https://hub.example", "http://hub.example"),
		},
		{
			name: "no credentials", problem: "it has no credentials",
			secret: map[string]string{"kubeconfig": byFiles(t, second, &clientcmdapi.AuthInfo{})},
		},
		{
			name: "empty files for certificate and key", problem: "it has no credentials",
			secret: with(with(secretByCertificate(t, second), "tls.crt", ""), "tls.key", ""),
		},
		{
			name: "without the certificate", problem: "a file that its kubeconfig names cannot be read",
			secret: without("tls.crt", secretByCertificate(t, second)),
		},
		{name: "nothing", secret: map[string]string{}, problem: "its kubeconfig cannot be read"},
		{name: "by token", secret: secretByToken(t, first, "one\n"), change: true},
		{name: "another token", secret: secretByToken(t, first, "two"), change: true},
		{name: "no token", secret: secretByToken(t, first, "\n"), problem: "its token is empty"},
		{
			name: "without the token", problem: "a file that its kubeconfig names cannot be read",
			secret: without("token", secretByToken(t, first, "two")),
		},
		{name: "the token again", secret: secretByToken(t, first, "two")},
		{name: "by certificate again", secret: secretByCertificate(t, second), change: true},
	} {
		secret.replace(step.secret)
		cfg, err := hub.current()
		if got := problemOf(err); got != step.problem || (err != nil) != (step.problem != "") {
			t.Errorf("%s: problem %q, want %q (%v)", step.name, got, step.problem, err)
		}
		if err != nil && strings.Contains(err.Error(), "secret-token") {
			t.Errorf("%s: what is logged quotes the kubeconfig: %v", step.name, err)
		}
		if changed := cfg != last; changed != step.change {
			t.Errorf("%s: it is another configuration: %t", step.name, changed)
		}
		if step.change {
			if token := strings.TrimSpace(step.secret["token"]); cfg.BearerToken != token ||
				string(cfg.CertData) != step.secret["tls.crt"] {
				t.Errorf("%s: the token is %q, the certificate %q", step.name, cfg.BearerToken, cfg.CertData)
			}
			if cfg.BearerTokenFile+cfg.CertFile+cfg.KeyFile+cfg.CAFile != "" {
				t.Errorf("%s: client-go would read files, too: %v", step.name, cfg)
			}
		}
		last = cfg
	}
}

func with(files map[string]string, name, content string) map[string]string {
	files[name] = content
	return files
}

// altered replaces a text in the kubeconfig.
func altered(t *testing.T, files map[string]string, before, after string) map[string]string {
	t.Helper()
	if !strings.Contains(files["kubeconfig"], before) {
		t.Fatalf("the kubeconfig has no %q:\n%s", before, files["kubeconfig"])
	}
	return with(files, "kubeconfig", strings.ReplaceAll(files["kubeconfig"], before, after))
}

func withCA(cfg *rest.Config, ca string) *rest.Config {
	cfg = rest.CopyConfig(cfg)
	cfg.CAData = []byte(ca)
	return cfg
}

func without(name string, files map[string]string) map[string]string {
	delete(files, name)
	return files
}

func TestTheSpokeIsReachedWithoutProxy(t *testing.T) {
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://kubernetes.default.svc", nil)
	apitest.Must(t, err)
	if through, err := withoutProxy(&rest.Config{}).Proxy(request); err != nil || through != nil {
		t.Errorf("through %v, %v", through, err)
	}
}
