package inventory

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	clientcmdv1 "k8s.io/client-go/tools/clientcmd/api/v1"
	"k8s.io/utils/clock"
	testingclock "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	inventoryv1alpha1 "sigs.k8s.io/cluster-inventory-api/apis/v1alpha1"

	"open-cluster-management.io/cluster-inventory-addon/internal/apitest"
	"open-cluster-management.io/cluster-inventory-addon/internal/apitest/ocmtest"
	"open-cluster-management.io/cluster-inventory-addon/internal/certtest"
	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/access"
	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/upstream"
	"open-cluster-management.io/cluster-inventory-addon/pkg/kube"
)

const (
	proxyNamespace   = "proxy"
	managerNamespace = "hub"
	proxyHost        = "cluster-proxy-addon-user.proxy"
)

// accessRights are those that package access lists: in the cluster, in
// cluster-proxy's namespace, and in the manager's.
func accessRights() (everywhere, proxy, own []rbacv1.PolicyRule) {
	rule := func(group, resource, name string, verbs ...string) rbacv1.PolicyRule {
		r := rbacv1.PolicyRule{APIGroups: []string{group}, Resources: []string{resource}, Verbs: verbs}
		if name != "" {
			r.ResourceNames = []string{name}
		}
		return r
	}
	everywhere = append(rights(),
		rule("addon.open-cluster-management.io", "managedclusteraddons", "cluster-proxy", "list", "watch"),
		rule("proxy.open-cluster-management.io", "managedproxyconfigurations", "", "list", "watch"))
	proxy = []rbacv1.PolicyRule{
		rule("", "services", "cluster-proxy-addon-user", "list", "watch"),
		rule("", "secrets", "cluster-proxy-user-serving-cert", "list", "watch"),
		rule("apps", "deployments", "cluster-proxy-addon-manager", "list", "watch"),
	}
	own = []rbacv1.PolicyRule{
		rule("", "configmaps", "", "list", "watch", "create"),
		rule("", "configmaps", "cluster-inventory-access-ca", "patch"),
	}
	return everywhere, proxy, own
}

// asAccessManager returns the configuration of a user with exactly these rights,
// once the API server knows of them.
func asAccessManager(t *testing.T, server *apitest.Server, w *world) *rest.Config {
	t.Helper()
	name := w.Name("manager")
	subjects := []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: name}}
	everywhere, proxy, own := accessRights()
	w.MustCreate(
		&rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: name}, Rules: everywhere},
		&rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: name}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: name}, Subjects: subjects},
	)
	for namespace, rules := range map[string][]rbacv1.PolicyRule{proxyNamespace: proxy, managerNamespace: own} {
		at := metav1.ObjectMeta{Namespace: namespace, Name: "manager"}
		w.MustCreate(
			&rbacv1.Role{ObjectMeta: at, Rules: rules},
			&rbacv1.RoleBinding{ObjectMeta: at, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "manager"}, Subjects: subjects},
		)
	}
	cfg := server.User(t, name)
	addons := authorizationv1.ResourceAttributes{
		Group: addonv1beta1.GroupName, Resource: "managedclusteraddons", Name: "cluster-proxy", Verb: "list",
	}
	w.EventuallyAllowed(cfg, true, addons)
	w.EventuallyAllowed(cfg, true, authorizationv1.ResourceAttributes{Namespace: managerNamespace, Resource: "configmaps", Verb: "list"})
	w.mayReadCertificate(cfg, true)
	return cfg
}

// mayReadCertificate waits until the user may read cluster-proxy's Secret, or no
// longer may.
func (w *world) mayReadCertificate(user *rest.Config, want bool) {
	w.T.Helper()
	w.EventuallyAllowed(user, want, authorizationv1.ResourceAttributes{
		Namespace: proxyNamespace, Resource: "secrets", Name: "cluster-proxy-user-serving-cert", Verb: "list",
	})
}

// startReaching runs the inventory with its ways in until the returned function is
// called, or the test ends.
func startReaching(t *testing.T, cfg *rest.Config, clock clock.WithTicker) (stop func()) {
	t.Helper()
	return startWith(t, cfg, cacheOptions(), func(mgr manager.Manager) Options {
		gate, err := upstream.AddProxyGate(mgr, proxyNamespace)
		if err != nil {
			t.Fatal(err)
		}
		ways, err := access.Add(mgr, access.Options{
			Namespace:    managerNamespace,
			ClusterProxy: access.ClusterProxyOptions{Enabled: true, Namespace: proxyNamespace, Configuration: "cluster-proxy", Gate: gate},
			Clock:        clock,
		})
		if err != nil {
			t.Fatal(err)
		}
		return Options{Guard: &switchGuard{}, Access: ways}
	})
}

func proxyAddon(cluster string) *addonv1beta1.ManagedClusterAddOn {
	return &addonv1beta1.ManagedClusterAddOn{ObjectMeta: metav1.ObjectMeta{Namespace: cluster, Name: "cluster-proxy"}}
}

func configuration(name string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "proxy.open-cluster-management.io/v1alpha1", "kind": "ManagedProxyConfiguration",
		"metadata": map[string]any{"name": name},
		"spec": map[string]any{
			"authentication": map[string]any{"signer": map[string]any{"type": "SelfSigned"}},
			"proxyServer":    map[string]any{"image": "p", "namespace": proxyNamespace},
			"proxyAgent":     map[string]any{"image": "a"},
			"userServer":     map[string]any{},
		},
	}}
}

func userService() *corev1.Service {
	return &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: proxyNamespace, Name: "cluster-proxy-addon-user"},
		Spec:       corev1.ServiceSpec{Ports: []corev1.ServicePort{{Name: "https", Port: 9092}}},
	}
}

func servingSecret(chain []byte, key []byte) *corev1.Secret {
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: proxyNamespace, Name: "cluster-proxy-user-serving-cert"},
		Data:       map[string][]byte{"tls.crt": chain, "tls.key": key},
	}
}

func remembered() *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: managerNamespace, Name: "cluster-inventory-access-ca"}}
}

func directConfigMap(name string, data map[string]string) *corev1.ConfigMap {
	return &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: managerNamespace, Name: name, Labels: map[string]string{"inventory.open-cluster-management.io/direct-access": "true"}},
		Data:       data,
	}
}

// providerOf is an entry as consumers are to find it.
func providerOf(name, server string, ca []byte, cluster string) inventoryv1alpha1.AccessProvider {
	return inventoryv1alpha1.AccessProvider{Name: name, Cluster: clientcmdv1.Cluster{
		Server: server, CertificateAuthorityData: ca,
		Extensions: []clientcmdv1.NamedExtension{{Name: "client.authentication.k8s.io/exec", Extension: runtime.RawExtension{Raw: []byte(`{"clusterName":"` + cluster + `"}`)}}},
	}}
}

func throughProxy(ca []byte, cluster string) inventoryv1alpha1.AccessProvider {
	return providerOf("open-cluster-management", "https://"+proxyHost+":9092/"+cluster, ca, cluster)
}

// reached waits until the profile has exactly these access providers.
func (w *world) reached(namespace, cluster string, want ...inventoryv1alpha1.AccessProvider) {
	w.T.Helper()
	w.Eventually("the access providers of "+namespace+"/"+cluster, func() string {
		profile := w.Profile(namespace, cluster)
		if profile == nil {
			return "no profile of " + cluster
		}
		if len(want) == 0 && len(profile.Status.AccessProviders) == 0 {
			return ""
		}
		return cmp.Diff(want, profile.Status.AccessProviders)
	})
}

// remembers waits until this is remembered of cluster-proxy's CA.
func (w *world) remembers(ca []byte) {
	w.T.Helper()
	w.Eventually("the CA is remembered", func() string {
		state := remembered()
		if err := w.Get(w.T.Context(), client.ObjectKeyFromObject(state), state); err != nil {
			return err.Error()
		}
		return cmp.Diff(map[string]string{proxyNamespace: string(ca)}, state.Data)
	})
}

func TestProfilesSayHowClustersAreReached(t *testing.T) {
	server := apitest.Start(t, apitest.Hub(), apitest.ClusterProfile(), apitest.ManagedProxyConfiguration())
	w := newWorld(t, server.Config(t))
	for _, namespace := range []string{proxyNamespace, managerNamespace} {
		w.MustCreate(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}})
	}
	wire := &apitest.Wire{}
	user := asAccessManager(t, server, w)
	cfg := wire.Tap(user)

	soon := time.Now().Add(time.Hour)
	ca, next := certtest.NewCA(t, "ca", soon), certtest.NewCA(t, "next", soon.AddDate(1, 0, 0))
	leaf := func(issuer *certtest.Pair) []byte {
		return certtest.Chain(certtest.NewLeaf(t, issuer, proxyHost), issuer)
	}
	secret := servingSecret(leaf(ca), []byte("a-key-nobody-may-see"))
	w.MustCreate(configuration("cluster-proxy"), configuration("another"), userService(), secret)
	setChain := func(w *world, chain []byte) {
		w.T.Helper()
		apitest.Edit(w, secret, func(s *corev1.Secret) { s.Data["tls.crt"] = chain })
	}

	set := w.ExclusiveSet("s")
	ns := w.Namespace("team", nil)
	w.Bind(ns, set.Name)
	c1, c2, marked := w.Cluster("c1", ocmtest.InSet(set.Name)), w.Cluster("c2", ocmtest.InSet(set.Name)), w.Cluster("marked", ocmtest.InSet(set.Name))
	w.MustCreate(proxyAddon(c1.Name))
	whole := t
	// The first answers about the Secret are none: profiles have to wait for it.
	asked := 0
	wire.Fail(func(call apitest.Call) apitest.Fault {
		if call.Resource != "secrets" {
			return apitest.Fault{}
		}
		if asked++; asked > 4 {
			return apitest.Fault{}
		}
		return apitest.Fault{Status: http.StatusServiceUnavailable, Reason: "ServiceUnavailable"}
	})
	stop := startReaching(whole, cfg, nil)
	inPlace := "Profiles in place in: " + ns + "."
	published := []byte(nil)
	// forget makes what was sent so far count no longer, having looked it through.
	forget := func(t *testing.T) {
		t.Helper()
		for _, call := range wire.Calls() {
			if strings.Contains(call.Body, "a-key-nobody-may-see") {
				t.Errorf("the user server's key is in %s %s", call.Method, call.Path)
			}
			if call.Resource == "secrets" && (call.Method != http.MethodGet || call.Query.Get("fieldSelector") != "metadata.name=cluster-proxy-user-serving-cert") {
				t.Errorf("%s %s %v reads more than the one Secret", call.Method, call.Path, call.Query)
			}
		}
		wire.Reset()
	}
	// wrote compares what was written since the last time, but for conditions.
	wrote := func(t *testing.T, want ...string) {
		t.Helper()
		var got []string
		for _, call := range wire.Writes() {
			if call.Resource != "managedclusteraddons/status" && call.Resource != "events" {
				got = append(got, call.Method+" "+call.Resource)
			}
		}
		forget(t)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("writes (-want +got):\n%s", diff)
		}
	}
	// marker is something that happens after what was to write nothing, to a cluster
	// to which nothing else does.
	markers := 0
	marker := func(w *world) {
		w.T.Helper()
		markers++
		apitest.EditStatus(w, marked, func(c *clusterv1.ManagedCluster) {
			c.Status.ClusterClaims = []clusterv1.ManagedClusterClaim{claim("marker", fmt.Sprint(markers))}
		})
		w.Eventually("the marker arrives", func() string {
			if p := w.Profile(ns, marked.Name).Status.Properties; len(p) != 1 || p[0].Value != fmt.Sprint(markers) {
				return "the marker has not arrived"
			}
			return ""
		})
	}

	t.Run("a profile is born with its provider in two writes", func(t *testing.T) {
		w := w.in(t)
		published = ca.PEM()
		for _, c := range []*clusterv1.ManagedCluster{c1, c2, marked} {
			w.EventuallyAddonCondition(c.Name, "ProfilesSynced", "True", "Synced", inPlace)
		}
		w.reached(ns, c1.Name, throughProxy(published, c1.Name))
		w.reached(ns, c2.Name)
		w.remembers(published)
		var profiles []string
		for _, call := range wire.Writes("clusterprofiles", "clusterprofiles/status") {
			if call.Mentions(c1.Name) {
				profiles = append(profiles, call.Method+" "+call.Resource)
			}
		}
		if diff := cmp.Diff([]string{"POST clusterprofiles", "PATCH clusterprofiles/status"}, profiles); diff != "" {
			t.Errorf("writes of one profile (-want +got):\n%s", diff)
		}
		if diff := cmp.Diff([]string{"POST configmaps"}, wire.Sent("configmaps")); diff != "" {
			t.Errorf("writes of what is remembered (-want +got):\n%s", diff)
		}
		forget(t)
	})

	t.Run("another certificate of the same CA writes nothing", func(t *testing.T) {
		w := w.in(t)
		setChain(w, leaf(ca))
		marker(w)
		wrote(t, "PATCH clusterprofiles/status")
	})

	t.Run("a cluster gets cluster-proxy, and loses it", func(t *testing.T) {
		w := w.in(t)
		w.MustCreate(proxyAddon(c2.Name))
		w.reached(ns, c2.Name, throughProxy(published, c2.Name))
		wrote(t, "PATCH clusterprofiles/status")
		// It is not gone yet, and counts no longer.
		apitest.Edit(w, proxyAddon(c2.Name), func(a *addonv1beta1.ManagedClusterAddOn) { a.Finalizers = []string{"example.com/test"} })
		w.MustDelete(proxyAddon(c2.Name))
		w.reached(ns, c2.Name)
		apitest.Edit(w, proxyAddon(c2.Name), func(a *addonv1beta1.ManagedClusterAddOn) { a.Finalizers = nil })
		marker(w)
		wrote(t, "PATCH clusterprofiles/status", "PATCH clusterprofiles/status")
	})

	t.Run("a new CA is published beside the old one with one write", func(t *testing.T) {
		w := w.in(t)
		published = certtest.ByAge(ca, next)
		setChain(w, leaf(next))
		w.reached(ns, c1.Name, throughProxy(published, c1.Name))
		w.remembers(published)
		marker(w)
		if got := len(wire.Writes("clusterprofiles/status")); got != 2 {
			t.Errorf("%d patches of profiles, want one and the marker", got)
		}
		if diff := cmp.Diff([]string{"PATCH configmaps"}, wire.Sent("configmaps")); diff != "" {
			t.Errorf("writes of what is remembered (-want +got):\n%s", diff)
		}
		forget(t)
	})

	t.Run("a restart writes nothing", func(t *testing.T) {
		w := w.in(t)
		w.EventuallyAddonCondition(c1.Name, "ProfilesSynced", "True", "Synced", inPlace)
		stop()
		forget(t)
		stop = startReaching(whole, cfg, nil)
		// The new manager has settled when what happens after its start arrives.
		late := w.Cluster("late", ocmtest.InSet(set.Name))
		w.EventuallyAddonCondition(late.Name, "ProfilesSynced", "True", "Synced", inPlace)
		for _, call := range wire.Writes() {
			if call.Resource != "events" && !call.Mentions(late.Name) {
				t.Errorf("wrote %s %s: %s", call.Method, call.Path, call.Body)
			}
		}
		forget(t)
	})

	t.Run("the old CA is forgotten at once when the administrator says so", func(t *testing.T) {
		w := w.in(t)
		published = next.PEM()
		w.MustDelete(remembered())
		w.reached(ns, c1.Name, throughProxy(published, c1.Name))
		w.remembers(published)
	})

	for name, ground := range map[string]struct {
		take, give func(w *world)
		message    string
	}{
		"the certificate": {
			take:    func(w *world) { setChain(w, []byte("no certificate")) },
			give:    func(w *world) { setChain(w, leaf(next)) },
			message: "Secret proxy/cluster-proxy-user-serving-cert has no certificate in tls.crt",
		},
		"the Service": {
			take:    func(w *world) { w.MustDelete(userService()) },
			give:    func(w *world) { w.MustCreate(userService()) },
			message: "Service proxy/cluster-proxy-addon-user is missing",
		},
		"the user server's configuration": {
			take: func(w *world) {
				apitest.Edit(w, configuration("cluster-proxy"), func(c *unstructured.Unstructured) { unstructured.RemoveNestedField(c.Object, "spec", "userServer") })
			},
			give: func(w *world) {
				apitest.Edit(w, configuration("cluster-proxy"), func(c *unstructured.Unstructured) {
					_ = unstructured.SetNestedMap(c.Object, map[string]any{}, "spec", "userServer")
				})
			},
			message: `ManagedProxyConfiguration "cluster-proxy" has no spec.userServer`,
		},
		"the one configuration of two": {
			take:    func(w *world) { w.MustDelete(configuration("cluster-proxy")) },
			give:    func(w *world) { w.MustCreate(configuration("cluster-proxy")) },
			message: `there is no ManagedProxyConfiguration "cluster-proxy", only others (another), which are not looked at`,
		},
		"the API": {
			take: func(w *world) {
				crd := kube.Partial(kube.CRDKind)
				crd.Name = "managedproxyconfigurations.proxy.open-cluster-management.io"
				w.MustDelete(crd)
				w.Eventually("the CRD is gone", func() string {
					if err := w.Get(w.T.Context(), client.ObjectKeyFromObject(crd), kube.Partial(kube.CRDKind)); !apierrors.IsNotFound(err) {
						return fmt.Sprintf("the CRD is still there: %v", err)
					}
					return ""
				})
			},
			give: func(w *world) {
				server.Install(w.T, apitest.ManagedProxyConfiguration())
				w.MustCreate(configuration("cluster-proxy"), configuration("another"))
			},
			message: "the hub serves no ManagedProxyConfiguration: cluster-proxy is not installed on it",
		},
	} {
		t.Run("without "+name+" the provider is withdrawn", func(t *testing.T) {
			w := w.in(t)
			ground.take(w)
			w.reached(ns, c1.Name)
			w.EventuallyAddonCondition(c1.Name, "ProfilesSynced", "False", "AccessUnavailable", `Access provider "open-cluster-management" is not published: `+ground.message+`. `+inPlace)
			w.EventuallyAddonCondition(c2.Name, "ProfilesSynced", "True", "Synced", inPlace)
			ground.give(w)
			w.reached(ns, c1.Name, throughProxy(published, c1.Name))
			w.EventuallyAddonCondition(c1.Name, "ProfilesSynced", "True", "Synced", inPlace)
		})
	}

	t.Run("others' entries stay as they are, behind ours", func(t *testing.T) {
		w := w.in(t)
		forget(t)
		theirs := inventoryv1alpha1.AccessProvider{Name: "gke", Cluster: clientcmdv1.Cluster{Server: "https://gke", ProxyURL: "http://p"}}
		foreign := inventoryv1alpha1.AccessProvider{Name: "direct", Cluster: clientcmdv1.Cluster{Server: "https://somewhere", TLSServerName: "else"}}
		apitest.EditStatus(w, w.Profile(ns, c1.Name), func(p *inventoryv1alpha1.ClusterProfile) {
			p.Status.AccessProviders = append([]inventoryv1alpha1.AccessProvider{theirs, foreign}, p.Status.AccessProviders...)
		})
		w.reached(ns, c1.Name, throughProxy(published, c1.Name), theirs, foreign)
		wrote(t, "PATCH clusterprofiles/status")
		apitest.EditStatus(w, w.Profile(ns, c1.Name), func(p *inventoryv1alpha1.ClusterProfile) {
			p.Status.AccessProviders[0].Cluster.Server, p.Status.AccessProviders[0].Cluster.CertificateAuthorityData = "https://attacker", nil
		})
		w.reached(ns, c1.Name, throughProxy(published, c1.Name), theirs, foreign)
		apitest.EditStatus(w, w.Profile(ns, c1.Name), func(p *inventoryv1alpha1.ClusterProfile) { p.Status.AccessProviders = p.Status.AccessProviders[:1] })
		marker(w)
		forget(t)
	})

	t.Run("a cluster is reached directly when the administrator says how", func(t *testing.T) {
		w := w.in(t)
		spoke := certtest.NewCA(t, "spoke", soon)
		text := "server: https://c2.example.com:6443\ncertificateAuthority: |\n  " + strings.ReplaceAll(strings.TrimSpace(string(spoke.PEM())), "\n", "\n  ") + "\n"
		direct := providerOf("direct", "https://c2.example.com:6443", spoke.PEM(), c2.Name)
		here := directConfigMap("direct", map[string]string{c2.Name: text})
		w.MustCreate(here)
		w.reached(ns, c2.Name, direct)
		wrote(t, "PATCH clusterprofiles/status")
		w.MustCreate(proxyAddon(c2.Name))
		w.reached(ns, c2.Name, throughProxy(published, c2.Name), direct)
		w.MustDelete(proxyAddon(c2.Name))
		w.reached(ns, c2.Name, direct)

		twice := directConfigMap("twice", map[string]string{c2.Name: text, c1.Name: "fromManagedCluster: true"})
		w.MustCreate(twice)
		w.reached(ns, c2.Name)
		w.EventuallyAddonCondition(c2.Name, "ProfilesSynced", "False", "AccessUnavailable", `Access provider "direct" is not published: more than one ConfigMap has it: hub/direct, hub/twice. `+inPlace)
		w.EventuallyAddonCondition(c1.Name, "ProfilesSynced", "False", "AccessUnavailable", `Access provider "direct" is not published: the ManagedCluster has no spec.managedClusterClientConfigs, as ConfigMap hub/twice wants it. `+inPlace)

		apitest.Edit(w, c1, func(c *clusterv1.ManagedCluster) {
			c.Spec.ManagedClusterClientConfigs = []clusterv1.ClientConfig{{URL: "http://insecure", CABundle: spoke.PEM()}, {URL: "https://unverified"}}
		})
		w.EventuallyAddonCondition(c1.Name, "ProfilesSynced", "False", "AccessUnavailable", `Access provider "direct" is not published: no entry of the ManagedCluster's spec.managedClusterClientConfigs has both an https URL and a usable caBundle, as ConfigMap hub/twice wants it. `+inPlace)
		apitest.Edit(w, c1, func(c *clusterv1.ManagedCluster) {
			c.Spec.ManagedClusterClientConfigs = append(c.Spec.ManagedClusterClientConfigs, clusterv1.ClientConfig{URL: "https://c1.example.com", CABundle: spoke.PEM()})
		})
		w.reached(ns, c1.Name, throughProxy(published, c1.Name), providerOf("direct", "https://c1.example.com", spoke.PEM(), c1.Name))
		w.EventuallyAddonCondition(c1.Name, "ProfilesSynced", "True", "Synced", inPlace)

		apitest.Edit(w, here, func(m *corev1.ConfigMap) { m.Data[c2.Name] = "server: http://c2.example.com" })
		w.MustDelete(twice)
		w.reached(ns, c1.Name, throughProxy(published, c1.Name))
		w.EventuallyAddonCondition(c2.Name, "ProfilesSynced", "False", "AccessUnavailable", `Access provider "direct" is not published: what ConfigMap hub/direct has under "`+c2.Name+`" needs server and certificateAuthority, or fromManagedCluster: true. `+inPlace)
		w.MustDelete(here)
		w.EventuallyAddonCondition(c2.Name, "ProfilesSynced", "True", "Synced", inPlace)
		w.reached(ns, c2.Name)
		marker(w)
		forget(t)
	})

	t.Run("while cluster-proxy writes its entries itself they are its own", func(t *testing.T) {
		w := w.in(t)
		labels := map[string]string{"a": "b"}
		upstream := &appsv1.Deployment{
			ObjectMeta: metav1.ObjectMeta{Namespace: proxyNamespace, Name: "cluster-proxy-addon-manager"},
			Spec: appsv1.DeploymentSpec{
				Selector: &metav1.LabelSelector{MatchLabels: labels},
				Template: corev1.PodTemplateSpec{
					ObjectMeta: metav1.ObjectMeta{Labels: labels},
					Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "manager", Image: "m", Args: []string{"--feature-gates=ClusterProfileAccessProvider=true"}}}},
				},
			},
		}
		w.MustCreate(upstream)
		w.EventuallyAddonCondition(c1.Name, "ProfilesSynced", "False", "AccessUnavailable", `Access provider "open-cluster-management" is left as it is: cluster-proxy writes it itself, because Deployment proxy/cluster-proxy-addon-manager has the feature gate for it on; turn that off to let this addon write it. `+inPlace)
		theirs := throughProxy([]byte("THEIRS"), c1.Name)
		apitest.EditStatus(w, w.Profile(ns, c1.Name), func(p *inventoryv1alpha1.ClusterProfile) {
			p.Status.AccessProviders = []inventoryv1alpha1.AccessProvider{theirs}
		})
		apitest.EditStatus(w, w.Profile(ns, c2.Name), func(p *inventoryv1alpha1.ClusterProfile) {
			p.Status.AccessProviders = []inventoryv1alpha1.AccessProvider{throughProxy([]byte("THEIRS"), c2.Name)}
		})
		marker(w)
		wrote(t, "PATCH clusterprofiles/status")
		w.reached(ns, c1.Name, theirs)

		apitest.Edit(w, upstream, func(d *appsv1.Deployment) {
			d.Spec.Template.Spec.Containers[0].Args = []string{"--feature-gates=ClusterProfileAccessProvider=false"}
		})
		w.reached(ns, c1.Name, throughProxy(published, c1.Name))
		w.reached(ns, c2.Name)
		w.EventuallyAddonCondition(c1.Name, "ProfilesSynced", "True", "Synced", inPlace)
		wrote(t, "PATCH clusterprofiles/status", "PATCH clusterprofiles/status")
	})

	t.Run("without rights on the Secret entries stay, and profiles are made all the same", func(t *testing.T) {
		w := w.in(t)
		stop()
		role := &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Namespace: proxyNamespace, Name: "manager"}}
		var before []rbacv1.PolicyRule
		apitest.Edit(w, role, func(r *rbacv1.Role) { before, r.Rules = r.Rules, append(r.Rules[:1:1], r.Rules[2]) })
		w.mayReadCertificate(user, false)
		forget(t)
		stop = startReaching(whole, cfg, nil)
		c3 := w.Cluster("c3", ocmtest.InSet(set.Name))
		w.MustCreate(proxyAddon(c3.Name))
		const why = `Access provider "open-cluster-management" is left as it is: Secret proxy/cluster-proxy-user-serving-cert may not be read by the manager: its rights are missing. `
		w.EventuallyAddonCondition(c3.Name, "ProfilesSynced", "False", "AccessUnavailable", why+inPlace)
		w.EventuallyAddonCondition(c1.Name, "ProfilesSynced", "False", "AccessUnavailable", why+inPlace)
		w.reached(ns, c1.Name, throughProxy(published, c1.Name))
		w.reached(ns, c3.Name)
		wrote(t, "POST clusterprofiles", "PATCH clusterprofiles/status")

		apitest.Edit(w, role, func(r *rbacv1.Role) { r.Rules = before })
		w.reached(ns, c3.Name, throughProxy(published, c3.Name))
		w.EventuallyAddonCondition(c1.Name, "ProfilesSynced", "True", "Synced", inPlace)
		wrote(t, "PATCH clusterprofiles/status")
	})

	t.Run("a CA is withdrawn when it expires", func(t *testing.T) {
		w := w.in(t)
		stop()
		now := testingclock.NewFakeClock(time.Now())
		brief := certtest.NewCA(t, "brief", now.Now().Add(30*time.Minute))
		stop = startReaching(whole, cfg, now)
		setChain(w, certtest.Chain(certtest.NewLeaf(t, brief, proxyHost), brief))
		published = certtest.ByAge(next, brief)
		w.reached(ns, c1.Name, throughProxy(published, c1.Name))
		w.remembers(published)
		marker(w)
		now.SetTime(brief.Certificate.NotAfter)
		setChain(w, leaf(next))
		marker(w)
		w.reached(ns, c1.Name, throughProxy(published, c1.Name))
		w.Eventually("the expired CA is withdrawn", func() string {
			// More than once: the manager may be setting its timer just now.
			if now.Since(brief.Certificate.NotAfter) < time.Hour {
				now.Step(time.Minute)
			}
			return cmp.Diff([]inventoryv1alpha1.AccessProvider{throughProxy(next.PEM(), c1.Name)}, w.Profile(ns, c1.Name).Status.AccessProviders)
		})
	})
	forget(t)
}
