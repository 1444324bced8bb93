package stored

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"open-cluster-management.io/cluster-inventory-addon/internal/apitest"
	"open-cluster-management.io/cluster-inventory-addon/internal/apitest/ocmtest"
	"open-cluster-management.io/cluster-inventory-addon/pkg/contract"
)

var hub = apitest.New(apitest.Hub())

func TestMain(m *testing.M) { apitest.Main(m, hub) }

// TestAddonsAreReadInTheirStorageVersion runs on a hub that stores addons in v1alpha1, as Open
// Cluster Management's does, but converts them by renaming the version only.
func TestAddonsAreReadInTheirStorageVersion(t *testing.T) {
	w, server := newStoredWorld(t)
	stored := &addonv1alpha1.ManagedClusterAddOn{ObjectMeta: metav1.ObjectMeta{
		Namespace: w.Namespace("cluster", nil), Name: contract.AddonName,
	}}
	stored.Spec.InstallNamespace = "somewhere" //nolint:staticcheck // what is deprecated is converted, too
	other := stored.DeepCopy()
	other.Name = "another"
	w.MustCreate(stored, other)
	apitest.EditStatus(w, stored, func(a *addonv1alpha1.ManagedClusterAddOn) {
		a.Status.KubeClientDriver = "token"
		a.Status.Registrations = []addonv1alpha1.RegistrationConfig{{
			SignerName: "kubernetes.io/kube-apiserver-client", Subject: addonv1alpha1.Subject{User: "agent"},
		}}
	})

	cached, wire := addonCache(w, server)
	addon := ocmtest.Addon(stored.Namespace)
	read := func() *addonv1beta1.ManagedClusterAddOn {
		t.Helper()
		apitest.Must(t, cached.Get(t.Context(), client.ObjectKeyFromObject(addon), addon))
		return addon
	}
	if got := read().Annotations[addonv1beta1.InstallNamespaceAnnotation]; got != "somewhere" {
		t.Errorf("the install namespace is %q", got)
	}
	want := []addonv1beta1.RegistrationConfig{{Type: addonv1beta1.KubeClient, KubeClient: &addonv1beta1.KubeClientConfig{
		Driver: "token", Subject: addonv1beta1.KubeClientSubject{BaseSubject: addonv1beta1.BaseSubject{User: "agent"}},
	}}}
	if diff := cmp.Diff(want, addon.Status.Registrations); diff != "" {
		t.Errorf("registrations (-want +got):\n%s", diff)
	}
	list := &addonv1beta1.ManagedClusterAddOnList{}
	if apitest.Must(t, cached.List(t.Context(), list)); len(list.Items) != 1 {
		t.Errorf("%d addons are read", len(list.Items))
	}
	conditioned := func() string {
		if len(read().Status.Conditions) != 1 {
			return "no condition"
		}
		return ""
	}
	apitest.EditStatus(w, stored, func(a *addonv1alpha1.ManagedClusterAddOn) {
		a.Status.Conditions = []metav1.Condition{ocmtest.Condition("Available", "True", "R", "")}
	})
	w.Eventually("a change is seen", conditioned)
	if asked := versionsAsked(wire); !slices.Equal(asked, []string{"v1alpha1"}) {
		t.Errorf("versions that were read: %v", asked)
	}

	// A later hub stores v1beta1, and then no longer serves v1alpha1.
	definition := &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: definitionName}}
	apitest.Edit(w, definition, func(d *apiextensionsv1.CustomResourceDefinition) {
		for i := range d.Spec.Versions {
			version := &d.Spec.Versions[i]
			version.Served, version.Storage = version.Name == "v1beta1", version.Name == "v1beta1"
		}
	})
	apitest.EditStatus(w, ocmtest.Addon(stored.Namespace),
		func(a *addonv1beta1.ManagedClusterAddOn) { a.Status.Conditions = nil })
	w.Eventually("a change in the other version is seen", func() string {
		return cmp.Diff(0, len(read().Status.Conditions))
	})
}

// TestStoredVersionIsReadAgain recreates the CRD twice, which ends all watches: once while
// the stored version is not found, and once after it is back. The pause of client-go's reflector
// grows from the one to the other.
func TestStoredVersionIsReadAgain(t *testing.T) {
	w, server := newStoredWorld(t)
	w.Patience = apitest.RestartPatience
	cached, wire := addonCache(w, server)
	addon := ocmtest.Addon(w.Namespace("cluster", nil))
	recreate := func() {
		t.Helper()
		server.Reinstall(w, definitionName, storedDefinition())
		created := ocmtest.Addon(addon.Namespace)
		w.Eventually("an addon is created", apitest.Succeeds(func() error { return w.Create(t.Context(), created) }))
		w.Eventually("it is seen", func() string {
			if err := cached.Get(t.Context(), client.ObjectKeyFromObject(addon), addon); err != nil {
				return err.Error()
			}
			return cmp.Diff(created.UID, addon.UID)
		})
	}
	refuse := func(version string, fault apitest.Fault) {
		wire.Fail(func(call apitest.Call) apitest.Fault {
			if call.Resource == "managedclusteraddons" && strings.Contains(call.Path, version) {
				return fault
			}
			return apitest.Fault{}
		})
		wire.Reset()
	}
	refuse("/v1alpha1/", apitest.Fault{Status: http.StatusNotFound, Reason: "NotFound"})
	recreate()
	if asked := versionsAsked(wire); !slices.Contains(asked, "v1beta1") {
		t.Errorf("versions that were read: %v", asked)
	}
	refuse("/v1beta1/", apitest.Fault{Status: http.StatusServiceUnavailable, Reason: "ServiceUnavailable"})
	recreate()
}

// TestAddonsStoredInTheReadVersionAreNotConverted covers every other server of these tests.
func TestAddonsStoredInTheReadVersionAreNotConverted(t *testing.T) {
	w := hub.World(t, storedScheme(t))
	addon := ocmtest.Addon(w.Namespace("cluster", nil))
	w.MustCreate(addon)
	w.CleanUp(addon)
	cached, wire := addonCache(w, hub)
	apitest.Must(t, cached.Get(t.Context(), client.ObjectKeyFromObject(addon), addon))
	if asked := versionsAsked(wire); !slices.Equal(asked, []string{"v1beta1"}) {
		t.Errorf("versions that were read: %v", asked)
	}
}

func newStoredWorld(t *testing.T) (*apitest.World, *apitest.Server) {
	t.Helper()
	server := apitest.Start(t, storedDefinition())
	return server.World(t, storedScheme(t)), server
}

func storedDefinition() apitest.CRDs {
	return apitest.ModuleFiles("open-cluster-management.io/api",
		"addon/v1beta1/0000_01_addon.open-cluster-management.io_managedclusteraddons.crd.yaml")
}

func storedScheme(t *testing.T) *runtime.Scheme {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		clientgoscheme.AddToScheme, addonv1alpha1.Install, addonv1beta1.Install, apiextensionsv1.AddToScheme,
	} {
		apitest.Must(t, add(scheme))
	}
	return scheme
}

// addonCache runs a cache of addons as the manager has it, and records what it asks.
func addonCache(w *apitest.World, server *apitest.Server) (cache.Cache, *apitest.Wire) {
	t := w.T
	t.Helper()
	wire := &apitest.Wire{}
	cfg := wire.Tap(server.Config(t))
	informers, err := Informers(t.Context(), cfg, w.Client)
	apitest.Must(t, err)
	cached, err := cache.New(cfg, cache.Options{
		Scheme: w.Scheme(), NewInformer: informers,
	})
	apitest.Must(t, err)
	apitest.RunCache(t, cached, &addonv1beta1.ManagedClusterAddOn{})
	return cached, wire
}

// versionsAsked are the versions in which addons were read.
func versionsAsked(wire *apitest.Wire) []string {
	var versions []string
	for _, call := range wire.Calls() {
		if call.Resource == "managedclusteraddons" {
			versions = append(versions, strings.Split(call.Path, "/")[3])
		}
	}
	slices.Sort(versions)
	return slices.Compact(versions)
}
