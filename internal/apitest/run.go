package apitest

import (
	"context"
	"strings"
	"sync"
	"testing"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
)

// Run calls start in the background with a context that ends when the returned
// function is called, or else with the test. Stopping waits until start has
// returned and reports its error; stopping twice is harmless. What start logs
// through its context is shown if the test fails.
func Run(tb testing.TB, start func(context.Context) error) (stop func()) {
	tb.Helper()
	ctx, cancel := context.WithCancel(logr.NewContext(context.WithoutCancel(tb.Context()), Logger(tb)))
	ended := make(chan error, 1)
	go func() { ended <- start(ctx) }()
	var once sync.Once
	stop = func() {
		once.Do(func() {
			cancel()
			if err := <-ended; err != nil {
				tb.Errorf("ended with: %v", err)
			}
		})
	}
	tb.Cleanup(stop)
	return stop
}

// RunCache runs a cache with an informer of a kind, and waits until that has synced.
func RunCache(tb testing.TB, cached cache.Cache, kind client.Object) {
	tb.Helper()
	_, err := cached.GetInformer(tb.Context(), kind, cache.BlockUntilSynced(false))
	Must(tb, err)
	Run(tb, cached.Start)
	if !cached.WaitForCacheSync(tb.Context()) {
		tb.Fatalf("the cache of %T has not synced", kind)
	}
}

// NewManager returns a manager like the one on the hub: reading what is not
// cached is an error. Its controllers' names may repeat within a test binary, and
// what it logs is shown if the test fails. adjust may change its options.
func NewManager(
	tb testing.TB, cfg *rest.Config, scheme *runtime.Scheme, cached map[client.Object]cache.ByObject,
	adjust ...func(*manager.Options),
) manager.Manager {
	tb.Helper()
	opts := manager.Options{
		Scheme:  scheme,
		Logger:  Logger(tb),
		Metrics: metricsserver.Options{BindAddress: "0"},
		Cache: cache.Options{
			ReaderFailOnMissingInformer: true,
			DefaultTransform:            cache.TransformStripManagedFields(),
			ByObject:                    cached,
		},
		Controller: config.Controller{SkipNameValidation: ptr.To(true)},
	}
	for _, change := range adjust {
		change(&opts)
	}
	mgr, err := manager.New(cfg, opts)
	Must(tb, err)
	return mgr
}

// Logger returns a logger whose lines are shown if the test fails.
func Logger(tb testing.TB) logr.Logger {
	var (
		mu    sync.Mutex
		lines []string
	)
	tb.Cleanup(func() {
		mu.Lock()
		defer mu.Unlock()
		if tb.Failed() && len(lines) > 0 {
			tb.Logf("logged:\n%s", strings.Join(lines, "\n"))
		}
	})
	return funcr.New(func(prefix, args string) {
		mu.Lock()
		defer mu.Unlock()
		lines = append(lines, prefix+" "+args)
	}, funcr.Options{Verbosity: 2, LogTimestamp: true})
}
