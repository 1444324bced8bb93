package spoke

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"net/http"
	"net/url"
	"os"

	"k8s.io/client-go/rest"

	"open-cluster-management.io/cluster-inventory-addon/pkg/kube"
)

// hubAccess is the client configuration for the hub. The klusterlet may replace
// the kubeconfig: client-go reloads renewed certificates and tokens from the files
// it names, but not the kubeconfig itself with its server, CA and file names.
type hubAccess struct {
	path string

	// proxyCA are CA certificates for a proxy on the way to the hub, besides those for
	// the hub: client-go verifies both with the same.
	proxyCA string

	digest [sha256.Size]byte
	cfg    *rest.Config
}

// current returns the configuration. The pointer stays the same as long as the
// kubeconfig's content does. If there is an error, it returns the previous
// configuration as well.
func (h *hubAccess) current() (*rest.Config, error) {
	content, err := os.ReadFile(h.path)
	if err != nil {
		return h.cfg, fmt.Errorf("reading kubeconfig of the hub: %w", err)
	}
	digest := sha256.Sum256(content)
	if h.cfg != nil && digest == h.digest {
		return h.cfg, nil
	}
	cfg, err := kube.Config(h.path)
	if err != nil {
		return h.cfg, err
	}
	if err := trust(cfg, h.proxyCA); err != nil {
		return h.cfg, err
	}
	cfg.UserAgent = userAgent
	h.cfg, h.digest = cfg, digest
	return cfg, nil
}

// trust adds CA certificates to those of a configuration. To those of the system, which
// count where a kubeconfig has none, nothing can be added. Only the CA is read from its
// file: client-go reloads the others.
func trust(cfg *rest.Config, bundle string) error {
	if bundle == "" || cfg.Insecure {
		return nil
	}
	if len(cfg.CAData) == 0 && cfg.CAFile != "" {
		var err error
		if cfg.CAData, err = os.ReadFile(cfg.CAFile); err != nil {
			return fmt.Errorf("reading the CA of the hub: %w", err)
		}
	}
	if len(cfg.CAData) > 0 {
		cfg.CAData = append(append(bytes.TrimSpace(cfg.CAData), '\n'), bundle...)
	}
	return nil
}

// withoutProxy makes a configuration ignore the proxy of the environment, which leads
// to the hub. The spoke's own API server is reached directly.
func withoutProxy(cfg *rest.Config) *rest.Config {
	cfg.Proxy = func(*http.Request) (*url.URL, error) { return nil, nil }
	return cfg
}
