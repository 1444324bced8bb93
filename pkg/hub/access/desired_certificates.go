package access

import (
	"bytes"
	"cmp"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
)

const (
	certificateBlock = "CERTIFICATE"

	// caKey is where issuers such as cert-manager put the CA of a serving certificate.
	// cluster-proxy itself appends it to tls.crt.
	caKey = "ca.crt"

	// maxBundleBytes bounds the CA bundle of one provider. Exec plugins receive it, encoded
	// again, in an environment variable, which Linux limits to 128 KiB.
	maxBundleBytes = 32 << 10
)

// secretCA returns the CA bundle to publish for the user server: the issuers of its
// certificate, so that a renewed certificate changes nothing, and, until they expire, the
// certificates that were published before.
func secretCA(
	o ClusterProxyOptions, facts proxyFacts, server string, now time.Time,
) (ca []byte, plan rotation, problem string) {
	if facts.secret.unknown != "" {
		return nil, rotation{}, ""
	}
	name := o.Namespace + "/" + userServerSecret
	if facts.secret.object == nil {
		return nil, rotation{}, fmt.Sprintf("Secret %s is missing", name)
	}
	trusted, err := serverCA(facts.secret.object, server, now)
	if err != nil {
		return nil, rotation{}, fmt.Sprintf("Secret %s %v", name, err)
	}
	if facts.remembered.unknown != "" {
		return nil, rotation{}, ""
	}
	key := o.Namespace
	var remembered []byte
	if facts.remembered.object != nil {
		remembered = []byte(facts.remembered.object.Data[key])
	}
	// Unreadable content was not written by this addon, and is ignored.
	before, _ := parseCertificates(remembered)
	all := overlap(trusted, before, now)
	ca = encodeCertificates(all)
	plan.until = firstExpiry(all)
	if !bytes.Equal(ca, remembered) {
		plan.remember = ca
	}
	return ca, plan, ""
}

// serverCA returns the certificates with which a consumer can verify the server. The error
// completes "the Secret ".
func serverCA(secret *corev1.Secret, server string, now time.Time) ([]*x509.Certificate, error) {
	chain, err := parseCertificates(secret.Data[corev1.TLSCertKey])
	switch {
	case err != nil:
		return nil, fmt.Errorf("has in %s %w", corev1.TLSCertKey, err)
	case len(chain) == 0:
		return nil, fmt.Errorf("has no certificate in %s", corev1.TLSCertKey)
	}
	if target, err := url.Parse(server); err == nil && target.Hostname() != "" {
		if err := chain[0].VerifyHostname(target.Hostname()); err != nil {
			return nil, fmt.Errorf("has a certificate that is not for host %s", target.Hostname())
		}
	}
	// Unreadable extra CAs are ignored.
	also, _ := parseCertificates(secret.Data[caKey])
	trusted := unexpired(issuers(chain[0], append(chain[1:], also...)), now)
	if len(trusted) == 0 {
		return nil, errors.New("has only certificates that have expired")
	}
	if size := len(encodeCertificates(trusted)); size > maxBundleBytes {
		return nil, fmt.Errorf("has %d bytes of CA certificates, more than %d", size, maxBundleBytes)
	}
	return trusted, nil
}

// issuers returns the CAs among candidates that issued the certificate, and their issuers.
// If there is none, the certificate itself is the one to trust, which Go's clients accept.
func issuers(leaf *x509.Certificate, candidates []*x509.Certificate) []*x509.Certificate {
	var result []*x509.Certificate
	for next := []*x509.Certificate{leaf}; len(next) > 0; next = next[1:] {
		for _, candidate := range candidates {
			if candidate.IsCA && !slices.ContainsFunc(result, candidate.Equal) && next[0].CheckSignatureFrom(candidate) == nil {
				result = append(result, candidate)
				next = append(next, candidate)
			}
		}
	}
	if len(result) == 0 {
		return []*x509.Certificate{leaf}
	}
	return result
}

// overlap combines the certificates that are trusted now with unexpired ones that were
// trusted before, in an order that does not depend on which is which. If that is too large,
// the oldest of before are left out.
func overlap(trusted, before []*x509.Certificate, now time.Time) []*x509.Certificate {
	all := slices.Clone(trusted)
	before = unexpired(before, now)
	slices.SortFunc(before, func(a, b *x509.Certificate) int { return byAge(b, a) })
	for _, certificate := range before {
		if slices.ContainsFunc(all, certificate.Equal) {
			continue
		}
		if len(encodeCertificates(append(all, certificate))) > maxBundleBytes {
			break
		}
		all = append(all, certificate)
	}
	slices.SortFunc(all, byAge)
	return slices.CompactFunc(all, (*x509.Certificate).Equal)
}

func byAge(a, b *x509.Certificate) int {
	return cmp.Or(a.NotBefore.Compare(b.NotBefore), bytes.Compare(a.Raw, b.Raw))
}

func unexpired(certificates []*x509.Certificate, now time.Time) []*x509.Certificate {
	return slices.DeleteFunc(slices.Clone(certificates), func(certificate *x509.Certificate) bool {
		return now.After(certificate.NotAfter)
	})
}

// firstExpiry returns when the first of the certificates expires; zero for none.
func firstExpiry(certificates []*x509.Certificate) time.Time {
	var first time.Time
	for _, certificate := range certificates {
		if first.IsZero() || certificate.NotAfter.Before(first) {
			first = certificate.NotAfter
		}
	}
	return first
}

// parseCertificates parses the certificates in PEM text and skips everything else.
func parseCertificates(text []byte) ([]*x509.Certificate, error) {
	var certificates []*x509.Certificate
	for block, rest := pem.Decode(text); block != nil; block, rest = pem.Decode(rest) {
		if block.Type != certificateBlock {
			continue
		}
		certificate, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return nil, errors.New("a certificate that cannot be read")
		}
		certificates = append(certificates, certificate)
	}
	return certificates, nil
}

// ParseCA checks a CA bundle from an administrator: PEM text that contains only
// certificates, short enough to be published. It returns them without the text between
// them. The error completes "the bundle ".
func ParseCA(text []byte) ([]byte, error) {
	var certificates []*x509.Certificate
	rest := bytes.TrimSpace(text)
	for len(rest) > 0 {
		block, after := pem.Decode(rest)
		switch {
		case block == nil:
			return nil, errors.New("is not PEM text")
		case block.Type != certificateBlock:
			return nil, fmt.Errorf("has a block %q among its certificates", block.Type)
		}
		certificate, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return nil, errors.New("has a certificate that cannot be read")
		}
		certificates = append(certificates, certificate)
		rest = bytes.TrimSpace(after)
	}
	if len(certificates) == 0 {
		return nil, errors.New("has no certificate")
	}
	encoded := encodeCertificates(certificates)
	if len(encoded) > maxBundleBytes {
		return nil, fmt.Errorf("has %d bytes of certificates, more than %d", len(encoded), maxBundleBytes)
	}
	return encoded, nil
}

func encodeCertificates(certificates []*x509.Certificate) []byte {
	var text bytes.Buffer
	for _, certificate := range certificates {
		text.Write(pem.EncodeToMemory(&pem.Block{Type: certificateBlock, Bytes: certificate.Raw}))
	}
	return text.Bytes()
}

// onlyCertificates drops the other blocks of PEM text, such as private keys.
func onlyCertificates(text []byte) []byte {
	var kept bytes.Buffer
	for block, rest := pem.Decode(text); block != nil; block, rest = pem.Decode(rest) {
		if block.Type == certificateBlock {
			kept.Write(pem.EncodeToMemory(&pem.Block{Type: certificateBlock, Bytes: block.Bytes}))
		}
	}
	return kept.Bytes()
}

// CheckURL returns what is wrong with the address of a server: it must be an https URL that
// names a host and has no credentials, query or fragment.
func CheckURL(address string) error {
	target, err := url.Parse(address)
	switch {
	case err != nil:
		return errors.New("is not a URL")
	case target.Scheme != "https":
		return errors.New("is not an https URL")
	case target.Hostname() == "":
		return errors.New("names no host")
	case target.User != nil:
		return errors.New("has credentials in it")
	case target.RawQuery != "" || target.ForceQuery || target.Fragment != "":
		return errors.New("has a query or fragment")
	default:
		return nil
	}
}
