package spoke

import (
	"crypto/sha256"
	"fmt"
	"os"

	"k8s.io/client-go/rest"

	"open-cluster-management.io/cluster-inventory-addon/pkg/kube"
)

// hubAccess is the way to the hub, which the klusterlet may replace. client-go
// follows renewed certificates and tokens next to the kubeconfig by itself, not the
// kubeconfig: its server, its CA, its file names.
type hubAccess struct {
	path   string
	digest [sha256.Size]byte
	cfg    *rest.Config
}

// current returns the configuration, the same pointer as before while the
// kubeconfig has the same content. After an error the earlier one is still good.
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
