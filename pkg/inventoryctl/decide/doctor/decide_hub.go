package doctor

import (
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/duration"
	"k8s.io/apimachinery/pkg/util/version"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	authv1beta1 "open-cluster-management.io/managed-serviceaccount/apis/authentication/v1beta1"
	inventoryv1alpha1 "sigs.k8s.io/cluster-inventory-api/apis/v1alpha1"

	"open-cluster-management.io/cluster-inventory-addon/pkg/contract"
	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/policies"
	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/selection/rule"
	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/upstream"
	"open-cluster-management.io/cluster-inventory-addon/pkg/inventoryctl/decide"
	"open-cluster-management.io/cluster-inventory-addon/pkg/inventoryctl/docs"
	"open-cluster-management.io/cluster-inventory-addon/pkg/inventoryctl/rollout"
	"open-cluster-management.io/cluster-inventory-addon/pkg/inventoryctl/settings"
	"open-cluster-management.io/cluster-inventory-addon/pkg/kube"
)

// AddonCRD is the name of the CRD of addons, whose versions show how old a hub is.
const AddonCRD = "managedclusteraddons.addon.open-cluster-management.io"

// Where Open Cluster Management runs on a usual hub.
const (
	RegistrationNamespace  = "open-cluster-management-hub"
	RegistrationDeployment = "cluster-manager-registration-controller"
)

// HubFacts is what a reader may know about a hub as a whole.
type HubFacts struct {
	Installation decide.Object[addonv1beta1.ClusterManagementAddOn]
	Manager      ManagerFacts
	Strategy     StrategyFacts
	Policies     PolicyFacts

	Registration     decide.Object[appsv1.Deployment]
	RegistrationRole decide.Object[rbacv1.ClusterRole]
	Proxy            decide.Object[appsv1.Deployment]
	Impersonation    ImpersonationFacts
	Syncer           decide.Object[rbacv1.ClusterRole]

	Profiles decide.Object[apiextensionsv1.CustomResourceDefinition]
	Addons   decide.Object[apiextensionsv1.CustomResourceDefinition]

	// Unreadable are the kinds that the reader may not list in all namespaces.
	Unreadable []string

	Agents       AgentFacts
	Bound        BoundFacts
	Rollout      rollout.Facts
	Tokens       TokenFacts
	Certificates CertificateFacts
	Members      decide.MemberFacts
}

// PolicyFacts says which of the chart's admission policies the hub has.
type PolicyFacts struct {
	Hidden   bool
	Total    int
	Problems []string // each with the name of its policy
}

// Add adds a policy and its binding, which are nil if they do not exist, given those of the
// manager's ClusterRoles that exist. Without a right that it would limit, a policy may be missing.
func (p *PolicyFacts) Add(
	of policies.Policy, policy *admissionregistrationv1.ValidatingAdmissionPolicy,
	binding *admissionregistrationv1.ValidatingAdmissionPolicyBinding, roles ...*rbacv1.ClusterRole,
) {
	if policy == nil && !of.IsNeeded(roles...) {
		return
	}
	p.Total++
	if problem := of.Validate(policy, binding, ""); problem != "" {
		p.Problems = append(p.Problems, of.Name+": "+problem)
	}
}

// AgentFacts summarizes the addons of all clusters.
type AgentFacts struct {
	Hidden      bool
	Total       int
	Unavailable []string            // clusters
	Degraded    map[string][]string // clusters, by reason
	AtLimit     []string            // clusters
}

// Add counts the addon of one cluster.
func (a *AgentFacts) Add(addon *addonv1beta1.ManagedClusterAddOn) {
	a.Total++
	if available := decide.ConditionOf(addon, "Available"); available == nil || available.Status != metav1.ConditionTrue {
		a.Unavailable = append(a.Unavailable, addon.Namespace)
	}
	published := decide.ConditionOf(addon, contract.ConditionPropertiesPublished)
	if published != nil && published.Reason == contract.ReasonClaimLimitExceeded {
		a.AtLimit = append(a.AtLimit, addon.Namespace)
	}
	degraded := decide.ConditionOf(addon, contract.ConditionDegraded)
	if degraded != nil && degraded.Status == metav1.ConditionTrue && degraded.Reason != contract.ReasonClaimLimitExceeded {
		if a.Degraded == nil {
			a.Degraded = map[string][]string{}
		}
		reason := kube.Shorten(degraded.Reason, decide.MaxMessageBytes)
		a.Degraded[reason] = append(a.Degraded[reason], addon.Namespace)
	}
}

// TokenFacts summarizes the accounts whose tokens may be copied.
type TokenFacts struct {
	Hidden  bool
	Total   int
	Expired []string // namespace/name
	Next    time.Time
}

// Add counts one account.
func (t *TokenFacts) Add(account *authv1beta1.ManagedServiceAccount, now time.Time) {
	t.Total++
	ends := account.Status.ExpirationTimestamp
	switch {
	case ends == nil:
	case !now.Before(ends.Time):
		t.Expired = append(t.Expired, account.Namespace+"/"+account.Name)
	case t.Next.IsZero() || ends.Time.Before(t.Next):
		t.Next = ends.Time
	}
}

// CertificateFacts summarizes the certificates that profiles tell consumers to trust.
type CertificateFacts struct {
	Hidden  bool
	Bundles int
	Ends    time.Time // when the last certificate of the first bundle expires
	Server  string    // the server of that bundle

	seen map[string]struct{}
}

// Add adds the certificates of one profile. All profiles of a hub share a few.
func (c *CertificateFacts) Add(profile *inventoryv1alpha1.ClusterProfile) {
	for _, provider := range profile.Status.AccessProviders {
		bundle := string(provider.Cluster.CertificateAuthorityData)
		if _, known := c.seen[bundle]; known || bundle == "" {
			continue
		}
		if c.seen == nil {
			c.seen = map[string]struct{}{}
		}
		c.seen[bundle] = struct{}{}
		if ends := lastEnd([]byte(bundle)); !ends.IsZero() {
			if c.Bundles++; c.Ends.IsZero() || ends.Before(c.Ends) {
				c.Ends, c.Server = ends, provider.Cluster.Server
			}
		}
	}
}

// lastEnd is when the last certificate of a bundle expires; zero if it has none.
func lastEnd(bundle []byte) (last time.Time) {
	for block, rest := pem.Decode(bundle); block != nil; block, rest = pem.Decode(rest) {
		if certificate, err := x509.ParseCertificate(block.Bytes); err == nil && certificate.NotAfter.After(last) {
			last = certificate.NotAfter
		}
	}
	return last
}

// soon is how long before its expiry a certificate is a problem.
const soon = 14 * 24 * time.Hour

// CheckHub checks a hub and returns one finding per check.
func CheckHub(f HubFacts, now time.Time) []decide.Finding {
	return []decide.Finding{
		f.checkOCM(), f.checkInstallation(), f.checkManager(), f.checkLeader(now), f.checkSettings(),
		f.checkStrategy(), f.checkPolicies(),
		f.checkRegistrationGate(), f.checkProxyGate(), f.checkImpersonation(), f.checkSyncer(),
		checkProfileAPI(f.Profiles), checkAddonAPI(f.Addons), f.checkRights(),
		f.Agents.checkAvailable(), checkRollout(f.Rollout, now), f.Agents.checkDegraded(), f.Agents.checkLimit(),
		f.Bound.check(), f.checkTokens(now), f.Certificates.check(now), f.Members.Check(),
	}
}

// Unsupported versions of Open Cluster Management (docs/compatibility.md).
var (
	leastOCM  = version.MustParseSemantic("1.2.1")
	brokenOCM = version.MustParseSemantic("1.3.0")
)

func (f HubFacts) checkOCM() decide.Finding {
	const name = "Open Cluster Management"
	where := RegistrationNamespace + "/" + RegistrationDeployment
	switch {
	case f.Registration.Hidden:
		return notVisible(name, "Deployment "+where)
	case f.Registration.Object == nil:
		return notConfigured(name, "its version is unknown: there is no Deployment "+where)
	}
	found := versionOf(f.Registration.Object)
	switch {
	case found == nil:
		return ok(name, "its version is unknown: the image of Deployment "+where+" has no version in its tag")
	case found.LessThan(leastOCM):
		return problem(name, "version "+found.String()+" is too old",
			"upgrade it to 1.2.1, or to 1.3.1 or later: "+docs.URL("docs/compatibility.md"))
	case found.EqualTo(brokenOCM):
		return problem(name, "version 1.3.0 converts addons wrongly",
			"upgrade it to 1.3.1 or later: "+docs.URL("docs/compatibility.md"))
	default:
		return ok(name, "version "+found.String())
	}
}

// versionOf returns the version in the tag of a Deployment's image; nil if the tag is not a
// version.
func versionOf(deployment *appsv1.Deployment) *version.Version {
	for _, container := range deployment.Spec.Template.Spec.Containers {
		image, _, _ := strings.Cut(container.Image, "@")
		at := strings.LastIndex(image, ":")
		if parsed, err := version.ParseSemantic(image[at+1:]); at >= 0 && err == nil {
			return parsed
		}
	}
	return nil
}

func (f HubFacts) checkInstallation() decide.Finding {
	const name = "addon"
	switch {
	case f.Installation.Hidden:
		return notVisible(name, "ClusterManagementAddOns")
	case f.Installation.Object == nil:
		return problem(name, "the hub has no ClusterManagementAddOn "+contract.AddonName,
			"install the addon's chart: "+decide.InstallChart())
	case f.Manager.Settings.ExclusiveSetsOnly:
		return ok(name, "the addon is installed on the hub and publishes only through exclusive sets")
	default:
		return ok(name, "the addon is installed on the hub")
	}
}

func (f HubFacts) checkPolicies() decide.Finding {
	const name = "admission policies"
	switch {
	case f.Policies.Hidden:
		return notVisible(name, "ValidatingAdmissionPolicies and their bindings")
	case len(f.Policies.Problems) > 0 && f.Installation.Object == nil && !f.Installation.Hidden:
		return notConfigured(name, "the addon is not installed")
	case len(f.Policies.Problems) > 0:
		return problem(name, strings.Join(f.Policies.Problems, "; "), "install them again with helm upgrade: "+
			docs.URL("docs/operations.md#admission-policies"))
	default:
		return ok(name, fmt.Sprintf("the hub has all %d, and their bindings deny", f.Policies.Total))
	}
}

func (f HubFacts) checkRegistrationGate() decide.Finding {
	const name = "OCM's gate ClusterProfile"
	role, override := f.Manager.Settings.RegistrationClusterRole, upstream.Override(f.Manager.Settings.UpstreamGates)
	if f.RegistrationRole.Hidden {
		return notVisible(name, "ClusterRole "+role)
	}
	verdict := upstream.RegistrationVerdict(role, f.RegistrationRole.Object, true, override)
	switch {
	case verdict.Allowed && f.RegistrationRole.Object == nil:
		return ok(name, "it is off according to upstreamGates=off, so this addon writes the ClusterProfiles")
	case verdict.Allowed:
		return ok(name, "it is off, so this addon writes the ClusterProfiles")
	}
	return problem(name, verdict.Problem,
		verdict.Fix+": "+docs.URL("docs/compatibility.md#coexistence-with-ocms-own-feature-gates"))
}

func (f HubFacts) checkProxyGate() decide.Finding {
	const name = "cluster-proxy's gate"
	if finding, absent := f.withoutProxy(name); absent {
		return finding
	}
	if upstream.ProxyWrites(f.Proxy.Object) {
		return problem(name, "cluster-proxy writes access providers itself",
			"turn the gate off in the arguments of Deployment "+f.proxyDeployment()+": kubectl edit deployment "+
				upstream.ProxyDeployment+" -n "+f.Manager.Settings.ClusterProxyNamespace)
	}
	return ok(name, "it is off, so this addon writes the access providers")
}

func (f HubFacts) checkSyncer() decide.Finding {
	const name = "managed-serviceaccount's gate"
	s := f.Manager.Settings
	switch {
	case s.CredentialsMode != settings.CopyingEnabled:
		return notConfigured(name, "this addon copies no tokens (credentials.mode="+s.CredentialsMode+")")
	case s.UpstreamSyncer == string(upstream.OverrideOff):
		return ok(name, "it is off according to credentials.upstreamSyncer=off, so this addon copies tokens")
	case f.Syncer.Hidden:
		return notVisible(name, "ClusterRole "+contract.UpstreamSyncerClusterRole)
	case f.Syncer.Object != nil:
		return problem(name, "ClusterRole "+contract.UpstreamSyncerClusterRole+" shows that its own syncer copies tokens",
			"turn its feature gate off, or delete the ClusterRole if it is a leftover: "+docs.URL("docs/migration.md"))
	default:
		return ok(name, "it is off, so this addon copies tokens")
	}
}

func checkProfileAPI(crd decide.Object[apiextensionsv1.CustomResourceDefinition]) decide.Finding {
	const name = "ClusterProfile API"
	switch {
	case crd.Hidden:
		return notVisible(name, "CustomResourceDefinition "+rule.ProfileCRD)
	case crd.Object == nil:
		return problem(name, "there is no CustomResourceDefinition "+rule.ProfileCRD,
			"install the addon's chart, which contains it: "+decide.InstallChart())
	}
	served, schema := servedVersions(crd.Object), (*apiextensionsv1.JSONSchemaProps)(nil)
	for _, v := range crd.Object.Spec.Versions {
		if v.Name == inventoryv1alpha1.GroupVersion.Version && v.Served && v.Schema != nil {
			schema = v.Schema.OpenAPIV3Schema
		}
	}
	if schema == nil {
		return problem(name,
			"it serves "+strings.Join(served, ", ")+", and this addon writes v1alpha1",
			"serve v1alpha1, too: kubectl edit crd "+rule.ProfileCRD)
	}
	form := "OCM's form, with atomic lists"
	if conditions := schema.Properties["status"].Properties["conditions"]; conditions.XListType != nil &&
		*conditions.XListType == "map" {
		form = "SIG-Multicluster's form, with lists that are maps"
	}
	return ok(name, "serves "+strings.Join(served, ", ")+" in "+form)
}

func checkAddonAPI(crd decide.Object[apiextensionsv1.CustomResourceDefinition]) decide.Finding {
	const name = "addon API"
	switch {
	case crd.Hidden:
		return notVisible(name, "CustomResourceDefinition "+AddonCRD)
	case crd.Object == nil:
		return problem(name, "there is no CustomResourceDefinition "+AddonCRD,
			"check whether this is a hub: kubectl get managedclusters")
	}
	served := servedVersions(crd.Object)
	if !slices.Contains(served, "v1beta1") {
		return problem(name, "it serves "+strings.Join(served, ", ")+", and this addon needs v1beta1",
			"upgrade Open Cluster Management: "+docs.URL("docs/compatibility.md"))
	}
	stored := ""
	for _, v := range crd.Object.Spec.Versions {
		if v.Storage {
			stored = v.Name
		}
	}
	return ok(name, "serves "+strings.Join(served, ", ")+", stores "+stored)
}

func servedVersions(crd *apiextensionsv1.CustomResourceDefinition) []string {
	var served []string
	for _, v := range crd.Spec.Versions {
		if v.Served {
			served = append(served, v.Name)
		}
	}
	return served
}

func (f HubFacts) checkRights() decide.Finding {
	const name = "your rights"
	if len(f.Unreadable) > 0 {
		return notVisible(name, "in all namespaces: "+strings.Join(f.Unreadable, ", "))
	}
	return ok(name, "you may list everything that the inventory uses")
}

const listAddons = "kubectl get managedclusteraddons -A --field-selector metadata.name=" + contract.AddonName

func (a AgentFacts) checkAvailable() decide.Finding {
	const name = "agents"
	switch {
	case a.Hidden:
		return notVisible(name, "ManagedClusterAddOns")
	case a.Total == 0:
		return notConfigured(name, "no cluster has the addon")
	case len(a.Unavailable) > 0:
		return problem(name, fmt.Sprintf("%d of %d are not available (%s)", len(a.Unavailable), a.Total,
			clusterNames(a.Unavailable)), listAddons)
	default:
		return ok(name, fmt.Sprintf("all %d are available", a.Total))
	}
}

func (a AgentFacts) checkDegraded() decide.Finding {
	const name = "degraded"
	switch {
	case a.Hidden:
		return notVisible(name, "ManagedClusterAddOns")
	case len(a.Degraded) == 0:
		return ok(name, "no cluster's addon is degraded")
	}
	var parts []string
	for _, reason := range slices.Sorted(maps.Keys(a.Degraded)) {
		clusters := a.Degraded[reason]
		parts = append(parts, fmt.Sprintf("%s on %d (%s)", reason, len(clusters), clusterNames(clusters)))
	}
	return problem(name, strings.Join(parts, "; "),
		docs.URL("docs/conditions.md")+" says what to do about each reason")
}

func (a AgentFacts) checkLimit() decide.Finding {
	const name = "claim limit"
	switch {
	case a.Hidden:
		return notVisible(name, "ManagedClusterAddOns")
	case len(a.AtLimit) > 0:
		return problem(name, fmt.Sprintf("klusterlets that cut properties off: %d (%s)", len(a.AtLimit),
			clusterNames(a.AtLimit)), "raise maxCustomClusterClaims in their Klusterlet, "+
			"spec.registrationConfiguration.clusterClaimConfiguration, on the spoke: kubectl edit klusterlet klusterlet")
	default:
		return ok(name, "no klusterlet cuts properties off")
	}
}

func clusterNames(names []string) string {
	return kube.ListNames(slices.Sorted(slices.Values(names)), decide.MaxClusters)
}

func (f HubFacts) checkTokens(now time.Time) decide.Finding {
	const name = "tokens"
	t := f.Tokens
	switch {
	case f.Manager.Settings.CredentialsMode != settings.CopyingEnabled:
		return notConfigured(name, "this addon copies no tokens (credentials.mode="+f.Manager.Settings.CredentialsMode+")")
	case t.Hidden:
		return notVisible(name, "ManagedServiceAccounts")
	case t.Total == 0:
		return notConfigured(name, "no ManagedServiceAccount is labeled "+contract.LabelSyncToProfile+"=true")
	case len(t.Expired) > 0:
		return problem(name, fmt.Sprintf("%d of %d have expired (%s)", len(t.Expired), t.Total, clusterNames(t.Expired)),
			"check whether the agent of managed-serviceaccount runs on these clusters: "+
				"kubectl get managedclusteraddons -A --field-selector metadata.name=managed-serviceaccount")
	case t.Next.IsZero():
		return ok(name, fmt.Sprintf("%d accounts, none of which says when its token expires", t.Total))
	default:
		return ok(name, fmt.Sprintf("the first of %d expires in %s", t.Total, duration.HumanDuration(t.Next.Sub(now))))
	}
}

func (c CertificateFacts) check(now time.Time) decide.Finding {
	const name = "certificates"
	left := c.Ends.Sub(now)
	server := kube.Shorten(c.Server, decide.MaxMessageBytes)
	switch {
	case c.Hidden:
		return notVisible(name, "ClusterProfiles")
	case c.Bundles == 0:
		return notConfigured(name, "no ClusterProfile has an access provider with a CA")
	case left <= 0:
		return problem(name, "the CA of "+server+" has expired", renewCA())
	case left < soon:
		return problem(name, "the CA of "+server+" expires in "+duration.HumanDuration(left), renewCA())
	default:
		return ok(name, fmt.Sprintf("the first of %d CAs in ClusterProfiles expires in %s", c.Bundles,
			duration.HumanDuration(left)))
	}
}

func renewCA() string {
	return "renew it; the profiles follow: " + docs.URL("docs/access.md#the-ca-and-its-rotation")
}
