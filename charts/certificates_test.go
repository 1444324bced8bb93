package charts

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"slices"
	"strings"
	"testing"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"open-cluster-management.io/cluster-inventory-addon/internal/apitest"
	"open-cluster-management.io/cluster-inventory-addon/internal/apitest/ocmtest"
	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/addon/approval"
)

const (
	addonGroup    = "system:open-cluster-management:addon:cluster-inventory"
	authenticated = "system:authenticated"
	nodes         = "system:nodes" // of system:masters, Kubernetes itself accepts no request
)

func groupOf(cluster string) string {
	return "system:open-cluster-management:cluster:" + cluster + ":addon:cluster-inventory"
}

func agentOf(cluster string) string { return groupOf(cluster) + ":agent:cluster-inventory" }

// asked is a request for a certificate, as the klusterlet of a cluster makes it.
type asked struct {
	user        string
	labels      map[string]string
	annotations map[string]string
	signer      string
	usages      []certificatesv1.KeyUsage

	x509 x509.CertificateRequest
	key  crypto.Signer
	text func(der []byte) []byte
}

func askedBy(cluster string, key crypto.Signer) *asked {
	return &asked{
		user: "system:open-cluster-management:" + cluster + ":agent1",
		labels: map[string]string{
			"open-cluster-management.io/cluster-name": cluster, "open-cluster-management.io/addon-name": "cluster-inventory",
		},
		signer: certificatesv1.KubeAPIServerClientSignerName,
		usages: []certificatesv1.KeyUsage{
			certificatesv1.UsageDigitalSignature, certificatesv1.UsageKeyEncipherment, certificatesv1.UsageClientAuth,
		},
		x509: x509.CertificateRequest{
			Subject:  pkix.Name{CommonName: agentOf(cluster), Organization: []string{groupOf(cluster), addonGroup}},
			DNSNames: []string{"cluster-inventory.addon.open-cluster-management.io"},
		},
		key:  key,
		text: encoded,
	}
}

func encoded(der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der})
}

// encode signs a request for a certificate.
func (a *asked) encode(t *testing.T) []byte {
	t.Helper()
	der, err := x509.CreateCertificateRequest(rand.Reader, &a.x509, a.key)
	apitest.Must(t, err)
	return der
}

// approver compares the policy with the manager's own decision. It reads as the administrator,
// because the manager reads from its cache.
type approver struct {
	*installed
	users map[string]client.Client
}

// ask creates a request.
func (a *approver) ask(t *testing.T, of *asked) *certificatesv1.CertificateSigningRequest {
	t.Helper()
	if a.users[of.user] == nil {
		cfg := rest.CopyConfig(server.Config(t))
		cfg.Impersonate = rest.ImpersonationConfig{UserName: of.user, Groups: []string{"system:masters"}}
		a.users[of.user] = apitest.NewClient(t, cfg, ocmtest.Scheme())
	}
	request := &certificatesv1.CertificateSigningRequest{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "fence-", Labels: of.labels, Annotations: of.annotations},
		Spec: certificatesv1.CertificateSigningRequestSpec{
			Request: of.text(of.encode(t)), SignerName: of.signer, Usages: of.usages,
		},
	}
	apitest.Must(t, a.users[of.user].Create(t.Context(), request))
	a.CleanUp(request)
	return request
}

// approve is the API server's answer to the manager's approval.
func (a *approver) approve(t *testing.T, request *certificatesv1.CertificateSigningRequest) error {
	t.Helper()
	request = request.DeepCopy()
	request.Status.Conditions = []certificatesv1.CertificateSigningRequestCondition{{
		Type: certificatesv1.CertificateApproved, Status: corev1.ConditionTrue, Reason: "R",
	}}
	return a.manager.SubResource("approval").Update(t.Context(), request, client.DryRunAll)
}

// managerApproves reports whether the manager approves a request by its own rules. Those of other
// addons it does not see.
func (a *approver) managerApproves(t *testing.T, request *certificatesv1.CertificateSigningRequest) bool {
	t.Helper()
	if request.Labels["open-cluster-management.io/addon-name"] != ocmtest.AddonName {
		return false
	}
	key := client.ObjectKeyFromObject(request)
	_, err := (&approval.Approver{Client: a}).Reconcile(t.Context(), reconcile.Request{NamespacedName: key})
	apitest.Must(t, err)
	a.MustGet(request)
	return len(request.Status.Conditions) > 0
}

// The manager may approve requests of the signer of all clients. The policy looks into them, and
// agrees with the manager, which refuses some more.
func testTheManagerMayApproveOnlyAgents(t *testing.T) {
	p := install(t)
	const (
		onlyKlusterlets = "may approve only requests of a cluster's klusterlet"
		onlyAgents      = "may approve only certificates for the user and groups of its agents"
		onlyOneBlock    = "may approve only certificates that are requested in one PEM block"
		either          = "cluster-inventory-certificates"
	)
	p256, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	apitest.Must(t, err)
	a := &approver{p, map[string]client.Client{}}
	cluster := func(name string) string {
		made := p.ClusterNamed(name, nil)
		p.CleanUp(made, ocmtest.Addon(name))
		return name
	}
	east, west := cluster(p.Name("east")), p.Name("west")
	long := cluster((p.Name("long-") + strings.Repeat("-x", 31))[:62] + "x")
	p.Eventually("the policy refuses", func() string {
		request := askedBy(east, p256)
		request.labels = nil
		err := a.approve(t, a.ask(t, request))
		if isRefused(err, onlyKlusterlets) {
			return ""
		}
		return "the answer: " + errorText(err)
	})

	subject := func(change func(*pkix.Name)) func(*asked) {
		return func(r *asked) { change(&r.x509.Subject) }
	}
	text := func(change func(der []byte) []byte) func(*asked) { return func(r *asked) { r.text = change } }
	evil := askedBy(east, p256)
	evil.x509.Subject = pkix.Name{CommonName: "system:kube-controller-manager"}
	attempts := map[string]struct {
		change      func(*asked)
		message     string // empty if it is allowed
		managerOnly bool   // the manager refuses it nevertheless
	}{
		"its agent's":            {change: func(*asked) {}},
		"an older klusterlet's":  {change: subject(func(n *pkix.Name) { n.Organization = append(n.Organization, authenticated) })},
		"one without a DNS name": {change: func(r *asked) { r.x509.DNSNames = nil }},
		"one through gRPC": {change: func(r *asked) {
			r.annotations = map[string]string{"open-cluster-management.io/csr-user": r.user}
			r.user = "system:serviceaccount:open-cluster-management-hub:grpc-server-sa"
		}},
		"another addon's": {change: func(r *asked) {
			r.labels["open-cluster-management.io/addon-name"] = "cluster-proxy"
		}, message: onlyKlusterlets},
		"one without labels":     {change: func(r *asked) { r.labels = nil }, message: onlyKlusterlets},
		"another user's":         {change: func(r *asked) { r.user = "somebody" }, message: onlyKlusterlets},
		"an addon's of its name": {change: func(r *asked) { r.user += ":addon" }, message: onlyKlusterlets},
		"another cluster's": {change: func(r *asked) {
			r.labels["open-cluster-management.io/cluster-name"] = west
		}, message: onlyKlusterlets},
		"one for a server": {change: func(r *asked) {
			r.usages = append(r.usages, certificatesv1.UsageEmailProtection)
		}, message: onlyKlusterlets},

		// For whom it is.
		"the controller manager's":  {change: func(r *asked) { r.x509 = evil.x509 }, message: onlyAgents},
		"a node's, too":             {change: subject(func(n *pkix.Name) { n.Organization = append(n.Organization, nodes) }), message: onlyAgents},
		"without a subject":         {change: func(r *asked) { r.x509.Subject = pkix.Name{} }, message: onlyAgents},
		"another agent's":           {change: subject(func(n *pkix.Name) { n.CommonName += "2" }), message: onlyAgents},
		"one with a part of a name": {change: subject(func(n *pkix.Name) { n.CommonName = n.CommonName[:60] }), message: onlyAgents},
		"one whose last letter differs": {change: subject(func(n *pkix.Name) {
			n.CommonName = strings.TrimSuffix(n.CommonName, "y") + "x"
		}), message: onlyAgents},
		"one with a user ID": {change: subject(func(n *pkix.Name) {
			n.ExtraNames = []pkix.AttributeTypeAndValue{{Type: asn1.ObjectIdentifier{1, 3, 6, 1, 4, 1, 57683, 2}, Value: "x"}}
		}), message: onlyAgents},
		"one with a second user": {change: subject(func(n *pkix.Name) {
			n.ExtraNames = []pkix.AttributeTypeAndValue{
				{Type: asn1.ObjectIdentifier{2, 5, 4, 3}, Value: n.CommonName},
				{Type: asn1.ObjectIdentifier{2, 5, 4, 3}, Value: "system:admin"},
			}
		}), message: onlyAgents},
		"one with its groups in two sets": {change: subject(func(n *pkix.Name) {
			for _, group := range n.Organization {
				n.ExtraNames = append(n.ExtraNames,
					pkix.AttributeTypeAndValue{Type: asn1.ObjectIdentifier{2, 5, 4, 10}, Value: group})
			}
		}), message: onlyAgents},
		"one in another encoding": {change: func(r *asked) {
			raw, err := asn1.Marshal(r.x509.Subject.ToRDNSequence())
			apitest.Must(t, err)
			at := bytes.LastIndex(raw, append([]byte{0x13, byte(len(agentOf(east)))}, agentOf(east)...))
			raw[at] = asn1.TagUTF8String
			r.x509.RawSubject = raw
		}, message: onlyAgents},

		// How it is written.
		"one after other text": {change: text(func(der []byte) []byte {
			return append([]byte("a\n"), encoded(der)...)
		}), message: onlyAgents},
		"one with a header": {change: text(func(der []byte) []byte {
			return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Headers: map[string]string{"a": "b"}, Bytes: der})
		}), message: onlyAgents},
		"one in other lines": {change: text(func(der []byte) []byte {
			return []byte("-----BEGIN CERTIFICATE REQUEST-----\n" + base64.StdEncoding.EncodeToString(der) +
				"\n-----END CERTIFICATE REQUEST-----\n")
		}), message: onlyAgents},
		"the agent's, before another's": {change: text(func(der []byte) []byte {
			return append(encoded(der), encoded(evil.encode(t))...)
		}), message: onlyOneBlock},
		"another's, before the agent's": {change: text(func(der []byte) []byte {
			return append(encoded(evil.encode(t)), encoded(der)...)
		}), message: either},
		// The API server skips the first block.
		"the agent's with an error, before another's": {change: text(func(der []byte) []byte {
			broken := bytes.Replace(encoded(der), []byte("\n-----END"), []byte("*\n-----END"), 1)
			return append(broken, encoded(evil.encode(t))...)
		}), message: onlyOneBlock},
		"another's, whose header is the agent's": {change: text(func(der []byte) []byte {
			rest := bytes.TrimPrefix(encoded(evil.encode(t)), []byte("-----BEGIN CERTIFICATE REQUEST-----\n"))
			return []byte("-----BEGIN CERTIFICATE REQUEST-----\n" + base64.StdEncoding.EncodeToString(der) + ": a\n\n" + string(rest))
		}), message: onlyAgents},
		"another's, whose headers are the agent's": {change: text(func(der []byte) []byte {
			rest := bytes.TrimPrefix(encoded(evil.encode(t)), []byte("-----BEGIN CERTIFICATE REQUEST-----\n"))
			lines := bytes.ReplaceAll(bytes.TrimSuffix(encoded(der), []byte("\n-----END CERTIFICATE REQUEST-----\n")), []byte("\n"), []byte(":\n"))
			lines = bytes.Replace(lines, []byte("REQUEST-----:\n"), []byte("REQUEST-----\n"), 1)
			return slices.Concat(lines, []byte(":\n"), rest)
		}), message: onlyAgents},

		// What no policy looks at.
		"one for a host": {change: func(r *asked) { r.x509.DNSNames = []string{"kubernetes"} }, managerOnly: true},
		"one for a mailbox": {change: func(r *asked) {
			r.x509.EmailAddresses = []string{"a@example.com"}
		}, managerOnly: true},
	}
	try := func(t *testing.T, request *asked, message string, managerOnly bool) {
		t.Helper()
		made := a.ask(t, request)
		checkAttempt(t, a.approve(t, made), message)
		if got, want := a.managerApproves(t, made), message == "" && !managerOnly; got != want {
			t.Errorf("the manager's own decision: approved is %t", got)
		}
	}
	t.Run("what the approval changes in addition", func(t *testing.T) {
		made := a.ask(t, askedBy(east, p256))
		for message, change := range map[string]func(*metav1.ObjectMeta){
			"labels and annotations of a certificate request": func(m *metav1.ObjectMeta) { m.Labels["a"] = "b" },
			"may add no finalizers":                           func(m *metav1.ObjectMeta) { m.Finalizers = []string{"example.com/hold"} },
			"may add no owners": func(m *metav1.ObjectMeta) {
				m.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "ConfigMap", Name: "none", UID: "none"}}
			},
		} {
			changed := made.DeepCopy()
			change(&changed.ObjectMeta)
			checkAttempt(t, a.approve(t, changed), message)
		}
	})
	for name, attempt := range attempts {
		t.Run(name, func(t *testing.T) {
			request := askedBy(east, p256)
			attempt.change(request)
			try(t, request, attempt.message, attempt.managerOnly)
		})
	}

	for name, generate := range map[string]func() (crypto.Signer, error){
		"P-256":    func() (crypto.Signer, error) { return p256, nil },
		"P-384":    func() (crypto.Signer, error) { return ecdsa.GenerateKey(elliptic.P384(), rand.Reader) },
		"P-521":    func() (crypto.Signer, error) { return ecdsa.GenerateKey(elliptic.P521(), rand.Reader) },
		"RSA 2048": func() (crypto.Signer, error) { return rsa.GenerateKey(rand.Reader, 2048) },
		"RSA 4096": func() (crypto.Signer, error) { return rsa.GenerateKey(rand.Reader, 4096) },
		"Ed25519": func() (crypto.Signer, error) {
			_, key, err := ed25519.GenerateKey(rand.Reader)
			return key, err
		},
	} {
		t.Run("a key "+name, func(t *testing.T) {
			key, err := generate()
			apitest.Must(t, err)
			for _, cluster := range []string{east, long} {
				for _, groups := range [][]string{{}, {authenticated}} {
					request := askedBy(cluster, key)
					request.x509.Subject.Organization = append(request.x509.Subject.Organization, groups...)
					try(t, request, "", false)
				}
			}
		})
	}

	// Every combination of groups, for the agent and for another user.
	groups := []string{addonGroup, groupOf(east), authenticated, groupOf(west), nodes}
	for set := range 1 << len(groups) {
		for _, user := range []string{agentOf(east), agentOf(west)} {
			request := askedBy(east, p256)
			request.x509.Subject = pkix.Name{CommonName: user}
			for i, group := range groups {
				if set&(1<<i) != 0 {
					request.x509.Subject.Organization = append(request.x509.Subject.Organization, group)
				}
			}
			message := onlyAgents
			if (set == 0b011 || set == 0b111) && user == agentOf(east) {
				message = ""
			}
			t.Run(fmt.Sprint(request.x509.Subject), func(t *testing.T) { try(t, request, message, false) })
		}
	}
}
