package charts

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	workv1 "open-cluster-management.io/api/work/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"open-cluster-management.io/cluster-inventory-addon/internal/apitest"
	"open-cluster-management.io/cluster-inventory-addon/internal/apitest/ocmtest"
	"open-cluster-management.io/cluster-inventory-addon/internal/certtest"
	"open-cluster-management.io/cluster-inventory-addon/internal/golden"
	"open-cluster-management.io/cluster-inventory-addon/manifests"
)

const (
	deployWork  = "addon-cluster-inventory-deploy-0"
	cleanupWork = "addon-cluster-inventory-pre-delete"
)

// The works of an agent on its own cluster and of a hosted one, up to the clean-up.
func testWorksOfAgents(t *testing.T) {
	s := &shell{installed: install(t)}
	s.hostAgents()
	s.start("--hosted-agents", "--allowed-registry="+mirror)
	s.revision = s.agents("quay.io/" + imagePath + ":v1")
	s.checkBytes()
	s.checkLimits()
}

// hosted is the name of a work for an agent that another cluster hosts.
func hosted(work string, of *addonv1beta1.ManagedClusterAddOn) string {
	if work == cleanupWork {
		return cleanupWork + "-hosting-" + of.Namespace
	}
	return "addon-cluster-inventory-deploy-hosting-" + of.Namespace + "-0"
}

// joinHosted creates a cluster whose agent another one hosts.
func (s *shell) joinHosted(name string, host *addonv1beta1.ManagedClusterAddOn) *addonv1beta1.ManagedClusterAddOn {
	s.T.Helper()
	a := ocmtest.Addon(name)
	a.Annotations = map[string]string{"addon.open-cluster-management.io/hosting-cluster-name": host.Namespace}
	s.joinWith(a, metav1.ConditionTrue)
	return a
}

// checkBytes compares the works of two agents with reviewed ones: a byte that differs changes
// the agents of all clusters at once, outside of a rollout.
func (s *shell) checkBytes() {
	s.T.Helper()
	host := s.join(metav1.ConditionTrue)
	guest := s.joinHosted(s.Namespace("guest", nil), host)
	s.refer(guest, s.revision)

	var text strings.Builder
	names := strings.NewReplacer(host.Namespace, "HOST", guest.Namespace, "GUEST",
		string(host.UID), "UID-OF-HOST", string(guest.UID), "UID-OF-GUEST")
	write := func(in *addonv1beta1.ManagedClusterAddOn, name string) *workv1.ManifestWork {
		s.T.Helper()
		work := s.work(in, name)
		shipped := work.Spec.Workload.Manifests
		work.Spec.Workload.Manifests = nil
		spec, err := yaml.Marshal(work.Spec)
		apitest.Must(s.T, err)
		fmt.Fprintf(&text, "--- %s/%s\n%s", work.Namespace, work.Name, spec)
		lines := make([]string, 0, len(shipped)) // addon-framework sorts them by size alone
		for _, manifest := range shipped {
			lines = append(lines, string(manifest.Raw)+"\n")
		}
		slices.Sort(lines)
		text.WriteString(strings.Join(lines, ""))
		return work
	}
	write(host, deployWork)
	write(guest, deployWork)
	write(host, hosted(deployWork, guest))
	for _, removed := range []*addonv1beta1.ManagedClusterAddOn{guest, host} {
		job, namespace := cleanupWork, "agents"
		if removed == guest {
			job, namespace = hosted(cleanupWork, guest), "cluster-inventory-"+guest.Namespace
		}
		s.eventuallyHeld(removed)
		s.MustDelete(removed)
		s.reportApplied(write(host, job), workv1.ManifestResourceMeta{
			Group: "batch", Version: "v1", Kind: "Job", Resource: "jobs",
			Namespace: namespace, Name: "cluster-inventory-cleanup",
		}, workv1.FeedbackValue{Name: "JobComplete", Value: workv1.FieldValue{Type: workv1.String, String: ptr.To("True")}})
		s.EventuallyGone(removed)
	}
	golden.Check(s.T, "works", names.Replace(text.String()))
}

// checkLimits makes everything that works contain from objects on the hub as long as it may be.
func (s *shell) checkLimits() {
	s.T.Helper()
	long := func(base string, length int) string { return base + strings.Repeat("x", length-len(base)) }
	many := func(count int, of func(n int) any) []any {
		all := make([]any, count)
		for n := range all {
			all[n] = of(n)
		}
		return all
	}
	ports := many(20, func(n int) any { return int64(65535 - n) })
	revision := s.agentsWith(map[string]any{
		"manifests": manifests.Revision, "image": "quay.io/" + imagePath + "@" + oldDigest, "imagePullPolicy": "Always",
		"imagePullSecrets":   many(20, func(n int) any { return long(fmt.Sprintf("secret-%d-", n), 253) }),
		"installNamespace":   long("agents", 63),
		"claimLimit":         int64(1<<31 - 1),
		"logLevel":           int64(10),
		"reservedProperties": many(50, func(n int) any { return long(fmt.Sprintf(`*[a-z]\*$(POD_IP)%d`, n), 253) }),
		"podSecurityContext": map[string]any{"runAsUser": int64(1 << 31), "runAsGroup": int64(0), "fsGroup": int64(0)},
		"networkPolicy": map[string]any{
			"apiServerCIDRs": many(50, func(n int) any { return fmt.Sprintf("10.%d.0.0/16", n) }),
			"apiServerPorts": ports, "dnsPorts": ports,
		},
	})
	certificate := certtest.NewCA(s.T, "proxy", time.Now().Add(time.Hour)).PEM()
	config := &addonv1beta1.AddOnDeploymentConfig{ObjectMeta: metav1.ObjectMeta{
		Namespace: s.Namespace("configs", nil), Name: "limits",
	}}
	spec, err := json.Marshal(map[string]any{
		"customizedVariables": []any{
			map[string]any{"name": "claimLimit", "value": "10000"}, map[string]any{"name": "logLevel", "value": "10"},
		},
		"nodePlacement": map[string]any{
			"nodeSelector": func() map[string]any {
				labels := map[string]any{}
				for n := range 50 {
					labels[long(fmt.Sprintf("a%d.", n), 253)+"/"+long("b", 63)] = long("c", 63)
				}
				return labels
			}(),
			"tolerations": many(50, func(n int) any {
				return map[string]any{
					"key": long(fmt.Sprintf("a%d.", n), 253) + "/" + long("b", 63), "operator": "Equal", "value": long("c", 63),
					"effect": "NoExecute", "tolerationSeconds": int64(1<<63 - 1),
				}
			}),
		},
		"resourceRequirements": []any{map[string]any{"containerID": "*:*:*", "resources": map[string]any{
			"limits":   map[string]any{"cpu": "1", "memory": "1Gi", "ephemeral-storage": "1Gi"},
			"requests": map[string]any{"cpu": "1m", "memory": "1Mi", "ephemeral-storage": "1Mi"},
		}}},
		"registries": many(50, func(n int) any {
			return map[string]any{
				"source": "quay.io/open-cluster-management", "mirror": long(fmt.Sprintf("%s/a-%d_b", mirror, n), 255),
			}
		}),
		"proxyConfig": map[string]any{
			"httpProxy":  "http://user:" + strings.Repeat("$", 4096-40) + "@proxy.example.com:3128",
			"httpsProxy": "https://user:" + strings.Repeat("$", 4096-40) + "@proxy.example.com:3128",
			"noProxy":    strings.Repeat("a.example.com,", 290) + "10.0.0.0/8",
			"caBundle":   bytes.Repeat(certificate, 16<<10/len(certificate)),
		},
	})
	apitest.Must(s.T, err)
	apitest.Must(s.T, json.Unmarshal(spec, &config.Spec))
	s.MustCreate(config)
	s.CleanUp(config)
	referent := addonv1beta1.ConfigReferent{Namespace: config.Namespace, Name: config.Name}

	name := func(base string) string {
		name := s.Name(long(base, 63-len(s.Name(""))))
		s.MustCreateIn(name)
		return name
	}
	host := ocmtest.Addon(name("host"))
	s.joinWith(host, metav1.ConditionTrue)
	guest := s.joinHosted(name("guest"), host)
	s.T.Cleanup(func() { s.Clear(&workv1.ManifestWorkList{}, client.InNamespace(host.Namespace)) })
	image := `"` + mirror + "/"
	for a, deploy := range map[*addonv1beta1.ManagedClusterAddOn]string{host: deployWork, guest: hosted(deployWork, guest)} {
		apitest.Edit(s, a, func(a *addonv1beta1.ManagedClusterAddOn) {
			a.Spec.Configs = []addonv1beta1.AddOnConfig{{ConfigGroupResource: deploymentConfigs, ConfigReferent: referent}}
		})
		s.refer(a, revision, desired(referent, ""))
		s.eventuallyShipped(host, deploy, `"kind":"Deployment"`, `"kind":"ServiceAccount"`, `"kind":"NetworkPolicy"`, image)
		s.eventuallyShipped(a, deployWork, `"kind":"ClusterRole"`)
		s.condition(a, "ConfigurationApplied", metav1.ConditionTrue)
		s.eventuallyHeld(a)
	}
	s.MustDelete(guest, host)
	s.eventuallyShipped(host, hosted(cleanupWork, guest), `"kind":"Job"`, image)
	s.eventuallyShipped(host, cleanupWork, `"kind":"Job"`, image)
}

// eventuallyHeld waits until an addon would not go without a clean-up.
func (s *shell) eventuallyHeld(a *addonv1beta1.ManagedClusterAddOn) {
	s.T.Helper()
	s.Eventually("the framework holds the addon", func() string {
		if s.MustGet(a); !strings.Contains(strings.Join(a.Finalizers, " "), "pre-delete") {
			return fmt.Sprint("finalizers ", a.Finalizers)
		}
		return ""
	})
}

// eventuallyShipped waits until a work of a cluster contains all these texts.
func (s *shell) eventuallyShipped(to *addonv1beta1.ManagedClusterAddOn, name string, texts ...string) {
	s.T.Helper()
	s.Eventually(fmt.Sprintf("work %s of cluster %s contains %s", name, to.Namespace, texts), func() string {
		work := &workv1.ManifestWork{ObjectMeta: metav1.ObjectMeta{Namespace: to.Namespace, Name: name}}
		if !s.Find(work) {
			return "it does not exist"
		}
		var shipped strings.Builder
		for _, manifest := range work.Spec.Workload.Manifests {
			shipped.Write(manifest.Raw)
		}
		for _, text := range texts {
			if !strings.Contains(shipped.String(), text) {
				return "there is no " + text
			}
		}
		return ""
	})
}
