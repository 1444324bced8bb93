package hubtest

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/engine"

	"open-cluster-management.io/cluster-inventory-addon/internal/apitest"
	"open-cluster-management.io/cluster-inventory-addon/internal/manifesttest"
)

const (
	// Namespace is the one the chart is rendered for.
	Namespace = "inventory-system"

	// Account is the manager's ServiceAccount there.
	Account = "cluster-inventory-manager"

	// User is what the API server calls that account.
	User = "system:serviceaccount:" + Namespace + ":" + Account
)

// Load reads the chart.
func Load(tb testing.TB) *chart.Chart {
	tb.Helper()
	c, err := loader.Load(filepath.Join(moduleRoot(tb), "charts", "cluster-inventory"))
	apitest.Must(tb, err)
	return c
}

// ForRelease returns the chart and what its templates get for a release with values given as
// YAML, on a hub that serves the given versions in addition to Kubernetes' own, or Helm's
// error.
func ForRelease(
	tb testing.TB, release chartutil.ReleaseOptions, values string, versions ...string,
) (*chart.Chart, chartutil.Values, error) {
	tb.Helper()
	capabilities := chartutil.DefaultCapabilities.Copy()
	capabilities.APIVersions = slices.Concat(capabilities.APIVersions, versions)
	given := map[string]any{}
	apitest.Must(tb, yaml.Unmarshal([]byte(values), &given))
	c := Load(tb)
	all, err := chartutil.ToRenderValues(c, given, release, capabilities)
	return c, all, err
}

// Render returns what Helm makes of the chart with values given as YAML, for a hub that
// serves the given versions in addition to Kubernetes' own, or the error it shows.
func Render(tb testing.TB, values string, versions ...string) ([]*unstructured.Unstructured, error) {
	tb.Helper()
	return RenderUpgrade(tb, values, false, versions...)
}

// RenderUpgrade is Render for an upgrade of the chart, or for an installation.
func RenderUpgrade(
	tb testing.TB, values string, upgrade bool, versions ...string,
) ([]*unstructured.Unstructured, error) {
	tb.Helper()
	release := chartutil.ReleaseOptions{Name: "ci", Namespace: Namespace, IsUpgrade: upgrade}
	c, all, err := ForRelease(tb, release, values, versions...)
	if err != nil {
		return nil, err
	}
	files, err := engine.Render(c, all)
	if err != nil {
		return nil, err
	}
	var objects []*unstructured.Unstructured
	for name, content := range files {
		if filepath.Ext(name) != ".yaml" {
			continue
		}
		found, err := manifesttest.Decode(strings.NewReader(content))
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		objects = append(objects, found...)
	}
	slices.SortFunc(objects, func(a, b *unstructured.Unstructured) int {
		return strings.Compare(manifesttest.Identify(a), manifesttest.Identify(b))
	})
	return objects, nil
}

// MustRender is Render for values that the chart accepts.
func MustRender(tb testing.TB, values string, versions ...string) []*unstructured.Unstructured {
	tb.Helper()
	objects, err := Render(tb, values, versions...)
	apitest.Must(tb, err)
	return objects
}

// Rights selects the ClusterRoles and their bindings, and the admission policies.
func Rights(object *unstructured.Unstructured) bool {
	switch object.GetKind() {
	case "ClusterRole", "ClusterRoleBinding", "ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding":
		return !isHook(object)
	default:
		return false
	}
}

// AgentImageRights selects what lets the manager deploy agents of the values' image.
func AgentImageRights(object *unstructured.Unstructured) bool {
	return object.GetLabels()["inventory.open-cluster-management.io/agent-image"] == "true"
}

// AllButProgram selects all that runs no Pod and is no part of a Helm hook.
func AllButProgram(object *unstructured.Unstructured) bool {
	return object.GetKind() != "Deployment" && !isHook(object)
}

func isHook(object *unstructured.Unstructured) bool {
	_, hook := object.GetAnnotations()["helm.sh/hook"]
	return hook
}

// Install creates the selected objects of the chart, rendered with values given as
// YAML, and the namespaces they are in where those do not exist.
func Install(w *apitest.World, values string, selected func(*unstructured.Unstructured) bool) {
	w.T.Helper()
	ensureNamespace(w, Namespace)
	for _, object := range MustRender(w.T, values) {
		if !selected(object) {
			continue
		}
		if namespace := object.GetNamespace(); namespace != "" {
			ensureNamespace(w, namespace)
		}
		w.MustCreate(object)
	}
}

func ensureNamespace(w *apitest.World, name string) {
	w.T.Helper()
	err := w.Create(w.T.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		w.T.Fatal(err)
	}
}

// moduleRoot is the directory of this module, which the package under test is below: in it, or
// in its own module.
func moduleRoot(tb testing.TB) string {
	tb.Helper()
	dir, err := os.Getwd()
	apitest.Must(tb, err)
	for {
		if _, err := os.Stat(filepath.Join(dir, "charts", "cluster-inventory", "Chart.yaml")); err == nil {
			return dir
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			tb.Fatal("no chart above the working directory")
		}
		dir = parent
	}
}
