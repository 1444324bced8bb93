package spoke

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	clusterv1alpha1 "open-cluster-management.io/api/cluster/v1alpha1"

	"open-cluster-management.io/cluster-inventory-addon/internal/apitest"
	"open-cluster-management.io/cluster-inventory-addon/internal/apitest/ocmtest"
	"open-cluster-management.io/cluster-inventory-addon/internal/apitest/spoketest"
	"open-cluster-management.io/cluster-inventory-addon/pkg/spoke/property"
)

// The whole agent runs against two real API servers, as the service account and
// with the rights that are shipped. No controllers run there, so it is the agent
// that deletes claims, not garbage collection.
var (
	spokeServer = apitest.New(apitest.Spoke())
	hubServer   = apitest.New(apitest.Hub())
)

func TestMain(m *testing.M) { apitest.Main(m, spokeServer, hubServer) }

// quiet is how long nothing may happen where nothing should: twice the time for which
// reports are held back.
const quiet = time.Second

const allVersions = "v1beta1,v1alpha1"

// world is one spoke and its hub namespace, for one test.
type world struct {
	t          *testing.T
	spoke, hub *apitest.World
	wire       *apitest.Wire // what the agent sends, to both
	addon      *addonv1beta1.ManagedClusterAddOn
	opts       Options
}

// newWorld returns a spoke that serves the given versions of ClusterProperty
// (none for no definition at all) and the hub it belongs to.
func newWorld(t *testing.T, versions string) *world {
	t.Helper()
	w := &world{
		t:     t,
		spoke: spokeServer.World(t, ocmtest.Scheme()),
		hub:   hubServer.World(t, ocmtest.Scheme()),
		wire:  &apitest.Wire{},
	}
	t.Cleanup(w.clean)
	w.begin(versions)
	cluster, namespace := w.hub.Namespace("cluster", nil), w.spoke.Namespace("agent", nil)
	w.addon = ocmtest.Addon(cluster)
	w.hub.MustCreate(w.addon)
	w.opts = Options{
		Kubeconfig:             w.spoke.File("spoke.kubeconfig", w.kubeconfig(w.agentOnSpoke(namespace))),
		HubKubeconfig:          w.spoke.File("hub.kubeconfig", w.kubeconfig(w.agentOnHub(cluster))),
		ClusterName:            cluster,
		AddonUID:               string(w.addon.UID),
		InstallNamespace:       namespace,
		ClaimLimit:             20,
		HealthProbeBindAddress: freeAddress(t),
		MetricsBindAddress:     "0",
	}
	return w
}

// kubeconfig returns a kubeconfig whose requests the wire records.
func (w *world) kubeconfig(cfg *rest.Config) []byte {
	return apitest.Kubeconfig(w.t, w.wire.Proxy(w.t, cfg), "")
}

func (w *world) agentOnSpoke(namespace string) *rest.Config {
	spoketest.Grant(w.spoke, "30-agent-rbac.yaml", namespace)
	return spokeServer.User(w.t, "system:serviceaccount:"+namespace+":cluster-inventory-agent")
}

func (w *world) agentOnHub(cluster string) *rest.Config {
	user := agentByCertificate(cluster)
	rule := func(resource string, verbs ...string) rbacv1.PolicyRule {
		return rbacv1.PolicyRule{
			APIGroups: []string{addonv1beta1.GroupName}, Resources: []string{resource},
			ResourceNames: []string{"cluster-inventory"}, Verbs: verbs,
		}
	}
	name := metav1.ObjectMeta{Namespace: cluster, Name: "cluster-inventory"}
	w.hub.MustCreate(
		&rbacv1.Role{ObjectMeta: name, Rules: []rbacv1.PolicyRule{
			rule("managedclusteraddons", "list", "watch"), rule("managedclusteraddons/status", "patch"),
		}},
		&rbacv1.RoleBinding{
			ObjectMeta: name,
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: name.Name},
			Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "User", Name: user}},
		})
	return hubServer.User(w.t, user)
}

func agentByCertificate(cluster string) string {
	return "system:open-cluster-management:cluster:" + cluster + ":addon:cluster-inventory:agent:cluster-inventory"
}

// tokenOnHub creates or recreates the agent's ServiceAccount on the hub, gives it the agent's
// rights, and returns a token of it.
func (w *world) tokenOnHub(cluster string) string {
	w.t.Helper()
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: cluster, Name: "cluster-inventory-agent"}}
	if w.hub.Find(account.DeepCopy()) {
		w.hub.MustDelete(account.DeepCopy())
	} else {
		w.hub.MustMerge(
			&rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Namespace: cluster, Name: "cluster-inventory"}},
			fmt.Sprintf(`{"subjects":[{"apiGroup":%q,"kind":"User","name":"system:serviceaccount:%s:%s"}]}`,
				rbacv1.GroupName, cluster, account.Name))
	}
	w.hub.MustCreate(account)
	token := &authenticationv1.TokenRequest{}
	apitest.Must(w.t, w.hub.SubResource("token").Create(w.t.Context(), account, token))
	return token.Status.Token
}

// start runs the agent until the returned function is called or the test ends.
func (w *world) start() (stop func()) {
	w.t.Helper()
	stop = apitest.Run(w.t, func(ctx context.Context) error { return Run(ctx, w.opts) })
	w.spoke.Eventually("the agent is ready", func() string { return w.probe("readyz") })
	return stop
}

func (w *world) probe(path string) string {
	resp, err := http.Get("http://" + w.opts.HealthProbeBindAddress + "/" + path)
	if err != nil {
		return err.Error()
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode != http.StatusOK {
		return resp.Status
	}
	return ""
}

// begin makes the spoke serve these versions from a fresh CRD, or from that of an
// earlier test if it is just like it.
func (w *world) begin(versions string) {
	w.t.Helper()
	have := spoketest.CRD(w.t, "v1alpha1")
	if versions != "" && w.spoke.Find(have) {
		want := spoketest.CRD(w.t, strings.Split(versions, ",")...)
		if slices.EqualFunc(want.Spec.Versions, have.Spec.Versions, sameVersion) {
			return
		}
	}
	w.unserve()
	if versions != "" {
		w.serve(versions)
	}
}

func sameVersion(a, b apiextensionsv1.CustomResourceDefinitionVersion) bool {
	return a.Name == b.Name && a.Served == b.Served && a.Storage == b.Storage
}

// clean removes claims and properties. The agent has stopped.
func (w *world) clean() {
	w.spoke.Clear(&clusterv1alpha1.ClusterClaimList{})
	for _, version := range strings.Split(allVersions, ",") {
		w.spoke.Clear(property.NewList(version))
	}
}

// serve installs, or changes, the definition of ClusterProperty.
func (w *world) serve(versions string) {
	w.t.Helper()
	want := spoketest.CRD(w.t, strings.Split(versions, ",")...)
	have := want.DeepCopy()
	if w.spoke.Find(have) {
		have.Spec.Versions = want.Spec.Versions
		apitest.Must(w.t, w.spoke.Update(w.t.Context(), have))
	} else {
		w.spoke.MustCreate(want)
	}
	for _, version := range want.Spec.Versions {
		w.spoke.Eventually("about.k8s.io/"+version.Name+" is served", apitest.Succeeds(func() error {
			return w.spoke.List(w.t.Context(), property.NewList(version.Name))
		}))
	}
}

// unserve deletes the definition and waits until it is gone.
func (w *world) unserve() {
	w.t.Helper()
	crd := spoketest.CRD(w.t, "v1alpha1")
	w.spoke.Remove(crd)
	w.spoke.EventuallyGone(crd)
}

// edit changes a property with a merge patch.
func (w *world) edit(version, name, patch string) {
	w.t.Helper()
	obj := property.New(version)
	obj.SetName(name)
	w.spoke.MustMerge(obj, patch)
}

// claims returns all claims as name and value, ours with a star after the name.
func (w *world) claims() map[string]string {
	w.t.Helper()
	list := &clusterv1alpha1.ClusterClaimList{}
	w.spoke.MustList(list)
	claims := map[string]string{}
	for _, c := range list.Items {
		name := c.Name
		if c.Labels["app.kubernetes.io/managed-by"] == "cluster-inventory-addon" {
			name += "*"
		}
		claims[name] = c.Spec.Value
	}
	return claims
}

func (w *world) claim(name string) *clusterv1alpha1.ClusterClaim {
	w.t.Helper()
	claim := &clusterv1alpha1.ClusterClaim{ObjectMeta: metav1.ObjectMeta{Name: name}}
	w.spoke.MustGet(claim)
	return claim
}

func (w *world) eventuallyClaims(want map[string]string) {
	w.t.Helper()
	w.spoke.Eventually("the claims are right", w.claimsAre(want))
}

func (w *world) claimsStay(want map[string]string) {
	w.t.Helper()
	w.spoke.Stays(quiet, "the claims", w.claimsAre(want))
}

func (w *world) claimsAre(want map[string]string) func() string {
	return func() string { return cmp.Diff(want, w.claims()) }
}

// condition returns the report as "status reason message".
func (w *world) condition() string {
	w.t.Helper()
	addon := ocmtest.Addon(w.addon.Namespace)
	w.hub.MustGet(addon)
	c := meta.FindStatusCondition(addon.Status.Conditions, "PropertiesPublished")
	if c == nil {
		return "none"
	}
	return fmt.Sprintf("%s %s %s", c.Status, c.Reason, c.Message)
}

func (w *world) eventuallyCondition(want string) {
	w.t.Helper()
	w.hub.Eventually("the report is right", func() string { return cmp.Diff(want, w.condition()) })
}

// settle waits until the agent writes nothing any more and forgets what it wrote.
func (w *world) settle() {
	w.t.Helper()
	w.wire.Settle(w.t, apitest.Patience, quiet)
	w.wire.Reset()
}

// wrote waits until the agent has sent these writes since the last settle, in any
// order, and then no more.
func (w *world) wrote(what string, want ...string) {
	w.t.Helper()
	check := func() string {
		sent := w.wire.Sent()
		slices.Sort(sent)
		return cmp.Diff(append([]string{}, want...), sent)
	}
	w.spoke.Eventually(what, check)
	w.wire.Settle(w.t, apitest.Patience, quiet)
	if diff := check(); diff != "" {
		w.t.Fatalf("%s: writes (-want +got):\n%s", what, diff)
	}
}

// freeAddress is in this process's own part of loopback, so that no other process binds it
// first.
func freeAddress(t *testing.T) string {
	t.Helper()
	pid := os.Getpid()
	listener, err := net.Listen("tcp", fmt.Sprintf("127.%d.%d.%d:0", 240+pid>>16&7, pid>>8&255, pid&255))
	apitest.Must(t, err)
	defer func() { apitest.Must(t, listener.Close()) }()
	return listener.Addr().String()
}
