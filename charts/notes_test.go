package charts

import (
	"os"
	"strings"
	"testing"

	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/engine"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1beta2 "open-cluster-management.io/api/cluster/v1beta2"

	"open-cluster-management.io/cluster-inventory-addon/internal/apitest"
	"open-cluster-management.io/cluster-inventory-addon/internal/apitest/hubtest"
	"open-cluster-management.io/cluster-inventory-addon/internal/apitest/ocmtest"
)

// TestNotesAgreeWithTheDocs: the command that Helm prints after an installation is the one
// that the operations guide explains.
func TestNotesAgreeWithTheDocs(t *testing.T) {
	docs, err := os.ReadFile("../docs/operations.md")
	apitest.Must(t, err)
	const uninstall = "    helm uninstall cluster-inventory -n open-cluster-management-cluster-inventory --timeout "
	if !strings.Contains(string(docs), "\n"+uninstall+"25m\n") {
		t.Errorf("docs/operations.md does not say %q", uninstall+"25m")
	}
	for values, want := range map[string]string{
		"":         uninstall + "25m\n",
		placements: uninstall + "25m\n",
		"installStrategy: {type: Manual, placement: {clusterSet: sandbox-fleet}}": "Placement " +
			"open-cluster-management-cluster-inventory/cluster-inventory installs nothing yet. Once it has decided, let it choose the clusters:\n" +
			"    helm upgrade cluster-inventory CHART -n open-cluster-management-cluster-inventory --reset-then-reuse-values " +
			"--set installStrategy.type=Placements\n",
		// Helm must wait longer than the hook does.
		"uninstall: {timeout: 40m}": uninstall + "TIMEOUT\n",
	} {
		if notes := notesOf(t, values); !strings.Contains(notes, want) {
			t.Errorf("%q: the notes do not say %q:\n%s", values, want, notes)
		}
	}
}

// TestNotesWarnOfSharedNamespaces: users who may create pods in the release's namespace can
// act as the manager, so the notes warn of consumers and of OCM's operator there.
func TestNotesWarnOfSharedNamespaces(t *testing.T) {
	h := newHub(t, server)
	bound := h.Namespace("bound", nil)
	binding := h.Bind(bound, "production")
	quiet := h.Bind(bound, "quiet")
	publish := func(value string) func(*clusterv1beta2.ManagedClusterSetBinding) {
		return func(b *clusterv1beta2.ManagedClusterSetBinding) {
			b.Labels = map[string]string{"inventory.open-cluster-management.io/publish": value}
		}
	}
	apitest.Edit(h, quiet, publish("false"))
	operator := h.Namespace("operator", nil)
	labels := map[string]string{"app": "cluster-manager"}
	deployment := &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: operator, Name: "cluster-manager"},
		Spec: appsv1.DeploymentSpec{
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "operator", Image: "operator"}}},
			},
		},
	}
	h.MustCreate(deployment)
	h.CleanUp(binding, quiet, deployment)
	const sets, operators = "WARNING: this namespace binds ", "WARNING: this is the namespace of Open Cluster Management's operator"
	warns := func(namespace string, want ...string) {
		t.Helper()
		release := chartutil.ReleaseOptions{Name: "cluster-inventory", Namespace: namespace}
		chart, all, err := hubtest.ForRelease(t, release, "", "cluster.open-cluster-management.io/v1beta2")
		apitest.Must(t, err)
		files, err := engine.RenderWithClient(chart, all, server.Config(t))
		apitest.Must(t, err)
		notes := files["cluster-inventory/templates/NOTES.txt"]
		if strings.Count(notes, "WARNING") != len(want) {
			t.Errorf("in %s, the notes have other warnings than %q:\n%s", namespace, want, notes)
		}
		for _, warning := range want {
			if !strings.Contains(notes, warning) {
				t.Errorf("in %s, the notes do not say %q:\n%s", namespace, warning, notes)
			}
		}
	}
	warns(h.Namespace("own", nil))
	warns("open-cluster-management", operators)
	warns(operator, operators)
	warns(bound, sets+"production, so")
	apitest.Edit(h, binding, publish("false"))
	warns(bound)
}

// TestNotesWarnOfTheInstallSet: who sees clusters is up to bindings, so an exclusive set is seldom
// the one to install on; and a change of the agents of many clusters should not reach all at once.
func TestNotesWarnOfTheInstallSet(t *testing.T) {
	h := newHub(t, server)
	exclusive := h.ExclusiveSet("exclusive")
	broad := h.Set("broad", clusterv1beta2.ManagedClusterSelector{
		SelectorType: clusterv1beta2.LabelSelector, LabelSelector: &metav1.LabelSelector{},
	})
	notes := func(set, more string) string {
		t.Helper()
		release := chartutil.ReleaseOptions{Name: "cluster-inventory", Namespace: h.Namespace("own", nil)}
		values := "installStrategy: {type: Placements, placement: {clusterSet: " + set + "}" + more + "}"
		chart, all, err := hubtest.ForRelease(t, release, values, "cluster.open-cluster-management.io/v1beta2")
		apitest.Must(t, err)
		files, err := engine.RenderWithClient(chart, all, server.Config(t))
		apitest.Must(t, err)
		return files["cluster-inventory/templates/NOTES.txt"]
	}
	const isExclusive, isMany = "is exclusive. A cluster that moves", "reaches all 50 clusters"
	warns := func(what, notes string, want ...string) {
		t.Helper()
		if strings.Count(notes, "WARNING") != len(want) {
			t.Errorf("%s: the notes have other warnings than %q:\n%s", what, want, notes)
		}
		for _, warning := range want {
			if !strings.Contains(notes, warning) {
				t.Errorf("%s: the notes do not say %q:\n%s", what, warning, notes)
			}
		}
	}
	// As OCM's registration controller says it.
	has := func(message string) {
		t.Helper()
		apitest.EditStatus(h, broad, func(s *clusterv1beta2.ManagedClusterSet) {
			s.Status.Conditions = []metav1.Condition{ocmtest.Condition("ClusterSetEmpty", "False", "ClustersSelected", message)}
		})
	}
	warns("an exclusive set", notes(exclusive.Name, ""), isExclusive)
	warns("a set that OCM has not counted", notes(broad.Name, ""))
	has("49 ManagedClusters selected")
	warns("49 clusters", notes(broad.Name, ""))
	has("50 ManagedClusters selected")
	warns("50 clusters", notes(broad.Name, ""), isMany)
	warns("50 clusters, some at a time", notes(broad.Name, ", rollout: {type: Progressive}"))
	has("No ManagedCluster selected")
	warns("none", notes(broad.Name, ""))

	// The block in the notes is what the chart takes.
	has("50 ManagedClusters selected")
	_, block, _ := strings.Cut(notes(broad.Name, ""), "set these values:\n")
	block, _, _ = strings.Cut(block, "\n\n")
	objects, err := hubtest.Render(t, block)
	apitest.Must(t, err)
	if len(objects) == 0 || !strings.Contains(block, "maxConcurrency: 10%") {
		t.Errorf("the block is %q", block)
	}
}

// notesOf returns what Helm prints after an installation.
func notesOf(t *testing.T, values string) string {
	t.Helper()
	release := chartutil.ReleaseOptions{Name: "cluster-inventory", Namespace: "open-cluster-management-cluster-inventory"}
	chart, all, err := hubtest.ForRelease(t, release, values)
	apitest.Must(t, err)
	files, err := engine.Render(chart, all)
	apitest.Must(t, err)
	return files["cluster-inventory/templates/NOTES.txt"]
}
