package watch

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr/funcr"
	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"open-cluster-management.io/cluster-inventory-addon/internal/apitest"
	"open-cluster-management.io/cluster-inventory-addon/pkg/kube"
)

// The CRD exists, and serves another version only, perhaps forever.
func TestLateStartSaysOnceForWhichKindItWaits(t *testing.T) {
	const definitionName = "managedclusteraddons.addon.open-cluster-management.io"
	server := apitest.Start(t, func() ([]*apiextensionsv1.CustomResourceDefinition, error) {
		definitions, err := apitest.ModuleFiles("open-cluster-management.io/api",
			"addon/v1beta1/0000_01_addon.open-cluster-management.io_managedclusteraddons.crd.yaml")()
		for _, definition := range definitions {
			serve(definition, "v1beta1")
		}
		return definitions, err
	})
	scheme := runtime.NewScheme()
	apitest.Must(t, clientgoscheme.AddToScheme(scheme))
	apitest.Must(t, apiextensionsv1.AddToScheme(scheme))
	mgr := apitest.NewManager(t, server.Config(t), scheme, nil)
	apitest.RunCache(t, mgr.GetCache(), kube.Partial(kube.CRDKind))

	var lines []string
	logger := funcr.New(func(_, args string) { lines = append(lines, args) }, funcr.Options{})
	ctx, starts := log.IntoContext(t.Context(), logger), 0
	late := &LateStart{
		Kinds: Kinds{definitionName: schema.GroupVersionKind{
			Group: "addon.open-cluster-management.io", Version: "v1alpha1", Kind: "ManagedClusterAddOn",
		}},
		Start: func(context.Context) error { starts++; return nil },
	}
	apitest.Must(t, late.AddTo(mgr)) // the test tries instead of the manager
	var waits []time.Duration
	for range 7 {
		_, again := late.try(ctx)
		waits = append(waits, again/time.Second)
	}
	if diff := cmp.Diff([]time.Duration{1, 2, 4, 8, 16, 16, 16}, waits); diff != "" {
		t.Errorf("seconds until the next check (-want +got):\n%s", diff)
	}
	if len(lines) != 1 || !strings.Contains(lines[0], "ManagedClusterAddOn") || !strings.Contains(lines[0], "v1alpha1") {
		t.Errorf("logged %q, want the kind and its version once", lines)
	}

	definition := &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: definitionName}}
	world := server.World(t, scheme)
	apitest.Edit(world, definition, func(d *apiextensionsv1.CustomResourceDefinition) { serve(d, "v1alpha1", "v1beta1") })
	world.Eventually("the version is served, and it starts", func() string {
		started, _ := late.try(ctx)
		return cmp.Diff([]any{true, 1}, []any{started, starts})
	})
}

// serve makes a definition serve the given versions only.
func serve(definition *apiextensionsv1.CustomResourceDefinition, versions ...string) {
	for i := range definition.Spec.Versions {
		definition.Spec.Versions[i].Served = slices.Contains(versions, definition.Spec.Versions[i].Name)
	}
}

// TestLateStartTriesAgain: what fails is tried again at growing intervals, what is not ready or
// has no CRD each second, and nothing starts twice.
func TestLateStartTriesAgain(t *testing.T) {
	const definitionName = "as.example.com"
	kind := schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "A"}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/apis/example.com/v1" {
			t.Errorf("asked for %s", r.URL.Path)
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"kind":"APIResourceList","resources":[{"name":"as","kind":"A"}]}`)
	}))
	t.Cleanup(server.Close)
	discovery, err := NewDiscovery(&rest.Config{Host: server.URL}, server.Client())
	apitest.Must(t, err)
	crds := &crdReader{crds: map[string]*metav1.PartialObjectMetadata{}}
	ready, fails, starts := false, true, 0
	late := &LateStart{
		Kinds: Kinds{definitionName: kind},
		Ready: func() bool { return ready },
		Start: func(context.Context) error {
			if starts++; fails {
				return errors.New("not now")
			}
			return nil
		},
		crds: crds, discovery: discovery,
	}
	tries := func(when string, wantStarted bool, wantAgain time.Duration, wantStarts int) {
		t.Helper()
		started, again := late.try(t.Context())
		if started != wantStarted || again != wantAgain || starts != wantStarts {
			t.Errorf("%s: started is %t, again after %s, %d starts; want %t, %s, %d",
				when, started, again, starts, wantStarted, wantAgain, wantStarts)
		}
	}
	for range 3 {
		tries("the CRD is missing", false, time.Second, 0)
	}
	terminating := kube.Partial(kube.CRDKind)
	terminating.DeletionTimestamp = &metav1.Time{Time: time.Now()}
	crds.crds[definitionName] = terminating
	tries("the CRD is being deleted", false, time.Second, 0)
	crds.crds[definitionName] = kube.Partial(kube.CRDKind)
	for range 3 {
		tries("it is not ready", false, time.Second, 0)
	}
	ready = true
	for n, again := range []time.Duration{1, 2, 4} {
		tries("it fails", false, again*time.Second, n+1)
	}
	crds.fails = errors.New("the cache fails")
	tries("the cache fails", false, time.Second, 3)
	crds.fails, fails = nil, false
	tries("it starts", true, 0, 4)
}
