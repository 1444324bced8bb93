package controlplane

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"

	"open-cluster-management.io/cluster-inventory-addon/test/fleet/internal/files"
)

// certValidity outlives any fleet. Certificates start to be valid an hour ago, in
// case the clock is set back.
const certValidity = 5 * 365 * 24 * time.Hour

// authority signs the certificates of one cluster.
type authority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

// pair is a certificate with its key, both PEM.
type pair struct{ cert, key []byte }

func newAuthority(commonName string) (*authority, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	template, err := certTemplate(pkix.Name{CommonName: commonName})
	if err != nil {
		return nil, err
	}
	template.IsCA = true
	template.BasicConstraintsValid = true
	template.KeyUsage = x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature | x509.KeyUsageCRLSign
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return nil, err
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, err
	}
	return &authority{cert: cert, key: key}, nil
}

func (a *authority) pair() (pair, error) { return encode(a.cert.Raw, a.key) }

// client signs a client certificate for a Kubernetes user with its groups.
func (a *authority) client(user string, groups ...string) (pair, error) {
	template, err := certTemplate(pkix.Name{CommonName: user, Organization: groups})
	if err != nil {
		return pair{}, err
	}
	template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}
	return a.sign(template)
}

// server signs a serving certificate for loopback and for the names and
// addresses by which pods know their API server.
func (a *authority) server() (pair, error) {
	template, err := certTemplate(pkix.Name{CommonName: "localhost"})
	if err != nil {
		return pair{}, err
	}
	template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
	template.DNSNames = []string{"localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc"}
	template.IPAddresses = []net.IP{net.IPv4(127, 0, 0, 1), net.IPv4(10, 96, 0, 1)}
	return a.sign(template)
}

func (a *authority) sign(template *x509.Certificate) (pair, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return pair{}, err
	}
	template.KeyUsage = x509.KeyUsageDigitalSignature
	der, err := x509.CreateCertificate(rand.Reader, template, a.cert, key.Public(), a.key)
	if err != nil {
		return pair{}, err
	}
	return encode(der, key)
}

func certTemplate(subject pkix.Name) (*x509.Certificate, error) {
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	if err != nil {
		return nil, err
	}
	now := time.Now()
	return &x509.Certificate{
		SerialNumber: serial,
		Subject:      subject,
		NotBefore:    now.Add(-time.Hour),
		NotAfter:     now.Add(certValidity),
	}, nil
}

func encode(der []byte, key *ecdsa.PrivateKey) (pair, error) {
	keyDER, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return pair{}, err
	}
	return pair{
		cert: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}),
		key:  pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: keyDER}),
	}, nil
}

// CertFile is the path of a certificate or key, such as "ca.crt".
func (c *ControlPlane) CertFile(name string) string { return c.pki().file(name) }

func (c *ControlPlane) pki() pki { return pki{dir: filepath.Join(c.Dir, "pki")} }

// pki is the directory of a cluster's certificates.
type pki struct{ dir string }

func (p pki) file(name string) string { return filepath.Join(p.dir, name) }

// write makes the certificates of a cluster: the CA, the API server's, the
// webhooks', the administrator's and the controller manager's, and the key that
// signs service account tokens. The directory appears complete or not at all.
func (p pki) write(cluster string) error {
	if files.Exists(p.dir) {
		return nil
	}
	ca, err := newAuthority("fleet-" + cluster)
	if err != nil {
		return err
	}
	content := map[string][]byte{}
	add := func(name string, made pair, err error) error {
		if err != nil {
			return fmt.Errorf("certificate %s of %s: %w", name, cluster, err)
		}
		content[name+".crt"], content[name+".key"] = made.cert, made.key
		return nil
	}
	caPair, err := ca.pair()
	if err := add("ca", caPair, err); err != nil {
		return err
	}
	for _, name := range []string{"apiserver", "webhooks/tls"} {
		made, err := ca.server()
		if err := add(name, made, err); err != nil {
			return err
		}
	}
	made, err := ca.client("fleet-admin", "system:masters")
	if err := add("admin", made, err); err != nil {
		return err
	}
	made, err = ca.client("system:kube-controller-manager")
	if err := add("controller-manager", made, err); err != nil {
		return err
	}
	// Nothing is aggregated, but OCM's servers keep complaining without this CA.
	front, err := newAuthority("fleet-front-proxy-" + cluster)
	if err != nil {
		return err
	}
	frontPair, err := front.pair()
	if err := add("front-proxy-ca", frontPair, err); err != nil {
		return err
	}
	if err := addTokenKey(content); err != nil {
		return err
	}

	tmp := p.dir + ".tmp"
	if err := os.RemoveAll(tmp); err != nil {
		return err
	}
	for name, data := range content {
		if err := files.Write(filepath.Join(tmp, name), data, files.Private); err != nil {
			return err
		}
	}
	return os.Rename(tmp, p.dir)
}

func addTokenKey(content map[string][]byte) error {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return err
	}
	public, err := x509.MarshalPKIXPublicKey(key.Public())
	if err != nil {
		return err
	}
	content["sa.key"] = pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private})
	content["sa.pub"] = pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: public})
	return nil
}
