package hub

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"runtime/pprof"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	clientcmdv1 "k8s.io/client-go/tools/clientcmd/api/v1"
	"k8s.io/utils/clock"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	inventoryv1alpha1 "sigs.k8s.io/cluster-inventory-api/apis/v1alpha1"

	"open-cluster-management.io/cluster-inventory-addon/internal/apitest"
	"open-cluster-management.io/cluster-inventory-addon/internal/apitest/ocmtest"
	"open-cluster-management.io/cluster-inventory-addon/internal/certtest"
	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/selection"
	"open-cluster-management.io/cluster-inventory-addon/pkg/kube"
	"open-cluster-management.io/cluster-inventory-addon/pkg/kube/watch"
)

// BenchmarkCacheMemory measures what the manager's shared cache keeps of a cluster
// (its ManagedCluster, its namespace and its addon, with ten claims) and of a
// profile (ten properties and a CA), against a real API server. Two namespaces hold a
// profile of each cluster. Run it once:
//
//	go test ./pkg/hub -run - -bench CacheMemory -benchtime 1x
//
// CLUSTERS says how many clusters, HEAP_PROFILE where to write a heap profile.
func BenchmarkCacheMemory(b *testing.B) {
	clusters := apitest.Size(b, "CLUSTERS", 300)
	for range b.N {
		measureCache(b, clusters)
	}
}

// cacheFills is how long the cache may take to fill.
const cacheFills = 5 * time.Minute

func measureCache(b *testing.B, clusters int) {
	server := apitest.Start(b, apitest.Hub(), apitest.ClusterProfile())
	h := ocmtest.New(b, server.Config(b))
	opts := newOptions()
	opts.LeaderElect, opts.Metrics.BindAddress = false, "0"
	ctx, cancel := context.WithCancel(b.Context())
	defer cancel()
	mgr, err := newManager(ctx, server.Config(b), opts)
	apitest.Must(b, err)
	apitest.Run(b, mgr.GetCache().Start)
	definitions := watch.NewDefinitions(mgr.GetAPIReader(), clock.RealClock{})
	rule := selection.New(mgr.GetCache(), mgr.GetAPIReader(), definitions, clock.RealClock{})
	apitest.Must(b, rule.Prepare(ctx))
	mgr.GetCache().WaitForCacheSync(ctx)
	namespaces := []string{h.Namespace("team", nil), h.Namespace("team", nil)}
	empty := liveHeap()

	inParallel(clusters, func(i int) { createCluster(h, i) })
	apitest.Eventually(b, cacheFills, "the cache has the clusters", func() string {
		list := &addonv1beta1.ManagedClusterAddOnList{}
		apitest.Must(b, mgr.GetCache().List(ctx, list, kube.Uncopied))
		complete := 0
		for i := range list.Items {
			if len(list.Items[i].Status.Conditions) > 0 {
				complete++
			}
		}
		return cmp.Diff(clusters, complete)
	})
	withClusters := liveHeap()

	ca := certtest.NewCA(b, "ca", time.Now().Add(time.Hour)).PEM()
	inParallel(clusters, func(i int) {
		for _, namespace := range namespaces {
			createProfile(h, namespace, i, ca)
		}
	})
	apitest.Eventually(b, cacheFills, "the cache has the profiles", func() string {
		list := &inventoryv1alpha1.ClusterProfileList{}
		apitest.Must(b, mgr.GetCache().List(ctx, list, kube.Uncopied))
		complete := 0
		for i := range list.Items {
			if len(list.Items[i].Status.Properties) > 0 {
				complete++
			}
		}
		return cmp.Diff(clusters*len(namespaces), complete)
	})
	withProfiles := liveHeap()

	if path := os.Getenv("HEAP_PROFILE"); path != "" {
		file, err := os.Create(path)
		apitest.Must(b, err)
		apitest.Must(b, pprof.WriteHeapProfile(file))
		apitest.Must(b, file.Close())
	}
	b.ReportMetric(float64(withClusters-empty)/float64(clusters), "B/cluster")
	b.ReportMetric(float64(withProfiles-withClusters)/float64(clusters*len(namespaces)), "B/profile")
	runtime.KeepAlive(mgr)
}

// createCluster creates a cluster as OCM and the agent leave it, with its namespace
// and its addon.
func createCluster(h *ocmtest.Hub, i int) {
	name := clusterName(i)
	cluster := &clusterv1.ManagedCluster{
		ObjectMeta: metav1.ObjectMeta{
			Name: name,
			Labels: map[string]string{
				"cloud": "Amazon", "vendor": "OpenShift", "region": fmt.Sprintf("region-%d", i%20), "environment": "production",
				"cluster.open-cluster-management.io/clusterset":                   "default",
				"feature.open-cluster-management.io/addon-cluster-inventory":      "available",
				"feature.open-cluster-management.io/addon-managed-serviceaccount": "available",
				"feature.open-cluster-management.io/addon-cluster-proxy":          "available",
			},
			Annotations: map[string]string{
				"open-cluster-management/created-via": "other", "agent.open-cluster-management.io/klusterlet-config": "{}"},
		},
		Spec: clusterv1.ManagedClusterSpec{
			HubAcceptsClient: true, LeaseDurationSeconds: 60,
			ManagedClusterClientConfigs: []clusterv1.ClientConfig{{URL: "https://" + name + ".example.com:6443"}},
		},
	}
	h.MustCreate(cluster, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
		Name: name, Labels: map[string]string{"open-cluster-management.io/cluster-name": name},
	}})
	apitest.EditStatus(h, cluster, func(c *clusterv1.ManagedCluster) {
		c.Status.Conditions = []metav1.Condition{
			ocmtest.Condition("HubAcceptedManagedCluster", "True", "HubClusterAdminAccepted", "Accepted by hub cluster admin"),
			ocmtest.Condition("ManagedClusterJoined", "True", "ManagedClusterJoined", "Managed cluster joined"),
			ocmtest.Condition("ManagedClusterConditionAvailable", "True",
				"ManagedClusterAvailable", "Managed cluster is available"),
			ocmtest.Condition("ClockSynced", "True", "ManagedClusterClockSynced",
				"The clock of managed cluster is synced with the hub."),
		}
		c.Status.Version.Kubernetes = "v1.35.4"
		c.Status.Capacity = clusterv1.ResourceList{"cpu": resource.MustParse("64"), "memory": resource.MustParse("256Gi")}
		for p := range 10 {
			c.Status.ClusterClaims = append(c.Status.ClusterClaims,
				clusterv1.ManagedClusterClaim{Name: propertyName(p), Value: propertyValue(i, p)})
		}
	})
	addon := h.Enable(name)
	apitest.EditStatus(h, addon, func(a *addonv1beta1.ManagedClusterAddOn) {
		a.Status.Namespace = "open-cluster-management-agent-addon"
		for _, conditionType := range []string{
			"Configured", "Progressing", "RegistrationApplied", "ClusterCertificateRotated", "ManifestApplied", "Available",
			"PropertiesPublished", "ProfilesSynced", "CredentialsSynced",
		} {
			a.Status.Conditions = append(a.Status.Conditions,
				ocmtest.Condition(conditionType, "True", "AsItShouldBe", "A sentence that says that everything is in order."))
		}
	})
}

// createProfile creates a profile as the manager makes it.
func createProfile(h *ocmtest.Hub, namespace string, i int, ca []byte) {
	name := clusterName(i)
	profile := ocmtest.OurProfile(namespace, name)
	profile.Labels["multicluster.x-k8s.io/clusterset"] = "default"
	profile.Spec.DisplayName = name
	h.MustCreate(profile)
	apitest.EditStatus(h, profile, func(p *inventoryv1alpha1.ClusterProfile) {
		p.Status.Version.Kubernetes = "v1.35.4"
		p.Status.Conditions = []metav1.Condition{
			ocmtest.Condition("ControlPlaneHealthy", "True", "ManagedClusterAvailable", "Managed cluster is available"),
			ocmtest.Condition("Joined", "True", "ManagedClusterJoined", "Managed cluster joined"),
		}
		for n := range 10 {
			p.Status.Properties = append(p.Status.Properties, inventoryv1alpha1.Property{
				Name: propertyName(n), Value: propertyValue(i, n), LastObservedTime: metav1.Now(),
			})
		}
		p.Status.AccessProviders = []inventoryv1alpha1.AccessProvider{{
			Name: "open-cluster-management",
			Cluster: clientcmdv1.Cluster{
				Server:                   "https://cluster-proxy-addon-user.open-cluster-management-addon:9092/" + name,
				CertificateAuthorityData: ca,
				Extensions: []clientcmdv1.NamedExtension{{
					Name:      "client.authentication.k8s.io/exec",
					Extension: apiruntime.RawExtension{Raw: fmt.Appendf(nil, `{"clusterName":%q}`, name)},
				}},
			},
		}}
	})
}

func clusterName(i int) string { return fmt.Sprintf("cluster-%05d", i) }

func propertyName(n int) string { return fmt.Sprintf("property-%d.example.com", n) }

// propertyValue is the cluster's own for two properties, and shared by many for the
// others.
func propertyValue(i, n int) string {
	if n < 2 {
		return fmt.Sprintf("4f7c6b1e-0000-4000-8000-%012d", 2*i+n)
	}
	return fmt.Sprintf("value-%d", i%(10*n))
}

// liveHeap is how much of the heap is in use after a collection.
func liveHeap() int64 {
	runtime.GC()
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return int64(stats.HeapAlloc)
}

func inParallel(n int, do func(i int)) {
	var group sync.WaitGroup
	next := make(chan int)
	for range 16 {
		group.Go(func() {
			for i := range next {
				do(i)
			}
		})
	}
	for i := range n {
		next <- i
	}
	close(next)
	group.Wait()
}
