package selection

import (
	"context"
	"fmt"
	"net/http"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"open-cluster-management.io/cluster-inventory-addon/internal/apitest"
	"open-cluster-management.io/cluster-inventory-addon/internal/apitest/ocmtest"
	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/selection/rule"
	"open-cluster-management.io/cluster-inventory-addon/pkg/kube"
)

// BenchmarkPair evaluates one pair of a namespace whose Placement decides for the whole
// fleet, with 100 clusters and with 10,000. The ratio shows how the cost of a pair grows
// with the fleet.
func BenchmarkPair(b *testing.B) {
	var small time.Duration
	for _, fleet := range []int{100, 10_000} {
		b.Run(fmt.Sprintf("clusters=%d", fleet), func(b *testing.B) {
			r, pair := aFleet(b, fleet), types.NamespacedName{Namespace: "ns", Name: "c0"}
			look := func() {
				o, result, err := r.Observe(b.Context(), pair)
				if err != nil || result.Answer != rule.Yes {
					b.Fatalf("observed %+v, %v", result, err)
				}
				if _, wait, err := r.Settle(b.Context(), pair, o, result, false); err != nil || wait != 0 {
					b.Fatalf("settle = %s, %v", wait, err)
				}
			}
			look()
			for b.Loop() {
				look()
			}
			each := b.Elapsed() / time.Duration(b.N)
			if small == 0 {
				small = each
			}
			b.ReportMetric(float64(each)/float64(small), "ratio")
		})
	}
}

// BenchmarkAbsentPair decides again about a pair for which the Placement does not decide, as
// before something is withdrawn. It compares each slice, and there is one for a hundred
// clusters.
func BenchmarkAbsentPair(b *testing.B) {
	for _, fleet := range []int{100, 10_000} {
		b.Run(fmt.Sprintf("clusters=%d", fleet), func(b *testing.B) {
			r, pair := aFleet(b, fleet), types.NamespacedName{Namespace: "ns", Name: "absent"}
			r.settling.started = r.settling.started.Add(-kube.AbsenceCounts)
			for _, ago := range []time.Duration{time.Hour, 0} { // otherwise it counts as forgotten
				r.settling.absent.Since(pair, time.Now().Add(-ago))
			}
			for b.Loop() {
				o, result, err := r.Observe(b.Context(), pair)
				if err != nil || !result.ByPlacement {
					b.Fatalf("observed %+v, %v", result, err)
				}
				if _, result, wait, err := r.settle(b.Context(), pair, o, result, rule.LongestMove); err != nil ||
					wait != 0 || result.Answer != rule.No {
					b.Fatalf("settled %+v, %s, %v", result, wait, err)
				}
			}
		})
	}
}

// aFleet is a rule over the manager's cache of a hub with clusters "c0" and so on,
// all of which are decided for in the namespace ns, a hundred in each slice, and the
// cluster "absent", which is not.
func aFleet(b *testing.B, clusters int) *Rule {
	const each = 100
	namespace := kube.Partial(kube.NamespaceKind)
	namespace.Name = "ns"
	objs := []client.Object{
		namespace, ocmtest.ExclusiveSet("s"), ocmtest.Binding("ns", "s"), ocmtest.Publishing("p", clusters),
	}
	for _, crd := range CRDs() {
		object := kube.Partial(kube.CRDKind)
		object.Name = crd
		objs = append(objs, object)
	}
	add := func(name string) {
		cluster := ocmtest.ClusterWith(name, ocmtest.InSet("s"))
		cluster.Spec.HubAcceptsClient = true
		objs = append(objs, cluster, ocmtest.Addon(name))
	}
	add("absent")
	var names []string
	for i := range clusters {
		name := fmt.Sprintf("c%d", i)
		add(name)
		if names = append(names, name); len(names) == each || i == clusters-1 {
			objs = append(objs, ocmtest.Slice(fmt.Sprintf("p-%d", i/each), "p", names...))
			names = nil
		}
	}
	cached := startCache(b, objs...)
	apitest.Must(b, cached.IndexField(b.Context(), &clusterv1beta1.Placement{}, metav1.ObjectNameField,
		func(obj client.Object) []string { return []string{obj.GetName()} })) // API servers select by name
	r := newRule(cached, cached, clock.RealClock{})
	apitest.Must(b, r.Prepare(b.Context()))
	return r
}

// startCache starts a real cache that lists the given objects and sees no change.
func startCache(b *testing.B, objs ...client.Object) cache.Cache {
	b.Helper()
	scheme := ocmtest.Scheme()
	kindOf := func(obj runtime.Object) string {
		gvk, err := apiutil.GVKForObject(obj, scheme)
		apitest.Must(b, err)
		return gvk.Kind
	}
	byKind := map[string][]runtime.Object{}
	mapper := meta.NewDefaultRESTMapper(nil)
	for gvk := range scheme.AllKnownTypes() {
		mapper.Add(gvk, meta.RESTScopeNamespace)
	}
	for _, obj := range objs {
		byKind[kindOf(obj)] = append(byKind[kindOf(obj)], obj)
	}
	c, err := cache.New(&rest.Config{}, cache.Options{
		Scheme: scheme, Mapper: mapper, HTTPClient: http.DefaultClient,
		NewInformer: func(
			_ toolscache.ListerWatcher, obj runtime.Object, resync time.Duration, indexers toolscache.Indexers,
		) toolscache.SharedIndexInformer {
			still := &toolscache.ListWatch{
				ListWithContextFunc: func(context.Context, metav1.ListOptions) (runtime.Object, error) {
					list := &metav1.List{ListMeta: metav1.ListMeta{ResourceVersion: "1"}}
					return list, meta.SetList(list, byKind[kindOf(obj)])
				},
				WatchFuncWithContext: func(context.Context, metav1.ListOptions) (watch.Interface, error) {
					return watch.NewFake(), nil
				},
				DisableChunking: true,
			}
			return toolscache.NewSharedIndexInformer(stillLists{still}, obj, resync, indexers)
		},
	})
	apitest.Must(b, err)
	go func() { _ = c.Start(b.Context()) }()
	if !c.WaitForCacheSync(b.Context()) {
		b.Fatal("the cache has not started")
	}
	return c
}

// stillLists lists before it watches.
type stillLists struct{ *toolscache.ListWatch }

// IsWatchListSemanticsUnSupported makes reflectors list.
func (stillLists) IsWatchListSemanticsUnSupported() bool { return true }
