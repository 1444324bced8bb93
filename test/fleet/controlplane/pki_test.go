package controlplane

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestPKI(t *testing.T) {
	p := pki{dir: filepath.Join(t.TempDir(), "pki")}
	if err := p.write("cluster1"); err != nil {
		t.Fatal(err)
	}
	ca := x509.NewCertPool()
	ca.AddCert(certificate(t, p.file("ca.crt")))

	t.Run("the API server is trusted by every name that clients use", func(t *testing.T) {
		cert := certificate(t, p.file("apiserver.crt"))
		for _, name := range []string{"127.0.0.1", "10.96.0.1", "localhost", "kubernetes.default.svc"} {
			if _, err := cert.Verify(x509.VerifyOptions{Roots: ca, DNSName: name}); err != nil {
				t.Error(err)
			}
		}
		if _, err := cert.Verify(x509.VerifyOptions{Roots: ca, DNSName: "example.com"}); err == nil {
			t.Error("the certificate holds for any name")
		}
	})

	t.Run("clients are who they shall be", func(t *testing.T) {
		got := map[string][]string{}
		for _, name := range []string{"admin", "controller-manager"} {
			cert := certificate(t, p.file(name+".crt"))
			if _, err := cert.Verify(
				x509.VerifyOptions{Roots: ca, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}},
			); err != nil {
				t.Error(err)
			}
			got[name] = append([]string{cert.Subject.CommonName}, cert.Subject.Organization...)
		}
		want := map[string][]string{
			"admin":              {"fleet-admin", "system:masters"},
			"controller-manager": {"system:kube-controller-manager"},
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Error(diff)
		}
	})

	t.Run("the front proxy's authority is not the clients'", func(t *testing.T) {
		if certificate(t, p.file("front-proxy-ca.crt")).Equal(certificate(t, p.file("ca.crt"))) {
			t.Error("every client could claim to be anybody")
		}
	})

	t.Run("keys belong to their certificates and only the owner reads them", func(t *testing.T) {
		for _, name := range []string{"ca", "apiserver", "webhooks/tls", "admin", "controller-manager", "front-proxy-ca"} {
			if _, err := tls.LoadX509KeyPair(p.file(name+".crt"), p.file(name+".key")); err != nil {
				t.Errorf("%s: %v", name, err)
			}
			info, err := os.Stat(p.file(name + ".key"))
			if err != nil {
				t.Fatal(err)
			}
			if info.Mode().Perm() != 0o600 {
				t.Errorf("%s.key has mode %v", name, info.Mode().Perm())
			}
		}
	})

	t.Run("a second run keeps what is there", func(t *testing.T) {
		before := certificate(t, p.file("ca.crt"))
		if err := p.write("cluster1"); err != nil {
			t.Fatal(err)
		}
		if !certificate(t, p.file("ca.crt")).Equal(before) {
			t.Error("the authority was replaced")
		}
	})

	t.Run("validity outlives a fleet", func(t *testing.T) {
		if end := certificate(t, p.file("apiserver.crt")).NotAfter; time.Until(end) < 365*24*time.Hour {
			t.Errorf("it ends at %v", end)
		}
	})
}

func certificate(t *testing.T, path string) *x509.Certificate {
	t.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	block, _ := pem.Decode(content)
	if block == nil {
		t.Fatalf("%s holds no PEM", path)
	}
	cert, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	return cert
}
