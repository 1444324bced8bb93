package spoke

import (
	"bytes"
	"crypto/sha256"
	"crypto/tls"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	"k8s.io/client-go/rest"

	"open-cluster-management.io/cluster-inventory-addon/pkg/kube"
	"open-cluster-management.io/cluster-inventory-addon/pkg/kube/watch"
)

// clusterAccess is the client configuration for a cluster that the agent does not run on:
// the hub or, if the agent is hosted, the spoke. The klusterlet updates the Secret with the
// hub's kubeconfig: the certificate or token when it is about to expire, and all of it when
// it registers the agent again. client-go would reload certificates every five minutes,
// tokens every minute, and the kubeconfig itself never. So clusterAccess reads the files
// itself, all at once, and returns configurations that refer to none.
type clusterAccess struct {
	path string

	// proxyCA are CA certificates for a proxy between the agent and the hub, in addition to
	// those for the hub: client-go verifies both against the same certificates.
	proxyCA string

	// relist is for how long caches are listed again, one after the other, after the cluster
	// could not be reached (watch.RelistAfterOutage).
	relist time.Duration

	digest [sha256.Size]byte
	cfg    *rest.Config
}

// current returns the configuration. The pointer stays the same as long as the kubeconfig
// and the files it refers to do. With an error, it also returns the previous configuration.
func (h *clusterAccess) current() (*rest.Config, error) {
	cfg, digest, err := h.read()
	if err != nil {
		// The files may have been replaced between two reads.
		cfg, digest, err = h.read()
	}
	if err != nil || h.cfg != nil && digest == h.digest {
		return h.cfg, err
	}
	trust(cfg, h.proxyCA)
	cfg.UserAgent = userAgent
	h.cfg, _ = watch.RelistAfterOutage(cfg, h.relist)
	h.digest = digest
	return h.cfg, nil
}

// unusable is the error of an unusable kubeconfig. The problem is reported on the hub; the
// error itself, which may quote the files' contents, is not.
type unusable struct {
	problem string
	error
}

func (u unusable) Unwrap() error { return u.error }

// problemOf says what is wrong with the Secret that contains the kubeconfig, for people on
// the hub, or nothing if it is fine.
func problemOf(err error) string {
	wrong, _ := errors.AsType[unusable](err)
	return wrong.problem
}

const (
	wrongKubeconfig = "its kubeconfig cannot be read"
	wrongFile       = "a file that its kubeconfig names cannot be read"
	wrongPair       = "its certificate and key are not a pair"
	wrongToken      = "its token is empty"
	wrongServer     = "its server is not an https URL"
	wrongCA         = "its CA certificates cannot be read"
	noCredentials   = "it has no credentials"
)

// read returns the configuration and a digest of everything it was made of.
func (h *clusterAccess) read() (*rest.Config, [sha256.Size]byte, error) {
	var none [sha256.Size]byte
	content, err := os.ReadFile(h.path)
	if err != nil {
		return nil, none, unusable{wrongKubeconfig, fmt.Errorf("reading kubeconfig of the hub: %w", err)}
	}
	cfg, err := kube.ParseConfig(content, h.path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, none, unusable{wrongFile, err}
	}
	if err != nil {
		// The cause may quote what could not be parsed, which may be a token, and is logged.
		return nil, none, unusable{wrongKubeconfig, fmt.Errorf("%q is not a kubeconfig", h.path)}
	}
	if err := inline(cfg); err != nil {
		return nil, none, fmt.Errorf("kubeconfig %q: %w", h.path, err)
	}
	hash := sha256.New()
	for _, part := range [][]byte{content, cfg.CAData, cfg.CertData, cfg.KeyData, []byte(cfg.BearerToken)} {
		sum := sha256.Sum256(part)
		hash.Write(sum[:])
	}
	return cfg, [sha256.Size]byte(hash.Sum(nil)), nil
}

// inline replaces the names of files by their contents. It returns an error if no client
// can be made of the configuration, and also if the client would be unwanted: it would be
// an anonymous user, or trust the system's CA certificates because a file is empty.
func inline(cfg *rest.Config) error {
	server, _, err := rest.DefaultServerUrlFor(cfg)
	if err != nil { // which quotes the URL, and a password in it
		return unusable{wrongServer, errors.New("the server's URL cannot be parsed")}
	}
	if server.Scheme != "https" {
		return unusable{wrongServer, errors.New("the server is not reached by https")}
	}
	namesCA := cfg.CAFile != ""
	if err := rest.LoadTLSFiles(cfg); err != nil {
		return unusable{wrongFile, err}
	}
	if namesCA && len(cfg.CAData) == 0 {
		return unusable{wrongCA, errors.New("the file with CA certificates is empty")}
	}
	cfg.CAFile, cfg.CertFile, cfg.KeyFile = "", "", ""
	if len(cfg.CertData)+len(cfg.KeyData) > 0 {
		if _, err := tls.X509KeyPair(cfg.CertData, cfg.KeyData); err != nil {
			return unusable{wrongPair, fmt.Errorf("certificate and key: %w", err)}
		}
	}
	if cfg.BearerTokenFile != "" {
		// clientcmd has already read the file.
		if cfg.BearerToken = strings.TrimSpace(cfg.BearerToken); cfg.BearerToken == "" {
			return unusable{wrongToken, errors.New("the token is empty")}
		}
		cfg.BearerTokenFile = ""
	}
	if len(cfg.CertData) == 0 && cfg.BearerToken == "" {
		return unusable{noCredentials, errors.New("there is neither a certificate nor a token")}
	}
	if _, err := rest.TLSConfigFor(cfg); err != nil {
		return unusable{wrongCA, err} // everything else has been checked
	}
	return nil
}

// trust adds CA certificates to those of a configuration. A kubeconfig without any relies
// on the system's certificates, to which nothing can be added.
func trust(cfg *rest.Config, bundle string) {
	if bundle != "" && !cfg.Insecure && len(cfg.CAData) > 0 {
		cfg.CAData = append(append(bytes.TrimSpace(cfg.CAData), '\n'), bundle...)
	}
}

// withoutProxy makes a configuration ignore the proxy of the environment, which is for the
// hub. The agent connects to the spoke's own API server directly, unless its kubeconfig
// names a proxy.
func withoutProxy(cfg *rest.Config) *rest.Config {
	if cfg.Proxy == nil {
		cfg.Proxy = func(*http.Request) (*url.URL, error) { return nil, nil }
	}
	return cfg
}
