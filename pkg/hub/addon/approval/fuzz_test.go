package approval

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
		if objection(&r.cluster, &r.addon, &r.csr) != nil {
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
