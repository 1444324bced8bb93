package access

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"slices"
	"testing"
	"time"
)

const userServerHost = "cluster-proxy-addon-user.proxy"

// pair is a certificate and its key.
type pair struct {
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
}

var serial int64

// issue makes a certificate; without issuer it signs itself.
func issue(t *testing.T, issuer *pair, template x509.Certificate) *pair {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	serial++
	template.SerialNumber = big.NewInt(serial)
	if template.NotBefore.IsZero() {
		template.NotBefore = time.Now().Add(-time.Hour)
	}
	if template.NotAfter.IsZero() {
		template.NotAfter = time.Now().Add(time.Hour)
	}
	parent, signer := &template, key
	if issuer != nil {
		parent, signer = issuer.certificate, issuer.key
	}
	der, err := x509.CreateCertificate(rand.Reader, &template, parent, &key.PublicKey, signer)
	if err != nil {
		t.Fatal(err)
	}
	certificate, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return &pair{certificate, key}
}

// newCA makes a CA that signed itself, good until the given time.
func newCA(t *testing.T, name string, until time.Time) *pair {
	t.Helper()
	return issue(t, nil, caTemplate(name, until))
}

func caTemplate(name string, until time.Time) x509.Certificate {
	return x509.Certificate{
		Subject: pkix.Name{CommonName: name}, NotAfter: until,
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
}

// newLeaf makes the user server's certificate.
func newLeaf(t *testing.T, issuer *pair, hosts ...string) *pair {
	t.Helper()
	if len(hosts) == 0 {
		hosts = []string{userServerHost}
	}
	return issue(t, issuer, x509.Certificate{Subject: pkix.Name{CommonName: hosts[0]}, DNSNames: hosts, KeyUsage: x509.KeyUsageDigitalSignature})
}

func (p *pair) pem() []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: p.certificate.Raw})
}

func (p *pair) keyPEM(t *testing.T) []byte {
	t.Helper()
	der, err := x509.MarshalECPrivateKey(p.key)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: der})
}

func chain(pairs ...*pair) []byte {
	var text []byte
	for _, p := range pairs {
		text = slices.Concat(text, p.pem())
	}
	return text
}

// bundle is the certificates in the order they are published in.
func bundle(pairs ...*pair) []byte {
	pairs = slices.Clone(pairs)
	slices.SortFunc(pairs, func(a, b *pair) int {
		if order := a.certificate.NotBefore.Compare(b.certificate.NotBefore); order != 0 {
			return order
		}
		return bytes.Compare(a.certificate.Raw, b.certificate.Raw)
	})
	return chain(pairs...)
}
