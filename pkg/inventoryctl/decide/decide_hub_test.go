package decide

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clientcmdv1 "k8s.io/client-go/tools/clientcmd/api/v1"
	inventoryv1alpha1 "sigs.k8s.io/cluster-inventory-api/apis/v1alpha1"

	"open-cluster-management.io/cluster-inventory-addon/internal/apitest"
	"open-cluster-management.io/cluster-inventory-addon/internal/apitest/ocmtest"
	"open-cluster-management.io/cluster-inventory-addon/internal/certtest"
)

func deploymentOf(image string, args ...string) Object[appsv1.Deployment] {
	deployment := &appsv1.Deployment{}
	deployment.Spec.Template.Spec.Containers = []corev1.Container{{Image: image, Args: args}}
	return Object[appsv1.Deployment]{Object: deployment}
}

func crdOf(t *testing.T, source apitest.CRDs) Object[apiextensionsv1.CustomResourceDefinition] {
	t.Helper()
	crds, err := source()
	apitest.Must(t, err)
	return Object[apiextensionsv1.CustomResourceDefinition]{Object: crds[0]}
}

// healthy are facts of a hub where all is well, changed as given.
func healthy(t *testing.T, changes ...func(*HubFacts)) HubFacts {
	t.Helper()
	versions := []apiextensionsv1.CustomResourceDefinitionVersion{
		{Name: "v1alpha1", Served: true, Storage: true}, {Name: "v1beta1", Served: true},
	}
	f := HubFacts{
		Installation: Presence{Found: true},
		Registration: deploymentOf("quay.io/open-cluster-management/registration:v1.2.1"),
		RegistrationRole: Object[rbacv1.ClusterRole]{Object: &rbacv1.ClusterRole{Rules: []rbacv1.PolicyRule{{
			APIGroups: []string{"cluster.open-cluster-management.io"},
			Resources: []string{"managedclusters"}, Verbs: []string{"get"},
		}}}},
		Proxy:    deploymentOf("cluster-proxy:v0.10.0"),
		Profiles: crdOf(t, apitest.ClusterProfile()),
		Addons: Object[apiextensionsv1.CustomResourceDefinition]{Object: &apiextensionsv1.CustomResourceDefinition{
			Spec: apiextensionsv1.CustomResourceDefinitionSpec{Versions: versions},
		}},
	}
	f.Agents.Add(published().Facts.Addon)
	f.Tokens.Add(account("a", "ns"), now)
	f.Certificates.Add(trusting(t, now.Add(90*24*time.Hour)))
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

func TestCheckHub(t *testing.T) {
	tests := map[string]struct {
		change func(*HubFacts)
		check  string
		want   Finding
	}{
		"OCM is too old": {
			func(f *HubFacts) { f.Registration = deploymentOf("registry:5000/registration:v1.1.0@sha256:0") },
			"Open Cluster Management",
			problem("", "version 1.1.0 is too old", "upgrade it to 1.2.1, or to 1.3.1 or later"),
		},
		"OCM converts wrongly": {
			func(f *HubFacts) { f.Registration = deploymentOf("registration:v1.3.0") }, "Open Cluster Management",
			problem("", "version 1.3.0 converts addons wrongly", "upgrade it to 1.3.1 or later"),
		},
		"OCM's image says nothing": {
			func(f *HubFacts) { f.Registration = deploymentOf("registry:5000/registration") }, "Open Cluster Management",
			ok("", "its version is unknown: the image of Deployment "+
				"open-cluster-management-hub/cluster-manager-registration-controller has no version in its tag"),
		},
		"OCM runs elsewhere": {
			func(f *HubFacts) { f.Registration.Object = nil }, "Open Cluster Management",
			notConfigured("", "its version is unknown: there is no Deployment "+
				"open-cluster-management-hub/cluster-manager-registration-controller"),
		},
		"OCM's Deployment is hidden": {
			func(f *HubFacts) { f.Registration = Object[appsv1.Deployment]{Hidden: true} }, "Open Cluster Management",
			notVisible("", "Deployment open-cluster-management-hub/cluster-manager-registration-controller"),
		},
		"not installed": {
			func(f *HubFacts) { f.Installation.Found = false }, "addon",
			problem("", "the hub has no ClusterManagementAddOn cluster-inventory", "install the addon's chart"),
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
					"write profiles"),
		},
		"cluster-proxy's gate is on": {
			func(f *HubFacts) { f.Proxy = deploymentOf("p", "--feature-gates=ClusterProfileAccessProvider=true") },
			"cluster-proxy's gate",
			problem("", "cluster-proxy writes access providers itself",
				"turn the gate off in the arguments of Deployment open-cluster-management-addon/cluster-proxy-addon-manager"),
		},
		"there is no cluster-proxy": {
			func(f *HubFacts) { f.Proxy.Object = nil }, "cluster-proxy's gate",
			notConfigured("", "there is no Deployment open-cluster-management-addon/cluster-proxy-addon-manager"),
		},
		"managed-serviceaccount's gate is on": {
			func(f *HubFacts) { f.Syncer.Found = true }, "managed-serviceaccount's gate",
			problem("", "ClusterRole open-cluster-management:managed-serviceaccount:addon-manager-clusterprofile shows that "+
				"its own syncer copies tokens", "turn its feature gate off, or delete the ClusterRole if it is a leftover"),
		},
		"no ClusterProfile API": {
			func(f *HubFacts) { f.Profiles.Object = nil }, "ClusterProfile API",
			problem("", "there is no CustomResourceDefinition clusterprofiles.multicluster.x-k8s.io",
				"install the addon's chart, which contains it"),
		},
		"OCM's form of the ClusterProfile API": {
			func(f *HubFacts) { f.Profiles = crdOf(t, apitest.AtomicClusterProfile()) }, "ClusterProfile API",
			ok("", "serves v1alpha1 in OCM's form, with atomic lists"),
		},
		"the addon API is too old": {
			func(f *HubFacts) { f.Addons.Object.Spec.Versions[1].Served = false }, "addon API",
			problem("", "it serves v1alpha1, and this addon needs v1beta1", "upgrade Open Cluster Management"),
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
				"Klusterlet, spec.registrationConfiguration.clusterClaimConfiguration"),
		},
		"degraded for two reasons": {
			func(f *HubFacts) {
				f.Agents.Degraded = map[string][]string{"WriteFailed": {"b", "a"}, "ForeignSecret": {"c"}}
			}, "degraded",
			problem("", "ForeignSecret on 1 (c); WriteFailed on 2 (a, b)",
				"docs/operations.md says what to do about each reason"),
		},
		"a token has expired": {
			func(f *HubFacts) { f.Tokens.Add(account("old", "ns"), now.Add(time.Hour)) }, "tokens",
			problem("", "1 of 2 have expired (c/old)",
				"check whether the agent of managed-serviceaccount runs on these clusters"),
		},
		"no accounts": {
			func(f *HubFacts) { f.Tokens = TokenFacts{} }, "tokens",
			notConfigured("", "no ManagedServiceAccount is labelled "+
				"authentication.open-cluster-management.io/sync-to-clusterprofile=true"),
		},
		"a CA ends soon": {
			func(f *HubFacts) { f.Certificates.Add(trusting(t, now.Add(5*24*time.Hour))) }, "certificates",
			problem("", "the CA of https://proxy expires in 5d", "renew it; the profiles follow"),
		},
		"a CA has ended": {
			func(f *HubFacts) { f.Certificates.Add(trusting(t, now.Add(-time.Hour))) }, "certificates",
			problem("", "the CA of https://proxy has expired", "renew it; the profiles follow"),
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			test.want.Name = test.check
			for _, check := range CheckHub(healthy(t, test.change), now) {
				if check.Name == test.check {
					if diff := cmp.Diff(test.want, check); diff != "" {
						t.Errorf("check (-want +got):\n%s", diff)
					}
				} else if check.State != OK {
					t.Errorf("another check: %+v", check)
				}
			}
		})
	}
	for _, check := range CheckHub(healthy(t), now) {
		if check.State != OK {
			t.Errorf("all is well, but %+v", check)
		}
	}
}

func TestHiddenKindsAreNotVisible(t *testing.T) {
	f := HubFacts{
		Installation: Presence{Hidden: true}, Syncer: Presence{Hidden: true}, Unreadable: []string{"Namespaces"},
		Agents: AgentFacts{Hidden: true}, Tokens: TokenFacts{Hidden: true}, Certificates: CertificateFacts{Hidden: true},
	}
	f.Registration.Hidden, f.RegistrationRole.Hidden, f.Proxy.Hidden = true, true, true
	f.Profiles.Hidden, f.Addons.Hidden = true, true
	for _, check := range CheckHub(f, now) {
		if check.State != NotVisible {
			t.Errorf("%s is hidden, but %+v", check.Name, check)
		}
	}
}
