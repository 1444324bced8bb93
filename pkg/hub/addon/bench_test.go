package addon

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	workv1 "open-cluster-management.io/api/work/v1"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"open-cluster-management.io/cluster-inventory-addon/internal/apitest"
	"open-cluster-management.io/cluster-inventory-addon/internal/apitest/addontest"
	"open-cluster-management.io/cluster-inventory-addon/internal/apitest/ocmtest"
	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/addon/configuration"
)

// BenchmarkShell measures what it costs the manager to enable the addon on ADDONS
// clusters (1000 if it is not set), and to start again when nothing is to be done. It
// is one run, not one operation:
//
//	go test ./pkg/hub/addon -run ^$ -bench Shell -benchtime 1x -cpuprofile cpu.out
//
// The CPU time contains the requests with which the benchmark plays OCM; -cpuprofile
// shows how much that is. No conversion webhook runs here, so a write costs the API
// server, and takes, less than on a hub.
func BenchmarkShell(b *testing.B) {
	size := apitest.Size(b, "ADDONS", 1000)
	fleet := newFleet(b, size)
	fleet.measure("enable", func(ctx context.Context) {
		go fleet.playWorkAgents(ctx)
		fleet.enable()
		fleet.waitForAvailable()
	})
	fleet.measure("restart", func(context.Context) { fleet.waitUntilIdle() })
}

// fleet is a hub with clusters that have just joined.
type fleet struct {
	*world
	b        *testing.B
	clusters []string
	owner    metav1.OwnerReference
	revision *unstructured.Unstructured
}

func newFleet(b *testing.B, size int) *fleet {
	b.Helper()
	b.StopTimer()
	f := &fleet{b: b, world: newWorld(b), clusters: make([]string, size)}
	definition := &addonv1beta1.ClusterManagementAddOn{ObjectMeta: metav1.ObjectMeta{Name: "cluster-inventory"}}
	definition.Spec.InstallStrategy.Type = addonv1beta1.AddonInstallStrategyManual
	f.revision = newRevision("bench")
	f.MustCreate(f.revision)
	definition.Spec.DefaultConfigs = []addonv1beta1.AddOnConfig{{
		ConfigGroupResource: addontest.AgentRevisions, ConfigReferent: addonv1beta1.ConfigReferent{Name: "bench"},
	}}
	f.MustCreate(definition)
	f.owner = metav1.OwnerReference{
		APIVersion: "addon.open-cluster-management.io/v1beta1", Kind: "ClusterManagementAddOn",
		Name: definition.Name, UID: definition.UID, Controller: ptr.To(true),
	}
	f.each(func(ctx context.Context, i int) error {
		name := fmt.Sprintf("bench-%05d", i)
		f.clusters[i] = name
		cluster := &clusterv1.ManagedCluster{
			ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: clusterv1.ManagedClusterSpec{HubAcceptsClient: true},
		}
		if err := f.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}); err != nil {
			return err
		}
		if err := f.Create(ctx, cluster); err != nil {
			return err
		}
		cluster.Status.Conditions = []metav1.Condition{
			ocmtest.Condition("ManagedClusterConditionAvailable", "True",
				"ManagedClusterAvailable", "Managed cluster is available"),
		}
		return f.Client.Status().Patch(ctx, cluster, client.Merge)
	})
	return f
}

// each calls do for every cluster, eight at a time.
func (f *fleet) each(do func(ctx context.Context, i int) error) {
	f.b.Helper()
	var (
		next   atomic.Int64
		group  sync.WaitGroup
		failed atomic.Value
	)
	for range 8 {
		group.Go(func() {
			for i := int(next.Add(1)) - 1; i < len(f.clusters) && failed.Load() == nil; i = int(next.Add(1)) - 1 {
				if err := do(f.b.Context(), i); err != nil {
					failed.Store(err)
				}
			}
		})
	}
	group.Wait()
	if err, ok := failed.Load().(error); ok {
		f.b.Fatal(err)
	}
}

// measure runs the framework while act runs, and reports CPU time, time and writes.
func (f *fleet) measure(what string, act func(context.Context)) {
	f.b.Helper()
	f.Wire.Reset()
	cfg := f.Wire.Tap(hub.Config(f.b))
	shared, err := cache.New(cfg, cache.Options{Scheme: f.Scheme(), ByObject: CacheOptions()})
	apitest.Must(f.b, err)
	shell := &framework{
		cfg: cfg, shared: shared, client: f.Client, live: f.Client, outcomes: configuration.NewOutcomes(f.Client),
	}
	ctx, cancel := context.WithCancel(f.b.Context())
	defer cancel()
	began, cpu := time.Now(), cpuTime(f.b)
	f.b.StartTimer()
	stopCache := apitest.Run(f.b, shared.Start)
	stop := apitest.Run(f.b, shell.Start)
	act(ctx)
	f.b.StopTimer()
	stop()
	stopCache()
	f.b.ReportMetric((cpuTime(f.b) - cpu).Seconds(), "CPU-s/"+what)
	writes := map[string]int{}
	for _, call := range f.Wire.Writes() {
		writes[call.Method+" "+call.Resource]++
	}
	f.b.Logf("%s: %s, CPU %s, writes %v", what, time.Since(began).Round(time.Millisecond),
		(cpuTime(f.b) - cpu).Round(time.Millisecond), writes)
}

func (f *fleet) enable() {
	f.b.Helper()
	f.each(func(ctx context.Context, i int) error {
		addon := ocmtest.Addon(f.clusters[i])
		addon.OwnerReferences = []metav1.OwnerReference{f.owner}
		if err := f.Create(ctx, addon); err != nil {
			return err
		}
		addon.Status.ConfigReferences = []addonv1beta1.ConfigReference{addontest.RevisionReference(f.revision)}
		return f.Client.Status().Patch(ctx, addon, client.Merge)
	})
}

const workStatus = `{"status":{"conditions":[` +
	`{"type":"Applied","status":"True","reason":"R","message":"","lastTransitionTime":"2026-01-02T03:04:05Z"},` +
	`{"type":"Available","status":"True","reason":"R","message":"","lastTransitionTime":"2026-01-02T03:04:05Z"}],` +
	`"resourceStatus":{"manifests":[{"resourceMeta":{"ordinal":0,"group":"apps","version":"v1","kind":"Deployment",` +
	`"resource":"deployments","namespace":"agents","name":"cluster-inventory-agent"},"conditions":[],` +
	`"statusFeedback":{"values":[{"name":"ReadyReplicas","fieldValue":{"type":"Integer","integer":1}}]}}]}}}`

// playWorkAgents reports each work as applied and its agent as ready.
func (f *fleet) playWorkAgents(ctx context.Context) {
	watcher, err := client.NewWithWatch(hub.Config(f.b), client.Options{Scheme: f.Scheme()})
	apitest.Must(f.b, err)
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(schema.GroupVersionKind{Group: workv1.GroupName, Version: "v1", Kind: "ManifestWorkList"})
	events, err := watcher.Watch(ctx, list)
	apitest.Must(f.b, err)
	defer events.Stop()
	for event := range events.ResultChan() {
		object, ok := event.Object.(client.Object)
		if !ok || event.Type != "ADDED" {
			continue
		}
		work := &workv1.ManifestWork{ObjectMeta: metav1.ObjectMeta{Namespace: object.GetNamespace(), Name: object.GetName()}}
		patch := client.RawPatch(types.MergePatchType, []byte(workStatus))
		if err := watcher.Status().Patch(ctx, work, patch); err != nil && ctx.Err() == nil {
			f.b.Error(err)
		}
	}
}

func (f *fleet) waitForAvailable() {
	f.b.Helper()
	for _, name := range f.clusters {
		addon := ocmtest.Addon(name)
		apitest.Eventually(f.b, 10*time.Minute, name+" is available", func() string {
			if err := f.Get(f.b.Context(), client.ObjectKeyFromObject(addon), addon); err != nil {
				return err.Error()
			}
			for _, condition := range addon.Status.Conditions {
				if condition.Type == "Available" && condition.Status == metav1.ConditionTrue {
					return ""
				}
			}
			return fmt.Sprint(addon.Status.Conditions)
		})
	}
}

// waitUntilIdle waits until the framework watches ManifestWorks and this process has used
// almost no CPU time for a few seconds.
func (f *fleet) waitUntilIdle() {
	f.b.Helper()
	const (
		sample = 2 * time.Second
		idle   = sample / 100
	)
	before, quiet := cpuTime(f.b), 0
	for quiet < 3 {
		select {
		case <-time.After(sample):
		case <-f.b.Context().Done():
			f.b.Fatal("the benchmark ended first")
		}
		now := cpuTime(f.b)
		watched := slices.ContainsFunc(f.Wire.Calls(), func(c apitest.Call) bool {
			return c.Resource == "manifestworks" && c.IsWatch()
		})
		if quiet++; !watched || now-before > idle {
			quiet = 0
		}
		before = now
	}
}

func cpuTime(tb testing.TB) time.Duration {
	tb.Helper()
	var usage syscall.Rusage
	apitest.Must(tb, syscall.Getrusage(syscall.RUSAGE_SELF, &usage))
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}
