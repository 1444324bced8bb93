package charts

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/yaml"

	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/engine"

	"open-cluster-management.io/cluster-inventory-addon/internal/apitest"
	"open-cluster-management.io/cluster-inventory-addon/internal/apitest/hubtest"
	"open-cluster-management.io/cluster-inventory-addon/internal/manifesttest"
)

// errLooked is what templates get that look at the hub.
var errLooked = errors.New("the templates look at the hub")

// noHub refuses to be looked at.
type noHub struct{}

func (noHub) GetClientFor(string, string) (dynamic.NamespaceableResourceInterface, bool, error) {
	return nil, false, errLooked
}

// renderAs renders the chart for an installation or an upgrade, on a hub that serves these
// versions and that the templates must not look at.
func renderAs(t *testing.T, values string, upgrade bool, versions ...string) (map[string]string, error) {
	t.Helper()
	release := chartutil.ReleaseOptions{Name: "ci", Namespace: hubtest.Namespace, IsUpgrade: upgrade}
	chart, all, err := hubtest.ForRelease(t, release, values, versions...)
	apitest.Must(t, err)
	return engine.RenderWithClientProvider(chart, all, noHub{})
}

// TestGitOpsRendersTheSameEverywhere: what is committed to a repository must not depend on
// who rendered it, and with which hub at hand.
func TestGitOpsRendersTheSameEverywhere(t *testing.T) {
	const placed = `
gitOps: true
access: {clusterProxy: {namespaceExists: true}}
installStrategy: {type: Placements, placement: {clusterSet: sandbox-fleet}}
`
	for name, values := range map[string]string{
		"a Placement":           placed,
		"without cluster-proxy": "{gitOps: true, access: {clusterProxy: {enabled: false}}}",
	} {
		t.Run(name, func(t *testing.T) {
			offline, err := renderAs(t, values, false)
			apitest.Must(t, err)
			for _, upgrade := range []bool{false, true} {
				onHub, err := renderAs(t, values, upgrade,
					"addon.open-cluster-management.io/v1beta1", "inventory.open-cluster-management.io/v1alpha1")
				apitest.Must(t, err)
				if diff := cmp.Diff(offline, onHub); diff != "" {
					t.Errorf("rendered with a hub, for an upgrade: %t (-without +with):\n%s", upgrade, diff)
				}
			}
		})
	}
	t.Run("not without gitOps", func(t *testing.T) {
		for _, values := range []string{"", "access: {clusterProxy: {enabled: false}}"} {
			_, err := renderAs(t, values, false, "inventory.open-cluster-management.io/v1alpha1")
			if err == nil || !strings.Contains(err.Error(), errLooked.Error()) {
				t.Errorf("%q: nothing looks at the hub, so this test shows nothing: %v", values, err)
			}
		}
	})
}

// TestTheRoleForClusterProxyIsOnlyWhereItCanBe: Argo CD, like Helm, fails as a whole if one
// namespace does not exist.
func TestTheRoleForClusterProxyIsOnlyWhereItCanBe(t *testing.T) {
	for name, test := range map[string]struct {
		values string
		want   bool
		fails  string
	}{
		"offline":             {values: "", want: true},
		"said to exist":       {values: "access: {clusterProxy: {namespaceExists: true}}", want: true},
		"said not to exist":   {values: "access: {clusterProxy: {namespaceExists: false}}"},
		"GitOps, it exists":   {values: "{gitOps: true, access: {clusterProxy: {namespaceExists: true}}}", want: true},
		"GitOps, it does not": {values: "{gitOps: true, access: {clusterProxy: {namespaceExists: false}}}"},
		"GitOps, and nothing is said": {
			values: "gitOps: true", fails: "set access.clusterProxy.namespaceExists to true or false",
		},
		"GitOps, without cluster-proxy": {values: "{gitOps: true, access: {clusterProxy: {enabled: false}}}"},
	} {
		t.Run(name, func(t *testing.T) {
			objects, err := hubtest.Render(t, test.values)
			if test.fails != "" {
				if err == nil || !strings.Contains(err.Error(), test.fails) {
					t.Errorf("got %v, want %q in it", err, test.fails)
				}
				return
			}
			apitest.Must(t, err)
			has := false
			for _, object := range objects {
				switch namespace := object.GetNamespace(); namespace {
				case "", hubtest.Namespace:
				case "open-cluster-management-addon":
					has = true
				default:
					t.Errorf("%s is in a namespace that need not exist", manifesttest.Identify(object))
				}
			}
			if has != test.want {
				t.Errorf("something is in cluster-proxy's namespace: %t, want %t", has, test.want)
			}
		})
	}
}

// TestRevisionsOutliveTheirRendering: clusters whose turn has not come have earlier ones, which
// neither Helm nor Argo CD may remove.
func TestRevisionsOutliveTheirRendering(t *testing.T) {
	for values, want := range map[string]map[string]string{
		"": {"helm.sh/resource-policy": "keep"},
		"{gitOps: true, access: {clusterProxy: {enabled: false}}}": {
			"helm.sh/resource-policy":            "keep",
			"argocd.argoproj.io/sync-options":    "Prune=false",
			"argocd.argoproj.io/compare-options": "IgnoreExtraneous",
		},
	} {
		if diff := cmp.Diff(want, revisionOf(t, hubtest.MustRender(t, values)).GetAnnotations()); diff != "" {
			t.Errorf("%q: annotations (-want +got):\n%s", values, diff)
		}
	}
}

// TestTheUninstallHookCanBeAppliedAlone, as docs/gitops.md says: its file has all that its Job
// needs.
func TestTheUninstallHookCanBeAppliedAlone(t *testing.T) {
	files, err := renderAs(t, "{gitOps: true, access: {clusterProxy: {enabled: false}}}", false)
	apitest.Must(t, err)
	var kinds []string
	for document := range strings.SplitSeq(files["cluster-inventory/templates/uninstall.yaml"], "\n---\n") {
		object := &unstructured.Unstructured{}
		apitest.Must(t, yaml.Unmarshal([]byte(document), &object.Object))
		kinds = append(kinds, object.GetKind())
	}
	want := []string{"ServiceAccount", "ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding", "Job"}
	if diff := cmp.Diff(want, kinds); diff != "" {
		t.Errorf("objects (-want +got):\n%s", diff)
	}
}
