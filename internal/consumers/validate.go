package consumers

import (
	"bytes"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net"
	"net/url"
	"slices"
	"strings"
	"time"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	clientcmdv1 "k8s.io/client-go/tools/clientcmd/api/v1"
	inventoryv1alpha1 "sigs.k8s.io/cluster-inventory-api/apis/v1alpha1"
)

// Wire names, as consumers have them in their code and configuration.
const (
	provider      = "open-cluster-management"
	execExtension = "client.authentication.k8s.io/exec"
	managerLabel  = "x-k8s.io/cluster-manager"
	clusterLabel  = "open-cluster-management.io/cluster-name"
	memberLabel   = "multicluster.x-k8s.io/inventory-member-id"
	healthy       = "ControlPlaneHealthy"

	// maxOrigin is the length of the label in which Argo CD's integration writes the
	// profile's namespace and name, with a "-" between.
	maxOrigin = 63

	// sveltosBuiltIn is a provider for which Sveltos takes a whole kubeconfig from a
	// Secret.
	sveltosBuiltIn = "kubeconfig-secretreader"

	// sandboxPrefix is that of the properties which agent-sandbox writes to every profile.
	sandboxPrefix = "agents.x-k8s.io/"
)

// Profile is a version of a ClusterProfile.
type Profile = inventoryv1alpha1.ClusterProfile

// rule is a requirement of one or all consumers for a version of a profile. before is the
// version before it, or nil.
type rule struct {
	consumer string
	broken   func(before, now *Profile, at time.Time) []string
}

var rules = []rule{
	{"every consumer", isTheSame},
	{"every consumer", saysSomethingNew},
	{"every consumer", keepsAccess},
	{"the library pkg/access", canBeReached},
	{"Kueue", namesHost},
	{"Knative", keepsCertificates},
	{"Knative", saysIfHealthy},
	{"Argo CD", fitsSecret},
	{"Argo CD", leadsTheList},
	{"Headlamp", isShown},
	{"Sveltos", isExecuted},
	{"agent-sandbox", keepsHeartbeats},
}

// Validate returns what breaks a consumer in a version of a profile. before is the version
// before it, or nil.
func Validate(before, now *Profile, at time.Time) []string {
	var problems []string
	for _, rule := range rules {
		for _, problem := range rule.broken(before, now, at) {
			problems = append(problems, rule.consumer+": "+problem)
		}
	}
	return problems
}

// ValidateTogether returns what breaks a consumer in profiles of a namespace that it sees
// together: Argo CD distinguishes clusters by their servers and their member ids.
func ValidateTogether(profiles []Profile) []string {
	var problems []string
	of, members := map[string]string{}, map[string]string{}
	for i := range profiles {
		if member := profiles[i].Labels[memberLabel]; member != "" {
			if other, taken := members[member]; taken {
				problems = append(problems, fmt.Sprintf(
					"Argo CD: %s and %s have the same member id %s", other, profiles[i].Name, member,
				))
			}
			members[member] = profiles[i].Name
		}
		cluster, has := access(&profiles[i])
		if !has {
			continue
		}
		if other, taken := of[cluster.Server]; taken {
			problems = append(problems, fmt.Sprintf(
				"Argo CD: %s and %s have the same server %s", other, profiles[i].Name, cluster.Server,
			))
		}
		of[cluster.Server] = profiles[i].Name
	}
	return problems
}

// access returns the entry through which consumers connect.
func access(profile *Profile) (clientcmdv1.Cluster, bool) {
	if profile == nil {
		return clientcmdv1.Cluster{}, false
	}
	for _, entry := range profile.Status.AccessProviders {
		if entry.Name == provider {
			return entry.Cluster, true
		}
	}
	return clientcmdv1.Cluster{}, false
}

// A recreated profile ends what a consumer has built on it.
func isTheSame(before, now *Profile, _ time.Time) []string {
	if before != nil && before.UID != now.UID {
		return []string{"the profile was recreated"}
	}
	return nil
}

// Kueue and multicluster-runtime reconnect on every event of a profile.
func saysSomethingNew(before, now *Profile, _ time.Time) []string {
	if before != nil && before.UID == now.UID && apiequality.Semantic.DeepEqual(timeless(before), timeless(now)) {
		return []string{"the profile was written without a change"}
	}
	return nil
}

// timeless returns a profile without what changes with every write, and without times.
func timeless(profile *Profile) *Profile {
	profile = profile.DeepCopy()
	profile.ResourceVersion, profile.Generation, profile.ManagedFields = "", 0, nil
	for i := range profile.Status.Conditions {
		profile.Status.Conditions[i].LastTransitionTime = metav1.Time{}
	}
	for i := range profile.Status.Properties {
		profile.Status.Properties[i].LastObservedTime = metav1.Time{}
	}
	return profile
}

// Argo CD's integration deletes its Secret, and Headlamp its context, when there is no
// access provider, even for a moment.
func keepsAccess(before, now *Profile, _ time.Time) []string {
	if _, had := access(before); had {
		if _, has := access(now); !has {
			return []string{"the access provider has gone"}
		}
	}
	return nil
}

// The planner of agent-sandbox takes a cluster for lost whose profile lacks the properties
// that its own writer renews.
func keepsHeartbeats(before, now *Profile, _ time.Time) []string {
	if before == nil {
		return nil
	}
	var problems []string
	for _, property := range before.Status.Properties {
		isIt := func(p inventoryv1alpha1.Property) bool { return p.Name == property.Name }
		if strings.HasPrefix(property.Name, sandboxPrefix) && !slices.ContainsFunc(now.Status.Properties, isIt) {
			problems = append(problems, "the property "+property.Name+" has gone")
		}
	}
	return problems
}

// The library uses the server, the inline CA and the extension, and ignores all else.
func canBeReached(_, now *Profile, _ time.Time) []string {
	cluster, has := access(now)
	if !has {
		return nil
	}
	var problems []string
	if server, err := url.Parse(cluster.Server); err != nil || server.Scheme != "https" || server.Host == "" {
		problems = append(problems, fmt.Sprintf("the server %q is not an https URL", cluster.Server))
	}
	if len(certificates(cluster.CertificateAuthorityData)) == 0 {
		problems = append(problems, "there is no CA certificate")
	}
	if cluster.TLSServerName != "" || cluster.InsecureSkipTLSVerify || cluster.CertificateAuthority != "" {
		problems = append(problems, "it needs a TLS server name, a CA file or no verification, which the library ignores")
	}
	if cluster.ProxyURL != "" {
		problems = append(problems, "it needs a proxy, which Argo CD does not carry over")
	}
	return append(problems, validateExtensions(now, cluster.Extensions)...)
}

// Plugins find the cluster's name in the one extension that they receive, and nothing that
// concerns one consumer only.
func validateExtensions(profile *Profile, extensions []clientcmdv1.NamedExtension) []string {
	if len(extensions) != 1 || extensions[0].Name != execExtension {
		return []string{fmt.Sprintf("it has %d extensions, not just %s", len(extensions), execExtension)}
	}
	given := map[string]any{}
	if err := json.Unmarshal(extensions[0].Extension.Raw, &given); err != nil {
		return []string{fmt.Sprintf("the extension is not an object: %v", err)}
	}
	cluster := profile.Labels[clusterLabel]
	if len(given) != 1 || given["clusterName"] != cluster || cluster == "" || cluster != profile.Name {
		return []string{fmt.Sprintf(
			"the extension says %v, the label %s %q, and the name is %s", given, clusterLabel, cluster, profile.Name,
		)}
	}
	return nil
}

// Kueue accepts an IP address or a DNS name.
func namesHost(_, now *Profile, _ time.Time) []string {
	cluster, has := access(now)
	if !has {
		return nil
	}
	server, err := url.Parse(cluster.Server)
	if err != nil {
		return []string{err.Error()}
	}
	host := strings.ToLower(server.Hostname())
	if net.ParseIP(host) == nil && len(validation.IsDNS1123Subdomain(host)) > 0 {
		return []string{fmt.Sprintf("the server's host %q is not a name", host)}
	}
	return nil
}

// Knative keeps the first CA until it restarts: a published CA stays while it is valid.
func keepsCertificates(before, now *Profile, at time.Time) []string {
	old, had := access(before)
	cluster, has := access(now)
	if !had || !has {
		return nil
	}
	present := certificates(cluster.CertificateAuthorityData)
	var problems []string
	for _, certificate := range certificates(old.CertificateAuthorityData) {
		isSame := func(other *x509.Certificate) bool { return bytes.Equal(other.Raw, certificate.Raw) }
		if at.Before(certificate.NotAfter) && !slices.ContainsFunc(present, isSame) {
			problems = append(problems, fmt.Sprintf("the CA %s went while it was valid", certificate.Subject.CommonName))
		}
	}
	return problems
}

// certificates returns those that can be parsed.
func certificates(bundle []byte) []*x509.Certificate {
	var all []*x509.Certificate
	for block, rest := pem.Decode(bundle); block != nil; block, rest = pem.Decode(rest) {
		if certificate, err := x509.ParseCertificate(block.Bytes); err == nil {
			all = append(all, certificate)
		}
	}
	return all
}

// Knative and multicluster-runtime connect when the cluster is reported healthy.
func saysIfHealthy(_, now *Profile, _ time.Time) []string {
	if _, has := access(now); !has {
		return nil
	}
	if condition := meta.FindStatusCondition(now.Status.Conditions, healthy); condition == nil || condition.Reason == "" {
		return []string{"there is access, and no condition " + healthy + " with a reason"}
	}
	return nil
}

// Argo CD's integration derives a Secret from a profile: its name, its labels, and a label
// with its origin.
func fitsSecret(_, now *Profile, _ time.Time) []string {
	var problems []string
	if origin := now.Namespace + "-" + now.Name; len(origin) > maxOrigin {
		problems = append(problems, fmt.Sprintf("namespace and name have %d bytes together", len(origin)-1))
	}
	if wrong := validation.IsDNS1123Subdomain("cluster-" + now.Name); len(wrong) > 0 {
		problems = append(problems, "its name is not a Secret name: "+strings.Join(wrong, "; "))
	}
	for key := range now.Labels {
		if strings.Contains(key, "argoproj.io/") {
			problems = append(problems, "it has the label "+key+", which is Argo CD's own")
		}
	}
	if got := now.Labels[managerLabel]; got == "" || got != now.Spec.ClusterManager.Name {
		problems = append(problems, fmt.Sprintf("the label %s is %q", managerLabel, got))
	}
	return problems
}

// Argo CD's argument {{ .ClusterProfileServer }} is the server of the first access provider.
func leadsTheList(_, now *Profile, _ time.Time) []string {
	if _, has := access(now); has && now.Status.AccessProviders[0].Name != provider {
		return []string{"the first access provider is " + now.Status.AccessProviders[0].Name}
	}
	return nil
}

// Headlamp shows profiles without this label, in a list with the display name and version.
func isShown(_, now *Profile, _ time.Time) []string {
	var problems []string
	if _, ignored := now.Labels["headlamp.dev/ignore"]; ignored {
		problems = append(problems, "the label headlamp.dev/ignore hides it")
	}
	if _, has := access(now); has && now.Spec.DisplayName == "" {
		problems = append(problems, "it has no display name")
	}
	return problems
}

// Sveltos runs the plugin, unless it finds its own provider.
func isExecuted(_, now *Profile, _ time.Time) []string {
	for _, entry := range now.Status.AccessProviders {
		if entry.Name == sveltosBuiltIn {
			return []string{"it has the access provider " + sveltosBuiltIn + ", for which Sveltos does not run the plugin"}
		}
	}
	return nil
}
