package addon

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"slices"
	"strings"
	"testing"
)

// Whatever a cluster asks to be signed, it is its own agent's certificate or refused.
func FuzzRequestToSign(f *testing.F) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		f.Fatal(err)
	}
	const agentOfC1 = "system:open-cluster-management:cluster:c1:addon:cluster-inventory:agent:cluster-inventory"
	good := klusterletRequest("c1").encode(f, key)
	f.Add("system:open-cluster-management:c1:agent", good)
	f.Add("system:open-cluster-management:c1:agent", klusterletRequest("c2").encode(f, key))
	f.Add("system:open-cluster-management:c1:", append(good, good...))
	f.Add("system:open-cluster-management:cluster:c1:addon:cluster-inventory:agent:x", []byte("-----BEGIN CERTIFICATE REQUEST-----"))
	f.Fuzz(func(t *testing.T, user string, asked []byte) {
		r := klusterletRequest("c1")
		r.csr.Spec.Username, r.csr.Spec.Request = user, asked
		if judge(&r.cluster, &r.addon, &r.csr) != nil {
			return
		}
		if name := strings.TrimPrefix(user, "system:open-cluster-management:c1:"); name == user || strings.Contains(name, ":") {
			t.Errorf("signed for %q", user)
		}
		block, _ := pem.Decode(asked)
		if block == nil {
			t.Fatal("signed without a request")
		}
		request, err := x509.ParseCertificateRequest(block.Bytes)
		if err != nil || request.Subject.CommonName != agentOfC1 || slices.Contains(request.Subject.Organization, "system:masters") {
			t.Errorf("signed: %v %+v", err, request)
		}
	})
}

// Whatever a configuration says about proxies, it is used only where it is harmless on an agent's
// command line and in its environment.
func FuzzProxySettings(f *testing.F) {
	f.Add(".cluster.local,10.0.0.0/8, *", []byte("-----BEGIN CERTIFICATE-----"))
	f.Add("a b\n", []byte("-----BEGIN PRIVATE KEY-----\nhalf of one\n-----BEGIN CERTIFICATE-----\n-----END CERTIFICATE-----"))
	f.Fuzz(func(t *testing.T, noProxy string, ca []byte) {
		var wrong mistakes
		judgeNoProxy("noProxy", noProxy, &wrong)
		if len(wrong) == 0 && strings.ContainsAny(noProxy, "\n\x00$\"'") {
			t.Errorf("accepted: %q", noProxy)
		}
		bundle := judgeCA("caBundle", ca, &wrong)
		if strings.Contains(bundle, "PRIVATE KEY") {
			t.Errorf("accepted: %q", bundle)
		}
		if len(bundle) > len(ca)+1000 {
			t.Errorf("%d bytes became %d", len(ca), len(bundle))
		}
	})
}
