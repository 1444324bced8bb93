package uninstall

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"open-cluster-management.io/cluster-inventory-addon/internal/apitest"
	"open-cluster-management.io/cluster-inventory-addon/internal/apitest/ocmtest"
	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/credentials/grants"
)

var (
	benchClusters   = flag.Int("clusters", 10_000, "how many clusters BenchmarkHook has")
	benchNamespaces = flag.Int("namespaces", 5, "in how many namespaces each has a profile")
)

// hookKubeconfig makes the program of these tests the hook: a process whose memory
// can be measured.
const hookKubeconfig = "UNINSTALL_HOOK_KUBECONFIG"

func TestMain(m *testing.M) {
	if path := os.Getenv(hookKubeconfig); path != "" {
		os.Exit(runHook(path)) //nolint:forbidigo // this process is the hook
	}
	apitest.Main(m, hub)
}

func runHook(kubeconfig string) int {
	cfg, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err == nil {
		cfg.QPS = -1
		err = Run(context.Background(), cfg, Options{
			Namespace: "default", Timeout: time.Hour, RegistrationClusterRole: "none",
			IsGateOff: func(*rbacv1.ClusterRole) bool { return true }, GrantNamespaces: grants.Namespaces,
		})
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// BenchmarkHook uninstalls from a large hub whose manager does not run, so that the
// hook deletes every profile itself, and reports the most memory that it held. It takes
// minutes, most of them to make the hub:
//
//	go test ./pkg/hub/uninstall -run '^$' -bench Hook -benchtime 1x -timeout 1h
func BenchmarkHook(b *testing.B) {
	h := ocmtest.New(b, hub.Config(b))
	kubeconfig := apitest.File(b, "kubeconfig", apitest.Kubeconfig(b, hub.Config(b), ""))
	for b.Loop() {
		b.StopTimer()
		fill(b, h)
		b.StartTimer()
		hook := exec.CommandContext(b.Context(), os.Args[0])
		hook.Env = append(os.Environ(), hookKubeconfig+"="+kubeconfig, "GOMEMLIMIT=96MiB") // as in the chart
		if out, err := hook.CombinedOutput(); err != nil {
			b.Fatalf("%v: %s", err, out)
		}
		usage, _ := hook.ProcessState.SysUsage().(*syscall.Rusage)
		b.ReportMetric(float64(usage.Maxrss)/1024, "MiB-peak")
		b.ReportMetric(hook.ProcessState.UserTime().Seconds(), "CPU-s")
	}
	left := &metav1.PartialObjectMetadataList{}
	left.SetGroupVersionKind(profileKind)
	h.MustList(left, client.Limit(1))
	if len(left.Items) > 0 {
		b.Errorf("ClusterProfile %s is left", left.Items[0].Name)
	}
}

// fill makes the hub.
func fill(b *testing.B, h *ocmtest.Hub) {
	b.Helper()
	h.MustCreate(&addonv1beta1.ClusterManagementAddOn{
		ObjectMeta: metav1.ObjectMeta{Name: "cluster-inventory"},
		Spec:       addonv1beta1.ClusterManagementAddOnSpec{InstallStrategy: addonv1beta1.InstallStrategy{Type: "Manual"}},
	})
	create := func(objects ...client.Object) {
		for _, object := range objects {
			if err := h.Create(b.Context(), object); err != nil {
				b.Error(err)
			}
		}
	}
	for n := range *benchNamespaces {
		create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("team-%d", n)}})
	}
	var next atomic.Int64
	var group sync.WaitGroup
	for range workers {
		group.Go(func() {
			for i := next.Add(1); i <= int64(*benchClusters) && !b.Failed(); i = next.Add(1) {
				cluster := fmt.Sprintf("cluster-%05d", i)
				addon := ocmtest.Addon(cluster)
				// As large as one with all its conditions.
				addon.Annotations = map[string]string{"example.com/conditions": strings.Repeat("condition ", 400)}
				create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: cluster}}, addon)
				for n := range *benchNamespaces {
					create(profile(fmt.Sprintf("team-%d", n), cluster, "cluster-inventory-addon", "open-cluster-management"))
				}
			}
		})
	}
	group.Wait()
}
