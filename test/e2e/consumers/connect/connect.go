// Package connect makes client configurations from ClusterProfiles, through
// SIG-Multicluster's library, as a long-running consumer must.
package connect

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	inventoryv1alpha1 "sigs.k8s.io/cluster-inventory-api/apis/v1alpha1"
	"sigs.k8s.io/cluster-inventory-api/pkg/access"
)

// namespaceFile is where a pod finds the namespace it runs in.
const namespaceFile = "/var/run/secrets/kubernetes.io/serviceaccount/namespace"

// Namespace returns the given one, else that of the pod.
func Namespace(given string) (string, error) {
	if given != "" {
		return given, nil
	}
	content, err := os.ReadFile(namespaceFile)
	if err != nil {
		return "", fmt.Errorf("no -namespace given and not in a pod: %w", err)
	}
	return strings.TrimSpace(string(content)), nil
}

// Ready reports whether a cluster is worth connecting to.
func Ready(profile *inventoryv1alpha1.ClusterProfile) bool {
	return profile.DeletionTimestamp == nil &&
		meta.IsStatusConditionTrue(profile.Status.Conditions, inventoryv1alpha1.ClusterConditionControlPlaneHealthy)
}

// Providers are a consumer's provider file.
type Providers []access.Provider

// Load reads a provider file.
func Load(path string) (Providers, error) {
	config, err := access.NewFromFile(path)
	if err != nil {
		return nil, err
	}
	return config.Providers, nil
}

// Config returns how to reach the cluster of a profile. Where a profile may add arguments,
// the library changes the exec configuration it is given from one call to the next, so it
// gets a copy.
func (p Providers) Config(profile *inventoryv1alpha1.ClusterProfile) (*rest.Config, error) {
	own := make([]access.Provider, 0, len(p))
	for _, provider := range p {
		provider.ExecConfig = provider.ExecConfig.DeepCopy()
		own = append(own, provider)
	}
	config, err := access.New(own).BuildConfigFromCP(profile)
	if err != nil {
		return nil, err
	}
	config.QPS = -1
	return config, nil
}

// Fingerprint identifies a configuration by its server and credentials. The configurations
// themselves never compare equal, because each has a function of its own that chooses the
// proxy.
func Fingerprint(config *rest.Config) (string, error) {
	seen := struct {
		Host  string
		CA    []byte
		Proxy string
		Exec  *clientcmdapi.ExecConfig
		Input runtime.Object // which Exec does not encode
	}{Host: config.Host, CA: config.CAData}
	if config.ExecProvider != nil {
		seen.Exec, seen.Input = config.ExecProvider, config.ExecProvider.Config
	}
	if config.Proxy != nil {
		proxy, err := config.Proxy(&http.Request{})
		if err != nil {
			return "", err
		}
		if proxy != nil {
			seen.Proxy = proxy.String()
		}
	}
	content, err := json.Marshal(seen)
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(content)
	return hex.EncodeToString(sum[:]), nil
}
