// Package charts tests what the chart installs, what it grants and what its schema
// rejects.
package charts

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	clusterv1alpha1 "open-cluster-management.io/api/cluster/v1alpha1"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
	clusterv1beta2 "open-cluster-management.io/api/cluster/v1beta2"

	"helm.sh/helm/v3/pkg/chart"

	"open-cluster-management.io/cluster-inventory-addon/internal/apitest/hubtest"
	"open-cluster-management.io/cluster-inventory-addon/internal/certtest"
	"open-cluster-management.io/cluster-inventory-addon/internal/manifesttest"
)

const chartDir = "cluster-inventory"

func identifyAll(objects []*unstructured.Unstructured) []string {
	var all []string
	for _, object := range objects {
		all = append(all, manifesttest.Identify(object))
	}
	return all
}

const placements = `
installStrategy:
  type: Placements
  placement:
    clusterSet: sandbox-fleet
`

func TestWhatIsInstalled(t *testing.T) {
	always := []string{
		"ClusterManagementAddOn /cluster-inventory",
		"ClusterRole /open-cluster-management:cluster-inventory:access",
		"ClusterRole /open-cluster-management:cluster-inventory:agent-on-hub",
		"ClusterRole /open-cluster-management:cluster-inventory:credentials",
		"ClusterRole /open-cluster-management:cluster-inventory:manager",
		"ClusterRole /open-cluster-management:cluster-inventory:metrics",
		"ClusterRole /open-cluster-management:cluster-inventory:metrics-reader",
		"ClusterRole /open-cluster-management:cluster-inventory:token-source",
		"ClusterRole /open-cluster-management:cluster-inventory:token-target",
		"ClusterRole /open-cluster-management:cluster-inventory:uninstall",
		"ClusterRoleBinding /open-cluster-management:cluster-inventory:credentials",
		"ClusterRoleBinding /open-cluster-management:cluster-inventory:access",
		"ClusterRoleBinding /open-cluster-management:cluster-inventory:manager",
		"ClusterRoleBinding /open-cluster-management:cluster-inventory:metrics",
		"ClusterRoleBinding /open-cluster-management:cluster-inventory:uninstall",
		"ConfigMap inventory-system/cluster-inventory-access-ca",
		"ConfigMap inventory-system/cluster-inventory-applied-without-hooks",
		"Deployment inventory-system/cluster-inventory-manager",
		"Job inventory-system/cluster-inventory-uninstall",
		"Lease inventory-system/cluster-inventory-manager",
		"Pod inventory-system/cluster-inventory-test",
		"Role inventory-system/cluster-inventory-access",
		"Role inventory-system/cluster-inventory-manager",
		"Role inventory-system/cluster-inventory-uninstall",
		"Role open-cluster-management-addon/cluster-inventory-cluster-proxy",
		"RoleBinding inventory-system/cluster-inventory-access",
		"RoleBinding inventory-system/cluster-inventory-manager",
		"RoleBinding inventory-system/cluster-inventory-uninstall",
		"RoleBinding open-cluster-management-addon/cluster-inventory-cluster-proxy",
		"Service inventory-system/cluster-inventory-metrics",
		"ServiceAccount inventory-system/cluster-inventory-manager",
		"ServiceAccount inventory-system/cluster-inventory-uninstall",
		"ValidatingAdmissionPolicy /cluster-inventory-addons",
		"ValidatingAdmissionPolicy /cluster-inventory-certificates",
		"ValidatingAdmissionPolicy /cluster-inventory-clusterprofiles",
		"ValidatingAdmissionPolicy /cluster-inventory-configmaps",
		"ValidatingAdmissionPolicy /cluster-inventory-events",
		"ValidatingAdmissionPolicy /cluster-inventory-leases",
		"ValidatingAdmissionPolicy /cluster-inventory-manifestworks",
		"ValidatingAdmissionPolicy /cluster-inventory-placementdecisions",
		"ValidatingAdmissionPolicy /cluster-inventory-rolebindings",
		"ValidatingAdmissionPolicy /cluster-inventory-secrets",
		"ValidatingAdmissionPolicy /cluster-inventory-token-grants",
		"ValidatingAdmissionPolicy /cluster-inventory-token-source",
		"ValidatingAdmissionPolicy /cluster-inventory-token-target",
		"ValidatingAdmissionPolicyBinding /cluster-inventory-addons",
		"ValidatingAdmissionPolicyBinding /cluster-inventory-certificates",
		"ValidatingAdmissionPolicyBinding /cluster-inventory-clusterprofiles",
		"ValidatingAdmissionPolicyBinding /cluster-inventory-configmaps",
		"ValidatingAdmissionPolicyBinding /cluster-inventory-events",
		"ValidatingAdmissionPolicyBinding /cluster-inventory-leases",
		"ValidatingAdmissionPolicyBinding /cluster-inventory-manifestworks",
		"ValidatingAdmissionPolicyBinding /cluster-inventory-placementdecisions",
		"ValidatingAdmissionPolicyBinding /cluster-inventory-rolebindings",
		"ValidatingAdmissionPolicyBinding /cluster-inventory-secrets",
		"ValidatingAdmissionPolicyBinding /cluster-inventory-token-grants",
		"ValidatingAdmissionPolicyBinding /cluster-inventory-token-source",
		"ValidatingAdmissionPolicyBinding /cluster-inventory-token-target",
	}
	tests := map[string]struct {
		values string
		also   []string
	}{
		"by default nothing is placed": {values: ""},
		"a placement and its binding": {values: placements, also: []string{
			"ManagedClusterSetBinding inventory-system/sandbox-fleet", "Placement inventory-system/cluster-inventory",
		}},
		"a placement in another namespace": {
			values: placements + "    namespace: fleet\n    name: everyone\n",
			also: []string{
				"ManagedClusterSetBinding fleet/sandbox-fleet", "Placement fleet/everyone",
			},
		},
		"the set is bound already": {
			values: placements + "    createBinding: false\n",
			also:   []string{"Placement inventory-system/cluster-inventory"},
		},
		"a placement on which nothing depends yet": {
			values: "installStrategy: {type: Manual, placement: {clusterSet: sandbox-fleet}}",
			also: []string{
				"ManagedClusterSetBinding inventory-system/sandbox-fleet", "Placement inventory-system/cluster-inventory",
			},
		},
		"the placement is there already": {
			values: "installStrategy: {type: Placements, placement: {create: false, name: mine}}",
		},
		"a configuration of the agents": {
			values: "agent: {config: {nodeSelector: {zone: a}}}",
			also:   []string{"AddOnDeploymentConfig inventory-system/cluster-inventory-agent"},
		},
		"a configuration that is there already": {
			values: "agent: {existingConfig: {namespace: fleet, name: mine}}",
		},
		"everything that monitors": {
			values: `
metrics:
  certificateSecret: serving
  readers: [{namespace: monitoring, name: prometheus}]
  serviceMonitor: {enabled: true}
  rules: {enabled: true}
  dashboard: {enabled: true}
`,
			also: []string{
				"ClusterRoleBinding /open-cluster-management:cluster-inventory:metrics-reader",
				"ConfigMap inventory-system/cluster-inventory-dashboard",
				"PrometheusRule inventory-system/cluster-inventory",
				"ServiceMonitor inventory-system/cluster-inventory",
			},
		},
		"a network policy": {
			values: "networkPolicy: {enabled: true}",
			also:   []string{"NetworkPolicy inventory-system/cluster-inventory"},
		},
		"several managers": {
			values: "replicas: 3",
			also:   []string{"PodDisruptionBudget inventory-system/cluster-inventory-manager"},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			objects := hubtest.MustRender(t, test.values)
			revision := revisionOf(t, objects).GetName()
			also := slices.Concat(always, test.also, []string{
				"AgentRevision /" + revision, "Role inventory-system/" + revision, "RoleBinding inventory-system/" + revision,
			})
			if diff := cmp.Diff(slices.Sorted(slices.Values(also)), identifyAll(objects)); diff != "" {
				t.Errorf("objects (-want +got):\n%s", diff)
			}
		})
	}
}

func TestInstallStrategy(t *testing.T) {
	tests := map[string]struct {
		values string
		want   addonv1beta1.InstallStrategy
	}{
		"manual": {want: addonv1beta1.InstallStrategy{Type: "Manual"}},
		"placements, by default next to the manager": {values: placements, want: addonv1beta1.InstallStrategy{
			Type:       "Placements",
			Placements: []addonv1beta1.PlacementStrategy{placed("inventory-system", "cluster-inventory")},
		}},
		"a placement that is there already": {
			values: "installStrategy: {type: Placements, placement: {create: false, name: mine, namespace: fleet}}",
			want: addonv1beta1.InstallStrategy{
				Type:       "Placements",
				Placements: []addonv1beta1.PlacementStrategy{placed("fleet", "mine")},
			},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			addon := manifesttest.Find[addonv1beta1.ClusterManagementAddOn](
				t, hubtest.MustRender(t, test.values), "ClusterManagementAddOn", "cluster-inventory",
			)
			if diff := cmp.Diff(test.want, addon.Spec.InstallStrategy); diff != "" {
				t.Errorf("install strategy (-want +got):\n%s", diff)
			}
			want := map[string]string{
				"addon.open-cluster-management.io/lifecycle":             "addon-manager",
				"inventory.open-cluster-management.io/keep-profiles":     "false",
				"inventory.open-cluster-management.io/manager-namespace": "inventory-system",
			}
			if diff := cmp.Diff(want, addon.Annotations); diff != "" {
				t.Errorf("annotations (-want +got):\n%s", diff)
			}
			if addon.APIVersion != "addon.open-cluster-management.io/v1beta1" {
				t.Errorf("version %s", addon.APIVersion)
			}
		})
	}
}

// TestAgentConfiguration: what the values say is what the manager takes for right, and
// is the configuration of all clusters.
func TestAgentConfiguration(t *testing.T) {
	ca := string(certtest.NewCA(t, "proxy", time.Now().Add(time.Hour)).PEM())
	values := fmt.Sprintf(`
agent:
  config:
    nodeSelector: {zone: a}
    tolerations: [{key: dedicated, operator: Exists}]
    resources: {limits: {memory: 1Gi}}
    registries: [{source: quay.io, mirror: "mirror.example.com:5000"}]
    proxy: {http: "http://proxy:3128", https: "https://u:p@proxy:3129/", noProxy: "localhost,10.0.0.0/8", caBundle: %q}
`, ca)
	objects := hubtest.MustRender(t, values)
	config := manifesttest.Find[addonv1beta1.AddOnDeploymentConfig](
		t, objects, "AddOnDeploymentConfig", "cluster-inventory-agent")
	want := addonv1beta1.AddOnDeploymentConfigSpec{
		NodePlacement: &addonv1beta1.NodePlacement{
			NodeSelector: map[string]string{"zone": "a"},
			Tolerations:  []corev1.Toleration{{Key: "dedicated", Operator: "Exists"}},
		},
		ResourceRequirements: []addonv1beta1.ContainerResourceRequirements{{
			ContainerID: "deployments:cluster-inventory-agent:agent",
			Resources:   corev1.ResourceRequirements{Limits: corev1.ResourceList{"memory": resource.MustParse("1Gi")}},
		}},
		Registries: []addonv1beta1.ImageMirror{{Source: "quay.io", Mirror: "mirror.example.com:5000"}},
		ProxyConfig: addonv1beta1.ProxyConfig{
			HTTPProxy: "http://proxy:3128", HTTPSProxy: "https://u:p@proxy:3129/", NoProxy: "localhost,10.0.0.0/8",
			CABundle: []byte(ca),
		},
	}
	if diff := cmp.Diff(want, config.Spec); diff != "" {
		t.Errorf("configuration (-want +got):\n%s", diff)
	}
	reference := func(namespace, name string) []addonv1beta1.AddOnConfig {
		return []addonv1beta1.AddOnConfig{{
			ConfigGroupResource: addonv1beta1.ConfigGroupResource{
				Group: "addon.open-cluster-management.io", Resource: "addondeploymentconfigs",
			},
			ConfigReferent: addonv1beta1.ConfigReferent{Namespace: namespace, Name: name},
		}}
	}
	for name, test := range map[string]struct {
		values       string
		all, ofPlace []addonv1beta1.AddOnConfig
	}{
		"none":               {values: placements},
		"the chart's":        {values: values, all: reference("inventory-system", "cluster-inventory-agent")},
		"one that is there":  {values: "agent: {existingConfig: {namespace: a, name: b}}", all: reference("a", "b")},
		"one of a placement": {values: placements + "    config: {namespace: a, name: b}", ofPlace: reference("a", "b")},
	} {
		addon := manifesttest.Find[addonv1beta1.ClusterManagementAddOn](
			t, hubtest.MustRender(t, test.values), "ClusterManagementAddOn", "cluster-inventory")
		all := slices.DeleteFunc(addon.Spec.DefaultConfigs, func(config addonv1beta1.AddOnConfig) bool {
			return config.ConfigGroupResource == agentRevisions
		})
		if diff := cmp.Diff(test.all, all, cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("%s: of all clusters (-want +got):\n%s", name, diff)
		}
		var ofPlace []addonv1beta1.AddOnConfig
		for _, placement := range addon.Spec.InstallStrategy.Placements {
			ofPlace = append(ofPlace, placement.Configs...)
		}
		if diff := cmp.Diff(test.ofPlace, ofPlace); diff != "" {
			t.Errorf("%s: of the placement (-want +got):\n%s", name, diff)
		}
	}
}

// TestImageByDigest: the digest names the image of manager, hook and agent, regardless of the
// tag, and Secrets to pull it reach each of them. TestSeveralManagers: more than one prefer
// different zones and nodes, and a drain takes one at a time. One alone has nothing of this,
// so that no upgrade restarts it for that.
func TestSeveralManagers(t *testing.T) {
	render := func(values string) (corev1.PodSpec, []*unstructured.Unstructured) {
		objects := hubtest.MustRender(t, values)
		return manifesttest.Find[appsv1.Deployment](
			t, objects, "Deployment", "cluster-inventory-manager",
		).Spec.Template.Spec, objects
	}
	if alone, _ := render("replicas: 1"); len(alone.TopologySpreadConstraints) > 0 {
		t.Errorf("one alone is spread: %+v", alone.TopologySpreadConstraints)
	}
	two, objects := render("replicas: 2")
	budget := manifesttest.Find[policyv1.PodDisruptionBudget](
		t, objects, "PodDisruptionBudget", "cluster-inventory-manager",
	)
	if got := budget.Spec.MaxUnavailable.IntValue(); got != 1 || budget.Spec.Selector == nil {
		t.Fatalf("the budget is %+v", budget.Spec)
	}
	want := []corev1.TopologySpreadConstraint{{
		MaxSkew: 1, TopologyKey: "topology.kubernetes.io/zone", WhenUnsatisfiable: corev1.ScheduleAnyway,
		LabelSelector: budget.Spec.Selector,
	}}
	if diff := cmp.Diff(want, two.TopologySpreadConstraints); diff != "" {
		t.Errorf("two are spread (-want +got):\n%s", diff)
	}
	if len(two.Affinity.PodAntiAffinity.PreferredDuringSchedulingIgnoredDuringExecution) != 1 {
		t.Errorf("affinity %+v", two.Affinity)
	}
	own, _ := render(`
replicas: 2
topologySpreadConstraints: [{maxSkew: 2, topologyKey: rack, whenUnsatisfiable: DoNotSchedule}]
`)
	if spread := own.TopologySpreadConstraints; len(spread) != 1 || spread[0].TopologyKey != "rack" {
		t.Errorf("constraints %+v, want the operator's", spread)
	}
}

func TestImageByDigest(t *testing.T) {
	const image = "example.com/inventory@sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
	objects := hubtest.MustRender(t, `
image:
  repository: example.com/inventory
  tag: v9
  digest: sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef
imagePullSecrets: [{name: hub}]
`)
	manager := manifesttest.Find[appsv1.Deployment](t, objects, "Deployment", "cluster-inventory-manager").Spec.Template.Spec
	hook := manifesttest.Find[batchv1.Job](t, objects, "Job", "cluster-inventory-uninstall").Spec.Template.Spec
	for name, pod := range map[string]corev1.PodSpec{"manager": manager, "hook": hook} {
		if got := pod.Containers[0].Image; got != image {
			t.Errorf("the %s has image %s", name, got)
		}
		if diff := cmp.Diff([]corev1.LocalObjectReference{{Name: "hub"}}, pod.ImagePullSecrets); diff != "" {
			t.Errorf("pull secrets of the %s (-want +got):\n%s", name, diff)
		}
	}
	agent, _ := revisionOf(t, objects).Object["spec"].(map[string]any)
	want := []any{image, []any{"open-cluster-management-image-pull-credentials"}}
	if diff := cmp.Diff(want, []any{agent["image"], agent["imagePullSecrets"]}); diff != "" {
		t.Errorf("the agent's image and pull secrets (-want +got):\n%s", diff)
	}
}

func placed(namespace, name string) addonv1beta1.PlacementStrategy {
	s := addonv1beta1.PlacementStrategy{PlacementRef: addonv1beta1.PlacementRef{Namespace: namespace, Name: name}}
	s.RolloutStrategy.Type = "All"
	s.RolloutStrategy.All = &clusterv1alpha1.RolloutAll{
		RolloutConfig: clusterv1alpha1.RolloutConfig{ProgressDeadline: "10m"},
	}
	return s
}

// TestPlacementKeepsUnreachableClusters: the Placement must tolerate the taints of
// an unreachable cluster, which would otherwise lose the addon.
func TestPlacementKeepsUnreachableClusters(t *testing.T) {
	objects := hubtest.MustRender(t, placements)
	placement := manifesttest.Find[clusterv1beta1.Placement](t, objects, "Placement", "cluster-inventory")
	var tolerated []string
	for _, toleration := range placement.Spec.Tolerations {
		tolerated = append(tolerated, toleration.Key)
	}
	if diff := cmp.Diff(
		[]string{"cluster.open-cluster-management.io/unreachable", "cluster.open-cluster-management.io/unavailable"},
		tolerated,
	); diff != "" {
		t.Errorf("tolerations (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"sandbox-fleet"}, placement.Spec.ClusterSets); diff != "" {
		t.Errorf("sets (-want +got):\n%s", diff)
	}
	binding := manifesttest.Find[clusterv1beta2.ManagedClusterSetBinding](
		t, objects, "ManagedClusterSetBinding", "sandbox-fleet",
	)
	if binding.Spec.ClusterSet != "sandbox-fleet" ||
		binding.Labels["inventory.open-cluster-management.io/publish"] != "false" {
		t.Errorf("the chart's own binding publishes: %+v", binding)
	}
}

func TestManagerArguments(t *testing.T) {
	values := `
image: {repository: example.com/inventory, tag: v9, pullPolicy: Always}
agent:
  installNamespace: agents
  claimLimit: 7
  logLevel: 2
  imagePullSecrets: [{name: one}, {name: two}]
  allowedRegistries: [mirror.example.com/ocm]
  config: {registries: [{mirror: other.example.com/}, {mirror: mirror.example.com/ocm}]}
  hosted: {enabled: true}
cleanupTimeout: 90s
cleanupJobTimeout: 45m
workers: {total: 5, perNamespace: 2}
pprofBindAddress: 127.0.0.1:6060
upstreamGates: "off"
upstreamRegistrationClusterRole: other
profiles: {exclusiveSetsOnly: true, labelAllow: [region, example.com/*], propertyLabels: [region.example.com], maxProperties: 50, maxPropertyBytes: 200000, writeInterval: 2.5s}
decisions: {enabled: false}
credentials: {mode: draining, requireTarget: false, upstreamSyncer: off}
access:
  clusterProxy:
    namespace: proxy
    configuration: mine
    url: https://proxy.example.com/p
    caBundle: "-----BEGIN CERTIFICATE-----"
metrics: {certificateSecret: serving, byNamespace: true}
logFormat: json
logLevel: 4
uninstall: {timeout: 20m, keepProfiles: true}
podAnnotations: {a: b}
`
	objects := hubtest.MustRender(t, values)
	definition := manifesttest.Find[addonv1beta1.ClusterManagementAddOn](
		t, objects, "ClusterManagementAddOn", "cluster-inventory")
	if definition.Annotations["inventory.open-cluster-management.io/exclusive-sets-only"] != "true" {
		t.Errorf("kubectl inventory does not learn that only exclusive sets publish: %v", definition.Annotations)
	}
	manager := manifesttest.Find[appsv1.Deployment](t, objects, "Deployment", "cluster-inventory-manager").Spec.Template
	want := []string{
		"--allowed-registry=example.com/inventory",
		"--allowed-registry=mirror.example.com/ocm",
		"--allowed-registry=other.example.com",
		"--hosted-agents=true",
		"--cleanup-timeout=90s",
		"--cleanup-job-timeout=45m",
		"--workers=5",
		"--workers-per-namespace=2",
		"--upstream-gates=off",
		"--upstream-registration-clusterrole=other",
		"--exclusive-sets-only",
		"--label-allow=region",
		"--label-allow=example.com/*",
		"--property-label=region.example.com",
		"--max-properties=50",
		"--max-property-bytes=200000",
		"--profile-write-interval=2.5s",
		"--decisions=false",
		"--credentials-mode=draining",
		"--credentials-require-target=false",
		"--credentials-upstream-syncer=off",
		"--access-cluster-proxy=true",
		"--access-cluster-proxy-namespace=proxy",
		"--access-cluster-proxy-configuration=mine",
		"--access-cluster-proxy-url=https://proxy.example.com/p",
		"--access-cluster-proxy-ca-file=/etc/cluster-inventory/access/ca.crt",
		"--leader-elect=true",
		"--health-probe-bind-address=$(POD_IP):8081",
		"--metrics-bind-address=$(POD_IP):8080",
		"--metrics-secure=true",
		"--metrics-cert-dir=/etc/cluster-inventory/metrics",
		"--metrics-by-namespace",
		"--pprof-bind-address=127.0.0.1:6060",
		"--log-format=json",
		"-v=4",
	}
	if diff := cmp.Diff(want, manager.Spec.Containers[0].Args); diff != "" {
		t.Errorf("manager's arguments (-want +got):\n%s", diff)
	}
	if manager.Annotations["a"] != "b" || manager.Spec.Containers[0].Image != "example.com/inventory:v9" {
		t.Errorf("pod template %+v", manager)
	}
	job := manifesttest.Find[batchv1.Job](t, objects, "Job", "cluster-inventory-uninstall")
	uninstall := job.Spec.Template.Spec.Containers[0]
	goLimit := []corev1.EnvVar{{Name: "GOMEMLIMIT", Value: "96MiB"}}
	if limit := uninstall.Resources.Limits.Memory().String(); limit != "128Mi" || !cmp.Equal(goLimit, uninstall.Env) {
		t.Errorf("the hook has a limit of %s and %v, as pkg/hub/uninstall's benchmark has not", limit, uninstall.Env)
	}
	hook := []string{
		"uninstall", "--namespace=inventory-system", "--timeout=20m", "--keep-profiles=true", "--credentials-mode=draining",
		"--upstream-gates=off", "--upstream-registration-clusterrole=other", "--log-format=json",
	}
	if diff := cmp.Diff(hook, uninstall.Args); diff != "" {
		t.Errorf("hook's arguments (-want +got):\n%s", diff)
	}
	for _, program := range []string{"manager", "uninstall"} {
		role := manifesttest.Find[rbacv1.ClusterRole](
			t, objects, "ClusterRole", "open-cluster-management:cluster-inventory:"+program,
		)
		if !slices.ContainsFunc(role.Rules, func(r rbacv1.PolicyRule) bool {
			return slices.Equal(r.Resources, []string{"clusterroles"}) && slices.Equal(r.ResourceNames, []string{"other"})
		}) {
			t.Errorf("%s may not read the ClusterRole it is told to read", program)
		}
	}
}

func TestDefaultImageIsTheChartsVersion(t *testing.T) {
	objects := hubtest.MustRender(t, "")
	deployment := manifesttest.Find[appsv1.Deployment](t, objects, "Deployment", "cluster-inventory-manager")
	manager := deployment.Spec.Template.Spec.Containers[0]
	want := "quay.io/open-cluster-management/cluster-inventory-addon:" + hubtest.Load(t).Metadata.AppVersion
	if manager.Image != want {
		t.Errorf("image %s, want %s", manager.Image, want)
	}
}

// TestGatesOffWithoutQuotes: YAML reads a bare off as false.
func TestGatesOffWithoutQuotes(t *testing.T) {
	objects := hubtest.MustRender(t, "upstreamGates: off")
	deployment := manifesttest.Find[appsv1.Deployment](t, objects, "Deployment", "cluster-inventory-manager")
	manager := deployment.Spec.Template.Spec.Containers[0]
	if !slices.Contains(manager.Args, "--upstream-gates=off") {
		t.Errorf("arguments %v", manager.Args)
	}
}

func TestSchemaRejects(t *testing.T) {
	tests := map[string]struct {
		values string
		want   string // part of the message
	}{
		"a value that does not exist":        {values: "agnet: {}", want: "agnet"},
		"a nested value that does not exist": {values: "agent: {claimlimit: 3}", want: "claimlimit"},
		"an unknown strategy":                {values: "installStrategy: {type: Placement}", want: "installStrategy/type"},
		"placements without a set":           {values: "installStrategy: {type: Placements}", want: "placement.clusterSet is empty: name the"},
		"an unknown rollout": {
			values: "installStrategy: {rollout: {type: Canary}}", want: "installStrategy/rollout/type",
		},
		"a rollout of half a cluster": {
			values: "installStrategy: {rollout: {maxConcurrency: 0.5}}", want: "installStrategy/rollout/maxConcurrency",
		},
		"a rollout of no cluster": {
			values: "installStrategy: {rollout: {maxConcurrency: 0%}}", want: "installStrategy/rollout/maxConcurrency",
		},
		"more failures than clusters": {
			values: "installStrategy: {rollout: {maxFailures: 101%}}", want: "installStrategy/rollout/maxFailures",
		},
		"a deadline of nothing": {
			values: "installStrategy: {rollout: {progressDeadline: 0s}}", want: "installStrategy.rollout.progressDeadline: ",
		},
		"a deadline that OCM does not read": {
			values: "installStrategy: {rollout: {progressDeadline: 1h30m}}", want: "installStrategy.rollout.progressDeadline: ",
		},
		"a group without a name": {
			values: "installStrategy: {rollout: {mandatoryDecisionGroups: [{}]}}",
			want:   "installStrategy/rollout/mandatoryDecisionGroups/0",
		},
		"a namespace that is none": {
			values: "agent: {installNamespace: Agents!}",
			want:   "agent/installNamespace",
		},
		"a proxy without a host": {
			values: `agent: {config: {proxy: {https: "https://"}}}`, want: "agent.config.proxy.https: ",
		},
		"a CA of a proxy that is none": {
			values: "agent: {config: {proxy: {caBundle: ca}}}", want: "agent.config.proxy.caBundle",
		},
		"a registry without a mirror": {
			values: "agent: {config: {registries: [{source: quay.io}]}}", want: "agent/config/registries/0",
		},
		"an unknown setting of agents": {values: "agent: {config: {logLevel: 1}}", want: "agent/config"},
		"a configuration without a namespace": {
			values: "agent: {existingConfig: {name: mine}}", want: "agent/existingConfig",
		},
		"two configurations": {
			values: "agent: {existingConfig: {namespace: a, name: b}, config: {nodeSelector: {a: b}}}",
			want:   "agent.config and agent.existingConfig are both set",
		},
		"a negative limit":      {values: "agent: {claimLimit: -1}", want: "agent/claimLimit"},
		"a limit in words":      {values: "agent: {claimLimit: many}", want: "agent/claimLimit"},
		"two names in one":      {values: `agent: {reservedProperties: ["a,b"]}`, want: "agent/reservedProperties"},
		"a digest that is none": {values: "image: {digest: latest}", want: "image/digest"},
		"a digest of another sort": {
			values: `image: {digest: "sha1:00"}`, want: "image/digest",
		},
		"a pull secret without a name": {values: "agent: {imagePullSecrets: [{}]}", want: "agent/imagePullSecrets/0"},
		"an unknown pull policy":       {values: "image: {pullPolicy: Sometimes}", want: "image/pullPolicy"},
		"a digest in place of a tag": {
			values: `image: {repository: "example.com/a@sha256:00"}`,
			want:   "image/repository",
		},
		"no workers":                {values: "workers: {total: 0}", want: "workers/total"},
		"no workers in a namespace": {values: "workers: {perNamespace: 0}", want: "workers/perNamespace"},
		"a reader of metrics without a namespace": {
			values: "metrics: {readers: [{name: prometheus}]}", want: "metrics/readers/0",
		},
		"metrics that are secure in words": {values: "metrics: {secure: partly}", want: "metrics/secure"},
		"profiles on all addresses":        {values: `pprofBindAddress: ":6060"`, want: "pprofBindAddress"},
		"a timeout of no time":             {values: "cleanupTimeout: 0s", want: `cleanupTimeout: "0s" is no time at all`},
		"no time for the Job":              {values: "cleanupJobTimeout: 0s", want: "cleanupJobTimeout"},
		"a timeout without unit":           {values: `cleanupTimeout: "300"`, want: `cleanupTimeout: "300" is no duration: write a number and its unit`},
		"a timeout that is a number":       {values: "cleanupTimeout: 300", want: `cleanupTimeout: "300" is no duration`},
		"gates said to be on":              {values: "upstreamGates: on", want: "upstreamGates"},
		"no role to look at": {
			values: `upstreamRegistrationClusterRole: ""`,
			want:   "upstreamRegistrationClusterRole",
		},
		"exclusive sets only in words":       {values: "profiles: {exclusiveSetsOnly: mostly}", want: "profiles/exclusiveSetsOnly"},
		"a label pattern with a comma in it": {values: `profiles: {labelAllow: ["a,b"]}`, want: "profiles/labelAllow"},
		"label patterns that are no list":    {values: `profiles: {labelAllow: region}`, want: "profiles/labelAllow"},
		"no properties at all":               {values: "profiles: {maxProperties: 0}", want: "profiles/maxProperties"},
		"a property as a reserved label":     {values: "profiles: {propertyLabels: [id.k8s.io]}", want: `profiles.propertyLabels: "id.k8s.io" is reserved`},
		"a property as one of our labels":    {values: "profiles: {propertyLabels: [inventory.open-cluster-management.io/x]}", want: "is reserved"},
		"a property that is no label key":    {values: "profiles: {propertyLabels: [a b]}", want: `profiles.propertyLabels: "a b" is not a label key`},
		"a budget without end":               {values: "profiles: {writeInterval: 31s}", want: `profiles.writeInterval: "31s" is not between 100ms and 30s`},
		"no budget at all":                   {values: "profiles: {writeInterval: 0s}", want: `profiles.writeInterval: "0s" is not between`},
		"a budget without a unit":            {values: "profiles: {writeInterval: 5}", want: `profiles.writeInterval: "5" is not between`},
		"more than fits into an object":      {values: "profiles: {maxPropertyBytes: 1048576}", want: "profiles/maxPropertyBytes"},
		"a ServiceMonitor without a certificate": {
			values: "metrics: {serviceMonitor: {enabled: true}}",
			want:   "Name a Secret with a certificate in metrics.certificateSecret",
		},
		"decisions, perhaps":  {values: "decisions: {enabled: auto}", want: "decisions/enabled"},
		"a mode that is none": {values: "credentials: {mode: on}", want: "credentials/mode"},
		"a syncer said to be on": {
			values: "credentials: {upstreamSyncer: on}",
			want:   "credentials/upstreamSyncer",
		},
		"an address without TLS": {
			values: "access: {clusterProxy: {url: http://proxy}}",
			want:   "access.clusterProxy.url",
		},
		"an address with a password": {
			values: "access: {clusterProxy: {url: https://u:p@proxy}}",
			want:   "access.clusterProxy.url",
		},
		"a CA that is none": {
			values: "access: {clusterProxy: {caBundle: ca}}",
			want:   "access.clusterProxy.caBundle",
		},
		"a key in addition to the CA": {
			values: `access: {clusterProxy: {caBundle: "-----BEGIN CERTIFICATE-----\n-----BEGIN PRIVATE KEY-----"}}`,
			want:   "access.clusterProxy.caBundle",
		},
		"a proxy nowhere": {
			values: `access: {clusterProxy: {namespace: ""}}`,
			want:   "access/clusterProxy/namespace",
		},
		"a network policy for no port": {
			values: "networkPolicy: {apiServerPorts: []}", want: "networkPolicy/apiServerPorts",
		},
		"an agents' network policy for a port that is none": {
			values: "agent: {networkPolicy: {dnsPorts: [70000]}}", want: "agent/networkPolicy/dnsPorts/0",
		},
		"a network that is an address": {
			values: "networkPolicy: {apiServerCIDRs: [192.0.2.1]}", want: "networkPolicy/apiServerCIDRs/0",
		},
		"metrics for an unknown sort of peer": {
			values: "networkPolicy: {metricsFrom: [{namespace: monitoring}]}", want: "networkPolicy/metricsFrom/0",
		},
		"an argument without dashes":           {values: "extraArgs: [profiling]", want: "extraArgs/0"},
		"an argument and its value":            {values: "extraArgs: [--kubeconfig, x]", want: "extraArgs/1"},
		"an argument of the chart's":           {values: "extraArgs: [--workers=3]", want: "sets --workers itself, from the value workers.total"},
		"an argument of the chart's, v":        {values: "extraArgs: [--v=3]", want: "sets --v itself, from the value logLevel"},
		"an argument without a value":          {values: "extraArgs: [--leader-elect]", want: "sets --leader-elect itself"},
		"the user root":                        {values: "podSecurityContext: {runAsUser: 0}", want: "podSecurityContext/runAsUser"},
		"the user root, of agents":             {values: "agent: {podSecurityContext: {runAsUser: 0}}", want: "agent/podSecurityContext/runAsUser"},
		"root after all":                       {values: "podSecurityContext: {runAsNonRoot: false}", want: "runAsNonRoot"},
		"GitOps, perhaps":                      {values: "gitOps: auto", want: "gitOps"},
		"replicas in words":                    {values: "replicas: two", want: "replicas: two is no number of managers"},
		"a decision to keep that is no answer": {values: "uninstall: {keepProfiles: maybe}", want: "uninstall/keepProfiles"},
		"a log level out of range":             {values: "logLevel: 11", want: "logLevel"},
		"a log in another format":              {values: "logFormat: xml", want: "logFormat"},
		"an agent's log in another format":     {values: "agent: {logFormat: xml}", want: "agent/logFormat"},
		"a scrape timeout without unit": {
			values: "metrics: {serviceMonitor: {scrapeTimeout: 10}}", want: `metrics.serviceMonitor.scrapeTimeout: "10" is no duration`,
		},
		"no managers":               {values: "replicas: 0", want: "replicas: 0 is no number of managers"},
		"half a manager":            {values: "replicas: 1.5", want: "replicas: 1.5 is no number of managers"},
		"another chart's replicas":  {values: "replicaCount: 2", want: "calls the number of managers replicas"},
		"another name":              {values: "nameOverride: mine", want: "nameOverride: names are fixed"},
		"another full name":         {values: "fullnameOverride: mine", want: "fullnameOverride: names are fixed"},
		"a proxy without a scheme":  {values: "agent: {config: {proxy: {http: 'proxy:3128'}}}", want: "http: \"proxy:3128\" is no URL of a proxy"},
		"a password in the message": {values: "agent: {config: {proxy: {http: 'ftp://u:secret@proxy'}}}", want: `"ftp://***@proxy"`},
		"hosts in lines":            {values: `agent: {config: {proxy: {noProxy: "a\nb"}}}`, want: "agent.config.proxy.noProxy"},
		"a label of the chart's":    {values: "commonLabels: {app.kubernetes.io/name: a}", want: "commonLabels: the chart sets app.kubernetes.io/name itself"},
		"a label that publishes": {
			values: `commonLabels: {inventory.open-cluster-management.io/publish: "true"}`, want: "commonLabels: the chart sets",
		},
		"a registry with a scheme": {values: "global: {imageRegistry: 'https://registry.example.com'}", want: "global/imageRegistry"},
		"a number as the dashboard's folder": {
			values: "metrics: {dashboard: {annotations: {grafana_folder: 1}}}", want: "grafana_folder",
		},
		"a threshold of everything": {values: "metrics: {rules: {thresholds: {writesFailed: 1}}}", want: "writesFailed"},
		"a threshold that is none":  {values: "metrics: {rules: {thresholds: {slow: 1}}}", want: "slow"},
		"a limit in other units":    {values: "resources: {limits: {memory: 512MB}}", want: "512MB is no amount of memory that this chart can read"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := hubtest.Render(t, test.values)
			if err == nil {
				t.Fatal("accepted")
			}
			if !strings.Contains(err.Error(), test.want) {
				t.Errorf("the message does not name %q:\n%v", test.want, err)
			}
		})
	}
}

func TestOldHubIsRefused(t *testing.T) {
	tests := map[string]struct {
		versions []string
		want     string
	}{
		"a hub whose addons are too old": {
			versions: []string{"addon.open-cluster-management.io/v1alpha1"},
			want:     "1.2.1 or later",
		},
		"a hub that serves both": {
			versions: []string{"addon.open-cluster-management.io/v1alpha1", "addon.open-cluster-management.io/v1beta1"},
		},
		"nothing known, as offline": {},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := hubtest.Render(t, "", test.versions...)
			if (err != nil) != (test.want != "") || (err != nil && !strings.Contains(err.Error(), test.want)) {
				t.Errorf("got %v, want %q in it", err, test.want)
			}
		})
	}
}

// TestRights: every role of the chart names what it grants. There are no wildcards,
// no Secrets and no way to obtain more, except what TestRightsOnSecrets lists, and that the
// manager may give agents theirs.
func TestRights(t *testing.T) {
	for _, object := range hubtest.MustRender(t, placements) {
		if object.GetKind() != "ClusterRole" && object.GetKind() != "Role" ||
			slices.Contains(ofCredentials, object.GetName()) ||
			object.GetName() == roleAtProxy {
			continue
		}
		role := manifesttest.Find[rbacv1.ClusterRole](
			t, []*unstructured.Unstructured{object}, object.GetKind(), object.GetName(),
		)
		for _, rule := range role.Rules {
			if slices.Equal(rule.Verbs, []string{"bind"}) && slices.Equal(rule.ResourceNames, []string{agentRole}) {
				continue
			}
			for _, word := range slices.Concat(rule.APIGroups, rule.Resources, rule.Verbs, rule.ResourceNames) {
				if strings.Contains(word, "*") ||
					slices.Contains([]string{"secrets", "bind", "escalate", "impersonate", "deletecollection"}, word) {
					t.Errorf("%s has a rule with %q: %+v", manifesttest.Identify(object), word, rule)
				}
			}
		}
	}
}

// podsOf are all pods that the chart runs.
func podsOf(t *testing.T, objects []*unstructured.Unstructured) map[string]corev1.PodSpec {
	t.Helper()
	return map[string]corev1.PodSpec{
		"manager": manifesttest.Find[appsv1.Deployment](
			t, objects, "Deployment", "cluster-inventory-manager",
		).Spec.Template.Spec,
		"uninstall": manifesttest.Find[batchv1.Job](t, objects, "Job", "cluster-inventory-uninstall").Spec.Template.Spec,
		"test":      manifesttest.Find[corev1.Pod](t, objects, "Pod", "cluster-inventory-test").Spec,
	}
}

// TestPodsAreRestricted: all Pods meet the Pod Security Standard "restricted". None names a
// user or group, which OpenShift's restricted-v2 refuses, unless the values do.
func TestPodsAreRestricted(t *testing.T) {
	const volumes = "metrics: {certificateSecret: serving}\n" +
		"access: {clusterProxy: {caBundle: \"-----BEGIN CERTIFICATE-----\"}}"
	for name, pod := range podsOf(t, hubtest.MustRender(t, volumes)) {
		t.Run(name, func(t *testing.T) {
			manifesttest.CheckRestricted(t, pod)
			manifesttest.CheckNamesNoUser(t, pod)
		})
	}
	objects := hubtest.MustRender(t, "podSecurityContext: {runAsUser: 1000650000, runAsGroup: 3, fsGroup: 4}")
	for name, pod := range podsOf(t, objects) {
		manifesttest.CheckRestricted(t, pod)
		got := []*int64{pod.SecurityContext.RunAsUser, pod.SecurityContext.RunAsGroup, pod.SecurityContext.FSGroup}
		if diff := cmp.Diff([]*int64{ptr.To[int64](1000650000), ptr.To[int64](3), ptr.To[int64](4)}, got); diff != "" {
			t.Errorf("user, group and fsGroup of the %s (-want +got):\n%s", name, diff)
		}
	}
}

// TestExtraArguments: those of the administrator come last, and none of them is one that the
// chart sets itself, now or with other values.
func TestExtraArguments(t *testing.T) {
	objects := hubtest.MustRender(t, `extraArgs: ["--kubeconfig=hub", --more]`)
	deployment := manifesttest.Find[appsv1.Deployment](t, objects, "Deployment", "cluster-inventory-manager")
	args := deployment.Spec.Template.Spec.Containers[0].Args
	if diff := cmp.Diff([]string{"--kubeconfig=hub", "--more"}, args[len(args)-2:]); diff != "" {
		t.Errorf("the last arguments (-want +got):\n%s", diff)
	}
	read := func(name string) string {
		content, err := os.ReadFile(filepath.Join(chartDir, "templates", name))
		if err != nil {
			t.Fatal(err)
		}
		return string(content)
	}
	set := map[string]bool{}
	for _, match := range regexp.MustCompile(`(?m)^ +- --?([a-z-]+)(?:=|$)`).FindAllStringSubmatch(read("manager.yaml"), -1) {
		set[match[1]] = true
	}
	own := map[string]bool{}
	_, list, _ := strings.Cut(read("_helpers.tpl"), `{{- define "cluster-inventory.ownFlags" -}}`)
	list, _, _ = strings.Cut(list, "{{- end }}")
	for line := range strings.Lines(strings.TrimSpace(list)) {
		flag, _, _ := strings.Cut(line, ":")
		own[flag] = true
	}
	if diff := cmp.Diff(set, own); diff != "" {
		t.Errorf("flags (-in manager.yaml +refused in extraArgs):\n%s", diff)
	}
}

// TestUninstallHookHasItsOwnRights: Helm deletes hooks separately, so everything
// the Job needs must be a hook, too, and exist before it.
func TestUninstallHookHasItsOwnRights(t *testing.T) {
	for _, object := range hubtest.MustRender(t, "") {
		isHook := object.GetAnnotations()["helm.sh/hook"] == "pre-delete"
		if belongs := strings.HasSuffix(object.GetName(), "uninstall"); belongs != isHook {
			t.Errorf("%s: is a hook: %t, want %t", manifesttest.Identify(object), isHook, belongs)
		}
		want := "-10"
		if object.GetKind() == "Job" {
			want = "0"
		}
		if weight := object.GetAnnotations()["helm.sh/hook-weight"]; isHook && weight != want {
			t.Errorf("%s has weight %s, want %s", manifesttest.Identify(object), weight, want)
		}
		if policy := object.GetAnnotations()["helm.sh/hook-delete-policy"]; isHook &&
			policy != "before-hook-creation,hook-succeeded" {
			t.Errorf("%s is deleted %q", manifesttest.Identify(object), policy)
		}
	}
}

// TestValueSets: make verify checks what the chart makes of these files, so that everything
// has to be in the output of one of them.
func TestValueSets(t *testing.T) {
	files, err := filepath.Glob("testdata/values/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("%d files, %v", len(files), err)
	}
	kinds := map[string]bool{}
	for _, file := range files {
		values, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, object := range hubtest.MustRender(t, string(values)) {
			kinds[object.GetKind()] = true
		}
	}
	templates, err := filepath.Glob(filepath.Join(chartDir, "templates", "*.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	kind := regexp.MustCompile(`(?m)^kind: ([A-Za-z]+)$`)
	for _, file := range templates {
		source, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, match := range kind.FindAllStringSubmatch(string(source), -1) {
			if !kinds[match[1]] {
				t.Errorf("%s can make a %s, and no file of values does", file, match[1])
			}
		}
	}
}

// TestCRDsAreNotTemplates: Helm installs what is in crds/ where it is missing, and
// never changes or deletes it. It owns templates.
func TestCRDsAreNotTemplates(t *testing.T) {
	for _, object := range hubtest.MustRender(t, placements) {
		if object.GetKind() == "CustomResourceDefinition" {
			t.Errorf("%s is a template", manifesttest.Identify(object))
		}
	}
	crds := slices.DeleteFunc(hubtest.Load(t).CRDObjects(), func(crd chart.CRD) bool {
		return strings.HasSuffix(crd.Filename, "agentrevisions.yaml") // ours
	})
	if len(crds) != 2 {
		t.Fatalf("%d CRD files", len(crds))
	}
	out, err := exec.CommandContext(
		t.Context(), "go", "list", "-m", "-f", "{{.Dir}}", "sigs.k8s.io/cluster-inventory-api",
	).Output()
	if err != nil {
		t.Fatal(err)
	}
	for _, crd := range crds {
		original, err := os.ReadFile(
			filepath.Join(strings.TrimSpace(string(out)), "config/crd/bases", filepath.Base(crd.Filename)),
		)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.HasSuffix(crd.File.Data, original) {
			t.Errorf("%s is not the API's own definition; run make generate", crd.Filename)
		}
	}
}

// TestRightsOnDecisions: the manager writes PlacementDecisions of SIG-Multicluster, if at
// all, and those of Open Cluster Management are not written.
func TestRightsOnDecisions(t *testing.T) {
	for values, want := range map[string][]string{
		"":                            {"create", "delete", "list", "patch", "watch"},
		"decisions: {enabled: false}": nil,
	} {
		role := manifesttest.Find[rbacv1.ClusterRole](t, hubtest.MustRender(t, values),
			"ClusterRole", "open-cluster-management:cluster-inventory:manager")
		var got []string
		for _, rule := range role.Rules {
			if !slices.Contains(rule.Resources, "placementdecisions") {
				continue
			}
			if slices.Contains(rule.APIGroups, "multicluster.x-k8s.io") {
				got = append(got, rule.Verbs...)
			} else if !slices.Equal(rule.Verbs, []string{"list", "watch"}) {
				t.Errorf("%q: rights %v", values, rule)
			}
		}
		slices.Sort(got)
		if !slices.Equal(got, want) {
			t.Errorf("%q: rights %v, want %v", values, got, want)
		}
	}
}

// TestEveryValueIsDocumented: each value in values.yaml, or what it is part of, has a row with
// a meaning in the README, and each row is of a value. make generate writes the table.
func TestEveryValueIsDocumented(t *testing.T) {
	readme, err := os.ReadFile(filepath.Join(chartDir, "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	documented := map[string]bool{}
	_, table, _ := strings.Cut(string(readme), "## Values")
	table, _, _ = strings.Cut(table, "\n## ")
	for line := range strings.Lines(table) {
		name, rest, isRow := strings.Cut(strings.TrimPrefix(line, "| `"), "` | ")
		if _, meaning, _ := strings.Cut(rest, " | "); isRow && len(meaning) > len(" |\n") {
			documented[name] = true
		}
	}
	values := map[string]bool{}
	flatten("", hubtest.Load(t).Values, values)
	used := map[string]bool{}
	for name := range values {
		found := false
		for path := name; path != ""; path = path[:max(strings.LastIndex(path, "."), 0)] {
			if documented[path] {
				used[path], found = true, true
			}
		}
		if !found {
			t.Errorf("%s has no row with a meaning", name)
		}
	}
	if diff := cmp.Diff(used, documented); diff != "" {
		t.Errorf("rows (-of values.yaml +in README.md):\n%s", diff)
	}
}

// flatten collects the paths of all leaves; an empty map and the manager's
// resources are leaves.
func flatten(prefix string, values map[string]any, into map[string]bool) {
	for name, value := range values {
		nested, isMap := value.(map[string]any)
		if !isMap || len(nested) == 0 || name == "resources" {
			into[prefix+name] = true
			continue
		}
		flatten(prefix+name+".", nested, into)
	}
}
