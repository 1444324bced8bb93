package faults

import (
	"cmp"
	"context"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"open-cluster-management.io/cluster-inventory-addon/internal/apitest"
	"open-cluster-management.io/cluster-inventory-addon/internal/apitest/hubtest"
	"open-cluster-management.io/cluster-inventory-addon/internal/apitest/ocmtest"
	"open-cluster-management.io/cluster-inventory-addon/test/faults/proxy"
)

// writer is what publishes the inventory in a suite: the programs behind the proxy.
type writer struct {
	// name is that of WRITER; "" is this addon.
	name string
	// stories are those that concern it.
	stories []story
	// without are the faults that it does not get.
	without []proxy.Kind
	// elects are the faults for which one of it leads, and another one stands by.
	elects []proxy.Kind
	// mayLackReference is true if a story without a reference is a result. Otherwise it fails the
	// suite.
	mayLackReference bool
	// fresh is true if every run starts it, because it keeps something of what a reset removes.
	fresh bool
	// owned are the kinds of which a run leaves objects: the first are cluster-wide.
	owned []owned
	// namespaces are those that are emptied and watched; "" has what is in none.
	namespaces []string
	// watched are the kinds that it writes, and those that consumers see.
	watched []schema.GroupVersionResource
	// crds are what its hub serves.
	crds []apitest.CRDs
	// apis are kinds whose CRD may come and go meanwhile.
	apis []api
	// upstream is a folder that "fleet upstream" has filled; "" if there is none.
	upstream string
	// user is whose rights it has.
	user string
	// programs are the files that its results depend on.
	programs func(testing.TB) []string
	// install prepares a hub for it. certificate is that of cluster-proxy.
	install func(l *lane, certificate []byte)
	// prepare creates what is there before it starts, and before the story's setup.
	prepare func(l *lane, w *world)
	// commands returns a function that returns its processes of a version, not yet started.
	commands func(l *lane, cfg *rest.Config, of version, flags ...string) func() []*exec.Cmd
	// ready reports whether the programs say that they have seen what the hub has.
	ready func(r *running, state map[string]string) bool
}

// owned are objects of a kind.
type owned struct {
	kind schema.GroupVersionKind
	only []client.ListOption
}

// allOf are all objects of some kinds.
func allOf(kinds ...schema.GroupVersionKind) []owned {
	all := make([]owned, 0, len(kinds))
	for _, kind := range kinds {
		all = append(all, owned{kind: kind})
	}
	return all
}

// onHub completes a writer that publishes on a hub with what all of these have.
func onHub(of writer) writer {
	of.owned = slices.Concat(of.owned, allOf(ownedKinds...))
	of.namespaces = slices.Concat(namespaces, fleetNames, manyNames)
	of.watched, of.apis = watchedKinds, apis
	of.crds = append(of.crds, apitest.ClusterProfile(), apitest.PlacementDecision(), apitest.ManagedServiceAccount())
	of.prepare = func(_ *lane, w *world) { w.plantForeign() }
	return of
}

// addonWriter is this addon's manager. Some stories need the folder with upstream's programs.
func addonWriter(folder string) writer {
	return onHub(writer{
		stories:  stories,
		elects:   append(slices.Clone(ofLeaders), restarted, restored),
		upstream: folder,
		owned:    ofRegistration,
		crds:     []apitest.CRDs{apitest.Hub(), apitest.AgentRevision(), apitest.ManagedProxyConfiguration()},
		user:     hubtest.User,
		programs: func(tb testing.TB) []string {
			paths, err := filepath.Glob(filepath.Join("versions", "*.patch"))
			apitest.Must(tb, err)
			paths = append(paths, hubtest.Command(tb, &rest.Config{}).Path)
			if folder != "" {
				paths = append(paths, filepath.Join(folder, "ocm"))
			}
			return paths
		},
		install: func(l *lane, certificate []byte) {
			hubtest.Install(l.hub.World, "", hubtest.AllButProgram)
			l.hub.MustCreate(gateRole())
			l.hub.MustCreate(clusterProxy(certificate)...)
			l.createNamespaces(namespaces...)
			l.awaitPolicies()
		},
		commands: func(l *lane, cfg *rest.Config, of version, flags ...string) func() []*exec.Cmd {
			first := hubtest.Command(l.tb, cfg, flags...)
			first.Path = cmp.Or(of.program, first.Path)
			return func() []*exec.Cmd {
				cmd := exec.Command(first.Path, first.Args[1:]...)
				cmd.Env = slices.Concat(first.Env, of.env)
				return []*exec.Cmd{cmd}
			}
		},
		ready: func(_ *running, state map[string]string) bool {
			for id, object := range state { // its first conditions come late
				if strings.HasSuffix(id, "/"+ocmtest.AddonName) && !strings.Contains(object, `"Degraded"`) {
					return false
				}
			}
			return true
		},
	})
}

// awaitPolicies waits until the API server can evaluate the admission policies for RoleBindings. A new one
// takes some seconds to find the kinds of their parameters, and refuses every RoleBinding until then. Those
// here only lack the parameters: if another policy refused them, too, either refusal might be reported.
func (l *lane) awaitPolicies() {
	l.tb.Helper()
	for name, namespace := range map[string]string{sourceRights: clusterNames[0], targetRights: teamA} {
		apitest.Within(l.tb, setupLimit, "policy for "+name+" is evaluated", func(ctx context.Context) error {
			right := rights(namespace, name)
			right.RoleRef = rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: name}
			right.Subjects = []rbacv1.Subject{{
				Kind: rbacv1.ServiceAccountKind, Namespace: hubtest.Namespace, Name: "cluster-inventory-manager",
			}}
			err := l.admin.Create(ctx, right, client.DryRunAll)
			if err != nil && !strings.Contains(err.Error(), "no params found") {
				return err
			}
			return nil
		})
	}
}

// createNamespaces creates namespaces that stay.
func (l *lane) createNamespaces(names ...string) {
	l.tb.Helper()
	for _, name := range names {
		l.hub.MustCreate(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}})
	}
}
