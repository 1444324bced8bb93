package doctor

import (
	"regexp"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	clientcmdv1 "k8s.io/client-go/tools/clientcmd/api/v1"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
	inventoryv1alpha1 "sigs.k8s.io/cluster-inventory-api/apis/v1alpha1"

	"open-cluster-management.io/cluster-inventory-addon/internal/apitest"
	"open-cluster-management.io/cluster-inventory-addon/internal/apitest/ocmtest"
	"open-cluster-management.io/cluster-inventory-addon/internal/certtest"
	"open-cluster-management.io/cluster-inventory-addon/internal/facttest"
	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/policies"
	"open-cluster-management.io/cluster-inventory-addon/pkg/inventoryctl/decide"
	"open-cluster-management.io/cluster-inventory-addon/pkg/inventoryctl/docs"
	"open-cluster-management.io/cluster-inventory-addon/pkg/inventoryctl/rollout"
	"open-cluster-management.io/cluster-inventory-addon/pkg/inventoryctl/settings"
)

func deploymentOf(image string, args ...string) decide.Object[appsv1.Deployment] {
	deployment := &appsv1.Deployment{}
	deployment.Spec.Template.Spec.Containers = []corev1.Container{{Image: image, Args: args}}
	return decide.Object[appsv1.Deployment]{Object: deployment}
}

func crdOf(t *testing.T, source apitest.CRDs) decide.Object[apiextensionsv1.CustomResourceDefinition] {
	t.Helper()
	crds, err := source()
	apitest.Must(t, err)
	return decide.Object[apiextensionsv1.CustomResourceDefinition]{Object: crds[0]}
}

// healthy are facts of a hub where all is well, changed as given.
func healthy(t *testing.T, changes ...func(*HubFacts)) HubFacts {
	t.Helper()
	versions := []apiextensionsv1.CustomResourceDefinitionVersion{
		{Name: "v1alpha1", Served: true, Storage: true}, {Name: "v1beta1", Served: true},
	}
	f := HubFacts{
		Installation: decide.Object[addonv1beta1.ClusterManagementAddOn]{Object: &addonv1beta1.ClusterManagementAddOn{}}, Manager: running(), Bound: boundTo(true), Rollout: rolledOut("c"),
		Registration: deploymentOf("quay.io/open-cluster-management/registration:v1.2.1"),
		RegistrationRole: decide.Object[rbacv1.ClusterRole]{Object: &rbacv1.ClusterRole{Rules: []rbacv1.PolicyRule{{
			APIGroups: []string{"cluster.open-cluster-management.io"},
			Resources: []string{"managedclusters"}, Verbs: []string{"get"},
		}}}},
		Proxy:    deploymentOf("cluster-proxy:v0.10.0"),
		Profiles: crdOf(t, apitest.ClusterProfile()),
		Addons: decide.Object[apiextensionsv1.CustomResourceDefinition]{Object: &apiextensionsv1.CustomResourceDefinition{
			Spec: apiextensionsv1.CustomResourceDefinitionSpec{Versions: versions},
		}},
	}
	f.Impersonation.Add("c", impersonating("false"))
	f.Agents.Add(facttest.Published().Addon)
	f.Tokens.Add(facttest.Account("a", "ns"), facttest.Now())
	f.Certificates.Add(trusting(t, facttest.Now().Add(90*24*time.Hour)))
	member := ocmtest.OurProfile("ns", "c")
	member.Labels["multicluster.x-k8s.io/inventory-member-id"] = "c"
	f.Members.Add(member)
	for _, change := range changes {
		change(&f)
	}
	return f
}

// trusting is a profile with a CA that ends then.
func trusting(t *testing.T, until time.Time) *inventoryv1alpha1.ClusterProfile {
	profile := ocmtest.OurProfile("ns", "c")
	profile.Status.AccessProviders = []inventoryv1alpha1.AccessProvider{{
		Name: "open-cluster-management",
		Cluster: clientcmdv1.Cluster{
			Server: "https://proxy", CertificateAuthorityData: certtest.NewCA(t, "ca", until).PEM(),
		},
	}}
	return profile
}

// What the finding on a Placement with several slices says after its name, and advises.
const (
	slicesAreWrittenOneByOne = ", so its decisions have several slices. Open Cluster Management writes one after the " +
		"other, and deletes the addon of each cluster that is in none at that moment, even if the cluster stays chosen " +
		"(OCM issue 1346)"
	stepsOfAChange = "change such a Placement only while installStrategy.type is Manual: " + main +
		"docs/placements.md#changing-the-install-placement"
	main = "https://github.com/open-cluster-management-io/cluster-inventory-addon/blob/main/"
)

func installedBy(placements ...InstallPlacement) StrategyFacts {
	return StrategyFacts{ByPlacement: true, Placements: placements}
}

// chooses is an install Placement that has selected so many clusters.
func chooses(namespace, name string, clusters int32) InstallPlacement {
	placement := &clusterv1beta1.Placement{Status: clusterv1beta1.PlacementStatus{NumberOfSelectedClusters: clusters}}
	return InstallPlacement{
		Ref:    addonv1beta1.PlacementRef{Namespace: namespace, Name: name},
		Object: decide.Object[clusterv1beta1.Placement]{Object: placement},
	}
}

// impersonating is a configuration of cluster-proxy with a value of its variable.
func impersonating(value string) []decide.Object[addonv1beta1.AddOnDeploymentConfig] {
	return []decide.Object[addonv1beta1.AddOnDeploymentConfig]{{Object: &addonv1beta1.AddOnDeploymentConfig{
		Spec: addonv1beta1.AddOnDeploymentConfigSpec{CustomizedVariables: []addonv1beta1.CustomizedVariable{
			{Name: "agentReplicas", Value: "false"}, {Name: "enableImpersonation", Value: value},
		}},
	}}}
}

func TestDeploymentConfigs(t *testing.T) {
	config := func(group, resource, namespace, name string) addonv1beta1.ConfigReference {
		return addonv1beta1.ConfigReference{
			ConfigGroupResource: addonv1beta1.ConfigGroupResource{Group: group, Resource: resource},
			DesiredConfig: &addonv1beta1.ConfigSpecHash{
				ConfigReferent: addonv1beta1.ConfigReferent{Namespace: namespace, Name: name},
			},
		}
	}
	addon := ocmtest.Addon("c")
	unresolved := config("addon.open-cluster-management.io", "addondeploymentconfigs", "", "")
	unresolved.DesiredConfig = nil
	addon.Status.ConfigReferences = []addonv1beta1.ConfigReference{
		config("proxy.open-cluster-management.io", "managedproxyconfigurations", "", "cluster-proxy"),
		config("addon.open-cluster-management.io", "addondeploymentconfigs", "ns", "one"), unresolved,
	}
	if diff := cmp.Diff([]types.NamespacedName{{Namespace: "ns", Name: "one"}}, DeploymentConfigs(addon)); diff != "" {
		t.Errorf("configurations (-want +got):\n%s", diff)
	}
}

// hasWay matches what a reader can run or open.
var hasWay = regexp.MustCompile("(^|: )(kubectl|clusteradm|helm) |https://")

func TestCheckHub(t *testing.T) {
	const chooseGroups = "version 0.10.0 lets clients choose their groups on "
	upgradeProxy := "upgrade it to 0.11.0 or later, or switch impersonation off: " +
		docs.URL("docs/consumers.md#cluster-proxys-impersonation")
	tests := map[string]struct {
		change func(*HubFacts)
		check  string
		want   decide.Finding
	}{
		"OCM is too old": {
			func(f *HubFacts) { f.Registration = deploymentOf("registry:5000/registration:v1.1.0@sha256:0") },
			"Open Cluster Management",
			problem("", "version 1.1.0 is too old", "upgrade it to 1.2.1, or to 1.3.1 or later: "+docs.URL("docs/compatibility.md")),
		},
		"OCM converts wrongly": {
			func(f *HubFacts) { f.Registration = deploymentOf("registration:v1.3.0") }, "Open Cluster Management",
			problem("", "version 1.3.0 converts addons wrongly",
				"upgrade it to 1.3.1 or later: "+docs.URL("docs/compatibility.md")),
		},
		"OCM's image says nothing": {
			func(f *HubFacts) { f.Registration = deploymentOf("registry:5000/registration") }, "Open Cluster Management",
			ok("", "its version is unknown: the image of Deployment "+
				"open-cluster-management-hub/cluster-manager-registration-controller has no version in its tag"),
		},
		"cluster-proxy lets clients choose groups": {
			func(f *HubFacts) {
				f.Impersonation.Add("d", nil)
				f.Impersonation.Add("e", impersonating("true"))
				f.Impersonation.Add("f", []decide.Object[addonv1beta1.AddOnDeploymentConfig]{{}})
			},
			"cluster-proxy's impersonation", problem("", chooseGroups+"3 of 4 clusters (d, e, f)", upgradeProxy),
		},
		"cluster-proxy is old, and its configuration is hidden": {
			func(f *HubFacts) {
				f.Impersonation.Add("d", []decide.Object[addonv1beta1.AddOnDeploymentConfig]{{Hidden: true}})
			},
			"cluster-proxy's impersonation", notVisible("", "AddOnDeploymentConfigs, which may switch it off on d"),
		},
		"cluster-proxy is old, and its addons are hidden": {
			func(f *HubFacts) { f.Impersonation = ImpersonationFacts{Hidden: true} },
			"cluster-proxy's impersonation", notVisible("", "ManagedClusterAddOns"),
		},
		"cluster-proxy is old, and no cluster has it": {
			func(f *HubFacts) { f.Impersonation = ImpersonationFacts{} },
			"cluster-proxy's impersonation", notConfigured("", "no cluster has the addon cluster-proxy"),
		},
		"cluster-proxy is old, without impersonation": {
			func(*HubFacts) {}, "cluster-proxy's impersonation", ok("", "it is off on all clusters"),
		},
		"cluster-proxy drops clients' headers": {
			func(f *HubFacts) { f.Proxy = deploymentOf("cluster-proxy:v0.11.0") }, "cluster-proxy's impersonation",
			ok("", "version 0.11.0 does not let clients choose their groups"),
		},
		"cluster-proxy's image says nothing": {
			func(f *HubFacts) { f.Proxy = deploymentOf("cluster-proxy:latest") }, "cluster-proxy's impersonation",
			ok("", "cannot tell whether clients can choose their groups: the image of Deployment "+
				"open-cluster-management-addon/cluster-proxy-addon-manager has no version in its tag; "+
				"0.11.0 and later ones are safe"),
		},
		"OCM runs elsewhere": {
			func(f *HubFacts) { f.Registration.Object = nil }, "Open Cluster Management",
			notConfigured("", "its version is unknown: there is no Deployment "+
				"open-cluster-management-hub/cluster-manager-registration-controller"),
		},
		"OCM's Deployment is hidden": {
			func(f *HubFacts) { f.Registration = decide.Object[appsv1.Deployment]{Hidden: true} }, "Open Cluster Management",
			notVisible("", "Deployment open-cluster-management-hub/cluster-manager-registration-controller"),
		},
		"not installed": {
			func(f *HubFacts) { f.Installation.Object = nil }, "addon",
			problem("", "the hub has no ClusterManagementAddOn cluster-inventory", "install the addon's chart: "+decide.InstallChart()),
		},
		"a policy is missing": {
			func(f *HubFacts) { f.Policies.Add(policies.All()[0], nil, nil) }, "admission policies",
			problem("", "cluster-inventory-addons: it does not exist", "install them again with helm upgrade: "+main+"docs/operations.md#admission-policies"),
		},
		"policies are missing that limit no right of the manager": {
			func(f *HubFacts) {
				for _, policy := range policies.All() {
					if policy.Limits != nil {
						f.Policies.Add(policy, nil, nil, nil, &rbacv1.ClusterRole{Rules: []rbacv1.PolicyRule{{
							APIGroups: []string{"rbac.authorization.k8s.io"}, Resources: []string{"clusterroles"},
							ResourceNames: []string{"open-cluster-management:cluster-inventory:agent-on-hub"}, Verbs: []string{"bind"},
						}}})
					}
				}
			}, "admission policies",
			ok("", "the hub has all 0, and their bindings deny"),
		},
		"policies are missing that limit a right of the manager": {
			func(f *HubFacts) {
				for _, policy := range policies.All() {
					if policy.Limits != nil {
						f.Policies.Add(policy, nil, nil, &rbacv1.ClusterRole{Rules: []rbacv1.PolicyRule{{
							APIGroups: []string{"rbac.authorization.k8s.io"}, Resources: []string{"clusterroles"},
							ResourceNames: []string{"open-cluster-management:cluster-inventory:token-target"}, Verbs: []string{"bind"},
						}}})
					}
				}
			}, "admission policies",
			problem("", "cluster-inventory-token-grants: it does not exist; cluster-inventory-token-source: it does not exist; "+
				"cluster-inventory-token-target: it does not exist", "install them again with helm upgrade: "+main+"docs/operations.md#admission-policies"),
		},
		"the install Placement chooses more clusters than a slice has": {
			func(f *HubFacts) { f.Strategy = installedBy(chooses("fleet", "all", 101)) }, "install strategy",
			problem("", "Placement fleet/all chooses 101 clusters"+slicesAreWrittenOneByOne, stepsOfAChange),
		},
		"one of two install Placements has decision groups": {
			func(f *HubFacts) {
				grouped := chooses("fleet", "grouped", 30)
				grouped.Object.Object.Spec.DecisionStrategy.GroupStrategy.DecisionGroups = []clusterv1beta1.DecisionGroup{
					{GroupName: "canary"},
				}
				f.Strategy = installedBy(chooses("fleet", "small", 100), grouped)
			}, "install strategy",
			problem("", "Placement fleet/grouped has decision groups"+slicesAreWrittenOneByOne, stepsOfAChange),
		},
		"the install Placement has many clusters in groups of a size": {
			func(f *HubFacts) {
				grouped := chooses("fleet", "all", 163)
				grouped.Object.Object.Spec.DecisionStrategy.GroupStrategy.ClustersPerDecisionGroup = intstr.FromInt32(50)
				f.Strategy = installedBy(grouped)
			}, "install strategy",
			problem("", "Placement fleet/all chooses 163 clusters and has decision groups"+slicesAreWrittenOneByOne,
				stepsOfAChange),
		},
		"the install Placement has one slice": {
			func(f *HubFacts) {
				one := chooses("fleet", "all", 100)
				one.Object.Object.Spec.DecisionStrategy.GroupStrategy.ClustersPerDecisionGroup = intstr.FromString("100%")
				f.Strategy = installedBy(one)
			}, "install strategy",
			ok("", "Placements, of at most 100 clusters each and without decision groups"),
		},
		"an install Placement is hidden": {
			func(f *HubFacts) {
				hidden := chooses("fleet", "hidden", 0)
				hidden.Object = decide.Object[clusterv1beta1.Placement]{Hidden: true}
				f.Strategy = installedBy(chooses("fleet", "small", 1), hidden)
			}, "install strategy",
			notVisible("", "Placement fleet/hidden"),
		},
		"an install Placement is hidden, and another is too large": {
			func(f *HubFacts) {
				hidden := chooses("fleet", "hidden", 0)
				hidden.Object = decide.Object[clusterv1beta1.Placement]{Hidden: true}
				f.Strategy = installedBy(hidden, chooses("fleet", "all", 5000))
			}, "install strategy",
			problem("", "Placement fleet/all chooses 5000 clusters"+slicesAreWrittenOneByOne, stepsOfAChange),
		},
		"there is no install Placement": {
			func(f *HubFacts) {
				absent := chooses("fleet", "absent", 0)
				absent.Object.Object = nil
				f.Strategy = installedBy(absent)
			}, "install strategy",
			problem("", "there is no Placement fleet/absent: Open Cluster Management takes that for a Placement that chooses "+
				"no cluster", "create it, or name another one in the chart's installStrategy.placement: "+
				main+"docs/placements.md#installation-by-placement"),
		},
		"OCM's own gate is on": {
			func(f *HubFacts) {
				f.RegistrationRole.Object.Rules[0] = rbacv1.PolicyRule{
					APIGroups: []string{"multicluster.x-k8s.io"}, Resources: []string{"clusterprofiles"}, Verbs: []string{"create"},
				}
			}, "OCM's gate ClusterProfile",
			problem("", `ClusterRole "open-cluster-management:cluster-manager-registration:controller" lets OCM's `+
				"registration controller write ClusterProfiles, so its ClusterProfile feature gate is on",
				"turn the gate off in the ClusterManager (spec.registrationConfiguration.featureGates) to let this addon "+
					"write profiles: "+main+"docs/compatibility.md#coexistence-with-ocms-own-feature-gates"),
		},
		"cluster-proxy's gate is on": {
			func(f *HubFacts) { f.Proxy = deploymentOf("p", "--feature-gates=ClusterProfileAccessProvider=true") },
			"cluster-proxy's gate",
			problem("", "cluster-proxy writes access providers itself",
				"turn the gate off in the arguments of Deployment open-cluster-management-addon/cluster-proxy-addon-manager: "+
					"kubectl edit deployment cluster-proxy-addon-manager -n open-cluster-management-addon"),
		},
		"there is no cluster-proxy": {
			func(f *HubFacts) { f.Proxy.Object = nil }, "cluster-proxy's gate",
			notConfigured("", "there is no Deployment open-cluster-management-addon/cluster-proxy-addon-manager"),
		},
		"managed-serviceaccount's gate is on": {
			func(f *HubFacts) { f.Syncer.Object = &rbacv1.ClusterRole{} }, "managed-serviceaccount's gate",
			problem("", "ClusterRole open-cluster-management:managed-serviceaccount:addon-manager-clusterprofile shows that "+
				"its own syncer copies tokens", "turn its feature gate off, or delete the ClusterRole if it is a leftover: "+main+
				"docs/migration.md"),
		},
		"no ClusterProfile API": {
			func(f *HubFacts) { f.Profiles.Object = nil }, "ClusterProfile API",
			problem("", "there is no CustomResourceDefinition clusterprofiles.multicluster.x-k8s.io",
				"install the addon's chart, which contains it: "+decide.InstallChart()),
		},
		"OCM's form of the ClusterProfile API": {
			func(f *HubFacts) { f.Profiles = crdOf(t, apitest.AtomicClusterProfile()) }, "ClusterProfile API",
			ok("", "serves v1alpha1 in OCM's form, with atomic lists"),
		},
		"the addon API is too old": {
			func(f *HubFacts) { f.Addons.Object.Spec.Versions[1].Served = false }, "addon API",
			problem("", "it serves v1alpha1, and this addon needs v1beta1", "upgrade Open Cluster Management: "+main+
				"docs/compatibility.md"),
		},
		"rights are missing": {
			func(f *HubFacts) { f.Unreadable = []string{"ManagedClusters", "Namespaces"} }, "your rights",
			notVisible("", "in all namespaces: ManagedClusters, Namespaces"),
		},
		"agents are not available": {
			func(f *HubFacts) {
				for _, name := range []string{"f", "e", "d", "c", "b", "a"} {
					f.Agents.Add(ocmtest.Addon(name))
				}
			}, "agents",
			problem("", "6 of 7 are not available (a, b, c, d, e and 1 more)",
				"kubectl get managedclusteraddons -A --field-selector metadata.name=cluster-inventory"),
		},
		"degraded, and at its claim limit: named once": {
			func(f *HubFacts) {
				addon := ocmtest.Addon("x")
				addon.Status.Conditions = []metav1.Condition{
					ocmtest.Condition("Available", "True", "R", ""),
					ocmtest.Condition("PropertiesPublished", "False", "ClaimLimitExceeded", ""),
					ocmtest.Condition("Degraded", "True", "ClaimLimitExceeded", ""),
				}
				f.Agents.Add(addon)
			}, "claim limit",
			problem("", "klusterlets that cut properties off: 1 (x)", "raise maxCustomClusterClaims in their "+
				"Klusterlet, spec.registrationConfiguration.clusterClaimConfiguration, on the spoke: "+
				"kubectl edit klusterlet klusterlet"),
		},
		"degraded for two reasons": {
			func(f *HubFacts) {
				f.Agents.Degraded = map[string][]string{"WriteFailed": {"b", "a"}, "ForeignSecret": {"c"}}
			}, "degraded",
			problem("", "ForeignSecret on 1 (c); WriteFailed on 2 (a, b)",
				main+"docs/conditions.md says what to do about each reason"),
		},
		"a token has expired": {
			func(f *HubFacts) { f.Tokens.Add(facttest.Account("old", "ns"), facttest.Now().Add(time.Hour)) }, "tokens",
			problem("", "1 of 2 have expired (c/old)",
				"check whether the agent of managed-serviceaccount runs on these clusters: kubectl get managedclusteraddons -A "+
					"--field-selector metadata.name=managed-serviceaccount"),
		},
		"no accounts": {
			func(f *HubFacts) { f.Tokens = TokenFacts{} }, "tokens",
			notConfigured("", "no ManagedServiceAccount is labeled "+
				"authentication.open-cluster-management.io/sync-to-clusterprofile=true"),
		},
		"a CA ends soon": {
			func(f *HubFacts) { f.Certificates.Add(trusting(t, facttest.Now().Add(5*24*time.Hour))) }, "certificates",
			problem("", "the CA of https://proxy expires in 5d", renewCA()),
		},
		"a CA has ended": {
			func(f *HubFacts) { f.Certificates.Add(trusting(t, facttest.Now().Add(-time.Hour))) }, "certificates",
			problem("", "the CA of https://proxy has expired", renewCA()),
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			test.want.Name = test.check
			if fix := test.want.Fix; test.want.State == decide.Problem && !hasWay.MatchString(fix) {
				t.Errorf("neither a command nor an address: %s", fix)
			}
			for _, check := range CheckHub(healthy(t, test.change), facttest.Now()) {
				if check.Name == test.check {
					if diff := cmp.Diff(test.want, check); diff != "" {
						t.Errorf("check (-want +got):\n%s", diff)
					}
				} else if check.State != decide.OK && check.Text != test.want.Text { // two checks rest on one Deployment
					t.Errorf("another check: %+v", check)
				}
			}
		})
	}
	for _, check := range CheckHub(healthy(t), facttest.Now()) {
		if check.State != decide.OK {
			t.Errorf("all is well, but %+v", check)
		}
	}
}

func TestHiddenKindsAreNotVisible(t *testing.T) {
	f := HubFacts{
		Installation: decide.Object[addonv1beta1.ClusterManagementAddOn]{Hidden: true},
		Syncer:       decide.Object[rbacv1.ClusterRole]{Hidden: true}, Unreadable: []string{"Namespaces"},
		Policies: PolicyFacts{Hidden: true},
		Bound:    BoundFacts{Hidden: []string{"ManagedClusters"}},
		Rollout:  rollout.Facts{HiddenAddons: true},
		Manager:  ManagerFacts{Settings: settings.Default()},
		Agents:   AgentFacts{Hidden: true}, Tokens: TokenFacts{Hidden: true}, Certificates: CertificateFacts{Hidden: true},
		Members: decide.MemberFacts{Hidden: true},
	}
	f.Manager.Deployment.Hidden, f.Manager.Lease.Hidden = true, true
	f.Registration.Hidden, f.RegistrationRole.Hidden, f.Proxy.Hidden = true, true, true
	f.Profiles.Hidden, f.Addons.Hidden = true, true
	for _, check := range CheckHub(f, facttest.Now()) {
		if check.State != decide.NotVisible {
			t.Errorf("%s is hidden, but %+v", check.Name, check)
		}
	}
}
