package charts

import (
	"context"
	"errors"
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
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/klog/v2"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/engine"

	"open-cluster-management.io/cluster-inventory-addon/internal/apitest"
	"open-cluster-management.io/cluster-inventory-addon/internal/certtest"
	"open-cluster-management.io/cluster-inventory-addon/internal/manifesttest"
	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/access"
	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/upstream"
)

const (
	proxyNamespace = "open-cluster-management-addon"

	// roleAtProxy is the one role beside those of credentials that names Secrets:
	// TestRightsAtClusterProxy looks at it.
	roleAtProxy = "cluster-inventory-cluster-proxy"
)

// TestTheManagerFindsClusterProxy with the rights that the chart gives it, and may
// read no other Secret.
func TestTheManagerFindsClusterProxy(t *testing.T) {
	server := apitest.Start(t, apitest.Hub(), apitest.ClusterProfile(), apitest.ManagedProxyConfiguration())
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, addonv1beta1.Install, clusterv1.Install} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	c, err := client.New(server.Config(t), client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	create := func(objects ...client.Object) {
		t.Helper()
		for _, object := range objects {
			if err := c.Create(t.Context(), object); err != nil {
				t.Fatalf("creating %T %s: %v", object, object.GetName(), err)
			}
		}
	}
	ca := certtest.NewCA(t, "ca", time.Now().Add(time.Hour))
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: proxyNamespace, Name: "cluster-proxy-user-serving-cert"}}
	secret.Data = map[string][]byte{"tls.crt": certtest.Chain(certtest.NewLeaf(t, ca, "cluster-proxy-addon-user."+proxyNamespace), ca)}
	create(
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}},
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: proxyNamespace}},
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "c1"}},
		&addonv1beta1.ManagedClusterAddOn{ObjectMeta: metav1.ObjectMeta{Namespace: "c1", Name: "cluster-proxy"}},
		&unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "proxy.open-cluster-management.io/v1alpha1", "kind": "ManagedProxyConfiguration", "metadata": map[string]any{"name": "cluster-proxy"},
			"spec": map[string]any{
				"authentication": map[string]any{"signer": map[string]any{"type": "SelfSigned"}}, "userServer": map[string]any{},
				"proxyServer": map[string]any{"image": "p", "namespace": proxyNamespace}, "proxyAgent": map[string]any{"image": "a"},
			},
		}},
		&corev1.Service{
			ObjectMeta: metav1.ObjectMeta{Namespace: proxyNamespace, Name: "cluster-proxy-addon-user"},
			Spec:       corev1.ServiceSpec{Ports: []corev1.ServicePort{{Name: "https", Port: 9092}}},
		},
		secret,
	)
	for _, object := range mustRender(t, "") {
		if slices.Contains([]string{"Role", "RoleBinding", "ClusterRole", "ClusterRoleBinding", "ConfigMap"}, object.GetKind()) {
			create(object)
		}
	}

	cfg := server.User(t, serviceAccount)
	mgr, err := manager.New(cfg, manager.Options{Scheme: scheme, Logger: klog.Background(), Metrics: metricsserver.Options{BindAddress: "0"}})
	if err != nil {
		t.Fatal(err)
	}
	manager, err := client.New(cfg, client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	named := func(name string) client.ListOption { return client.MatchingFields{"metadata.name": name} }
	definitions := &metav1.PartialObjectMetadataList{}
	definitions.SetGroupVersionKind(schema.GroupVersionKind{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinitionList"})
	// The API server learns of the roles a moment after they are made. What is refused
	// before counts as known.
	var refused error
	err = wait.PollUntilContextTimeout(t.Context(), 20*time.Millisecond, patience, true, func(ctx context.Context) (bool, error) {
		refused = errors.Join(
			manager.List(ctx, definitions),
			manager.List(ctx, &addonv1beta1.ManagedClusterAddOnList{}, named("cluster-proxy")),
			manager.List(ctx, &corev1.ConfigMapList{}, client.InNamespace(namespace)),
			manager.List(ctx, &corev1.SecretList{}, client.InNamespace(proxyNamespace), named(secret.Name)),
		)
		return refused == nil, nil
	})
	if err != nil {
		t.Fatal(refused)
	}
	gate, err := upstream.AddProxyGate(mgr, proxyNamespace)
	if err != nil {
		t.Fatal(err)
	}
	ways, err := access.Add(mgr, access.Options{
		Namespace:    namespace,
		ClusterProxy: access.ClusterProxyOptions{Enabled: true, Namespace: proxyNamespace, Configuration: "cluster-proxy", Gate: gate},
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- mgr.Start(ctx) }()
	defer func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("manager: %v", err)
		}
	}()
	if err := ways.WaitForSync(t.Context()); err != nil {
		t.Fatal(err)
	}
	decision := ways.Of("c1")
	if decision.Proxy.Provider == nil || len(decision.Problems) > 0 {
		t.Fatalf("decision %+v", decision)
	}
	// The chart's ConfigMap without data is what it remembers in.
	err = wait.PollUntilContextTimeout(t.Context(), 20*time.Millisecond, patience, true, func(ctx context.Context) (bool, error) {
		state := &corev1.ConfigMap{}
		err := c.Get(ctx, client.ObjectKey{Namespace: namespace, Name: "cluster-inventory-access-ca"}, state)
		return state.Data[proxyNamespace] == string(ca.PEM()), err
	})
	if err != nil {
		t.Errorf("the CA is not remembered: %v", err)
	}

	forbidden := map[string]error{
		"list Secrets there":                manager.List(t.Context(), &corev1.SecretList{}, client.InNamespace(proxyNamespace)),
		"list the Secret's namesakes":       manager.List(t.Context(), &corev1.SecretList{}, named(secret.Name)),
		"list Secrets of its own namespace": manager.List(t.Context(), &corev1.SecretList{}, client.InNamespace(namespace)),
		"list addons":                       manager.List(t.Context(), &addonv1beta1.ManagedClusterAddOnList{}),
	}
	for what, err := range forbidden {
		if !apierrors.IsForbidden(err) {
			t.Errorf("the manager may %s: %v", what, err)
		}
	}
}

// TestRightsAtClusterProxy: the manager may read single objects there, and of
// these only those it needs.
func TestRightsAtClusterProxy(t *testing.T) {
	one := func(group, resource, name string) rbacv1.PolicyRule {
		return rbacv1.PolicyRule{APIGroups: []string{group}, Resources: []string{resource}, ResourceNames: []string{name}, Verbs: []string{"list", "watch"}}
	}
	deployment := one("apps", "deployments", "cluster-proxy-addon-manager")
	service := one("", "services", "cluster-proxy-addon-user")
	secret := one("", "secrets", "cluster-proxy-user-serving-cert")
	const bundle = `caBundle: "-----BEGIN CERTIFICATE-----"`

	tests := map[string]struct {
		values string
		want   []rbacv1.PolicyRule
	}{
		"by default":             {want: []rbacv1.PolicyRule{deployment, service, secret}},
		"at another address":     {values: "access: {clusterProxy: {url: https://p}}", want: []rbacv1.PolicyRule{deployment, secret}},
		"by another CA":          {values: "access: {clusterProxy: {" + bundle + "}}", want: []rbacv1.PolicyRule{deployment, service}},
		"by another CA, as well": {values: "access: {clusterProxy: {url: https://p, " + bundle + "}}", want: []rbacv1.PolicyRule{deployment}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			role := manifesttest.Find[rbacv1.Role](t, mustRender(t, test.values), "Role", roleAtProxy)
			if diff := cmp.Diff(test.want, role.Rules); diff != "" || role.Namespace != proxyNamespace {
				t.Errorf("rules in namespace %s (-want +got):\n%s", role.Namespace, diff)
			}
		})
	}
	for _, identity := range identifyAll(mustRender(t, "access: {clusterProxy: {enabled: false}}")) {
		if slices.Contains([]string{
			"Role " + proxyNamespace + "/" + roleAtProxy, "RoleBinding " + proxyNamespace + "/" + roleAtProxy,
			"ClusterRole /open-cluster-management:cluster-inventory:access", "ConfigMap inventory-system/cluster-inventory-access-ca",
		}, identity) {
			t.Errorf("%s is there though cluster-proxy is not looked at", identity)
		}
	}
}

// TestTheBundleReachesTheManager as a file, and a new one as a new Pod: the
// manager reads it when it starts.
func TestTheBundleReachesTheManager(t *testing.T) {
	annotation := func(bundle string) string {
		objects := mustRender(t, `access: {clusterProxy: {caBundle: "`+bundle+`"}}`)
		pod := manifesttest.Find[appsv1.Deployment](t, objects, "Deployment", "cluster-inventory-manager").Spec.Template
		config := manifesttest.Find[corev1.ConfigMap](t, objects, "ConfigMap", "cluster-inventory-access-bundle")
		if config.Data["ca.crt"] != bundle {
			t.Errorf("the ConfigMap has %q", config.Data)
		}
		if len(pod.Spec.Volumes) != 1 || pod.Spec.Volumes[0].ConfigMap.Name != config.Name {
			t.Errorf("volumes %+v", pod.Spec.Volumes)
		}
		if mounts := pod.Spec.Containers[0].VolumeMounts; len(mounts) != 1 || mounts[0].MountPath != "/etc/cluster-inventory/access" {
			t.Errorf("mounts %+v", mounts)
		}
		return pod.Annotations["inventory.open-cluster-management.io/access-bundle"]
	}
	a, b := annotation("-----BEGIN CERTIFICATE-----a"), annotation("-----BEGIN CERTIFICATE-----b")
	if a == "" || a == b {
		t.Errorf("annotations %q and %q", a, b)
	}
}

// TestInstallingBeforeClusterProxy: Helm cannot make a Role in a namespace that is
// not there, so it is left out then, and said.
func TestInstallingBeforeClusterProxy(t *testing.T) {
	c, err := client.New(hub.Config(t), client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	// A namespace of the test's own: it can be made on this hub, but not removed.
	const there = "proxy-of-access-test"
	render := func() (hasRole bool, notes string) {
		chart := load(t)
		values, err := chartutil.ToRenderValues(chart, map[string]any{"access": map[string]any{"clusterProxy": map[string]any{"namespace": there}}},
			chartutil.ReleaseOptions{Name: "ci", Namespace: namespace}, chartutil.DefaultCapabilities)
		if err != nil {
			t.Fatal(err)
		}
		files, err := engine.RenderWithClient(chart, values, hub.Config(t))
		if err != nil {
			t.Fatal(err)
		}
		return strings.Contains(files["cluster-inventory/templates/access-rbac.yaml"], "namespace: "+there), files["cluster-inventory/templates/NOTES.txt"]
	}
	if hasRole, notes := render(); hasRole || !strings.Contains(notes, "namespace "+there+" is not there") || !strings.Contains(notes, "helm upgrade ci CHART -n "+namespace) {
		t.Errorf("without the namespace: has the Role: %t; notes:\n%s", hasRole, notes)
	}
	if err := c.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: there}}); err != nil && !apierrors.IsAlreadyExists(err) {
		t.Fatal(err)
	}
	if hasRole, notes := render(); !hasRole || strings.Contains(notes, "is not there") {
		t.Errorf("with the namespace: has the Role: %t; notes:\n%s", hasRole, notes)
	}
}
