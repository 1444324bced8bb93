package fleet

import (
	"fmt"
	"os"

	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/clientcmd/api"
)

// kubeconfig renders access to one API server with everything inline: OCM
// copies the authority of a bootstrap kubeconfig into each one it makes.
func kubeconfig(cluster, server string, ca []byte, user *api.AuthInfo) ([]byte, error) {
	cfg := api.NewConfig()
	cfg.Clusters[cluster] = &api.Cluster{Server: server, CertificateAuthorityData: ca}
	cfg.AuthInfos[cluster] = user
	cfg.Contexts[cluster] = &api.Context{Cluster: cluster, AuthInfo: cluster}
	cfg.CurrentContext = cluster
	return clientcmd.Write(*cfg)
}

// writeCertKubeconfig writes access by one of the cluster's client certificates.
func (c *cluster) writeCertKubeconfig(path, certificate string) error {
	ca, err := os.ReadFile(c.pki.file("ca.crt"))
	if err != nil {
		return err
	}
	cert, err := os.ReadFile(c.pki.file(certificate + ".crt"))
	if err != nil {
		return err
	}
	key, err := os.ReadFile(c.pki.file(certificate + ".key"))
	if err != nil {
		return err
	}
	content, err := kubeconfig(c.name, c.server(), ca, &api.AuthInfo{ClientCertificateData: cert, ClientKeyData: key})
	if err != nil {
		return fmt.Errorf("kubeconfig %s: %w", path, err)
	}
	return writeFile(path, content, fileMode)
}
