package spoke

import (
	"crypto/sha256"
	"fmt"
	"os"

	"k8s.io/client-go/rest"

	"open-cluster-management.io/cluster-inventory-addon/pkg/kube"
)

// hubAccess is the client configuration for the hub. The klusterlet may replace
// the kubeconfig: client-go reloads renewed certificates and tokens from the files
// it names, but not the kubeconfig itself with its server, CA and file names.
type hubAccess struct {
	path   string
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
	cfg.UserAgent = userAgent
	h.cfg, h.digest = cfg, digest
	return cfg, nil
}
