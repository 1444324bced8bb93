// Package certtest makes certificates for tests.
package certtest

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

// Pair is a certificate and its key.
type Pair struct {
	Certificate *x509.Certificate
	key         *ecdsa.PrivateKey
}

// Issue makes a certificate of a new key, good from an hour ago until in an hour
// where the template does not say. Without issuer it signs itself.
func Issue(tb testing.TB, issuer *Pair, template x509.Certificate) *Pair {
	tb.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		tb.Fatal(err)
	}
	if template.SerialNumber, err = rand.Int(rand.Reader, big.NewInt(1<<62)); err != nil {
		tb.Fatal(err)
	}
	if template.NotBefore.IsZero() {
		template.NotBefore = time.Now().Add(-time.Hour)
	}
	if template.NotAfter.IsZero() {
		template.NotAfter = time.Now().Add(time.Hour)
	}
	parent, signer := &template, key
	if issuer != nil {
		parent, signer = issuer.Certificate, issuer.key
	}
	der, err := x509.CreateCertificate(rand.Reader, &template, parent, &key.PublicKey, signer)
	if err != nil {
		tb.Fatal(err)
	}
	certificate, err := x509.ParseCertificate(der)
	if err != nil {
		tb.Fatal(err)
	}
	return &Pair{certificate, key}
}

// CA is the template of a CA of that name, good until the given time.
func CA(name string, until time.Time) x509.Certificate {
	return x509.Certificate{
		Subject: pkix.Name{CommonName: name}, NotAfter: until,
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
}

// NewCA makes a CA that signed itself, good until the given time.
func NewCA(tb testing.TB, name string, until time.Time) *Pair {
	tb.Helper()
	return Issue(tb, nil, CA(name, until))
}

// NewLeaf makes a server's certificate for these hosts.
func NewLeaf(tb testing.TB, issuer *Pair, hosts ...string) *Pair {
	tb.Helper()
	return Issue(tb, issuer, x509.Certificate{
		Subject:  pkix.Name{CommonName: hosts[0]},
		DNSNames: hosts,
		KeyUsage: x509.KeyUsageDigitalSignature,
	})
}

// PEM is the certificate's text.
func (p *Pair) PEM() []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: p.Certificate.Raw})
}

// KeyPEM is the key's text.
func (p *Pair) KeyPEM(tb testing.TB) []byte {
	tb.Helper()
	der, err := x509.MarshalECPrivateKey(p.key)
	if err != nil {
		tb.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: der})
}

// Chain is the text of certificates in this order.
func Chain(pairs ...*Pair) []byte {
	var text []byte
	for _, p := range pairs {
		text = slices.Concat(text, p.PEM())
	}
	return text
}

// ByAge is the text of certificates from the oldest to the youngest.
func ByAge(pairs ...*Pair) []byte {
	pairs = slices.Clone(pairs)
	slices.SortFunc(pairs, func(a, b *Pair) int {
		if order := a.Certificate.NotBefore.Compare(b.Certificate.NotBefore); order != 0 {
			return order
		}
		return bytes.Compare(a.Certificate.Raw, b.Certificate.Raw)
	})
	return Chain(pairs...)
}
