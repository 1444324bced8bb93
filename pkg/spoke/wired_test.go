package spoke

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	clusterv1alpha1 "open-cluster-management.io/api/cluster/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"open-cluster-management.io/cluster-inventory-addon/internal/apitest"
	"open-cluster-management.io/cluster-inventory-addon/pkg/spoke/internal/spoketest"
	"open-cluster-management.io/cluster-inventory-addon/pkg/spoke/property"
)

// The whole agent against two real API servers, as the service account and with
// the rights that are shipped. No controllers run there, so what goes is deleted by the agent,
// not by garbage collection.
var (
	spokeServer = apitest.New(apitest.Spoke())
	hubServer   = apitest.New(apitest.Hub())
)

func TestMain(m *testing.M) { apitest.Main(m, spokeServer, hubServer) }

const (
	// soon bounds what happens by itself.
	soon = 30 * time.Second

	// quiet is how long nothing may happen where nothing is to happen; it is
	// longer than the time reports settle.
	quiet = 1500 * time.Millisecond

	pollEvery = 10 * time.Millisecond
)

const allVersions = "v1beta1,v1alpha1"

// world is one spoke and its hub namespace, for one test.
type world struct {
	t          *testing.T
	spoke, hub client.Client
	addon      *addonv1beta1.ManagedClusterAddOn
	opts       Options
}

// newWorld returns a spoke that serves the given versions of ClusterProperty
// (none for no definition at all) and the hub it belongs to.
func newWorld(t *testing.T, versions string) *world {
	t.Helper()
	w := &world{t: t, spoke: newClient(t, spokeServer.Config(t)), hub: newClient(t, hubServer.Config(t))}
	t.Cleanup(w.clean)
	if versions != "" {
		w.serve(versions)
	}
	cluster, namespace := hubServer.Namespace(t, nil), spokeServer.Namespace(t, nil)
	w.addon = &addonv1beta1.ManagedClusterAddOn{ObjectMeta: metav1.ObjectMeta{Namespace: cluster, Name: "cluster-inventory"}}
	must(t, w.hub.Create(t.Context(), w.addon))
	w.opts = Options{
		Kubeconfig:             w.file("spoke.kubeconfig", spoketest.Kubeconfig(t, w.agentOnSpoke(namespace))),
		HubKubeconfig:          w.file("hub.kubeconfig", spoketest.Kubeconfig(t, w.agentOnHub(cluster))),
		ClusterName:            cluster,
		AddonUID:               string(w.addon.UID),
		InstallNamespace:       namespace,
		ClaimLimit:             20,
		HealthProbeBindAddress: freeAddress(t),
		MetricsBindAddress:     "0",
	}
	return w
}

func (w *world) agentOnSpoke(namespace string) *rest.Config {
	spoketest.Grant(w.t, w.spoke, "30-agent-rbac.yaml", namespace)
	return spokeServer.User(w.t, "system:serviceaccount:"+namespace+":cluster-inventory-agent")
}

func (w *world) agentOnHub(cluster string) *rest.Config {
	user := "system:open-cluster-management:cluster:" + cluster + ":addon:cluster-inventory:agent:cluster-inventory-agent"
	rule := func(resource string, verbs ...string) rbacv1.PolicyRule {
		return rbacv1.PolicyRule{
			APIGroups: []string{addonv1beta1.GroupName}, Resources: []string{resource},
			ResourceNames: []string{"cluster-inventory"}, Verbs: verbs,
		}
	}
	name := metav1.ObjectMeta{Namespace: cluster, Name: "cluster-inventory"}
	must(w.t, w.hub.Create(w.t.Context(), &rbacv1.Role{ObjectMeta: name, Rules: []rbacv1.PolicyRule{
		rule("managedclusteraddons", "get", "list", "watch"), rule("managedclusteraddons/status", "patch"),
	}}))
	must(w.t, w.hub.Create(w.t.Context(), &rbacv1.RoleBinding{
		ObjectMeta: name,
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: name.Name},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "User", Name: user}},
	}))
	return hubServer.User(w.t, user)
}

// start runs the agent until the returned function is called or the test ends.
func (w *world) start() (stop func()) {
	w.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	logged := &logBuffer{}
	w.t.Cleanup(func() { logged.show(w.t) })
	go func() { ended <- Run(logr.NewContext(ctx, logged.logger()), w.opts) }()
	stopped := false
	stop = func() {
		if stopped {
			return
		}
		stopped = true
		cancel()
		if err := <-ended; err != nil {
			w.t.Errorf("the agent ended with: %v", err)
		}
	}
	w.t.Cleanup(stop)
	w.eventually("the agent is ready", func() string { return w.probe("readyz") })
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

// clean takes the spoke back to where the test found it. The agent has stopped.
func (w *world) clean() {
	ctx := context.Background()
	must(w.t, w.spoke.DeleteAllOf(ctx, &clusterv1alpha1.ClusterClaim{}))
	w.unserve()
}

// serve installs, or changes, the definition of ClusterProperty.
func (w *world) serve(versions string) {
	w.t.Helper()
	want := spoketest.CRD(w.t, strings.Split(versions, ",")...)
	have := &apiextensionsv1.CustomResourceDefinition{}
	err := w.spoke.Get(w.t.Context(), client.ObjectKey{Name: want.Name}, have)
	if apierrors.IsNotFound(err) {
		must(w.t, w.spoke.Create(w.t.Context(), want))
	} else {
		must(w.t, err)
		have.Spec.Versions = want.Spec.Versions
		must(w.t, w.spoke.Update(w.t.Context(), have))
	}
	for _, version := range want.Spec.Versions {
		w.eventually("about.k8s.io/"+version.Name+" is served", func() string {
			return text(w.spoke.List(w.t.Context(), property.NewList(version.Name)))
		})
	}
}

// unserve deletes the definition and waits until it is gone.
func (w *world) unserve() {
	w.t.Helper()
	ctx := context.Background()
	crd := spoketest.CRD(w.t, "v1alpha1")
	must(w.t, client.IgnoreNotFound(w.spoke.Delete(ctx, crd)))
	w.eventually("the definition is gone", func() string {
		if err := w.spoke.Get(ctx, client.ObjectKeyFromObject(crd), crd); !apierrors.IsNotFound(err) {
			return "it is still there: " + text(err)
		}
		return ""
	})
}

func (w *world) create(obj client.Object) {
	w.t.Helper()
	must(w.t, w.spoke.Create(w.t.Context(), obj))
}

// edit changes a property with a merge patch.
func (w *world) edit(version, name, patch string) {
	w.t.Helper()
	obj := property.New(version)
	obj.SetName(name)
	must(w.t, w.spoke.Patch(w.t.Context(), obj, client.RawPatch("application/merge-patch+json", []byte(patch))))
}

func (w *world) delete(obj client.Object) {
	w.t.Helper()
	must(w.t, w.spoke.Delete(w.t.Context(), obj))
}

// claims returns what is claimed, as name=value, ours with a star.
func (w *world) claims() map[string]string {
	w.t.Helper()
	list := &clusterv1alpha1.ClusterClaimList{}
	must(w.t, w.spoke.List(context.Background(), list))
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
	claim := &clusterv1alpha1.ClusterClaim{}
	must(w.t, w.spoke.Get(w.t.Context(), client.ObjectKey{Name: name}, claim))
	return claim
}

func (w *world) eventuallyClaims(want map[string]string) {
	w.t.Helper()
	w.eventually("the claims are as they should be", func() string { return cmp.Diff(want, w.claims()) })
}

// condition returns the report as "status reason message".
func (w *world) condition() string {
	addon := &addonv1beta1.ManagedClusterAddOn{}
	if err := w.hub.Get(w.t.Context(), client.ObjectKeyFromObject(w.addon), addon); err != nil {
		return err.Error()
	}
	c := meta.FindStatusCondition(addon.Status.Conditions, "PropertiesPublished")
	if c == nil {
		return "none"
	}
	return fmt.Sprintf("%s %s %s", c.Status, c.Reason, c.Message)
}

func (w *world) eventuallyCondition(want string) {
	w.t.Helper()
	w.eventually("the report is right", func() string { return cmp.Diff(want, w.condition()) })
}

// writes returns how often claims and addon were written so far, successfully or
// not, from the API servers' own metrics.
func (w *world) writes() int {
	w.t.Helper()
	return countWrites(w.t, spokeServer.Config(w.t), "clusterclaims") + countWrites(w.t, hubServer.Config(w.t), "managedclusteraddons")
}

// settled waits until nothing is written any more and returns what writes does: an
// API server counts a write a moment after others can see it.
func (w *world) settled() int {
	w.t.Helper()
	var before int
	w.eventually("nothing is written any more", func() string {
		before = w.writes()
		err := wait.PollUntilContextTimeout(w.t.Context(), pollEvery, quiet, false, func(context.Context) (bool, error) {
			return w.writes() != before, nil
		})
		if err == nil {
			return "something was"
		}
		return ""
	})
	return before
}

// wrote fails unless there have been so many writes since before, and no more
// follow.
func (w *world) wrote(what string, before, want int) {
	w.t.Helper()
	check := func() string { return cmp.Diff(want, w.writes()-before) }
	w.eventually(what, check)
	w.staysSo(what, check)
}

// eventually waits until check has no complaint.
func (w *world) eventually(what string, check func() string) {
	w.t.Helper()
	var complaint string
	err := wait.PollUntilContextTimeout(context.Background(), pollEvery, soon, true, func(context.Context) (bool, error) {
		complaint = check()
		return complaint == "", nil
	})
	if err != nil {
		w.t.Fatalf("not within %s: %s: %s", soon, what, complaint)
	}
}

// staysSo fails if check complains at any time while it is quiet.
func (w *world) staysSo(what string, check func() string) {
	w.t.Helper()
	_ = wait.PollUntilContextTimeout(w.t.Context(), pollEvery, quiet, true, func(context.Context) (bool, error) {
		if complaint := check(); complaint != "" {
			w.t.Fatalf("did not stay: %s: %s", what, complaint)
		}
		return false, nil
	})
}

func (w *world) file(name string, content []byte) string {
	path := filepath.Join(w.t.TempDir(), name)
	must(w.t, os.WriteFile(path, content, 0o600))
	return path
}

func newClient(t *testing.T, cfg *rest.Config) client.Client {
	t.Helper()
	scheme := newScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, apiextensionsv1.AddToScheme} {
		must(t, add(scheme))
	}
	c, err := client.New(cfg, client.Options{Scheme: scheme})
	must(t, err)
	return c
}

func countWrites(t *testing.T, cfg *rest.Config, resource string) int {
	t.Helper()
	c, err := rest.UnversionedRESTClientFor(withCodec(cfg))
	must(t, err)
	metrics, err := c.Get().AbsPath("/metrics").DoRaw(t.Context())
	must(t, err)
	total := 0
	lines := bufio.NewScanner(bytes.NewReader(metrics))
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		line := lines.Text()
		if !strings.HasPrefix(line, "apiserver_request_total{") || !strings.Contains(line, `resource="`+resource+`"`) {
			continue
		}
		for _, verb := range []string{"POST", "PUT", "PATCH", "APPLY", "DELETE"} {
			if strings.Contains(line, `verb="`+verb+`"`) {
				n, err := strconv.Atoi(line[strings.LastIndex(line, " ")+1:])
				must(t, err)
				total += n
			}
		}
	}
	must(t, lines.Err())
	return total
}

func withCodec(cfg *rest.Config) *rest.Config {
	cfg.NegotiatedSerializer = clientgoscheme.Codecs.WithoutConversion()
	return cfg
}

// logBuffer keeps what an agent logs, to be shown if its test fails.
type logBuffer struct {
	mu    sync.Mutex
	lines []string
}

func (b *logBuffer) logger() logr.Logger {
	return funcr.New(func(prefix, args string) {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.lines = append(b.lines, prefix+" "+args)
	}, funcr.Options{Verbosity: 2, LogTimestamp: true})
}

func (b *logBuffer) show(t *testing.T) {
	if !t.Failed() {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	t.Logf("the agent's log:\n%s", strings.Join(b.lines, "\n"))
}

// freeAddress is of this process's own part of loopback, so that nobody takes it
// before it is bound.
func freeAddress(t *testing.T) string {
	t.Helper()
	pid := os.Getpid()
	listener, err := net.Listen("tcp", fmt.Sprintf("127.%d.%d.%d:0", 240+pid>>16&7, pid>>8&255, pid&255))
	must(t, err)
	defer func() { must(t, listener.Close()) }()
	return listener.Addr().String()
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func text(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}
