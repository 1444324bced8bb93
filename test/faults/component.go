package faults

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"open-cluster-management.io/cluster-inventory-addon/internal/apitest"
	"open-cluster-management.io/cluster-inventory-addon/test/faults/proxy"
)

// component is a program of Open Cluster Management's that runs in some stories, behind a proxy of
// its own.
type component struct {
	// name is that of its user and of its rights.
	name string
	// prefix is how the kinds of the faults of its writes begin, with a colon.
	prefix string
	// command are its first arguments.
	command []string
	// ofWrites are the faults that each of its writes has.
	ofWrites []proxy.Kind
}

// outcomes are the faults between which the manager can tell when another component has them: a write comes
// late, with or without a restart of its writer, or very late, or its writer starts again after it. It cannot
// tell with which code a write was refused.
var outcomes = []proxy.Kind{proxy.KillBefore, proxy.KillAfter, proxy.Hang, proxy.Status500}

var (
	placementController = component{
		name: "placement", prefix: "placement", command: []string{"placement", "controller"}, ofWrites: proxy.OfWrites,
	}
	addonManager = component{
		name: "addon-manager", prefix: "addon", command: []string{"addon", "manager"}, ofWrites: outcomes,
	}
	registrationController = component{
		name: "registration", prefix: "registration", command: []string{"registration", "controller"}, ofWrites: outcomes,
	}
)

// wakeEvery is how often something happens on the hub that makes the placement controller look at the Placement
// again. By itself it would do so after up to ten minutes: it forgets that a slice was not written, also because its
// own cache was old. The other components try again what failed.
const wakeEvery = 20 * time.Second

// faults are those of what the component writes.
func (c component) faults() []proxy.Kind {
	var kinds []proxy.Kind
	for _, kind := range c.ofWrites {
		kinds = append(kinds, proxy.Kind(c.prefix+":")+kind)
	}
	return kinds
}

// runs reports whether a component of Open Cluster Management's runs in the story.
func (s story) runs(of component) bool {
	return slices.ContainsFunc(s.components, func(c component) bool { return c.name == of.name })
}

// ofComponents are the faults of the components that run in the story.
func (s story) ofComponents() []proxy.Kind {
	var kinds []proxy.Kind
	for _, c := range s.components {
		kinds = append(kinds, c.faults()...)
	}
	return kinds
}

// divided returns whose fault it is, the prefix of a component or "" for the manager, and the
// fault itself.
func divided(fault proxy.Fault) (prefix string, itself proxy.Fault) {
	prefix, kind, is := strings.Cut(string(fault.Kind), ":")
	if !is {
		return "", fault
	}
	return prefix, proxy.Fault{Kind: proxy.Kind(kind), Key: fault.Key}
}

// upstream is a component that runs.
type upstream struct {
	component
	*manager
}

// upstreamFolder has Open Cluster Management's programs.
func (l *lane) upstreamFolder(tb testing.TB) string {
	tb.Helper()
	if l.writer.upstream == "" {
		tb.Fatal("the story needs -upstream, a folder with Open Cluster Management's programs")
	}
	return l.writer.upstream
}

// prepare gives a hub what stays on it for the components of a story.
func (l *lane) prepare(s story) {
	l.tb.Helper()
	if len(s.components) == 0 || l.prepared {
		return
	}
	l.prepared = true
	l.server.Install(l.tb, apitest.AddOnPlacementScore(), apitest.AddOnTemplate())
	l.createNamespaces(registrationNamespace)
	if s.large {
		l.createNamespaces(fleetNames...)
	}
}

// component returns a component of Open Cluster Management's that runs behind a proxy of its own, from an earlier
// run or from now on.
func (l *lane) component(tb testing.TB, of component) upstream {
	tb.Helper()
	if running, is := l.components[of.name]; is {
		running.forget()
		return running
	}
	folder := l.upstreamFolder(tb)
	user, known := l.users[of.name]
	if !known {
		l.installRights(filepath.Join(folder, of.name+"-rights.yaml"), of.name)
		user = l.server.User(l.tb, of.name)
		l.users[of.name] = user
	}
	l.components[of.name] = upstream{of, l.behindProxy(user, 0, func(cfg *rest.Config) func() []*exec.Cmd {
		kubeconfig := apitest.File(l.tb, "kubeconfig", apitest.Kubeconfig(l.tb, cfg, ""))
		return func() []*exec.Cmd { return []*exec.Cmd{of.process(folder, kubeconfig, freePort())} }
	})}
	return l.components[of.name]
}

// discardComponents ends the components that run, but for those that are kept.
func (l *lane) discardComponents(kept []component) {
	for name, of := range l.components {
		if !slices.ContainsFunc(kept, func(c component) bool { return c.name == name }) {
			of.end()
			delete(l.components, name)
		}
	}
}

// componentsHaveSeen reports whether the components' watches have shown them the deletion of clusters.
// If one began the next run before, it would take them for those of that run, which have the same names.
func (l *lane) componentsHaveSeen(clusters map[string]bool) bool {
	for _, of := range l.components {
		shown := deletionsShown(of.manager, "managedclusters.cluster.open-cluster-management.io")
		for name := range clusters {
			if !shown[name] {
				return false
			}
		}
	}
	return true
}

// keeps reports whether a component that runs would create an object again that is removed: the registration
// controller maintains two sets.
func (l *lane) keeps(object client.Object) bool {
	_, registers := l.components[registrationController.name]
	return registers && object.GetObjectKind().GroupVersionKind().Kind == "ManagedClusterSet" &&
		slices.Contains([]string{"default", "global"}, object.GetName())
}

// leavesAlone reports whether a fault leaves the components of Open Cluster Management as they are, so that they can
// run on: of others, their watches or their writes may not recover for minutes.
func leavesAlone(kind proxy.Kind) bool {
	return kind == proxy.None || slices.Contains(slices.Concat(proxy.OfWrites, proxy.OfEvents, proxy.OfWatches), kind)
}

// process is the component with the flags that OCM's operator gives it, but for a leader's
// election and the address of its probes.
func (c component) process(folder, kubeconfig string, port int) *exec.Cmd {
	cmd := exec.Command(filepath.Join(folder, "ocm"), slices.Concat(c.command, []string{
		"--kubeconfig=" + kubeconfig, "--namespace=" + registrationNamespace, "--disable-leader-election",
		fmt.Sprintf("--listen=127.0.0.1:%d", port),
	})...)
	cmd.Env = append(os.Environ(), olderClient...)
	cmd.Env = append(cmd.Env, "POD_NAMESPACE="+registrationNamespace)
	return cmd
}

// begin gives each component its fault, of which at most one has any.
func (r *running) begin(prefix string, itself proxy.Fault) {
	for _, c := range r.components {
		fault := proxy.Fault{Kind: proxy.None}
		if c.prefix == prefix {
			fault = itself
		}
		c.proxy.Begin(fault, c.kill)
	}
}

// wake changes an annotation of all Placements again and again, if the placement controller runs, until the
// returned function is called: so do events on a busy hub.
func (r *running) wake(tb testing.TB) (stop func()) {
	tb.Helper()
	if !r.story.runs(placementController) {
		return func() {}
	}
	ctx, cancel := context.WithCancel(tb.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for pause(ctx, wakeEvery) == nil {
			r.touchPlacements(ctx, time.Now().String()) // another value than in the run before
		}
	}()
	return func() {
		cancel()
		<-ended
	}
}

// touchPlacements changes an annotation. If that fails, the next one may do.
func (r *running) touchPlacements(ctx context.Context, value string) {
	placements := &clusterv1beta1.PlacementList{}
	_ = r.lane.admin.List(ctx, placements)
	for i := range placements.Items {
		text := fmt.Appendf(nil, `{"metadata":{"annotations":{"example.com/look":%q}}}`, value)
		_ = r.lane.admin.Patch(ctx, &placements.Items[i], client.RawPatch(types.MergePatchType, text))
	}
}

// sent are the effective writes of each component, by its prefix.
func (r *running) sent() map[string][]proxy.Key {
	sent := map[string][]proxy.Key{}
	for _, c := range r.components {
		sent[c.prefix] = effective(c.proxy.Record().Writes)
	}
	return sent
}
