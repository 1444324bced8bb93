package charts

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"open-cluster-management.io/cluster-inventory-addon/internal/apitest"
	"open-cluster-management.io/cluster-inventory-addon/internal/apitest/hubtest"
	"open-cluster-management.io/cluster-inventory-addon/internal/manifesttest"
)

// TestRightsForMetrics: the manager may review the readers of its metrics, and no more; if
// they are served in plain text, there are no reviews.
func TestRightsForMetrics(t *testing.T) {
	objects := hubtest.MustRender(t, "metrics: {readers: [{namespace: monitoring, name: prometheus}]}")
	rules := func(name string) []rbacv1.PolicyRule {
		return manifesttest.Find[rbacv1.ClusterRole](t, objects, "ClusterRole", name).Rules
	}
	asks := []rbacv1.PolicyRule{
		{APIGroups: []string{"authentication.k8s.io"}, Resources: []string{"tokenreviews"}, Verbs: []string{"create"}},
		{APIGroups: []string{"authorization.k8s.io"}, Resources: []string{"subjectaccessreviews"}, Verbs: []string{"create"}},
	}
	if diff := cmp.Diff(asks, rules("open-cluster-management:cluster-inventory:metrics")); diff != "" {
		t.Errorf("rights of the manager (-want +got):\n%s", diff)
	}
	const reader = "open-cluster-management:cluster-inventory:metrics-reader"
	reads := []rbacv1.PolicyRule{{NonResourceURLs: []string{"/metrics"}, Verbs: []string{"get"}}}
	if diff := cmp.Diff(reads, rules(reader)); diff != "" {
		t.Errorf("rights of a reader (-want +got):\n%s", diff)
	}
	bound := manifesttest.Find[rbacv1.ClusterRoleBinding](t, objects, "ClusterRoleBinding", reader)
	who := []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: "monitoring", Name: "prometheus"}}
	if diff := cmp.Diff(who, bound.Subjects); diff != "" || bound.RoleRef.Name != reader {
		t.Errorf("readers, of %s (-want +got):\n%s", bound.RoleRef.Name, diff)
	}
	for _, object := range hubtest.MustRender(t, "metrics: {secure: false}") {
		if strings.Contains(object.GetName(), ":metrics") {
			t.Errorf("%s is there although metrics are not secure", manifesttest.Identify(object))
		}
	}
}

// TestOldValues: "helm upgrade --reuse-values" keeps values that an earlier chart had, and
// adds none. A missing value means secure.
func TestOldValues(t *testing.T) {
	objects := hubtest.MustRender(t, "metrics: null")
	deployment := manifesttest.Find[appsv1.Deployment](t, objects, "Deployment", "cluster-inventory-manager")
	if args := deployment.Spec.Template.Spec.Containers[0].Args; !slices.Contains(args, "--metrics-secure=true") {
		t.Errorf("arguments %v", args)
	}
}

// TestCertificateOfMetrics: the manager gets the certificate and the key, and nothing else
// of the Secret.
func TestCertificateOfMetrics(t *testing.T) {
	volumes := func(values string) map[string]corev1.VolumeSource {
		pod := manifesttest.Find[appsv1.Deployment](
			t, hubtest.MustRender(t, values), "Deployment", "cluster-inventory-manager",
		).Spec.Template.Spec
		found := map[string]corev1.VolumeSource{}
		for _, mount := range pod.Containers[0].VolumeMounts {
			for _, volume := range pod.Volumes {
				if volume.Name == mount.Name {
					found[mount.MountPath] = volume.VolumeSource
				}
			}
		}
		if len(found) != len(pod.Volumes) {
			t.Errorf("volumes %v are not all mounted: %v", pod.Volumes, found)
		}
		return found
	}
	serving := corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{
		SecretName: "serving",
		Items:      []corev1.KeyToPath{{Key: "tls.crt", Path: "tls.crt"}, {Key: "tls.key", Path: "tls.key"}},
	}}
	bundle := corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{
		LocalObjectReference: corev1.LocalObjectReference{Name: "cluster-inventory-access-bundle"},
	}}
	const withBundle = "\naccess: {clusterProxy: {caBundle: \"-----BEGIN CERTIFICATE-----\"}}"
	for values, want := range map[string]map[string]corev1.VolumeSource{
		"":                                      {},
		"metrics: {certificateSecret: serving}": {"/etc/cluster-inventory/metrics": serving},
		"metrics: {certificateSecret: serving}" + withBundle: {
			"/etc/cluster-inventory/metrics": serving, "/etc/cluster-inventory/access": bundle,
		},
		"metrics: {certificateSecret: serving, secure: false}" + withBundle: {"/etc/cluster-inventory/access": bundle},
	} {
		if diff := cmp.Diff(want, volumes(values)); diff != "" {
			t.Errorf("values %q: volumes (-want +got):\n%s", values, diff)
		}
	}
}

// TestMonitorsSelectTheManager: the ServiceMonitor selects the Service, and the Service the
// managers' pods and their port.
func TestMonitorsSelectTheManager(t *testing.T) {
	objects := hubtest.MustRender(t, `
metrics:
  service: {enabled: false}
  serviceMonitor: {enabled: true, interval: 10s, labels: {release: prometheus}, insecureSkipVerify: true}
  rules: {enabled: true, labels: {release: prometheus}}
  dashboard: {enabled: true, labels: {folder: fleet}}
`)
	service := manifesttest.Find[corev1.Service](t, objects, "Service", "cluster-inventory-metrics")
	pods := manifesttest.Find[appsv1.Deployment](t, objects, "Deployment", "cluster-inventory-manager").Spec.Template
	for key, value := range service.Spec.Selector {
		if pods.Labels[key] != value {
			t.Errorf("the Service selects %s=%s, and the pods have %v", key, value, pods.Labels)
		}
	}
	port := service.Spec.Ports[0]
	if !slices.ContainsFunc(pods.Spec.Containers[0].Ports, func(p corev1.ContainerPort) bool {
		return p.Name == port.TargetPort.StrVal && p.ContainerPort == port.Port
	}) {
		t.Errorf("the manager has no port %+v", port)
	}
	monitor := found(t, objects, "ServiceMonitor")
	selector, _, _ := unstructured.NestedStringMap(monitor.Object, "spec", "selector", "matchLabels")
	for key, value := range selector {
		if service.Labels[key] != value {
			t.Errorf("the ServiceMonitor selects %s=%s, and the Service has %v", key, value, service.Labels)
		}
	}
	endpoints, _, _ := unstructured.NestedSlice(monitor.Object, "spec", "endpoints")
	want := []any{map[string]any{
		"port": port.Name, "interval": "10s", "scheme": "https", "honorLabels": true,
		"bearerTokenFile": "/var/run/secrets/kubernetes.io/serviceaccount/token",
		"tlsConfig":       map[string]any{"insecureSkipVerify": true},
	}}
	if diff := cmp.Diff(want, endpoints); diff != "" {
		t.Errorf("endpoints (-want +got):\n%s", diff)
	}
	for kind, label := range map[string]string{
		"ServiceMonitor": "release", "PrometheusRule": "release", "ConfigMap": "folder"} {
		if object := found(t, objects, kind); object.GetLabels()[label] == "" {
			t.Errorf("%s has labels %v", manifesttest.Identify(object), object.GetLabels())
		}
	}
	for _, accepted := range []string{"", ", insecureSkipVerify: true"} {
		verified := found(t, hubtest.MustRender(t,
			"metrics: {certificateSecret: serving, serviceMonitor: {enabled: true"+accepted+"}}"), "ServiceMonitor")
		endpoints, _, _ = unstructured.NestedSlice(verified.Object, "spec", "endpoints")
		tls := map[string]any{
			"serverName": "cluster-inventory-metrics.inventory-system.svc",
			"ca":         map[string]any{"secret": map[string]any{"name": "serving", "key": "ca.crt"}},
		}
		if diff := cmp.Diff(tls, endpoints[0].(map[string]any)["tlsConfig"]); diff != "" {
			t.Errorf("with a certificate of the administrator%s (-want +got):\n%s", accepted, diff)
		}
	}
	plain := found(t, hubtest.MustRender(t, "metrics: {secure: false, serviceMonitor: {enabled: true}}"), "ServiceMonitor")
	endpoints, _, _ = unstructured.NestedSlice(plain.Object, "spec", "endpoints")
	want = []any{map[string]any{"port": port.Name, "interval": "30s", "honorLabels": true}}
	if diff := cmp.Diff(want, endpoints); diff != "" {
		t.Errorf("in plain text (-want +got):\n%s", diff)
	}
}

// TestAnnotationsOfTheDashboard: Grafana's sidecar reads the folder from an annotation.
func TestAnnotationsOfTheDashboard(t *testing.T) {
	for values, want := range map[string]map[string]string{
		"":                  nil,
		", annotations: {}": nil,
		", annotations: {grafana_folder: Fleet inventory}": {"grafana_folder": "Fleet inventory"},
	} {
		objects := hubtest.MustRender(t, "metrics: {dashboard: {enabled: true"+values+"}}")
		if diff := cmp.Diff(want, found(t, objects, "ConfigMap").GetAnnotations()); diff != "" {
			t.Errorf("values %q: annotations (-want +got):\n%s", values, diff)
		}
	}
}

// found returns the object of a kind that is for monitoring.
func found(t *testing.T, objects []*unstructured.Unstructured, kind string) *unstructured.Unstructured {
	t.Helper()
	at := slices.IndexFunc(objects, func(object *unstructured.Unstructured) bool {
		return object.GetKind() == kind && (kind != "ConfigMap" || strings.HasSuffix(object.GetName(), "-dashboard"))
	})
	if at < 0 {
		t.Fatalf("there is no %s", kind)
	}
	return objects[at]
}

func monitoring(t *testing.T, file string) []byte {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(chartDir, "monitoring", file))
	apitest.Must(t, err)
	return content
}

// TestRulesAndDashboardComeFromTheFiles: the chart installs the tested files.
func TestRulesAndDashboardComeFromTheFiles(t *testing.T) {
	objects := hubtest.MustRender(t, "metrics: {rules: {enabled: true}, dashboard: {enabled: true}}")
	var rules, dashboard, shown any
	apitest.Must(t, yaml.Unmarshal(monitoring(t, "alerts.yaml"), &rules))
	if diff := cmp.Diff(rules, found(t, objects, "PrometheusRule").Object["spec"]); diff != "" {
		t.Errorf("rules (-in the file +installed):\n%s", diff)
	}
	text, _, _ := unstructured.NestedString(found(t, objects, "ConfigMap").Object, "data", "cluster-inventory.json")
	apitest.Must(t, json.Unmarshal(monitoring(t, "dashboard.json"), &dashboard))
	apitest.Must(t, json.Unmarshal([]byte(text), &shown))
	if diff := cmp.Diff(dashboard, shown); diff != "" {
		t.Errorf("dashboard (-in the file +installed):\n%s", diff)
	}
}

// otherMetrics are those that alerts and dashboard use in addition to this addon's own:
// controller-runtime's, with their labels, and Prometheus' of a process.
var otherMetrics = map[string][]string{
	"leader_election_master_status": {"name"},
	"workqueue_depth":               {"name", "controller", "priority"},
	"process_resident_memory_bytes": nil,
}

var (
	selectorOf = regexp.MustCompile(`([a-z_]+)\{([^}]*)\}`)
	matcherOf  = regexp.MustCompile(`([a-z_]+)(=|!=|=~|!~)"([^"]*)"`)
	metricOf   = regexp.MustCompile(
		`\b(cluster_inventory_[a-z_]+|leader_election_[a-z_]+|workqueue_[a-z_]+|process_[a-z_]+)\b`)
	groupedBy = regexp.MustCompile(`\b(?:by|on) \(([^)]*)\)`)
)

// TestQueriesUseMetricsThatExist looks up every metric, label and label value that an alert
// or a panel uses. A query of something that does not exist is not an error in Prometheus:
// it is an alert that never fires.
func TestQueriesUseMetricsThatExist(t *testing.T) {
	known := knownMetrics(t)
	docs, err := os.ReadFile("../docs/metrics.md")
	apitest.Must(t, err)
	for where, query := range queries(t) {
		used := map[string]bool{}
		for _, metric := range metricOf.FindAllString(query, -1) {
			used[baseOf(metric, known)] = true
			if _, ok := known[baseOf(metric, known)]; !ok {
				t.Errorf("%s: there is no metric %s", where, metric)
			}
		}
		if len(used) == 0 {
			t.Errorf("%s: %q names no metric", where, query)
		}
		for _, selector := range selectorOf.FindAllStringSubmatch(query, -1) {
			metric := baseOf(selector[1], known)
			for _, matcher := range matcherOf.FindAllStringSubmatch(selector[2], -1) {
				if !slices.Contains(known[metric], matcher[1]) {
					t.Errorf("%s: %s has no label %s", where, metric, matcher[1])
				}
				for value := range strings.SplitSeq(matcher[3], "|") {
					if strings.HasPrefix(metric, "cluster_inventory_") && !strings.Contains(string(docs), "`"+value+"`") {
						t.Errorf("%s: no label has the value %s", where, value)
					}
				}
			}
		}
		for _, group := range groupedBy.FindAllStringSubmatch(query, -1) {
			for label := range strings.SplitSeq(group[1], ", ") {
				isKnown := label == "le" || label == "instance"
				for metric := range used {
					isKnown = isKnown || slices.Contains(known[metric], label)
				}
				if !isKnown {
					t.Errorf("%s: none of its metrics has a label %s", where, label)
				}
			}
		}
	}
}

// knownMetrics are all that queries may use, with their labels.
func knownMetrics(t *testing.T) map[string][]string {
	t.Helper()
	known := ownMetrics(t)
	maps.Copy(known, otherMetrics)
	return known
}

// ownMetrics are the manager's own, with their labels, in the table of docs/metrics.md, which a test of
// pkg/hub/metrics compares with what is served.
func ownMetrics(t *testing.T) map[string][]string {
	t.Helper()
	text, err := os.ReadFile("../docs/metrics.md")
	apitest.Must(t, err)
	own := map[string][]string{}
	row := regexp.MustCompile("(?m)^\\| `(cluster_inventory_\\w+)` \\| \\w+ \\|([^|]*)\\|")
	for _, found := range row.FindAllStringSubmatch(string(text), -1) {
		if name := found[1]; !strings.HasPrefix(name, "cluster_inventory_agent_") {
			own[name] = strings.FieldsFunc(found[2], func(r rune) bool { return strings.ContainsRune(" `,", r) })
		}
	}
	if len(own) < 13 {
		t.Fatalf("docs/metrics.md has only %d metrics", len(own))
	}
	return own
}

// baseOf returns the metric to which a series of a histogram belongs.
func baseOf(series string, known map[string][]string) string {
	for _, suffix := range []string{"_bucket", "_sum", "_count"} {
		if base := strings.TrimSuffix(series, suffix); base != series && known[series] == nil {
			if _, ok := known[base]; ok {
				return base
			}
		}
	}
	return series
}

type alert struct {
	Alert       string
	Expr        string
	For         string
	Labels      map[string]string
	Annotations map[string]string
}

func alerts(t *testing.T) []alert {
	t.Helper()
	var file struct {
		Groups []struct {
			Name  string
			Rules []alert
		}
	}
	apitest.Must(t, yaml.UnmarshalStrict(monitoring(t, "alerts.yaml"), &file))
	var all []alert
	for _, group := range file.Groups {
		all = append(all, group.Rules...)
	}
	return all
}

// queries are those of all alerts and panels.
func queries(t *testing.T) map[string]string {
	t.Helper()
	all := map[string]string{}
	for _, alert := range alerts(t) {
		all["alert "+alert.Alert] = alert.Expr
	}
	var dashboard struct {
		Panels []struct {
			Title   string
			Targets []struct{ RefID, Expr string }
		}
	}
	apitest.Must(t, json.Unmarshal(monitoring(t, "dashboard.json"), &dashboard))
	for _, panel := range dashboard.Panels {
		for _, target := range panel.Targets {
			all["panel "+panel.Title+" "+target.RefID] = target.Expr
		}
	}
	if len(all) < 20 {
		t.Fatalf("only %d queries were found", len(all))
	}
	return all
}

// TestEveryMetricIsShown: a metric that no dashboard or alert shows is not worth its series.
func TestEveryMetricIsShown(t *testing.T) {
	all := queries(t)
	for metric := range ownMetrics(t) {
		isUsed := false
		for _, query := range all {
			isUsed = isUsed || strings.Contains(query, metric)
		}
		if !isUsed {
			t.Errorf("no alert and no panel uses %s", metric)
		}
	}
}

// TestEveryAlertIsDocumented: docs/metrics.md describes every alert, by its name.
func TestEveryAlertIsDocumented(t *testing.T) {
	text, err := os.ReadFile("../docs/metrics.md")
	apitest.Must(t, err)
	documented := map[string]bool{}
	for line := range strings.Lines(string(text)) {
		if name, _, ok := strings.Cut(strings.TrimPrefix(line, "| `"), "`"); ok &&
			strings.HasPrefix(name, "ClusterInventory") {
			documented[name] = true
		}
	}
	named := map[string]bool{}
	for _, alert := range alerts(t) {
		named[alert.Alert] = true
		if alert.For == "" || alert.Annotations["summary"] == "" || alert.Annotations["description"] == "" ||
			!slices.Contains([]string{"critical", "warning", "info"}, alert.Labels["severity"]) {
			t.Errorf("%s lacks something: %+v", alert.Alert, alert)
		}
	}
	if diff := cmp.Diff(named, documented); diff != "" {
		t.Errorf("alerts (-in alerts.yaml +in docs/metrics.md):\n%s", diff)
	}
}
