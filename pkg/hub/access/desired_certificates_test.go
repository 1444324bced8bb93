package access

import (
	"bytes"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"open-cluster-management.io/cluster-inventory-addon/internal/certtest"
)

const (
	userServerHost = "cluster-proxy-addon-user.proxy"
	userServer     = "https://" + userServerHost + ":9092"
)

func TestSecretCA(t *testing.T) {
	now := time.Now().Truncate(time.Second)
	soon, later := now.Add(time.Hour), now.Add(2*time.Hour)
	root, next := certtest.NewCA(t, "root", soon), certtest.NewCA(t, "next", later)
	stranger := certtest.NewCA(t, "stranger", later)
	middle := certtest.Issue(t, root, certtest.CA("middle", later))
	expired := certtest.NewCA(t, "expired", now.Add(-time.Second))
	leaf, renewed := certtest.NewLeaf(t, root, userServerHost), certtest.NewLeaf(t, root, userServerHost)
	fresh, alone := certtest.NewLeaf(t, next, userServerHost), certtest.NewLeaf(t, root, userServerHost)
	deep := certtest.NewLeaf(t, middle, userServerHost)
	// Says it was issued by the root, but was not.
	impostor := certtest.NewCA(t, "root", later)
	notCA := certtest.Issue(t, root, x509.Certificate{Subject: pkix.Name{CommonName: "root"}})

	tests := map[string]struct {
		secret     map[string][]byte
		remembered []byte
		server     string
		want       []byte
		remember   bool
		until      time.Time
		problem    string
	}{
		"the chain has the issuer: the issuer, at first sight remembered": {
			secret: map[string][]byte{
				"tls.crt": certtest.Chain(leaf, root),
			},
			want:     certtest.ByAge(root),
			remember: true,
			until:    soon,
		},
		"another certificate of the same issuer changes nothing": {
			secret: map[string][]byte{
				"tls.crt": certtest.Chain(renewed, root),
			},
			remembered: certtest.ByAge(root),
			want:       certtest.ByAge(root),
			until:      soon,
		},
		"another issuer: old and new until the old one expires": {
			secret: map[string][]byte{
				"tls.crt": certtest.Chain(fresh, next),
			},
			remembered: certtest.ByAge(root),
			want:       certtest.ByAge(root, next),
			remember:   true,
			until:      soon,
		},
		"while both are published nothing is written": {
			secret: map[string][]byte{
				"tls.crt": certtest.Chain(fresh, next),
			},
			remembered: certtest.ByAge(root, next),
			want:       certtest.ByAge(root, next),
			until:      soon,
		},
		"back to the old one: both stay": {
			secret: map[string][]byte{
				"tls.crt": certtest.Chain(leaf, root),
			},
			remembered: certtest.ByAge(root, next),
			want:       certtest.ByAge(root, next),
			until:      soon,
		},
		"the old one has expired: the new one alone": {
			secret: map[string][]byte{
				"tls.crt": certtest.Chain(fresh, next),
			},
			remembered: certtest.ByAge(expired, next),
			want:       certtest.ByAge(next),
			remember:   true,
			until:      later,
		},
		"the memory was deleted: the new one alone": {
			secret: map[string][]byte{
				"tls.crt": certtest.Chain(fresh, next),
			},
			want:     certtest.ByAge(next),
			remember: true,
			until:    later,
		},
		"what is remembered cannot be read: forgotten": {
			secret: map[string][]byte{
				"tls.crt": certtest.Chain(fresh, next),
			},
			remembered: []byte("nonsense"),
			want:       certtest.ByAge(next),
			remember:   true,
			until:      later,
		},
		"no issuer in the chain: the certificate itself": {
			secret: map[string][]byte{
				"tls.crt": alone.PEM(),
			},
			want:     certtest.ByAge(alone),
			remember: true,
			until:    alone.Certificate.NotAfter,
		},
		"the issuer is in ca.crt": {
			secret: map[string][]byte{
				"tls.crt": leaf.PEM(),
				"ca.crt":  root.PEM(),
			},
			want:     certtest.ByAge(root),
			remember: true,
			until:    soon,
		},
		"ca.crt cannot be read: as if it were not there": {
			secret: map[string][]byte{
				"tls.crt": certtest.Chain(leaf, root),
				"ca.crt":  []byte("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"),
			},
			want:     certtest.ByAge(root),
			remember: true,
			until:    soon,
		},
		"issuers of issuers": {
			secret: map[string][]byte{
				"tls.crt": certtest.Chain(deep, middle, root),
			},
			want:     certtest.ByAge(middle, root),
			remember: true,
			until:    soon,
		},
		"others in the chain, of the issuer's name or by its hand, are not trusted": {
			secret: map[string][]byte{
				"tls.crt": certtest.Chain(leaf, impostor, notCA, stranger, root),
			},
			want:     certtest.ByAge(root),
			remember: true,
			until:    soon,
		},
		"a private key between them stays where it is": {
			secret: map[string][]byte{
				"tls.crt": append(leaf.KeyPEM(t), certtest.Chain(leaf, root)...),
			},
			want:     certtest.ByAge(root),
			remember: true,
			until:    soon,
		},
		"no certificate": {
			secret: map[string][]byte{
				"tls.key": leaf.KeyPEM(t),
			},
			problem: "Secret proxy/cluster-proxy-user-serving-cert has no certificate in tls.crt",
		},
		"text that is none": {
			secret: map[string][]byte{
				"tls.crt": []byte("nonsense"),
			},
			problem: "Secret proxy/cluster-proxy-user-serving-cert has no certificate in tls.crt",
		},
		"a broken certificate": {
			secret:  map[string][]byte{"tls.crt": []byte("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n")},
			problem: "Secret proxy/cluster-proxy-user-serving-cert has in tls.crt a certificate that cannot be read",
		},
		"all have expired": {
			secret:  map[string][]byte{"tls.crt": certtest.Chain(certtest.NewLeaf(t, expired, userServerHost), expired)},
			problem: "Secret proxy/cluster-proxy-user-serving-cert has only certificates that have expired",
		},
		"a certificate for another host": {
			secret: map[string][]byte{"tls.crt": certtest.Chain(leaf, root)}, server: "https://proxy.example.com",
			problem: "Secret proxy/cluster-proxy-user-serving-cert has a certificate that is not for host proxy.example.com",
		},
		"a certificate for several hosts": {
			secret: map[string][]byte{
				"tls.crt": certtest.Chain(certtest.NewLeaf(t, root, userServerHost, "proxy.example.com"), root),
			},
			server:   "https://proxy.example.com/p",
			want:     certtest.ByAge(root),
			remember: true,
			until:    soon,
		},
		"no Secret": {problem: "Secret proxy/cluster-proxy-user-serving-cert is missing"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			var facts proxyFacts
			if test.secret != nil {
				facts.secret.object = &corev1.Secret{Data: test.secret}
			}
			if test.remembered != nil {
				facts.remembered.object = &corev1.ConfigMap{Data: map[string]string{"proxy": string(test.remembered)}}
			}
			server := test.server
			if server == "" {
				server = userServer
			}
			ca, plan, problem := secretCA(ClusterProxyOptions{Namespace: "proxy"}, facts, server, now)
			if problem != test.problem || !bytes.Equal(ca, test.want) {
				t.Errorf("got %s (%s), want %s (%s)", names(t, ca), problem, names(t, test.want), test.problem)
			}
			var remember []byte
			if test.remember {
				remember = test.want
			}
			if !bytes.Equal(plan.remember, remember) {
				t.Errorf("remembers %s, want %s", names(t, plan.remember), names(t, remember))
			}
			if !plan.until.Equal(test.until) {
				t.Errorf("until %s, want %s", plan.until, test.until)
			}
		})
	}
}

// names makes certificates readable.
func names(t *testing.T, text []byte) string {
	t.Helper()
	certificates, err := parseCertificates(text)
	if err != nil {
		t.Fatal(err)
	}
	var list []string
	for _, certificate := range certificates {
		list = append(list, certificate.Subject.CommonName)
	}
	return strings.Join(list, " ")
}

// The environment variable in which a plugin gets the CA holds 128 KiB.
func TestTheBundleIsBounded(t *testing.T) {
	now := time.Now()
	var before []*x509.Certificate
	for i := range 60 {
		template := certtest.CA("old", now.Add(time.Hour))
		template.NotBefore = now.Add(-time.Duration(i+1) * time.Minute)
		template.ExtraExtensions = []pkix.Extension{{Id: []int{1, 2, 3}, Value: bytes.Repeat([]byte("x"), 800)}}
		before = append(before, certtest.Issue(t, nil, template).Certificate)
	}
	current := certtest.NewCA(t, "current", now.Add(time.Hour))
	all := overlap([]*x509.Certificate{current.Certificate}, before, now)
	if size := len(encodeCertificates(all)); size > 32<<10 || size < 30<<10 {
		t.Errorf("%d bytes", size)
	}
	has := func(certificate *x509.Certificate) bool {
		for _, c := range all {
			if c.Equal(certificate) {
				return true
			}
		}
		return false
	}
	if !has(current.Certificate) || !has(before[0]) || has(before[59]) {
		t.Errorf(
			"current: %t, newest of before: %t, oldest: %t; want the oldest left out",
			has(current.Certificate),
			has(before[0]),
			has(before[59]),
		)
	}

	text := encodeCertificates(before)
	if _, err := ParseCA(text); err == nil ||
		err.Error() != "has "+itoa(len(text))+" bytes of certificates, more than 32768" {
		t.Errorf("ParseCA: %v", err)
	}
	secret := &corev1.Secret{Data: map[string][]byte{"tls.crt": text}}
	if _, err := serverCA(secret, "", now); err != nil {
		t.Errorf("CAs that did not issue the certificate count: %v", err)
	}
}

func TestParseCA(t *testing.T) {
	now := time.Now()
	a, b := certtest.NewCA(t, "a", now.Add(time.Hour)), certtest.NewCA(t, "b", now.Add(time.Hour))
	tests := map[string]struct {
		text string
		want []byte
		err  string
	}{
		"one":                     {text: string(a.PEM()), want: a.PEM()},
		"several, in their order": {text: string(certtest.Chain(b, a)), want: certtest.Chain(b, a)},
		"headers and space are left out": {
			text: "\n" + strings.Replace(string(a.PEM()), "-----\n", "-----\nName: x\n\n", 1) + "\n\n",
			want: a.PEM(),
		},
		"nothing":                         {err: "has no certificate"},
		"no PEM":                          {text: "ca", err: "is not PEM text"},
		"text after the last certificate": {text: string(a.PEM()) + "# end", err: "is not PEM text"},
		"a private key": {
			text: string(a.PEM()) + string(a.KeyPEM(t)),
			err:  `has a block "EC PRIVATE KEY" among its certificates`,
		},
		"a broken certificate": {
			text: string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: []byte("x")})),
			err:  "has a certificate that cannot be read",
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := ParseCA([]byte(test.text))
			if message(err) != test.err {
				t.Errorf("error %q, want %q", message(err), test.err)
			}
			if diff := cmp.Diff(string(test.want), string(got)); diff != "" {
				t.Errorf("text (-want +got):\n%s", diff)
			}
		})
	}
}

func TestCheckURL(t *testing.T) {
	tests := map[string]struct{ address, err string }{
		"a host":              {address: "https://api.example.com"},
		"a port and a path":   {address: "https://api.example.com:6443/prefix"},
		"an IPv6 address":     {address: "https://[fd00::1]:6443"},
		"without TLS":         {address: "http://api.example.com", err: "is not an https URL"},
		"without scheme":      {address: "api.example.com:6443", err: "is not an https URL"},
		"without host":        {address: "https:///path", err: "names no host"},
		"with a password":     {address: "https://u:p@api.example.com", err: "has credentials in it"},
		"with a query":        {address: "https://api.example.com?x=1", err: "has a query or fragment"},
		"with a fragment":     {address: "https://api.example.com/#x", err: "has a query or fragment"},
		"something different": {address: "https://api example", err: "is not a URL"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := message(CheckURL(test.address)); got != test.err {
				t.Errorf("got %q, want %q", got, test.err)
			}
		})
	}
}
