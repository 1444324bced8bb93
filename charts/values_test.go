package charts

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/engine"

	"open-cluster-management.io/cluster-inventory-addon/internal/apitest"
	"open-cluster-management.io/cluster-inventory-addon/internal/apitest/hubtest"
	"open-cluster-management.io/cluster-inventory-addon/internal/manifesttest"
)

// schemaNode is a value in the schema.
type schemaNode struct {
	Ref         string `json:"$ref"`
	Description string
	Properties  map[string]schemaNode
	Items       *schemaNode
	Definitions map[string]schemaNode
}

// TestEveryValueIsDescribedInTheSchema: editors show the descriptions. Where values.yaml has a
// comment for a value, that is the description.
func TestEveryValueIsDescribedInTheSchema(t *testing.T) {
	content, err := os.ReadFile(filepath.Join(chartDir, "values.schema.json"))
	apitest.Must(t, err)
	root := schemaNode{}
	apitest.Must(t, json.Unmarshal(content, &root))
	got := map[string]string{}
	collectDescriptions(root, root.Definitions, "", got)
	for path, description := range got {
		if description == "" {
			t.Errorf("%s has no description", path)
		}
	}
	values := map[string]bool{}
	flatten("", hubtest.Load(t).Values, values)
	for path := range values {
		if _, ok := got[strings.TrimSuffix(path, ".")]; !ok {
			t.Errorf("%s is not in the schema", path)
		}
	}
	comments := valueComments(t)
	if len(comments) < 90 {
		t.Fatalf("only %d comments", len(comments))
	}
	for path, comment := range comments {
		if diff := cmp.Diff(comment, got[path]); diff != "" {
			t.Errorf("%s (-values.yaml +values.schema.json):\n%s", path, diff)
		}
	}
}

// collectDescriptions walks properties, what they refer to, and the items of lists.
func collectDescriptions(node schemaNode, definitions map[string]schemaNode, path string, into map[string]string) {
	if name, ok := strings.CutPrefix(node.Ref, "#/definitions/"); ok {
		collectDescriptions(definitions[name], definitions, path, into)
	}
	if node.Items != nil {
		collectDescriptions(*node.Items, definitions, path+"[]", into)
	}
	for name, child := range node.Properties {
		into[strings.TrimPrefix(path+"."+name, ".")] = child.Description
		collectDescriptions(child, definitions, strings.TrimPrefix(path+"."+name, "."), into)
	}
}

var valueLine = regexp.MustCompile(`^( *)([A-Za-z]+):`)

// valueComments returns the comments of values.yaml that begin with "# -- ", by value.
func valueComments(t *testing.T) map[string]string {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(chartDir, "values.yaml"))
	apitest.Must(t, err)
	comments := map[string]string{}
	var path, comment []string
	for line := range strings.Lines(string(content)) {
		text, isComment := strings.CutPrefix(strings.TrimSpace(line), "# ")
		match := valueLine.FindStringSubmatch(line)
		switch {
		case isComment && strings.HasPrefix(text, "-- "):
			comment = []string{strings.TrimPrefix(text, "-- ")}
		case isComment && len(comment) > 0 && !strings.HasPrefix(text, "@default"):
			comment = append(comment, text)
		case match != nil:
			path = append(path[:len(match[1])/2], match[2])
			if len(comment) > 0 {
				comments[strings.Join(path, ".")] = strings.Join(comment, " ")
			}
			comment = nil
		case !isComment:
			comment = nil
		}
	}
	return comments
}

// TestUmbrellaChart: a chart of charts gives its condition and its global values to each.
func TestUmbrellaChart(t *testing.T) {
	render := func(values map[string]any) map[string]string {
		t.Helper()
		umbrella := &chart.Chart{Metadata: &chart.Metadata{
			APIVersion: "v2", Name: "fleet", Version: "0.1.0",
			Dependencies: []*chart.Dependency{{
				Name: "cluster-inventory", Version: "*", Condition: "cluster-inventory.enabled",
			}},
		}}
		umbrella.AddDependency(hubtest.Load(t))
		apitest.Must(t, chartutil.ProcessDependencies(umbrella, values))
		release := chartutil.ReleaseOptions{Name: "fleet", Namespace: hubtest.Namespace}
		all, err := chartutil.ToRenderValues(umbrella, values, release, chartutil.DefaultCapabilities.Copy())
		apitest.Must(t, err)
		files, err := engine.Render(umbrella, all)
		apitest.Must(t, err)
		return files
	}
	on := render(map[string]any{
		"cluster-inventory": map[string]any{"enabled": true},
		"global":            map[string]any{"imageRegistry": "registry.example.com", "others": map[string]any{"a": "b"}},
	})
	manager := on["fleet/charts/cluster-inventory/templates/manager.yaml"]
	if !strings.Contains(manager, `"registry.example.com/open-cluster-management/cluster-inventory-addon:`) {
		t.Errorf("the manager is not there with the umbrella's registry:\n%s", manager)
	}
	for file := range render(map[string]any{"cluster-inventory": map[string]any{"enabled": false}}) {
		t.Errorf("disabled, there is %s", file)
	}
}

// TestImageRegistry: one registry for all images also counts where agents' images are allowed,
// and makes another AgentRevision.
func TestImageRegistry(t *testing.T) {
	before := revisionOf(t, hubtest.MustRender(t, "")).GetName()
	for values, want := range map[string]string{
		"global: {imageRegistry: mirror.example.com:5000}":                                                "mirror.example.com:5000/open-cluster-management/cluster-inventory-addon",
		"{global: {imageRegistry: mirror.example.com/ocm/}, image: {repository: 'localhost:5000/addon'}}": "mirror.example.com/ocm/addon",
		"{global: {imageRegistry: mirror.example.com}, image: {repository: ocm/addon}}":                   "mirror.example.com/ocm/addon",
	} {
		objects := hubtest.MustRender(t, values)
		revision := revisionOf(t, objects)
		agent, _, _ := unstructured.NestedString(revision.Object, "spec", "image")
		manager := manifesttest.Find[appsv1.Deployment](t, objects, "Deployment", "cluster-inventory-manager").Spec.Template.Spec
		hook := manifesttest.Find[batchv1.Job](t, objects, "Job", "cluster-inventory-uninstall").Spec.Template.Spec
		tagged := want + ":" + hubtest.Load(t).Metadata.AppVersion
		got := []string{agent, manager.Containers[0].Image, hook.Containers[0].Image, manager.Containers[0].Args[0]}
		if diff := cmp.Diff([]string{tagged, tagged, tagged, "--allowed-registry=" + want}, got); diff != "" {
			t.Errorf("%s: images and the allowed registry (-want +got):\n%s", values, diff)
		}
		if revision.GetName() == before {
			t.Errorf("%s: the AgentRevision keeps its name", values)
		}
		policies := ""
		for _, object := range objects {
			if object.GetKind() == "ValidatingAdmissionPolicy" {
				policies += fmt.Sprint(object.Object["spec"])
			}
		}
		if strings.Contains(policies, "quay.io") || !strings.Contains(policies, want) {
			t.Errorf("%s: the policies allow other repositories", values)
		}
	}
}

// TestCommonLabels: everything has them, hooks and pods included, and no selector.
func TestCommonLabels(t *testing.T) {
	values, err := os.ReadFile("testdata/values/everything.yaml")
	apitest.Must(t, err)
	with := func(more string) []*unstructured.Unstructured { return hubtest.MustRender(t, string(values)+more) }
	objects := with("\ncommonLabels: {team: fleet, release: mine}\n")
	for i, object := range with("\ncommonLabels: {}\n") {
		labels := objects[i].GetLabels()
		release := "mine"
		if own := object.GetLabels()["release"]; own != "" {
			release = own // of Prometheus, say
		}
		if labels["team"] != "fleet" || labels["release"] != release {
			t.Errorf("%s has labels %v", manifesttest.Identify(object), labels)
		}
		for _, path := range [][]string{{"spec", "selector"}, {"spec", "podSelector"}} {
			selector, _, _ := unstructured.NestedFieldNoCopy(objects[i].Object, path...)
			before, _, _ := unstructured.NestedFieldNoCopy(object.Object, path...)
			if diff := cmp.Diff(before, selector); diff != "" {
				t.Errorf("the selector of %s (-before +after):\n%s", manifesttest.Identify(object), diff)
			}
		}
		if pod, ok, _ := unstructured.NestedStringMap(objects[i].Object, "spec", "template", "metadata", "labels"); ok &&
			pod["team"] != "fleet" {
			t.Errorf("the pods of %s have labels %v", manifesttest.Identify(object), pod)
		}
	}
}

func TestExtraObjects(t *testing.T) {
	objects := hubtest.MustRender(t, `
extraObjects:
- apiVersion: v1
  kind: ConfigMap
  metadata: {name: one, namespace: "{{ .Release.Namespace }}"}
- |
  apiVersion: v1
  kind: ConfigMap
  metadata:
    name: two
    labels:
      {{- include "cluster-inventory.labels" . | nindent 6 }}
`)
	for _, want := range []string{"ConfigMap inventory-system/one", "ConfigMap /two"} {
		if !slices.Contains(identifyAll(objects), want) {
			t.Errorf("%s is missing", want)
		}
	}
}

// TestGoMemoryLimit is nine tenths of the memory limit: the rest is what Go does not count.
func TestGoMemoryLimit(t *testing.T) {
	for limits, want := range map[string]string{
		"{memory: 512Mi}":     "483183820",
		"{memory: 1.5Gi}":     "1449551462",
		"{memory: 1G}":        "900000000",
		"{memory: 100000Ki}":  "92160000",
		"{memory: 2000000}":   "1800000",
		"{memory: '1048576'}": "943718",
		"{memory: null}":      "",
	} {
		pod := manifesttest.Find[appsv1.Deployment](
			t, hubtest.MustRender(t, "resources: {limits: "+limits+"}"), "Deployment", "cluster-inventory-manager",
		).Spec.Template.Spec
		got := ""
		for _, env := range pod.Containers[0].Env {
			if env.Name == "GOMEMLIMIT" {
				got = env.Value
			}
		}
		if got != want {
			t.Errorf("limits %s: GOMEMLIMIT is %q, want %q", limits, got, want)
		}
	}
}

func TestLogFormat(t *testing.T) {
	for name, pod := range podsOf(t, hubtest.MustRender(t, "logFormat: json")) {
		if !slices.Contains(pod.Containers[0].Args, "--log-format=json") {
			t.Errorf("arguments of the %s: %v", name, pod.Containers[0].Args)
		}
	}
}

// TestServiceMonitorForOpenShift: its monitoring of user workloads refuses token files.
func TestServiceMonitorForOpenShift(t *testing.T) {
	monitor := found(t, hubtest.MustRender(t, `
metrics:
  certificateSecret: serving
  serviceMonitor:
    enabled: true
    interval: 1m
    scrapeTimeout: 20s
    authorization: {secret: scraper}
    relabelings: [{targetLabel: fleet, replacement: a}]
    metricRelabelings: [{action: labeldrop, regex: pod}]
`), "ServiceMonitor")
	endpoints, _, _ := unstructured.NestedSlice(monitor.Object, "spec", "endpoints")
	want := []any{map[string]any{
		"port": "metrics", "interval": "1m", "scrapeTimeout": "20s", "scheme": "https", "honorLabels": true,
		"authorization": map[string]any{
			"type": "Bearer", "credentials": map[string]any{"name": "scraper", "key": "token"},
		},
		"tlsConfig": map[string]any{
			"serverName": "cluster-inventory-metrics.inventory-system.svc",
			"ca":         map[string]any{"secret": map[string]any{"name": "serving", "key": "ca.crt"}},
		},
		"relabelings":       []any{map[string]any{"targetLabel": "fleet", "replacement": "a"}},
		"metricRelabelings": []any{map[string]any{"action": "labeldrop", "regex": "pod"}},
	}}
	if diff := cmp.Diff(want, endpoints); diff != "" {
		t.Errorf("endpoints (-want +got):\n%s", diff)
	}
}

// TestThresholds: each changes the expression of its alert, and nothing else.
func TestThresholds(t *testing.T) {
	expressions := func(values string) map[string]string {
		t.Helper()
		objects := hubtest.MustRender(t, "metrics: {rules: {enabled: true"+values+"}}")
		groups, _, err := unstructured.NestedSlice(found(t, objects, "PrometheusRule").Object, "spec", "groups")
		apitest.Must(t, err)
		all := map[string]string{}
		group, _ := groups[0].(map[string]any)
		rules, _ := group["rules"].([]any)
		for _, rule := range rules {
			fields, _ := rule.(map[string]any)
			all[fmt.Sprint(fields["alert"])] = fmt.Sprint(fields["expr"])
		}
		return all
	}
	before := expressions("")
	for name, test := range map[string]struct{ alert, value, was, is string }{
		"profilesDropped":    {"ClusterInventoryProfilesDropped", "0.35", "< 0.8 *", "< 0.65 *"},
		"tokenExpirySeconds": {"ClusterInventoryTokenNotRenewed", "3600", "< 600", "< 3600"},
		"delaySeconds":       {"ClusterInventorySlow", "2.5", "> 30", "> 2.5"},
		"writesFailed":       {"ClusterInventoryWritesFail", "0.25", "> 0.1", "> 0.25"},
	} {
		want := map[string]string{}
		for alert, expression := range before {
			if alert == test.alert {
				expression = strings.Replace(expression, test.was, test.is, 1)
			}
			want[alert] = expression
		}
		if want[test.alert] == before[test.alert] {
			t.Errorf("%s has no %q: %s", test.alert, test.was, before[test.alert])
		}
		got := expressions(", thresholds: {" + name + ": " + test.value + "}")
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}
