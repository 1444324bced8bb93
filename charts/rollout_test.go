package charts

import (
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/intstr"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	clusterv1alpha1 "open-cluster-management.io/api/cluster/v1alpha1"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
	"sigs.k8s.io/yaml"

	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/engine"

	"open-cluster-management.io/cluster-inventory-addon/internal/apitest"
	"open-cluster-management.io/cluster-inventory-addon/internal/apitest/hubtest"
	"open-cluster-management.io/cluster-inventory-addon/internal/apitest/ocmtest"
	"open-cluster-management.io/cluster-inventory-addon/internal/manifesttest"
	"open-cluster-management.io/cluster-inventory-addon/manifests"
)

// revisionOf returns the AgentRevision among rendered objects.
func revisionOf(t *testing.T, objects []*unstructured.Unstructured) *unstructured.Unstructured {
	t.Helper()
	for _, object := range objects {
		if object.GetKind() == "AgentRevision" {
			return object
		}
	}
	t.Fatal("there is no AgentRevision")
	return nil
}

// TestAgentRevision: it has all values about agents, and is the revision of all clusters.
func TestAgentRevision(t *testing.T) {
	objects := hubtest.MustRender(t, `
image: {repository: example.com/inventory, tag: v9, pullPolicy: Always}
agent:
  {installNamespace: agents, claimLimit: 7, logLevel: 2, logFormat: json, imagePullSecrets: [{name: one}, {name: two}], reservedProperties: ["*.a", b]}
`)
	revision := revisionOf(t, objects)
	want := map[string]any{
		"manifests": manifests.Revision, "image": "example.com/inventory:v9", "imagePullPolicy": "Always",
		"imagePullSecrets": []any{"one", "two"}, "installNamespace": "agents", "claimLimit": 7.0, "logLevel": 2.0,
		"logFormat": "json", "reservedProperties": []any{"*.a", "b"},
	}
	if diff := cmp.Diff(want, revision.Object["spec"]); diff != "" {
		t.Errorf("spec (-want +got):\n%s", diff)
	}
	if policy := revision.GetAnnotations()["helm.sh/resource-policy"]; policy != "keep" {
		t.Errorf("Helm's policy for it is %q: clusters that are not upgraded yet would lose it", policy)
	}
	addon := manifesttest.Find[addonv1beta1.ClusterManagementAddOn](t, objects, "ClusterManagementAddOn", "cluster-inventory")
	wantDefault := []addonv1beta1.AddOnConfig{{
		ConfigGroupResource: agentRevisions, ConfigReferent: addonv1beta1.ConfigReferent{Name: revision.GetName()},
	}}
	if diff := cmp.Diff(wantDefault, addon.Spec.DefaultConfigs); diff != "" {
		t.Errorf("configurations of all clusters (-want +got):\n%s", diff)
	}
	manager := manifesttest.Find[appsv1.Deployment](t, objects, "Deployment", "cluster-inventory-manager")
	for _, argument := range manager.Spec.Template.Spec.Containers[0].Args {
		if strings.HasPrefix(argument, "--agent-") {
			t.Errorf("the manager has %s, which would count at once for clusters without a revision", argument)
		}
	}
}

// TestUsersOfAgents: numbers as large as OpenShift's stay numbers.
func TestUsersOfAgents(t *testing.T) {
	const large = 1000650000
	for values, want := range map[string]any{
		"": nil,
		"agent: {podSecurityContext: {runAsUser: 1000650000, fsGroup: 0}}": map[string]any{"runAsUser": float64(large), "fsGroup": 0.0},
	} {
		spec := revisionOf(t, hubtest.MustRender(t, values)).Object["spec"].(map[string]any)
		if diff := cmp.Diff(want, spec["podSecurityContext"]); diff != "" {
			t.Errorf("%q (-want +got):\n%s", values, diff)
		}
	}
}

// TestAgentRevisionsAreNamedByTheirContent: a change of the agents' settings creates
// another one, and no other change does.
func TestAgentRevisionsAreNamedByTheirContent(t *testing.T) {
	name := func(values string) string {
		t.Helper()
		return revisionOf(t, hubtest.MustRender(t, values)).GetName()
	}
	plain := name("")
	for _, values := range []string{
		"image: {repository: example.com/inventory}", "image: {tag: v9}", "image: {pullPolicy: Always}",
		"image: {digest: 'sha256:" + strings.Repeat("a", 64) + "'}", "agent: {installNamespace: agents}",
		"agent: {claimLimit: 7}", "agent: {reservedProperties: []}", "agent: {logLevel: 1}", "agent: {logFormat: json}", "agent: {imagePullSecrets: []}",
		"agent: {networkPolicy: {enabled: true}}", "agent: {podSecurityContext: {runAsUser: 5}}",
	} {
		if name(values) == plain {
			t.Errorf("%s makes no other revision", values)
		}
	}
	for _, values := range []string{
		"replicas: 2", "logLevel: 4", "cleanupTimeout: 1m", "workers: {total: 5}", "resources: {limits: {memory: 1Gi}}",
		"agent: {config: {nodeSelector: {zone: a}}}", "imagePullSecrets: [{name: other}]", placements,
		"networkPolicy: {enabled: true}", "podSecurityContext: {runAsUser: 5}",
	} {
		if name(values) != plain {
			t.Errorf("%s makes another revision", values)
		}
	}
}

func TestRolloutStrategy(t *testing.T) {
	tests := map[string]struct {
		rollout string
		want    clusterv1alpha1.RolloutStrategy
	}{
		"by default all at once, each with a deadline": {want: clusterv1alpha1.RolloutStrategy{
			Type: "All", All: &clusterv1alpha1.RolloutAll{RolloutConfig: clusterv1alpha1.RolloutConfig{ProgressDeadline: "10m"}},
		}},
		"progressive": {
			rollout: "{type: Progressive, maxConcurrency: 25%, maxFailures: 2, minSuccessTime: 5m, progressDeadline: 1h, " +
				"mandatoryDecisionGroups: [{groupName: canary}, {groupIndex: 1}]}",
			want: clusterv1alpha1.RolloutStrategy{Type: "Progressive", Progressive: &clusterv1alpha1.RolloutProgressive{
				RolloutConfig: rolloutConfig("5m", "1h", intstr.FromInt32(2)), MaxConcurrency: intstr.FromString("25%"),
				MandatoryDecisionGroups: clusterv1alpha1.MandatoryDecisionGroups{
					MandatoryDecisionGroups: []clusterv1alpha1.MandatoryDecisionGroup{{GroupName: "canary"}, {GroupIndex: 1}},
				},
			}},
		},
		"progressive, with what is left out": {
			rollout: "{type: Progressive}",
			want: clusterv1alpha1.RolloutStrategy{Type: "Progressive", Progressive: &clusterv1alpha1.RolloutProgressive{
				RolloutConfig: rolloutConfig("0s", "10m", intstr.FromInt32(0)),
			}},
		},
		"a group after the other": {
			rollout: "{type: ProgressivePerGroup, maxConcurrency: 3, maxFailures: 10%, progressDeadline: None}",
			want: clusterv1alpha1.RolloutStrategy{
				Type: "ProgressivePerGroup", ProgressivePerGroup: &clusterv1alpha1.RolloutProgressivePerGroup{
					RolloutConfig: rolloutConfig("0s", "None", intstr.FromString("10%")),
				},
			},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			values := placements
			if test.rollout != "" {
				values += "  rollout: " + test.rollout + "\n"
			}
			addon := manifesttest.Find[addonv1beta1.ClusterManagementAddOn](
				t, hubtest.MustRender(t, values), "ClusterManagementAddOn", "cluster-inventory")
			if diff := cmp.Diff(test.want, addon.Spec.InstallStrategy.Placements[0].RolloutStrategy); diff != "" {
				t.Errorf("rollout strategy (-want +got):\n%s", diff)
			}
		})
	}
}

func rolloutConfig(minSuccessTime, deadline string, maxFailures intstr.IntOrString) clusterv1alpha1.RolloutConfig {
	config := clusterv1alpha1.RolloutConfig{ProgressDeadline: deadline, MaxFailures: maxFailures}
	if err := config.MinSuccessTime.UnmarshalJSON([]byte(`"` + minSuccessTime + `"`)); err != nil {
		config.MinSuccessTime = metav1.Duration{}
	}
	return config
}

// TestGroupsOfThePlacement: a rollout by group needs groups.
func TestGroupsOfThePlacement(t *testing.T) {
	groups := `
    decisionStrategy: {groupStrategy: {clustersPerDecisionGroup: 10%, decisionGroups: [{groupName: canary,
      groupClusterSelector: {labelSelector: {matchLabels: {canary: "true"}}}}]}}
`
	placement := manifesttest.Find[clusterv1beta1.Placement](
		t, hubtest.MustRender(t, placements+groups), "Placement", "cluster-inventory")
	got := placement.Spec.DecisionStrategy.GroupStrategy
	if got.ClustersPerDecisionGroup.StrVal != "10%" || len(got.DecisionGroups) != 1 || got.DecisionGroups[0].GroupName != "canary" {
		t.Errorf("groups %+v", got)
	}
}

// TestUpgradesNeedTheDefinition: Helm does not install definitions when it upgrades.
func TestUpgradesNeedTheDefinition(t *testing.T) {
	const addons, revisions = "addon.open-cluster-management.io/v1beta1", "inventory.open-cluster-management.io/v1alpha1"
	for name, test := range map[string]struct {
		upgrade  bool
		versions []string
		refused  bool
	}{
		"an upgrade before the definition is there": {upgrade: true, versions: []string{addons}, refused: true},
		"an upgrade after that":                     {upgrade: true, versions: []string{addons, revisions}},
		"an installation, which brings it":          {versions: []string{addons}},
		"an upgrade that is rendered offline":       {upgrade: true},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := hubtest.RenderUpgrade(t, "", test.upgrade, test.versions...)
			if refused := err != nil && strings.Contains(err.Error(), "helm show crds"); refused != test.refused {
				t.Errorf("refused: %t (%v)", refused, err)
			}
		})
	}
}

// TestEarlierRevisionsStayPartOfTheRelease, with what allows their images, even if only that
// is left: "helm rollback" refuses what exists and is not part of the present release.
func TestEarlierRevisionsStayPartOfTheRelease(t *testing.T) {
	w := server.World(t, ocmtest.Scheme())
	namespace := w.Namespace("release", nil)
	kept := func(object *unstructured.Unstructured, release string) {
		object.SetAnnotations(map[string]string{
			"meta.helm.sh/release-name": release, "meta.helm.sh/release-namespace": namespace,
		})
		object.SetName(release + "-" + object.GetName())
		if object.GetNamespace() != "" {
			object.SetNamespace(namespace)
		}
		w.MustCreate(object)
		w.CleanUp(object)
	}
	earlier := func(release string) (revision, role *unstructured.Unstructured) {
		objects := hubtest.MustRender(t, "image: {repository: "+release+".example.com:5000/agent, tag: earlier}")
		for _, object := range objects {
			if object.GetKind() == "Role" && hubtest.AgentImageRights(object) {
				role = object
			}
		}
		return revisionOf(t, objects), role
	}
	for _, release := range []string{"ci", "another"} {
		revision, role := earlier(release)
		kept(revision, release)
		role.SetName("left")
		kept(role, release)
		_, foreign := earlier(release)
		foreign.SetName("unlabelled")
		foreign.SetLabels(nil)
		kept(foreign, release)
		_, empty := earlier(release)
		empty.SetName("empty")
		empty.Object["rules"] = nil
		kept(empty, release)
	}
	revision, _ := earlier("ci")
	of := "ci-" + revision.GetName()

	release := chartutil.ReleaseOptions{Name: "ci", Namespace: namespace, IsUpgrade: true}
	chart, values, err := hubtest.ForRelease(t, release, "", "inventory.open-cluster-management.io/v1alpha1")
	apitest.Must(t, err)
	files, err := engine.RenderWithClient(chart, values, server.Config(t))
	apitest.Must(t, err)
	objects, err := manifesttest.Decode(strings.NewReader(files["cluster-inventory/templates/agent-revision.yaml"]))
	apitest.Must(t, err)
	now := revisionOf(t, objects).GetName()
	got := map[string]string{}
	for _, object := range objects {
		images := ""
		if rules, _, _ := unstructured.NestedSlice(object.Object, "rules"); len(rules) > 0 {
			names, _, _ := unstructured.NestedStringSlice(rules[0].(map[string]any), "resourceNames")
			images = strings.Join(names, " ")
		}
		got[object.GetKind()+" "+object.GetName()] = images
	}
	const before = "ci.example.com:5000/agent:earlier :earlier"
	version := chart.Metadata.AppVersion
	want := map[string]string{
		"AgentRevision " + now: "", "RoleBinding " + now: "",
		"Role " + now: "quay.io/open-cluster-management/cluster-inventory-addon:" + version + " :" + version,

		"AgentRevision " + of: "", "Role " + of: before, "RoleBinding " + of: "",
		"Role ci-left": before, "RoleBinding ci-left": "",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("objects (-want +got):\n%s", diff)
	}
	for _, file := range []string{"policies.yaml", "manager.yaml"} { // which say from where images may be
		if strings.Contains(files["cluster-inventory/templates/"+file], "another.example.com") {
			t.Errorf("%s allows the repository of another release's AgentRevision", file)
		}
	}
}

// TestAgentsKeepTheRevisionThatTheValuesName: a newer chart may bring other manifests, and with them
// another AgentRevision, even with the same image.
func TestAgentsKeepTheRevisionThatTheValuesName(t *testing.T) {
	w := server.World(t, ocmtest.Scheme())
	namespace := w.Namespace("release", nil)
	present := revisionOf(t, hubtest.MustRender(t, "agent: {claimLimit: 7}"))
	present.SetAnnotations(map[string]string{
		"meta.helm.sh/release-name": "ci", "meta.helm.sh/release-namespace": namespace,
	})
	w.MustCreate(present)
	w.CleanUp(present)
	render := func(name string) (map[string]string, error) {
		release := chartutil.ReleaseOptions{Name: "ci", Namespace: namespace, IsUpgrade: true}
		chart, values, err := hubtest.ForRelease(
			t, release, "agent: {revision: "+name+"}", "inventory.open-cluster-management.io/v1alpha1")
		apitest.Must(t, err)
		return engine.RenderWithClient(chart, values, server.Config(t))
	}

	files, err := render(present.GetName())
	apitest.Must(t, err)
	objects, err := manifesttest.Decode(strings.NewReader(files["cluster-inventory/templates/clustermanagementaddon.yaml"]))
	apitest.Must(t, err)
	addon := manifesttest.Find[addonv1beta1.ClusterManagementAddOn](t, objects, "ClusterManagementAddOn", "cluster-inventory")
	if got := addon.Spec.DefaultConfigs[0].Name; got != present.GetName() {
		t.Errorf("clusters get %s, not %s", got, present.GetName())
	}
	objects, err = manifesttest.Decode(strings.NewReader(files["cluster-inventory/templates/agent-revision.yaml"]))
	apitest.Must(t, err)
	var kept []string
	for _, object := range objects {
		if object.GetName() == present.GetName() {
			kept = append(kept, object.GetKind())
		}
	}
	if diff := cmp.Diff([]string{"AgentRevision", "Role", "RoleBinding"}, kept); diff != "" {
		t.Errorf("kept (-want +got):\n%s", diff)
	}
	if !strings.Contains(files["cluster-inventory/templates/NOTES.txt"], "Agents run AgentRevision "+present.GetName()) {
		t.Error("the notes name another AgentRevision")
	}

	if _, err := render("mistyped"); err == nil || !strings.Contains(err.Error(), "there is no AgentRevision mistyped") {
		t.Errorf("one that does not exist: %v", err)
	}
	if _, err := hubtest.RenderUpgrade(
		t, "agent: {revision: mistyped}", true, "inventory.open-cluster-management.io/v1alpha1"); err != nil {
		t.Errorf("offline: %v", err)
	}
}

// TestUpgradesApplyOurDefinitionAlone: the chart also contains the one of ClusterProfiles,
// but that is Open Cluster Management's where it installs it.
func TestUpgradesApplyOurDefinitionAlone(t *testing.T) {
	var labelled []string
	for _, file := range hubtest.Load(t).CRDObjects() {
		crd := &apiextensionsv1.CustomResourceDefinition{}
		if err := yaml.Unmarshal(file.File.Data, crd); err != nil {
			t.Fatal(err)
		}
		if crd.Labels["app.kubernetes.io/name"] == "cluster-inventory" {
			labelled = append(labelled, crd.Name)
		}
	}
	if diff := cmp.Diff([]string{"agentrevisions.inventory.open-cluster-management.io"}, labelled); diff != "" {
		t.Errorf("definitions with the label (-want +got):\n%s", diff)
	}
	const command = "| kubectl apply --server-side --force-conflicts -l app.kubernetes.io/name=cluster-inventory -f -"
	for _, path := range []string{
		"cluster-inventory/templates/agent-revision.yaml", "../docs/upgrades.md", "../docs/gitops.md",
	} {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		_, after, found := strings.Cut(strings.Join(strings.Fields(string(text)), " "), "helm show crds ")
		if _, after, _ = strings.Cut(after, " "); !found || !strings.HasPrefix(after, command) {
			t.Errorf("%s has another command: %.120s", path, after)
		}
	}
}

// TestValuesThatLookLikeNumbersStayText: a namespace and a Secret may have such names.
func TestValuesThatLookLikeNumbersStayText(t *testing.T) {
	revision := revisionOf(t, hubtest.MustRender(t, `agent: {installNamespace: "123", imagePullSecrets: [{name: "1e3"}]}`))
	spec := revision.Object["spec"].(map[string]any)
	got := []any{spec["installNamespace"], spec["imagePullSecrets"]}
	if diff := cmp.Diff([]any{"123", []any{"1e3"}}, got); diff != "" {
		t.Errorf("namespace and Secrets (-want +got):\n%s", diff)
	}
}
