// Command reconciler is a controller on multicluster-runtime that reconciles the ConfigMaps
// of one namespace on every cluster that has a ClusterProfile in the reconciler's own
// namespace. It reports its results over HTTP.
package main

import (
	"context"
	"flag"
	"fmt"
	"net"
	"net/http"
	"os"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"
	inventoryv1alpha1 "sigs.k8s.io/cluster-inventory-api/apis/v1alpha1"
	"sigs.k8s.io/cluster-inventory-api/pkg/access"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	mcbuilder "sigs.k8s.io/multicluster-runtime/pkg/builder"
	mcmanager "sigs.k8s.io/multicluster-runtime/pkg/manager"

	"open-cluster-management.io/cluster-inventory-addon/test/e2e/consumers/connect"
	"open-cluster-management.io/cluster-inventory-addon/test/e2e/consumers/status"
)

const patchType = types.MergePatchType

type options struct {
	providerFile string
	namespace    string
	work         string
	address      string
	every        time.Duration
}

func main() {
	opts := options{}
	file := access.SetupProviderFileFlag()
	flag.StringVar(&opts.namespace, "namespace", "", "namespace of the ClusterProfiles (default: the pod's)")
	flag.StringVar(&opts.work, "work-namespace", "default", "namespace of the ConfigMaps, on the clusters")
	flag.StringVar(
		&opts.address, "address", defaultAddress(), "host:port that tells how it goes (default: on $POD_IP, if that is set)",
	)
	flag.DurationVar(&opts.every, "every", 200*time.Millisecond, "how often each ConfigMap is looked at")
	flag.Parse()
	opts.providerFile = *file
	if err := run(ctrl.SetupSignalHandler(), opts); err != nil {
		fmt.Fprintln(os.Stderr, "reconciler:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, opts options) error {
	ctrl.SetLogger(klog.Background())
	providers, err := connect.Load(opts.providerFile)
	if err != nil {
		return err
	}
	if opts.namespace, err = connect.Namespace(opts.namespace); err != nil {
		return err
	}
	hub, err := ctrl.GetConfig()
	if err != nil {
		return err
	}
	meters := newMeters()
	clusters := newProvider(
		providers, meters, []client.Object{&corev1.ConfigMap{}}, func(o *cluster.Options) { o.Cache = only(opts.work) },
	)
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{corev1.AddToScheme, inventoryv1alpha1.AddToScheme} {
		if err := add(scheme); err != nil {
			return err
		}
	}
	mgr, err := mcmanager.New(hub, clusters, manager.Options{
		Scheme: scheme, Cache: only(opts.namespace), Metrics: metricsserver.Options{BindAddress: "0"},
	})
	if err != nil {
		return err
	}
	if err := clusters.watch(mgr.GetLocalManager()); err != nil {
		return err
	}
	err = mcbuilder.ControllerManagedBy(mgr).Named("configmaps").For(&corev1.ConfigMap{}).
		Complete(&configMaps{mgr: mgr, meters: meters, every: opts.every})
	if err != nil {
		return err
	}
	if opts.address != "" {
		server := &http.Server{Addr: opts.address, Handler: meters, ReadHeaderTimeout: time.Minute}
		if err := mgr.GetLocalManager().Add(&manager.Server{Name: "status", Server: server}); err != nil {
			return err
		}
	}
	return mgr.Start(ctx)
}

// defaultAddress returns the Pod's own address: Pods of the fleet share a network.
func defaultAddress() string {
	if ip := os.Getenv("POD_IP"); ip != "" {
		return net.JoinHostPort(ip, strconv.Itoa(status.Port))
	}
	return ""
}

func only(namespace string) cache.Options {
	return cache.Options{DefaultNamespaces: map[string]cache.Config{namespace: {}}}
}
