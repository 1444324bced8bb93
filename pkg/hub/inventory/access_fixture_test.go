package inventory

import (
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	appsv1 "k8s.io/api/apps/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	rbacv1 "k8s.io/api/rbac/v1"
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
	clusterv1beta2 "open-cluster-management.io/api/cluster/v1beta2"
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
	servingKey       = "a-key-nobody-may-see"
)

// accessRights are the rights that the doc.go of package access lists: in the cluster,
// in cluster-proxy's namespace, and in the manager's.
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
		&rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: name},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: name},
			Subjects:   subjects,
		},
	)
	for namespace, rules := range map[string][]rbacv1.PolicyRule{proxyNamespace: proxy, managerNamespace: own} {
		at := metav1.ObjectMeta{Namespace: namespace, Name: "manager"}
		w.MustCreate(
			&rbacv1.Role{ObjectMeta: at, Rules: rules},
			&rbacv1.RoleBinding{
				ObjectMeta: at,
				RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "manager"},
				Subjects:   subjects,
			},
		)
	}
	cfg := server.User(t, name)
	addons := authorizationv1.ResourceAttributes{
		Group: addonv1beta1.GroupName, Resource: "managedclusteraddons", Name: "cluster-proxy", Verb: "list",
	}
	w.EventuallyAllowed(cfg, true, addons)
	w.EventuallyAllowed(cfg, true, authorizationv1.ResourceAttributes{
		Namespace: managerNamespace, Resource: "configmaps", Verb: "list",
	})
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

// accessWorld is a hub with cluster-proxy on it and a manager that may publish access
// providers. It has three clusters in a set that one namespace is bound to; only c1
// has cluster-proxy's addon.
type accessWorld struct {
	*world
	wire *apitest.Wire
	user *rest.Config
	stop func() // the manager

	set            *clusterv1beta2.ManagedClusterSet
	ns             string
	c1, c2, marked *clusterv1.ManagedCluster

	ca, next *certtest.Pair
	secret   *corev1.Secret

	markers *int // so far, of all subtests
}

// in returns the same world for a subtest.
func (w *accessWorld) in(t *testing.T) *accessWorld {
	sub := *w
	sub.world = w.world.in(t)
	return &sub
}

// newAccessWorld returns such a hub before its manager starts; the serving
// certificate of cluster-proxy is issued by ca. Nothing is left of it after the test.
func newAccessWorld(t *testing.T) *accessWorld {
	t.Helper()
	w := &accessWorld{world: newWorld(t, wiredHub.Config(t)), wire: &apitest.Wire{}, stop: func() {}, markers: new(int)}
	t.Cleanup(w.clear)
	for _, name := range []string{proxyNamespace, managerNamespace} {
		namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
		if !w.Find(namespace) {
			w.MustCreate(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}})
		}
	}
	w.user = asAccessManager(t, wiredHub, w.world)

	w.ca = certtest.NewCA(t, "ca", time.Now().Add(time.Hour))
	w.next = certtest.NewCA(t, "next", time.Now().Add(time.Hour).AddDate(1, 0, 0))
	w.secret = servingSecret(w.leaf(w.ca), []byte(servingKey))
	w.MustCreate(configuration("cluster-proxy"), configuration("another"), userService(), w.secret, proxyManager("false"))

	w.set = w.ExclusiveSet("s")
	w.ns = w.Namespace("team", nil)
	w.Bind(w.ns, w.set.Name)
	w.c1 = w.Cluster("c1", ocmtest.InSet(w.set.Name))
	w.c2 = w.Cluster("c2", ocmtest.InSet(w.set.Name))
	w.marked = w.Cluster("marked", ocmtest.InSet(w.set.Name))
	w.MustCreate(proxyAddon(w.c1.Name))
	return w
}

// newReachedWorld returns an accessWorld whose manager has published everything.
func newReachedWorld(t *testing.T) *accessWorld {
	t.Helper()
	w := newAccessWorld(t)
	w.start(nil)
	w.settle(w.ca.PEM())
	return w
}

// newTimedWorld is a newReachedWorld whose time passes only when a test says so. Its
// manager has run long enough to know what was missing at the start.
func newTimedWorld(t *testing.T) (*accessWorld, *testingclock.FakeClock) {
	t.Helper()
	w, now := newAccessWorld(t), testingclock.NewFakeClock(time.Now())
	w.start(now)
	w.settle(w.ca.PEM())
	now.Step(time.Minute)
	w.marker()
	w.forget()
	return w, now
}

// newRotatedWorld is a newReachedWorld after cluster-proxy's certificate was
// issued by the next CA.
func newRotatedWorld(t *testing.T) (w *accessWorld, published []byte) {
	t.Helper()
	w = newReachedWorld(t)
	published = certtest.ByAge(w.ca, w.next)
	w.setChain(w.leaf(w.next))
	w.settle(published)
	return w, published
}

// settle waits until the profiles of the three clusters are in place, c1's with this
// CA. Later writes are counted from there.
func (w *accessWorld) settle(ca []byte) {
	w.T.Helper()
	for _, c := range []*clusterv1.ManagedCluster{w.c1, w.c2, w.marked} {
		w.allInPlace(c)
	}
	w.reached(w.c1, throughProxy(ca, w.c1.Name))
	w.reached(w.c2)
	w.remembers(ca)
	w.forget()
}

// clear removes everything the next test's manager would act on.
func (w *accessWorld) clear() {
	w.stop()
	w.forget()
	clearHub(w.world)
	w.Clear(&corev1.ServiceList{}, client.InNamespace(proxyNamespace))
	w.Clear(&corev1.SecretList{}, client.InNamespace(proxyNamespace))
	w.Clear(&appsv1.DeploymentList{}, client.InNamespace(proxyNamespace))
	w.Clear(&corev1.ConfigMapList{}, client.InNamespace(managerNamespace))
	configurations := &unstructured.UnstructuredList{}
	configurations.SetGroupVersionKind(configuration("").GroupVersionKind())
	w.Clear(configurations)
	for _, namespace := range []string{proxyNamespace, managerNamespace} {
		w.Clear(&rbacv1.RoleBindingList{}, client.InNamespace(namespace))
		w.Clear(&rbacv1.RoleList{}, client.InNamespace(namespace))
	}
}

// start runs the inventory with access providers until w.stop is called, or the test
// ends. The clock is the real one if nil.
func (w *accessWorld) start(now clock.WithTicker) {
	w.T.Helper()
	if now == nil {
		now = clock.RealClock{}
	}
	t := w.T.(*testing.T)
	w.stop = startWith(t, w.wire.Tap(w.user), cacheOptions(), func(mgr manager.Manager) Options {
		gate, err := upstream.AddProxyGate(mgr, proxyNamespace, now, func(bool, bool) {})
		apitest.Must(t, err)
		providers, err := access.Add(mgr, access.Options{
			Namespace: managerNamespace,
			ClusterProxy: access.ClusterProxyOptions{
				Enabled: true, Namespace: proxyNamespace, Configuration: "cluster-proxy", Gate: gate,
			},
			Clock: now,
		})
		apitest.Must(t, err)
		return Options{Guard: allowed, Access: providers}
	})
}

// leaf is a serving certificate with its issuer.
func (w *accessWorld) leaf(issuer *certtest.Pair) []byte {
	w.T.Helper()
	return certtest.Chain(certtest.NewLeaf(w.T, issuer, proxyHost), issuer)
}

func (w *accessWorld) setChain(chain []byte) {
	w.T.Helper()
	apitest.Edit(w, w.secret, func(s *corev1.Secret) { s.Data["tls.crt"] = chain })
}

// allInPlace waits until a cluster's profile is complete and its condition reports no
// problem.
func (w *accessWorld) allInPlace(c *clusterv1.ManagedCluster) {
	w.T.Helper()
	w.whole(w.ns, c.Name)
	w.synced(c.Name)
}

// unavailable waits until a cluster's condition says why a provider is missing.
func (w *accessWorld) unavailable(c *clusterv1.ManagedCluster, why string) {
	w.T.Helper()
	w.EventuallyAddonCondition(c.Name, "ProfilesSynced", "False", "AccessUnavailable", why)
}

// announced waits for an event on the profile, for the consumers of the namespace.
func (w *accessWorld) announced(c *clusterv1.ManagedCluster, why string) {
	w.T.Helper()
	w.Eventually("an event on the profile of "+c.Name, func() string {
		events := &eventsv1.EventList{}
		w.MustList(events, client.InNamespace(w.ns))
		var got []string
		for _, event := range events.Items {
			if event.Regarding.Kind == "ClusterProfile" && event.Regarding.Name == c.Name {
				got = append(got, event.Reason+" "+event.Note)
			}
		}
		return cmp.Diff([]string{"AccessUnavailable " + why}, got)
	})
}

// reached waits until a cluster's profile has exactly these access providers.
func (w *accessWorld) reached(c *clusterv1.ManagedCluster, want ...inventoryv1alpha1.AccessProvider) {
	w.T.Helper()
	w.Eventually("the access providers of "+c.Name, func() string {
		profile := w.Profile(w.ns, c.Name)
		if profile == nil {
			return "no profile of " + c.Name
		}
		if len(want) == 0 && len(profile.Status.AccessProviders) == 0 {
			return ""
		}
		return cmp.Diff(want, profile.Status.AccessProviders)
	})
}

// remembers waits until the manager has recorded exactly these CAs of cluster-proxy.
func (w *accessWorld) remembers(ca []byte) {
	w.T.Helper()
	w.Eventually("the CA is remembered", func() string {
		state := remembered()
		if err := w.Get(w.T.Context(), client.ObjectKeyFromObject(state), state); err != nil {
			return err.Error()
		}
		return cmp.Diff(map[string]string{proxyNamespace: string(ca)}, state.Data)
	})
}

// reachedLater is reached for changes that only time brings.
func (w *accessWorld) reachedLater(
	now *testingclock.FakeClock, c *clusterv1.ManagedCluster, want ...inventoryv1alpha1.AccessProvider,
) {
	w.T.Helper()
	w.Eventually("the access providers of "+c.Name+" after a while", func() string {
		// Stepped repeatedly, since the manager may only now be setting its timer.
		now.Step(time.Second)
		return cmp.Diff(want, w.Profile(w.ns, c.Name).Status.AccessProviders, cmpopts.EquateEmpty())
	})
}

// marker waits for a change to a cluster that no test changes otherwise: all writes caused
// by earlier changes precede it.
func (w *accessWorld) marker() {
	w.T.Helper()
	*w.markers++
	value := strconv.Itoa(*w.markers)
	apitest.EditStatus(w, w.marked, func(c *clusterv1.ManagedCluster) {
		c.Status.ClusterClaims = []clusterv1.ManagedClusterClaim{ocmtest.Claim("marker", value)}
	})
	w.Eventually("the marker arrives", func() string {
		if p := w.Profile(w.ns, w.marked.Name).Status.Properties; len(p) != 1 || p[0].Value != value {
			return "the marker has not arrived"
		}
		return ""
	})
}

// wrote compares the writes since the last time, except conditions and events.
func (w *accessWorld) wrote(want ...string) {
	w.T.Helper()
	var got []string
	for _, call := range w.wire.Writes() {
		if call.Resource != "managedclusteraddons/status" && call.Resource != "events" {
			got = append(got, call.Method+" "+call.Resource)
		}
	}
	w.forget()
	if diff := cmp.Diff(want, got); diff != "" {
		w.T.Errorf("writes (-want +got):\n%s", diff)
	}
}

// forget starts the record of requests again. It first checks that the manager read no
// other Secret, and sent its key nowhere.
func (w *accessWorld) forget() {
	w.T.Helper()
	const onlyServing = "metadata.name=cluster-proxy-user-serving-cert"
	for _, call := range w.wire.Calls() {
		if strings.Contains(call.Body, servingKey) {
			w.T.Errorf("the user server's key is in %s %s", call.Method, call.Path)
		}
		if call.Resource == "secrets" &&
			(call.Method != http.MethodGet || call.Query.Get("fieldSelector") != onlyServing) {
			w.T.Errorf("%s %s %v reads more than the one Secret", call.Method, call.Path, call.Query)
		}
	}
	w.wire.Reset()
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

// proxyManager is cluster-proxy's manager, with its gate for access providers as it
// says.
func proxyManager(gate string) *appsv1.Deployment {
	labels := map[string]string{"a": "b"}
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: proxyNamespace, Name: "cluster-proxy-addon-manager"},
		Spec: appsv1.DeploymentSpec{
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec: corev1.PodSpec{Containers: []corev1.Container{{
					Name: "manager", Image: "m", Args: []string{"--feature-gates=ClusterProfileAccessProvider=" + gate},
				}}},
			},
		},
	}
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

// remembered is where the manager records the CAs it has seen of cluster-proxy.
func remembered() *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
		Namespace: managerNamespace, Name: "cluster-inventory-access-ca",
	}}
}

func directConfigMap(name string, data map[string]string) *corev1.ConfigMap {
	return &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: managerNamespace, Name: name,
			Labels: map[string]string{"inventory.open-cluster-management.io/direct-access": "true"},
		},
		Data: data,
	}
}

// providerOf is an access provider as consumers find it.
func providerOf(name, server string, ca []byte, cluster string) inventoryv1alpha1.AccessProvider {
	return inventoryv1alpha1.AccessProvider{Name: name, Cluster: clientcmdv1.Cluster{
		Server: server, CertificateAuthorityData: ca,
		Extensions: []clientcmdv1.NamedExtension{{
			Name:      "client.authentication.k8s.io/exec",
			Extension: runtime.RawExtension{Raw: []byte(`{"clusterName":"` + cluster + `"}`)},
		}},
	}}
}

func throughProxy(ca []byte, cluster string) inventoryv1alpha1.AccessProvider {
	return providerOf("open-cluster-management", "https://"+proxyHost+":9092/"+cluster, ca, cluster)
}

// uninstallConfigurations deletes the CRD of ManagedProxyConfigurations, and them with it.
func (w *accessWorld) uninstallConfigurations() {
	crd := kube.Partial(kube.CRDKind)
	crd.Name = "managedproxyconfigurations.proxy.open-cluster-management.io"
	w.MustDelete(crd)
	w.EventuallyGone(crd)
}

// installConfigurations restores them.
func (w *accessWorld) installConfigurations() {
	wiredHub.Install(w.T, apitest.ManagedProxyConfiguration())
	w.MustCreate(configuration("cluster-proxy"), configuration("another"))
}
