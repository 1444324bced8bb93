package faults

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"slices"
	"sync"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"open-cluster-management.io/cluster-inventory-addon/internal/apitest"
	"open-cluster-management.io/cluster-inventory-addon/internal/apitest/ocmtest"
	"open-cluster-management.io/cluster-inventory-addon/test/faults/proxy"
)

const (
	// resetLimit bounds the removal of what a run has left.
	resetLimit = 5 * time.Minute
	// setupLimit bounds the wait for the state before a story's faults.
	setupLimit = 3 * time.Minute
	// still is for how long nothing may be written for a state to count as reached.
	still = time.Second
	// quiet is for how long nothing may be written after that.
	quiet = 3 * time.Second
	// starting is the same where nothing says what to wait for and a manager has just started: what may
	// only be missing from its caches counts as missing after ten seconds.
	starting = 12 * time.Second
	// revoking is how long a manager may take to remove its rights itself. If they were taken from it, it would
	// ask for them again, perhaps in the next run.
	revoking = 2 * time.Second
	// catchingUp is how long a manager may take to see which profiles were removed. If it began the next run
	// before, it would take them for those of that run, which have the same names.
	catchingUp = 10 * time.Second
	// poll is how often states are compared.
	poll = 100 * time.Millisecond
)

// lane is a hub on which one run follows another.
type lane struct {
	// certificate is that of cluster-proxy.
	certificate []byte
	// folder has the files of programs that read some.
	folder string

	server  *apitest.Server
	admin   client.Client
	writer  writer
	hub     *ocmtest.Hub
	user    *rest.Config // the writer's
	watcher *watcher
	unwatch context.CancelFunc
	gate    *gate // of the hub's client
	sight   *gate // of the watcher: refused, it would look again only after half a minute

	// tb is the test that owns the lane.
	tb testing.TB
	// atomic is true while the hub has ClusterProfiles with atomic lists.
	atomic bool
	// manager runs from one run to the next; nil if the next run must start one.
	manager *manager
	// components are those of Open Cluster Management's that run from one run to the next, by name.
	components map[string]upstream
	// left is the last run if the next one of its story can begin with what it has left on the hub; nil if not.
	left *running
	// users are those of these components that have run, by name.
	users map[string]*rest.Config
	// prepared is true if the hub has what these components need.
	prepared bool
	// converts is true if the hub serves addons as Open Cluster Management's does, in two versions.
	converts bool
	// spoiled is true if the next run needs a new hub.
	spoiled bool
	// program is what runs as the manager from the next start; "" is that of this tree.
	program string
}

// newLane starts a hub for a writer, which ends with the test. certificate is that of
// cluster-proxy.
func newLane(tb testing.TB, of writer, certificate []byte) *lane {
	tb.Helper()
	return newLaneThat(tb, of, certificate, false)
}

// newLaneThat is newLane, perhaps of a hub that converts addons.
func newLaneThat(tb testing.TB, of writer, certificate []byte, converts bool) *lane {
	tb.Helper()
	server := apitest.Start(tb, of.crds...)
	l := &lane{
		tb: tb, server: server, writer: of, user: server.User(tb, of.user), gate: &gate{}, sight: &gate{},
		certificate: certificate, folder: tb.TempDir(), converts: converts,
		components: map[string]upstream{}, users: map[string]*rest.Config{},
	}
	if converts {
		l.convert()
	}
	cfg := server.Config(tb)
	cfg.Wrap(l.gate.through)
	l.hub = ocmtest.New(tb, cfg)
	l.admin = l.hub.Client
	of.install(l, certificate)
	l.watch()
	return l
}

// watch starts a watcher, in place of one that runs: after etcd was restored, its informers may show
// an older future for minutes.
func (l *lane) watch() {
	l.tb.Helper()
	if l.unwatch != nil {
		l.unwatch()
	}
	var ctx context.Context
	ctx, l.unwatch = context.WithCancel(context.WithoutCancel(l.tb.Context()))
	l.tb.Cleanup(l.unwatch)
	cfg := l.server.Config(l.tb)
	cfg.Wrap(l.sight.through)
	var err error
	l.watcher, err = newWatcher(ctx, cfg, l.writer.watched, l.writer.namespaces)
	apitest.Must(l.tb, err)
}

// renew replaces the hub by a new one.
func (l *lane) renew() {
	l.tb.Helper()
	l.discard()
	l.unwatch()
	l.server.Stop(l.tb)
	program := l.program
	*l = *newLaneThat(l.tb, l.writer, l.certificate, l.converts)
	l.program = program
}

// ownedKinds are those of which a run on a hub leaves objects: the first are cluster-wide.
var ownedKinds = []schema.GroupVersionKind{
	{Group: "cluster.open-cluster-management.io", Version: "v1beta2", Kind: "ManagedClusterSetBinding"},
	{Group: "cluster.open-cluster-management.io", Version: "v1beta1", Kind: "Placement"},
	{Group: "cluster.open-cluster-management.io", Version: "v1beta1", Kind: "PlacementDecision"},
	{Group: "authentication.open-cluster-management.io", Version: "v1beta1", Kind: "ManagedServiceAccount"},
	{Group: "addon.open-cluster-management.io", Version: "v1beta1", Kind: "ManagedClusterAddOn"},
	{Group: "cluster.open-cluster-management.io", Version: "v1", Kind: "ManagedCluster"},
	{Group: "cluster.open-cluster-management.io", Version: "v1beta2", Kind: "ManagedClusterSet"},
	{Group: "multicluster.x-k8s.io", Version: "v1alpha1", Kind: "ClusterProfile"},
	{Group: "multicluster.x-k8s.io", Version: "v1alpha1", Kind: "PlacementDecision"},
	{Group: "work.open-cluster-management.io", Version: "v1", Kind: "ManifestWork"},
	{Group: "rbac.authorization.k8s.io", Version: "v1", Kind: "RoleBinding"},
	{Group: "rbac.authorization.k8s.io", Version: "v1", Kind: "Role"},
	{Version: "v1", Kind: "Secret"},
	{Version: "v1", Kind: "ConfigMap"},
	{Group: "events.k8s.io", Version: "v1", Kind: "Event"},
}

// reset removes what a run has left, and returns an error unless the hub is clean.
func (l *lane) reset(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, resetLimit)
	defer cancel()
	began, mark := time.Now(), l.watcher.mark()
	unregistered := map[string]bool{}
	atRest := func() bool {
		caughtUp := l.managerHasSeen(mark) && l.componentsHaveSeen(unregistered) || time.Since(began) >= catchingUp
		return caughtUp && l.isIdle()
	}
	for {
		left := 0
		mayRevoke := l.manager != nil && time.Since(began) < revoking
		for _, of := range l.writer.owned {
			found, err := l.find(ctx, of)
			if err == nil && (!mayRevoke || of.kind.Kind != "RoleBinding") {
				err = l.remove(ctx, found)
			}
			if err != nil {
				return fmt.Errorf("cleaning the hub: %w", err)
			}
			left += len(found)
			if of.kind.Kind != "ManagedCluster" {
				continue
			}
			for _, cluster := range found {
				unregistered[cluster.GetName()] = true
			}
		}
		if left == 0 && atRest() && l.watcher.isEmpty() {
			l.watcher.forget()
			return nil
		}
		for {
			if err := pause(ctx, poll); err != nil {
				return fmt.Errorf("cleaning the hub: %d objects are left: %w", left, err)
			}
			if left > 0 || atRest() || !l.watcher.isEmpty() { // else, a list would show nothing new
				break
			}
		}
	}
}

// isIdle reports whether no program that runs has written for a moment.
func (l *lane) isIdle() bool {
	var last time.Time
	if l.manager != nil {
		last = l.manager.proxy.LastWrite()
	}
	for _, of := range l.components {
		if at := of.proxy.LastWrite(); at.After(last) {
			last = at
		}
	}
	return time.Since(last) >= still/2
}

// managerHasSeen reports whether the manager's watch has shown it the profiles that were deleted since mark.
func (l *lane) managerHasSeen(mark int) bool {
	if l.manager == nil {
		return true
	}
	shown := deletionsShown(l.manager, profiles)
	return !slices.ContainsFunc(l.watcher.seen(mark), func(c change) bool {
		return c.what == deleted && c.resource == profiles && !isForeign(c.key) && !shown[c.key]
	})
}

// deletionsShown returns the objects of a kind whose deletion a program's watches have shown it since its proxy began.
func deletionsShown(m *manager, resource string) map[string]bool {
	shown := map[string]bool{}
	for _, key := range m.proxy.Record().Events {
		if key.Verb == "DELETED" && key.Resource == resource {
			shown[key.Object] = true
		}
	}
	return shown
}

// find returns all objects of a kind.
func (l *lane) find(ctx context.Context, of owned) ([]unstructured.Unstructured, error) {
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(of.kind)
	if err := l.admin.List(ctx, list, of.only...); err != nil {
		return nil, err
	}
	return slices.DeleteFunc(list.Items, func(object unstructured.Unstructured) bool {
		namespace := object.GetNamespace()
		return l.keeps(&object) || namespace != "" && !slices.Contains(l.watcher.namespaces, namespace)
	}), nil
}

// remove deletes objects whatever their finalizers.
func (l *lane) remove(ctx context.Context, objects []unstructured.Unstructured) error {
	return inParallel(objects, func(object unstructured.Unstructured) error {
		if object.GetDeletionTimestamp() == nil {
			if err := client.IgnoreNotFound(l.admin.Delete(ctx, &object)); err != nil {
				return err
			}
		}
		if len(object.GetFinalizers()) > 0 {
			patch := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`))
			err := l.admin.Patch(ctx, &object, patch)
			if client.IgnoreNotFound(err) != nil && !apierrors.IsInvalid(err) {
				return err
			}
		}
		return nil
	})
}

// serve makes the hub have what a story needs: addons in two versions, ClusterProfiles in its form.
// It must be clean.
func (l *lane) serve(tb testing.TB, s story) {
	tb.Helper()
	if s.runs(addonManager) != l.converts {
		l.converts = !l.converts
		l.renew()
	}
	l.prepare(s)
	if s.atomic == l.atomic {
		return
	}
	l.discard() // a manager learns from its first write which form it is
	form := apitest.ClusterProfile()
	if s.atomic {
		form = apitest.AtomicClusterProfile()
	}
	l.server.Install(tb, form)
	l.atomic = s.atomic
}

// pause waits, unless the context ends before.
func pause(ctx context.Context, duration time.Duration) error {
	timer := time.NewTimer(duration)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// manager is the writer's programs, or another one, behind their proxy.
type manager struct {
	*program
	proxy  *proxy.Proxy
	closed sync.Once
}

// manage starts a manager of a version on the hub.
func (l *lane) manage(of version, flags ...string) *manager {
	l.tb.Helper()
	return l.behindProxy(l.user, of.shift, func(cfg *rest.Config) func() []*exec.Cmd {
		return l.writer.commands(l, cfg, of, flags...)
	})
}

// behindProxy starts programs with a proxy of their own, as a user. All times that they read on the hub
// are later by shift.
func (l *lane) behindProxy(
	user *rest.Config, shift time.Duration, commands func(*rest.Config) func() []*exec.Cmd,
) *manager {
	l.tb.Helper()
	through, err := proxy.New(user)
	apitest.Must(l.tb, err)
	through.Shift(shift)
	cfg, err := through.Config()
	apitest.Must(l.tb, err)
	m := &manager{proxy: through, program: &program{commands: commands(cfg), lost: through.Disconnect}}
	l.tb.Cleanup(m.end)
	apitest.Must(l.tb, m.start())
	return m
}

// end ends the manager and its proxy. It may be called again.
func (m *manager) end() {
	m.stop()
	m.closed.Do(m.proxy.Close)
}

// discard makes the next run start all programs, on an empty hub.
func (l *lane) discard() {
	l.left = nil
	l.discardComponents(nil)
	if l.manager != nil {
		l.manager.end()
		l.manager = nil
	}
}

// errNotReached says that a state was not reached in time.
var errNotReached = errors.New("not reached in time")
