package charts

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/engine"

	"open-cluster-management.io/cluster-inventory-addon/internal/apitest"
	"open-cluster-management.io/cluster-inventory-addon/internal/apitest/hubtest"
	"open-cluster-management.io/cluster-inventory-addon/internal/apitest/ocmtest"
	"open-cluster-management.io/cluster-inventory-addon/internal/certtest"
	"open-cluster-management.io/cluster-inventory-addon/internal/manifesttest"
)

const (
	proxyNamespace = "open-cluster-management-addon"

	// roleAtProxy is the one role besides those of credentials that names Secrets:
	// TestRightsAtClusterProxy looks at it.
	roleAtProxy = "cluster-inventory-cluster-proxy"
)

// testTheManagerFindsClusterProxy with the rights that the chart gives it, and may
// read no other Secret.
func testTheManagerFindsClusterProxy(t *testing.T) {
	h := install(t)
	ca := certtest.NewCA(t, "ca", time.Now().Add(time.Hour))
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: proxyNamespace, Name: "cluster-proxy-user-serving-cert"},
	}
	chain := certtest.Chain(certtest.NewLeaf(t, ca, "cluster-proxy-addon-user."+proxyNamespace), ca)
	secret.Data = map[string][]byte{"tls.crt": chain}
	set, team := h.ExclusiveSet("set"), h.Namespace("team", nil)
	cluster := h.Cluster("cluster", ocmtest.InSet(set.Name))
	objects := []client.Object{
		&addonv1beta1.ManagedClusterAddOn{ObjectMeta: metav1.ObjectMeta{Namespace: cluster.Name, Name: "cluster-proxy"}},
		&unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "proxy.open-cluster-management.io/v1alpha1", "kind": "ManagedProxyConfiguration",
			"metadata": map[string]any{"name": "cluster-proxy"},
			"spec": map[string]any{
				"authentication": map[string]any{"signer": map[string]any{"type": "SelfSigned"}},
				"userServer":     map[string]any{},
				"proxyServer":    map[string]any{"image": "p", "namespace": proxyNamespace},
				"proxyAgent":     map[string]any{"image": "a"},
			},
		}},
		&corev1.Service{
			ObjectMeta: metav1.ObjectMeta{Namespace: proxyNamespace, Name: "cluster-proxy-addon-user"},
			Spec:       corev1.ServiceSpec{Ports: []corev1.ServicePort{{Name: "https", Port: 9092}}},
		},
		secret,
	}
	h.MustCreate(objects...)
	h.CleanUp(append(objects,
		set, h.Bind(team, set.Name), cluster, ocmtest.Addon(cluster.Name), ocmtest.OurProfile(team, cluster.Name))...)

	named := func(name string) client.ListOption { return client.MatchingFields{"metadata.name": name} }
	definitions := &metav1.PartialObjectMetadataList{}
	definitions.SetGroupVersionKind(schema.GroupVersionKind{
		Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinitionList",
	})
	// The API server learns of the roles a moment after they are created, and the
	// manager takes a refusal for an answer.
	h.Eventually("the manager has its rights", apitest.Succeeds(func() error {
		return errors.Join(
			h.manager.List(t.Context(), definitions),
			h.manager.List(t.Context(), &addonv1beta1.ManagedClusterAddOnList{}, named("cluster-proxy")),
			h.manager.List(t.Context(), &corev1.ConfigMapList{}, client.InNamespace(hubtest.Namespace)),
			h.manager.List(t.Context(), &corev1.SecretList{}, client.InNamespace(proxyNamespace), named(secret.Name)),
		)
	}))
	hubtest.Start(t, server.User(t, hubtest.User))
	h.Eventually("the profile has the provider", func() string {
		profile := h.Profile(team, cluster.Name)
		if profile == nil || len(profile.Status.AccessProviders) != 1 {
			return fmt.Sprintf("profile %+v; condition %+v", profile, h.AddonCondition(cluster.Name, "ProfilesSynced"))
		}
		provider := profile.Status.AccessProviders[0]
		return cmp.Diff([]string{"open-cluster-management", string(ca.PEM())},
			[]string{provider.Name, string(provider.Cluster.CertificateAuthorityData)})
	})
	h.EventuallyAddonCondition(cluster.Name, "ProfilesSynced", "True", "Synced",
		"Every ClusterProfile that this cluster should have is up to date.")
	// The manager remembers the CA in the chart's ConfigMap, which has no data at first.
	state := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: hubtest.Namespace, Name: "cluster-inventory-access-ca"},
	}
	h.Eventually("the CA is remembered", func() string {
		h.MustGet(state)
		return cmp.Diff(string(ca.PEM()), state.Data[proxyNamespace])
	})

	forbidden := map[string]error{
		"list Secrets there":          h.manager.List(t.Context(), &corev1.SecretList{}, client.InNamespace(proxyNamespace)),
		"list the Secret's namesakes": h.manager.List(t.Context(), &corev1.SecretList{}, named(secret.Name)),
		"list Secrets in its own namespace": h.manager.List(
			t.Context(), &corev1.SecretList{}, client.InNamespace(hubtest.Namespace),
		),
		"list addons": h.manager.List(t.Context(), &addonv1beta1.ManagedClusterAddOnList{}),
	}
	for what, err := range forbidden {
		if !apierrors.IsForbidden(err) {
			t.Errorf("the manager may %s: %v", what, err)
		}
	}
}

// TestRightsAtClusterProxy: the manager may read single objects there, and only
// those it needs.
func TestRightsAtClusterProxy(t *testing.T) {
	one := func(group, resource, name string) rbacv1.PolicyRule {
		return rbacv1.PolicyRule{
			APIGroups:     []string{group},
			Resources:     []string{resource},
			ResourceNames: []string{name},
			Verbs:         []string{"list", "watch"},
		}
	}
	deployment := one("apps", "deployments", "cluster-proxy-addon-manager")
	service := one("", "services", "cluster-proxy-addon-user")
	secret := one("", "secrets", "cluster-proxy-user-serving-cert")
	const bundle = `caBundle: "-----BEGIN CERTIFICATE-----"`

	tests := map[string]struct {
		values string
		want   []rbacv1.PolicyRule
	}{
		"by default": {want: []rbacv1.PolicyRule{deployment, service, secret}},
		"at another address": {
			values: "access: {clusterProxy: {url: https://p}}",
			want:   []rbacv1.PolicyRule{deployment, secret},
		},
		"by another CA": {
			values: "access: {clusterProxy: {" + bundle + "}}",
			want:   []rbacv1.PolicyRule{deployment, service},
		},
		"by another CA, as well": {
			values: "access: {clusterProxy: {url: https://p, " + bundle + "}}",
			want:   []rbacv1.PolicyRule{deployment},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			role := manifesttest.Find[rbacv1.Role](t, hubtest.MustRender(t, test.values), "Role", roleAtProxy)
			if diff := cmp.Diff(test.want, role.Rules); diff != "" || role.Namespace != proxyNamespace {
				t.Errorf("rules in namespace %s (-want +got):\n%s", role.Namespace, diff)
			}
		})
	}
	for _, identity := range identifyAll(hubtest.MustRender(t, "access: {clusterProxy: {enabled: false}}")) {
		if slices.Contains([]string{
			"Role " + proxyNamespace + "/" + roleAtProxy,
			"RoleBinding " + proxyNamespace + "/" + roleAtProxy,
			"ClusterRole /open-cluster-management:cluster-inventory:access",
			"ConfigMap inventory-system/cluster-inventory-access-ca",
		}, identity) {
			t.Errorf("%s exists though the manager does not use cluster-proxy", identity)
		}
	}
}

// TestTheBundleReachesTheManager as a file, and a new one restarts it: the manager
// reads it when it starts.
func TestTheBundleReachesTheManager(t *testing.T) {
	annotation := func(bundle string) string {
		objects := hubtest.MustRender(t, `access: {clusterProxy: {caBundle: "`+bundle+`"}}`)
		pod := manifesttest.Find[appsv1.Deployment](t, objects, "Deployment", "cluster-inventory-manager").Spec.Template
		config := manifesttest.Find[corev1.ConfigMap](t, objects, "ConfigMap", "cluster-inventory-access-bundle")
		if config.Data["ca.crt"] != bundle {
			t.Errorf("the ConfigMap has %q", config.Data)
		}
		if len(pod.Spec.Volumes) != 1 || pod.Spec.Volumes[0].ConfigMap.Name != config.Name {
			t.Errorf("volumes %+v", pod.Spec.Volumes)
		}
		if mounts := pod.Spec.Containers[0].VolumeMounts; len(mounts) != 1 ||
			mounts[0].MountPath != "/etc/cluster-inventory/access" {
			t.Errorf("mounts %+v", mounts)
		}
		return pod.Annotations["inventory.open-cluster-management.io/access-bundle"]
	}
	a, b := annotation("-----BEGIN CERTIFICATE-----a"), annotation("-----BEGIN CERTIFICATE-----b")
	if a == "" || a == b {
		t.Errorf("annotations %q and %q", a, b)
	}
}

// testInstallingBeforeClusterProxy: Helm cannot create a Role in a namespace that
// does not exist, so the chart leaves it out and its notes say so.
func testInstallingBeforeClusterProxy(t *testing.T) {
	w := server.World(t, ocmtest.Scheme())
	there := w.Name("proxy")
	render := func() (hasRole bool, notes string) {
		release := chartutil.ReleaseOptions{Name: "ci", Namespace: hubtest.Namespace}
		chart, values, err := hubtest.ForRelease(t, release, "access: {clusterProxy: {namespace: "+there+"}}")
		apitest.Must(t, err)
		files, err := engine.RenderWithClient(chart, values, server.Config(t))
		apitest.Must(t, err)
		const templates = "cluster-inventory/templates/"
		return strings.Contains(files[templates+"access-rbac.yaml"], "namespace: "+there), files[templates+"NOTES.txt"]
	}
	if hasRole, notes := render(); hasRole || !strings.Contains(notes, "namespace "+there+" does not exist") ||
		!strings.Contains(notes, "helm upgrade ci CHART -n "+hubtest.Namespace) {
		t.Errorf("without the namespace: has the Role: %t; notes:\n%s", hasRole, notes)
	}
	w.MustCreateIn(there)
	if hasRole, notes := render(); !hasRole || strings.Contains(notes, "does not exist") {
		t.Errorf("with the namespace: has the Role: %t; notes:\n%s", hasRole, notes)
	}
}
