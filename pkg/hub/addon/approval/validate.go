package approval

import (
	"bytes"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"encoding/pem"
	"errors"
	"fmt"
	"slices"
	"strings"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	"open-cluster-management.io/addon-framework/pkg/agent"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	operatorv1 "open-cluster-management.io/api/operator/v1"

	"open-cluster-management.io/cluster-inventory-addon/pkg/contract"
)

const (
	// klusterletPrefix starts the user name of a klusterlet's hub identity; the
	// cluster's name, a colon and the name of the klusterlet's agent follow (OCM,
	// pkg/registration/hub/user).
	klusterletPrefix = "system:open-cluster-management:"

	// grpcServerUser creates requests for klusterlets that join through OCM's gRPC
	// server, which names the requester in an annotation.
	grpcServerUser = "system:serviceaccount:open-cluster-management-hub:grpc-server-sa"

	// authenticatedGroup is the group of all authenticated users.
	authenticatedGroup = "system:authenticated"

	// maxRequestBytes is what a request may have, without its user's groups. A klusterlet's
	// has one or two kilobytes.
	maxRequestBytes = 16 << 10

	// maxShownBytes is how much is kept of the names in a request that is not approved.
	maxShownBytes = 256

	// agentDNSName is part of the requests that the klusterlet creates for this addon (OCM,
	// pkg/registration/register/csr).
	agentDNSName = contract.AddonName + ".addon.open-cluster-management.io"
)

// isDecided reports whether a request has been approved or denied, by any client.
func isDecided(request *certificatesv1.CertificateSigningRequest) bool {
	return slices.ContainsFunc(request.Status.Conditions, isDecision)
}

func isDecision(condition certificatesv1.CertificateSigningRequestCondition) bool {
	return condition.Type == certificatesv1.CertificateApproved || condition.Type == certificatesv1.CertificateDenied
}

// approved returns a copy of the request with its approval. The reason is that of
// addon-framework and OCM, which users may look for.
func approved(request *certificatesv1.CertificateSigningRequest) *certificatesv1.CertificateSigningRequest {
	request = request.DeepCopy()
	request.Status.Conditions = append(request.Status.Conditions,
		certificatesv1.CertificateSigningRequestCondition{
			Type:    certificatesv1.CertificateApproved,
			Status:  corev1.ConditionTrue,
			Reason:  "AutoApprovedByHubCSRApprovingController",
			Message: "Auto approving addon agent certificate.",
		})
	return request
}

// objection returns why the request must not be approved, or nil. It checks everything that
// would be signed. The labels by which the request was found prove nothing, because anyone
// may set them.
func objection(
	cluster *clusterv1.ManagedCluster, addon *addonv1beta1.ManagedClusterAddOn,
	csr *certificatesv1.CertificateSigningRequest,
) error {
	switch {
	case !cluster.Spec.HubAcceptsClient:
		return errors.New("the hub does not accept the cluster")
	case !cluster.DeletionTimestamp.IsZero():
		return errors.New("the cluster is being removed")
	case !addon.DeletionTimestamp.IsZero():
		return errors.New("the addon is being removed")
	case csr.Spec.SignerName != certificatesv1.KubeAPIServerClientSignerName:
		return fmt.Errorf("signer %q", csr.Spec.SignerName)
	case len(csr.Spec.Request) == 0: // see trimRequest; the API server demands one
		return fmt.Errorf("it is larger than %d bytes", maxRequestBytes)
	}
	if err := validateRequester(cluster.Name, csr); err != nil {
		return err
	}
	if err := validateUsages(csr.Spec.Usages); err != nil {
		return err
	}
	request, err := parseRequest(csr.Spec.Request)
	if err != nil {
		return err
	}
	if err := validateSubject(cluster.Name, request); err != nil {
		return err
	}
	return validateNames(request)
}

// validateRequester accepts only the cluster's own klusterlet. The agent's name must not
// contain a colon: users of addons are called system:open-cluster-management:cluster:...,
// and would otherwise pass as the klusterlet of a cluster named "cluster".
func validateRequester(cluster string, csr *certificatesv1.CertificateSigningRequest) error {
	user := csr.Spec.Username
	if user == grpcServerUser {
		user = csr.Annotations[operatorv1.CSRUsernameAnnotation]
	}
	name, ours := strings.CutPrefix(user, klusterletPrefix+cluster+":")
	if !ours || name == "" || strings.Contains(name, ":") {
		return fmt.Errorf("requester %q is not the cluster's klusterlet", user)
	}
	return nil
}

func validateUsages(usages []certificatesv1.KeyUsage) error {
	allowed := []certificatesv1.KeyUsage{
		certificatesv1.UsageDigitalSignature, certificatesv1.UsageKeyEncipherment, certificatesv1.UsageClientAuth,
	}
	for _, usage := range usages {
		if !slices.Contains(allowed, usage) {
			return fmt.Errorf("usage %q", usage)
		}
	}
	if !slices.Contains(usages, certificatesv1.UsageClientAuth) {
		return errors.New("not for client authentication")
	}
	return nil
}

// parseRequest accepts only the text that Go's encoder makes, as the admission policy does.
func parseRequest(data []byte) (*x509.CertificateRequest, error) {
	block, _ := pem.Decode(data)
	if block == nil || block.Type != "CERTIFICATE REQUEST" || len(block.Headers) > 0 ||
		!bytes.Equal(pem.EncodeToMemory(block), data) {
		return nil, errors.New("not one PEM block of type CERTIFICATE REQUEST")
	}
	request, err := x509.ParseCertificateRequest(block.Bytes)
	if err != nil {
		return nil, err
	}
	return request, request.CheckSignature()
}

// validateSubject accepts exactly the agent's user and groups, encoded as Go does, and no other
// attribute of the subject. Older klusterlets add the group of all authenticated users.
func validateSubject(cluster string, request *x509.CertificateRequest) error {
	commonName, organization := asn1.ObjectIdentifier{2, 5, 4, 3}, asn1.ObjectIdentifier{2, 5, 4, 10}
	names := 0
	for _, attribute := range request.Subject.Names {
		switch {
		case attribute.Type.Equal(commonName):
			names++
		case !attribute.Type.Equal(organization):
			return fmt.Errorf("subject attribute %s", attribute.Type)
		}
	}
	wantedName := agent.DefaultUser(cluster, contract.AddonName, contract.AddonName)
	if names != 1 || request.Subject.CommonName != wantedName {
		return fmt.Errorf("common name %q is not %q", request.Subject.CommonName, wantedName)
	}
	groups, wanted := slices.Clone(request.Subject.Organization), agent.DefaultGroups(cluster, contract.AddonName)
	if slices.Contains(groups, authenticatedGroup) {
		wanted = append(wanted, authenticatedGroup)
	}
	slices.Sort(groups)
	slices.Sort(wanted)
	if !slices.Equal(groups, wanted) {
		return fmt.Errorf("organizations %q are not %q", groups, wanted)
	}
	encoded, err := asn1.Marshal(pkix.Name{CommonName: wantedName, Organization: wanted}.ToRDNSequence())
	if err != nil {
		return err
	}
	if !bytes.Equal(encoded, request.RawSubject) {
		return errors.New("the subject is not encoded as a klusterlet does")
	}
	return nil
}

func validateNames(request *x509.CertificateRequest) error {
	for _, name := range request.DNSNames {
		if name != agentDNSName {
			return fmt.Errorf("DNS name %q", name)
		}
	}
	if len(request.IPAddresses)+len(request.EmailAddresses)+len(request.URIs) > 0 {
		return errors.New("IP addresses, mail addresses or URIs")
	}
	return nil
}
