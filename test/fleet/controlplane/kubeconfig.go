package controlplane

import (
	"fmt"
	"os"
	"path/filepath"

	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/clientcmd/api"

	"open-cluster-management.io/cluster-inventory-addon/test/fleet/internal/files"
)

// Kubeconfig renders access to one API server with everything inline: OCM copies
// the CA of a bootstrap kubeconfig into each one it makes.
func Kubeconfig(cluster, server string, ca []byte, user *api.AuthInfo) ([]byte, error) {
	cfg := api.NewConfig()
	cfg.Clusters[cluster] = &api.Cluster{Server: server, CertificateAuthorityData: ca}
	cfg.AuthInfos[cluster] = user
	cfg.Contexts[cluster] = &api.Context{Cluster: cluster, AuthInfo: cluster}
	cfg.CurrentContext = cluster
	return clientcmd.Write(*cfg)
}

// WriteFiles writes the certificates and kubeconfigs that the processes need, and the
// administrator's kubeconfig to admin. Existing certificates are kept.
func (c *ControlPlane) WriteFiles(admin string) error {
	if err := c.pki().write(c.Name); err != nil {
		return err
	}
	if err := c.writeKubeconfig(c.controllerManagerKubeconfig(), "controller-manager"); err != nil {
		return err
	}
	if c.Services != "" {
		content, err := c.egress()
		if err != nil {
			return err
		}
		if err := files.Write(c.egressFile(), content, files.Private); err != nil {
			return err
		}
	}
	if c.Audit != "" {
		content, err := auditPolicy()
		if err != nil {
			return err
		}
		if err := files.Write(c.auditPolicyFile(), content, files.Private); err != nil {
			return err
		}
		if err := os.MkdirAll(filepath.Dir(c.Audit), files.PrivateDir); err != nil {
			return err
		}
	}
	return c.writeKubeconfig(admin, "admin")
}

// writeKubeconfig writes access by one of the client certificates.
func (c *ControlPlane) writeKubeconfig(path, certificate string) error {
	ca, err := os.ReadFile(c.CertFile("ca.crt"))
	if err != nil {
		return err
	}
	cert, err := os.ReadFile(c.CertFile(certificate + ".crt"))
	if err != nil {
		return err
	}
	key, err := os.ReadFile(c.CertFile(certificate + ".key"))
	if err != nil {
		return err
	}
	content, err := Kubeconfig(c.Name, c.Server(), ca, &api.AuthInfo{ClientCertificateData: cert, ClientKeyData: key})
	if err != nil {
		return fmt.Errorf("kubeconfig %s: %w", path, err)
	}
	return files.Write(path, content, files.Private)
}
