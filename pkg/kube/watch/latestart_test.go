package watch

import (
	"context"
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
