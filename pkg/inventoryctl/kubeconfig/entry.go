package kubeconfig

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"slices"

	"k8s.io/apimachinery/pkg/runtime"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	clientcmdv1 "k8s.io/client-go/tools/clientcmd/api/v1"
	inventoryv1alpha1 "sigs.k8s.io/cluster-inventory-api/apis/v1alpha1"

	"open-cluster-management.io/cluster-inventory-addon/pkg/contract"
	"open-cluster-management.io/cluster-inventory-addon/pkg/kube"
)

// ClusterOf returns a profile's access provider as the cluster of a kubeconfig: the server and the
// CA that are published. It takes nothing over that would weaken the connection or name a file of
// this machine.
func ClusterOf(profile *inventoryv1alpha1.ClusterProfile, provider string) (*clientcmdapi.Cluster, error) {
	at := slices.IndexFunc(profile.Status.AccessProviders, func(p inventoryv1alpha1.AccessProvider) bool {
		return p.Name == provider
	})
	if at < 0 {
		return nil, fmt.Errorf("its ClusterProfile has no access provider %s", kube.Quote(provider))
	}
	published := profile.Status.AccessProviders[at].Cluster
	if err := validate(published, profile.Name); err != nil {
		return nil, fmt.Errorf("its access provider %s cannot be used: %w", kube.Quote(provider), err)
	}
	extension, _ := json.Marshal(map[string]string{contract.ExecClusterName: profile.Name}) // cannot fail
	return &clientcmdapi.Cluster{
		Server:                   published.Server,
		TLSServerName:            published.TLSServerName,
		CertificateAuthorityData: published.CertificateAuthorityData,
		ProxyURL:                 published.ProxyURL,
		DisableCompression:       published.DisableCompression,
		Extensions: map[string]runtime.Object{
			contract.ExecExtensionName: &runtime.Unknown{Raw: extension, ContentType: runtime.ContentTypeJSON},
		},
	}, nil
}

// validate returns why a token must not be sent to what is published.
func validate(published clientcmdv1.Cluster, cluster string) error {
	server, err := url.Parse(published.Server)
	switch {
	case err != nil || server.Host == "":
		return fmt.Errorf("its server %s is not a URL", kube.Quote(published.Server))
	case server.Scheme != "https":
		return fmt.Errorf("its server %s is not encrypted", kube.Quote(published.Server))
	case server.User != nil:
		return errors.New("its server names a user")
	case published.InsecureSkipTLSVerify:
		return errors.New("it does not verify the server's certificate")
	case published.CertificateAuthority != "":
		return errors.New("its CA is a file")
	}
	if name := clusterNameOf(published); name != cluster {
		return fmt.Errorf("it names the cluster %s for the exec plugin", kube.Quote(name))
	}
	return nil
}

// clusterNameOf returns the name of the cluster that an access provider has for the exec plugin.
func clusterNameOf(published clientcmdv1.Cluster) string {
	for _, extension := range published.Extensions {
		if extension.Name != contract.ExecExtensionName {
			continue
		}
		content := map[string]any{}
		if err := json.Unmarshal(extension.Extension.Raw, &content); err != nil {
			return ""
		}
		name, _ := content[contract.ExecClusterName].(string)
		return name
	}
	return ""
}
