package approval

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"encoding/pem"
	"net"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
)

// request is a certificate request as a klusterlet makes it, to be spoilt.
type request struct {
	cluster clusterv1.ManagedCluster
	addon   addonv1beta1.ManagedClusterAddOn
	csr     certificatesv1.CertificateSigningRequest
	x509    x509.CertificateRequest

	// raw replaces the encoded request when set.
	raw []byte
}

func klusterletRequest(cluster string) *request {
	r := &request{}
	r.cluster.Name = cluster
	r.cluster.Spec.HubAcceptsClient = true
	r.addon.Namespace, r.addon.Name = cluster, "cluster-inventory"
	r.csr.Spec = certificatesv1.CertificateSigningRequestSpec{
		SignerName: "kubernetes.io/kube-apiserver-client",
		Username:   "system:open-cluster-management:" + cluster + ":agent-7",
		Usages:     []certificatesv1.KeyUsage{"digital signature", "key encipherment", "client auth"},
	}
	r.x509 = x509.CertificateRequest{
		Subject: pkix.Name{
			CommonName: "system:open-cluster-management:cluster:" + cluster + ":addon:cluster-inventory:agent:cluster-inventory",
			Organization: []string{
				"system:open-cluster-management:cluster:" + cluster + ":addon:cluster-inventory",
				"system:open-cluster-management:addon:cluster-inventory",
			},
		},
		DNSNames: []string{"cluster-inventory.addon.open-cluster-management.io"},
	}
	return r
}

// encode returns what the klusterlet asks to be signed.
func (r *request) encode(t testing.TB, key *ecdsa.PrivateKey) []byte {
	t.Helper()
	if r.raw != nil {
		return r.raw
	}
	der, err := x509.CreateCertificateRequest(rand.Reader, &r.x509, key)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der})
}

func (r *request) objection(t *testing.T, key *ecdsa.PrivateKey) error {
	t.Helper()
	r.csr.Spec.Request = r.encode(t, key)
	return objection(&r.cluster, &r.addon, &r.csr)
}

func TestValidate(t *testing.T) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	signed := func(spoil func(*x509.CertificateRequest)) []byte {
		r := klusterletRequest("c1")
		spoil(&r.x509)
		der, err := x509.CreateCertificateRequest(rand.Reader, &r.x509, key)
		if err != nil {
			t.Fatal(err)
		}
		return der
	}
	const grpcServer = "system:serviceaccount:open-cluster-management-hub:grpc-server-sa"
	const addonGroup = "system:open-cluster-management:addon:cluster-inventory"

	tests := map[string]struct {
		spoil   func(*request)
		refusal string // part of the reason; empty means approved
	}{
		"as the klusterlet asks": {spoil: func(*request) {}},
		"an older klusterlet adds the group system:authenticated": {spoil: func(r *request) {
			r.x509.Subject.Organization = append(r.x509.Subject.Organization, "system:authenticated")
		}},
		"without a DNS name": {spoil: func(r *request) { r.x509.DNSNames = nil }},
		"without key encipherment": {
			spoil: func(r *request) { r.csr.Spec.Usages = []certificatesv1.KeyUsage{"client auth"} },
		},
		"misleading labels are not believed": {spoil: func(r *request) {
			r.csr.Labels = map[string]string{"open-cluster-management.io/cluster-name": "c2"}
		}},
		"through OCM's gRPC server": {spoil: func(r *request) {
			r.csr.Spec.Username = grpcServer
			r.csr.Annotations = map[string]string{
				"open-cluster-management.io/csr-user": "system:open-cluster-management:c1:agent-7",
			}
		}},

		"the hub does not accept the cluster": {
			spoil:   func(r *request) { r.cluster.Spec.HubAcceptsClient = false },
			refusal: "does not accept",
		},
		"the cluster is being removed": {
			spoil:   func(r *request) { r.cluster.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)} },
			refusal: "cluster is being removed",
		},
		"the addon is being removed": {
			spoil:   func(r *request) { r.addon.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)} },
			refusal: "addon is being removed",
		},

		"signer for kubelets": {
			spoil:   func(r *request) { r.csr.Spec.SignerName = "kubernetes.io/kube-apiserver-client-kubelet" },
			refusal: "signer",
		},
		"no signer": {spoil: func(r *request) { r.csr.Spec.SignerName = "" }, refusal: "signer"},

		"asked by another cluster": {
			spoil:   func(r *request) { r.csr.Spec.Username = "system:open-cluster-management:c2:agent-7" },
			refusal: "requester",
		},
		"asked by a cluster whose name starts alike": {
			spoil:   func(r *request) { r.csr.Spec.Username = "system:open-cluster-management:c10:agent-7" },
			refusal: "requester",
		},
		"asked by a cluster without an agent name": {
			spoil:   func(r *request) { r.csr.Spec.Username = "system:open-cluster-management:c1:" },
			refusal: "requester",
		},
		"asked by the cluster's name alone": {
			spoil:   func(r *request) { r.csr.Spec.Username = "system:open-cluster-management:c1" },
			refusal: "requester",
		},
		"asked by a person": {
			spoil:   func(r *request) { r.csr.Spec.Username = "alice" },
			refusal: "requester",
		},
		"asked by a bootstrap service account": {spoil: func(r *request) {
			r.csr.Spec.Username = "system:serviceaccount:open-cluster-management:agent-registration-bootstrap"
		}, refusal: "requester"},
		"an annotation says who asked, but not gRPC's": {spoil: func(r *request) {
			r.csr.Spec.Username = "alice"
			r.csr.Annotations = map[string]string{
				"open-cluster-management.io/csr-user": "system:open-cluster-management:c1:agent-7",
			}
		}, refusal: "requester"},
		"through gRPC for another cluster": {spoil: func(r *request) {
			r.csr.Spec.Username = grpcServer
			r.csr.Annotations = map[string]string{
				"open-cluster-management.io/csr-user": "system:open-cluster-management:c2:agent-7",
			}
		}, refusal: "requester"},
		"through gRPC without a user": {spoil: func(r *request) { r.csr.Spec.Username = grpcServer }, refusal: "requester"},
		"an addon's agent of a cluster called cluster": {spoil: func(r *request) {
			r.cluster.Name = "cluster"
			r.csr.Spec.Username = "system:open-cluster-management:cluster:c9:addon:other:agent:other"
			r.x509.Subject.CommonName = strings.ReplaceAll(r.x509.Subject.CommonName, ":c1:", ":cluster:")
			r.x509.Subject.Organization[0] = strings.ReplaceAll(r.x509.Subject.Organization[0], ":c1:", ":cluster:")
		}, refusal: "requester"},

		"usage of a server": {
			spoil:   func(r *request) { r.csr.Spec.Usages = append(r.csr.Spec.Usages, "server auth") },
			refusal: "usage",
		},
		"usage of an authority": {
			spoil:   func(r *request) { r.csr.Spec.Usages = append(r.csr.Spec.Usages, "cert sign") },
			refusal: "usage",
		},
		"no client usage": {
			spoil:   func(r *request) { r.csr.Spec.Usages = []certificatesv1.KeyUsage{"digital signature"} },
			refusal: "client authentication",
		},
		"no usage": {spoil: func(r *request) { r.csr.Spec.Usages = nil }, refusal: "client authentication"},

		"another user": {spoil: func(r *request) { r.x509.Subject.CommonName = "system:admin" }, refusal: "common name"},
		"the agent of another cluster": {spoil: func(r *request) {
			r.x509.Subject.CommonName = strings.ReplaceAll(r.x509.Subject.CommonName, ":c1:", ":c2:")
		}, refusal: "common name"},
		"another agent of the addon": {spoil: func(r *request) { r.x509.Subject.CommonName += "-2" }, refusal: "common name"},
		"no user":                    {spoil: func(r *request) { r.x509.Subject.CommonName = "" }, refusal: "common name"},
		"two users": {spoil: func(r *request) {
			r.x509.Subject.ExtraNames = []pkix.AttributeTypeAndValue{
				{Type: asn1.ObjectIdentifier{2, 5, 4, 3}, Value: "system:admin"},
				{Type: asn1.ObjectIdentifier{2, 5, 4, 3}, Value: r.x509.Subject.CommonName},
			}
		}, refusal: "common name"},
		"the group of masters, too": {
			spoil:   func(r *request) { r.x509.Subject.Organization = append(r.x509.Subject.Organization, "system:masters") },
			refusal: "organizations",
		},
		"the group of masters, instead": {
			spoil:   func(r *request) { r.x509.Subject.Organization[0] = "system:masters" },
			refusal: "organizations",
		},
		"the group of another cluster's agent": {spoil: func(r *request) {
			r.x509.Subject.Organization[0] = "system:open-cluster-management:cluster:c2:addon:cluster-inventory"
		}, refusal: "organizations"},
		"the group of the klusterlet, too": {spoil: func(r *request) {
			r.x509.Subject.Organization = append(r.x509.Subject.Organization, "system:open-cluster-management:c1")
		}, refusal: "organizations"},
		"a group missing": {
			spoil:   func(r *request) { r.x509.Subject.Organization = r.x509.Subject.Organization[:1] },
			refusal: "organizations",
		},
		"a group twice": {
			spoil:   func(r *request) { r.x509.Subject.Organization[0] = addonGroup },
			refusal: "organizations",
		},
		"the group system:authenticated twice": {spoil: func(r *request) {
			r.x509.Subject.Organization = append(r.x509.Subject.Organization, "system:authenticated", "system:authenticated")
		}, refusal: "organizations"},
		"another encoding of the subject": {spoil: func(r *request) {
			all := r.x509.Subject
			r.x509.Subject = pkix.Name{}
			for _, group := range all.Organization { // each in a separate set
				r.x509.Subject.ExtraNames = append(r.x509.Subject.ExtraNames,
					pkix.AttributeTypeAndValue{Type: asn1.ObjectIdentifier{2, 5, 4, 10}, Value: group})
			}
			r.x509.Subject.ExtraNames = append(r.x509.Subject.ExtraNames,
				pkix.AttributeTypeAndValue{Type: asn1.ObjectIdentifier{2, 5, 4, 3}, Value: all.CommonName})
		}, refusal: "not encoded"},
		"no group": {spoil: func(r *request) { r.x509.Subject.Organization = nil }, refusal: "organizations"},
		"an organizational unit": {
			spoil:   func(r *request) { r.x509.Subject.OrganizationalUnit = []string{"x"} },
			refusal: "subject attribute 2.5.4.11",
		},
		"a country": {
			spoil:   func(r *request) { r.x509.Subject.Country = []string{"XX"} },
			refusal: "subject attribute 2.5.4.6",
		},
		"a credential in the subject": {spoil: func(r *request) {
			r.x509.Subject.ExtraNames = []pkix.AttributeTypeAndValue{
				{Type: asn1.ObjectIdentifier{1, 3, 6, 1, 4, 1, 57683, 2}, Value: "uid=root"},
			}
		}, refusal: "subject attribute 1.3.6.1.4.1.57683.2"},

		"a DNS name of a server": {
			spoil:   func(r *request) { r.x509.DNSNames = append(r.x509.DNSNames, "kubernetes.default.svc") },
			refusal: "DNS name",
		},
		"a DNS name of another addon": {
			spoil:   func(r *request) { r.x509.DNSNames = []string{"other.addon.open-cluster-management.io"} },
			refusal: "DNS name",
		},
		"an IP address": {
			spoil:   func(r *request) { r.x509.IPAddresses = []net.IP{net.IPv4(10, 0, 0, 1)} },
			refusal: "IP addresses",
		},
		"a mail address": {
			spoil:   func(r *request) { r.x509.EmailAddresses = []string{"a@example.com"} },
			refusal: "mail addresses",
		},
		"a URI": {
			spoil:   func(r *request) { r.x509.URIs = []*url.URL{{Scheme: "spiffe", Host: "x"}} },
			refusal: "URIs",
		},

		"too large to be kept": {spoil: func(r *request) { r.raw = []byte{} }, refusal: "larger than 16384 bytes"},
		"not PEM":              {spoil: func(r *request) { r.raw = []byte("hello") }, refusal: "PEM block"},
		"a certificate": {
			spoil:   func(r *request) { r.raw = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: []byte{1}}) },
			refusal: "PEM block",
		},
		"two requests": {spoil: func(r *request) {
			r.raw = slices.Concat(
				pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: signed(func(*x509.CertificateRequest) {})}),
				pem.EncodeToMemory(
					&pem.Block{
						Type:  "CERTIFICATE REQUEST",
						Bytes: signed(func(c *x509.CertificateRequest) { c.Subject.CommonName = "system:admin" }),
					},
				),
			)
		}, refusal: "PEM block"},
		"text before the request": {spoil: func(r *request) {
			r.raw = append([]byte("a\n"), klusterletRequest("c1").encode(t, key)...)
		}, refusal: "PEM block"},
		"text after the request": {spoil: func(r *request) {
			r.raw = append(klusterletRequest("c1").encode(t, key), '\n')
		}, refusal: "PEM block"},
		"a request with headers": {spoil: func(r *request) {
			r.raw = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Headers: map[string]string{"A": "b"},
				Bytes: signed(func(*x509.CertificateRequest) {})})
		}, refusal: "PEM block"},
		"not a request": {spoil: func(r *request) {
			r.raw = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: []byte{1, 2, 3}})
		}, refusal: "asn1"},
		"signed by another key": {spoil: func(r *request) {
			der := signed(func(*x509.CertificateRequest) {})
			der[len(der)-1] ^= 1
			r.raw = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der})
		}, refusal: "verification failure"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			r := klusterletRequest("c1")
			test.spoil(r)
			err := r.objection(t, key)
			switch {
			case test.refusal == "" && err != nil:
				t.Errorf("refused: %v", err)
			case test.refusal != "" && err == nil:
				t.Error("approved")
			case test.refusal != "" && !strings.Contains(err.Error(), test.refusal):
				t.Errorf("refused because of %q, want %q in it", err, test.refusal)
			}
		})
	}
}
