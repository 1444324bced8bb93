package configuration

import (
	"encoding/base64"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/utils/ptr"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	"sigs.k8s.io/yaml"

	"open-cluster-management.io/cluster-inventory-addon/internal/certtest"
	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/addon/manifests"
)

// spec decodes the spec of a configuration as the API server returns it.
func spec(t *testing.T, text string) map[string]any {
	t.Helper()
	var decoded map[string]any
	if err := yaml.Unmarshal([]byte(text), &decoded); err != nil {
		t.Fatal(err)
	}
	return decoded
}

func caPEM(t *testing.T) string {
	t.Helper()
	return string(certtest.Issue(t, nil, certtest.CA("proxy", time.Now().Add(time.Hour))).PEM())
}

// Quantities are compared by their value.
var quantities = cmp.Comparer(func(a, b resource.Quantity) bool { return a.Cmp(b) == 0 })

func TestValidateConfigurationAcceptsValidSpecs(t *testing.T) {
	ca := caPEM(t)
	memory := func(request, limit string) *corev1.ResourceRequirements {
		return &corev1.ResourceRequirements{
			Requests: corev1.ResourceList{"memory": resource.MustParse(request)},
			Limits:   corev1.ResourceList{"memory": resource.MustParse(limit)},
		}
	}
	tests := map[string]struct {
		spec string
		want overrides
	}{
		"nothing": {spec: "{}"},
		"the namespace that the API fills in is that of all clusters": {
			spec: "agentInstallNamespace: open-cluster-management-agent-addon",
		},
		"a namespace":   {spec: "agentInstallNamespace: agents", want: overrides{installNamespace: "agents"}},
		"the log level": {spec: `customizedVariables: [{name: logLevel, value: "4"}]`, want: overrides{logLevel: ptr.To(4)}},
		"no claims at all": {
			spec: `customizedVariables: [{name: claimLimit, value: "0"}]`, want: overrides{claimLimit: ptr.To(0)},
		},
		"nodes": {
			spec: `
nodePlacement:
  nodeSelector: {node-role.kubernetes.io/infra: "", zone: a}
  tolerations:
  - {key: node-role.kubernetes.io/infra, operator: Exists, effect: NoSchedule}
  - {key: dedicated, value: addons, effect: NoExecute, tolerationSeconds: 30}
  - {operator: Exists}
`,
			want: overrides{
				nodeSelector: map[string]string{"node-role.kubernetes.io/infra": "", "zone": "a"},
				tolerations: []corev1.Toleration{
					{Key: "node-role.kubernetes.io/infra", Operator: "Exists", Effect: "NoSchedule"},
					{Key: "dedicated", Value: "addons", Effect: "NoExecute", TolerationSeconds: ptr.To[int64](30)},
					{Operator: "Exists"},
				},
			},
		},
		"resources of every container": {
			spec: `
resourceRequirements:
- containerID: "*:*:*"
  resources: {requests: {memory: 64Mi}, limits: {memory: 256Mi}}
`,
			want: overrides{agentResources: memory("64Mi", "256Mi"), cleanupResources: memory("64Mi", "256Mi")},
		},
		"of the entries that match, the last counts, and those of other addons do not": {
			spec: `
resourceRequirements:
- {containerID: "deployments:*:*", resources: {requests: {memory: 1Mi}, limits: {memory: 1Mi}}}
- {containerID: "deployments:cluster-inventory-*:agent", resources: {requests: {memory: 2Mi}, limits: {memory: 4Mi}}}
- {containerID: "deployments:other:agent", resources: {requests: {memory: 8Mi}, limits: {memory: 8Mi}}}
`,
			want: overrides{agentResources: memory("2Mi", "4Mi")},
		},
		"a quantity that is a number": {
			spec: `resourceRequirements: [{containerID: "jobs:*:cleanup", resources: {requests: {cpu: 1}}}]`,
			want: overrides{cleanupResources: &corev1.ResourceRequirements{
				Requests: corev1.ResourceList{"cpu": resource.MustParse("1")},
			}},
		},
		"registries, of which one without a mirror is ignored": {
			spec: `
registries:
- {source: quay.io/open-cluster-management/, mirror: "mirror.example.com:5000/ocm"}
- {source: quay.io/other, mirror: ""}
`,
			want: overrides{registries: []addonv1beta1.ImageMirror{
				{Source: "quay.io/open-cluster-management", Mirror: "mirror.example.com:5000/ocm"},
			}},
		},
		"a proxy and its CA": {
			spec: fmt.Sprintf(`
proxyConfig:
  httpProxy: http://proxy.example.com:3128
  httpsProxy: https://user:secret@proxy.example.com:3129/
  noProxy: |
    .cluster.local, 10.0.0.0/8,[fd00::]/8,
    *.example.com,localhost:8080
  caBundle: %s
`, base64.StdEncoding.EncodeToString([]byte("\n"+ca))),
			want: overrides{proxy: manifests.Proxy{
				HTTP:     "http://proxy.example.com:3128",
				HTTPS:    "https://user:secret@proxy.example.com:3129/",
				No:       ".cluster.local,10.0.0.0/8,[fd00::]/8,*.example.com,localhost:8080",
				CABundle: ca,
			}},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got, wrong := validateConfiguration(spec(t, test.spec))
			if len(wrong) > 0 {
				t.Fatalf("errors: %v", wrong)
			}
			if diff := cmp.Diff(test.want, got, cmp.AllowUnexported(overrides{}), quantities); diff != "" {
				t.Errorf("overrides (-want +got):\n%s", diff)
			}
		})
	}
}

// Each error names its field, and nothing of an invalid configuration is used.
func TestValidateConfigurationNamesTheField(t *testing.T) {
	encode := func(text string) string { return base64.StdEncoding.EncodeToString([]byte(text)) }
	toleration := func(text string) string { return "nodePlacement: {tolerations: [" + text + "]}" }
	limits := func(text string) string {
		return `resourceRequirements: [{containerID: "*:*:*", resources: {limits: ` + text + "}}]"
	}
	tests := map[string]struct{ spec, want string }{
		"an unknown variable": {
			spec: `customizedVariables: [{name: loglevel, value: "1"}]`,
			want: "spec.customizedVariables[loglevel]: is unknown; use claimLimit or logLevel",
		},
		"a variable that is no number": {
			spec: `customizedVariables: [{name: logLevel, value: debug}]`,
			want: `spec.customizedVariables[logLevel]: "debug" is not a whole number from 0 to 10`,
		},
		"a variable out of range": {
			spec: `customizedVariables: [{name: claimLimit, value: "-1"}]`,
			want: `spec.customizedVariables[claimLimit]: "-1" is not a whole number from 0 to 10000`,
		},
		"a namespace that is none": {
			spec: "agentInstallNamespace: Agents",
			want: `spec.agentInstallNamespace: "Agents" is not a namespace name: `,
		},
		"a namespace of Kubernetes": {
			spec: "agentInstallNamespace: kube-system",
			want: `spec.agentInstallNamespace: "kube-system" is reserved for Kubernetes`,
		},
		"the default namespace": {
			spec: "agentInstallNamespace: default",
			want: `spec.agentInstallNamespace: "default" is reserved for Kubernetes`,
		},
		"a label's key": {
			spec: `nodePlacement: {nodeSelector: {"a b": c}}`,
			want: "spec.nodePlacement.nodeSelector[a b]: is not a label key: ",
		},
		"a label's value": {
			spec: `nodePlacement: {nodeSelector: {a: "b c"}}`,
			want: `spec.nodePlacement.nodeSelector[a]: "b c" is not a label value: `,
		},
		"a taint's key": {
			spec: toleration(`{key: "a b", operator: Exists}`),
			want: `spec.nodePlacement.tolerations[0].key: "a b" is not a taint key: `,
		},
		"an operator": {
			spec: toleration(`{operator: Exists}, {key: a, operator: In}`),
			want: `spec.nodePlacement.tolerations[1].operator: "In" is neither Exists nor Equal`,
		},
		"an operator without a key": {
			spec: toleration(`{value: a}`),
			want: "spec.nodePlacement.tolerations[0].operator: without a key it must be Exists",
		},
		"a value that is not compared": {
			spec: toleration(`{key: a, operator: Exists, value: b}`),
			want: "spec.nodePlacement.tolerations[0].value: must be empty with the operator Exists",
		},
		"an effect": {
			spec: toleration(`{operator: Exists, effect: Never}`),
			want: `spec.nodePlacement.tolerations[0].effect: "Never" is not one of NoSchedule, PreferNoSchedule, NoExecute`,
		},
		"seconds without the effect": {
			spec: toleration(`{operator: Exists, tolerationSeconds: 3}`),
			want: "spec.nodePlacement.tolerations[0].tolerationSeconds: needs the effect NoExecute",
		},
		"a quantity": {
			spec: limits("{memory: 1 GB}"),
			want: `spec.resourceRequirements[0].resources.limits[memory]: "1 GB" is not a quantity: `,
		},
		"a negative quantity": {
			spec: limits(`{cpu: "-1"}`),
			want: "spec.resourceRequirements[0].resources.limits[cpu]: -1 is negative",
		},
		"a resource": {
			spec: limits("{example.com/gpu: 1}"),
			want: "spec.resourceRequirements[0].resources.limits[example.com/gpu]: is not one of cpu, memory, ephemeral-storage",
		},
		"a request beyond the limit": {
			spec: `resourceRequirements: [{containerID: "*:*:*", resources: {limits: {cpu: 1}, requests: {cpu: 2}}}]`,
			want: "spec.resourceRequirements[0].resources.requests[cpu]: 2 is more than the limit 1",
		},
		"claims": {
			spec: `resourceRequirements: [{containerID: "*:*:*", resources: {claims: [{name: gpu}]}}]`,
			want: "spec.resourceRequirements[0].resources.claims: are not supported",
		},
		"a container": {
			spec: `resourceRequirements: [{containerID: "deployments:agent", resources: {}}]`,
			want: `spec.resourceRequirements[0].containerID: "deployments:agent" does not consist of three parts, ` +
				`as in "deployments:cluster-inventory-agent:agent"`,
		},
		"an error in another addon's part": {
			spec: `resourceRequirements: [{containerID: "deployments:other:agent", resources: {limits: {cpu: lots}}}]`,
			want: `spec.resourceRequirements[0].resources.limits[cpu]: "lots" is not a quantity: `,
		},
		"a mirror": {
			spec: `registries: [{source: quay.io, mirror: "https://mirror.example.com"}]`,
			want: `spec.registries[0].mirror: is not the name of a registry or repository`,
		},
		"a source": {
			spec: `registries: [{source: "quay.io/a b", mirror: mirror.example.com}]`,
			want: `spec.registries[0].source: is not the name of a registry or repository`,
		},
		"a source with a tag": {
			spec: `registries: [{source: "quay.io/ocm/a:v1", mirror: mirror.example.com}]`,
			want: "spec.registries[0].source: is not the name of a registry or repository without scheme, tag and digest",
		},
		"a source with a digest": {
			spec: `registries: [{source: "quay.io/ocm/a@sha256:` + strings.Repeat("0", 64) + `", mirror: mirror.example.com}]`,
			want: "spec.registries[0].source: is not the name of a registry or repository",
		},
		"a proxy without a host": {
			spec: `proxyConfig: {httpsProxy: "https://:3128"}`,
			want: "spec.proxyConfig.httpsProxy: has no host",
		},
		"a proxy without a scheme": {
			spec: `proxyConfig: {httpProxy: "proxy.example.com:3128"}`,
			want: "spec.proxyConfig.httpProxy: does not begin with http:// or https://",
		},
		"a proxy that is no URL": {
			spec: `proxyConfig: {httpProxy: "http://%"}`,
			want: "spec.proxyConfig.httpProxy: is not a URL",
		},
		"a proxy with a path": {
			spec: `proxyConfig: {httpProxy: "http://proxy/path"}`,
			want: "spec.proxyConfig.httpProxy: has more than a scheme, a host and a port",
		},
		"hosts without a proxy": {
			spec: `proxyConfig: {noProxy: "localhost,a b"}`,
			want: `spec.proxyConfig.noProxy: "a b" is not a host, a domain, an address or a network`,
		},
		"a CA that is no PEM": {
			spec: "proxyConfig: {caBundle: " + encode("certificate") + "}",
			want: "spec.proxyConfig.caBundle: is not PEM, from block 1 on",
		},
		"a CA with something after it": {
			spec: "proxyConfig: {caBundle: " + encode(caPEM(t)+"more") + "}",
			want: "spec.proxyConfig.caBundle: is not PEM, from block 2 on",
		},
		"a garbled CA before another one": {
			spec: "proxyConfig: {caBundle: " + encode(strings.Replace(caPEM(t), "\n", "\n!", 1)+caPEM(t)) + "}",
			want: "spec.proxyConfig.caBundle: is not PEM, from block 1 on",
		},
		"a key in place of a CA": {
			spec: "proxyConfig: {caBundle: " + encode("-----BEGIN PRIVATE KEY-----\n-----END PRIVATE KEY-----\n") + "}",
			want: "spec.proxyConfig.caBundle: block 1 is a PRIVATE KEY, not a certificate",
		},
		"a CA that is no certificate": {
			spec: "proxyConfig: {caBundle: " + encode("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n") + "}",
			want: "spec.proxyConfig.caBundle: certificate 1 cannot be parsed: ",
		},
		"a CA that is too large": {
			spec: "proxyConfig: {caBundle: " + encode(strings.Repeat("a", 40000)) + "}",
			want: "spec.proxyConfig.caBundle: has 40000 bytes, more than 16384",
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got, wrong := validateConfiguration(spec(t, test.spec))
			if len(wrong) != 1 || !strings.HasPrefix(wrong[0], test.want) {
				t.Errorf("errors %q, want one: %q", wrong, test.want)
			}
			if diff := cmp.Diff(overrides{}, got, cmp.AllowUnexported(overrides{})); diff != "" {
				t.Errorf("used (-want +got):\n%s", diff)
			}
		})
	}
}

func TestValidateConfigurationReportsAllErrors(t *testing.T) {
	_, wrong := validateConfiguration(spec(t, `
customizedVariables: [{name: a, value: b}]
proxyConfig: {httpProxy: "http://user:secret@"}
registries: [{mirror: "https://user:secret@mirror.example.com"}]
`))
	if len(wrong) != 3 || strings.Contains(strings.Join(wrong, ""), "secret") {
		t.Errorf("errors %q", wrong)
	}
}

func TestValidateConfigurationBoundsSizes(t *testing.T) {
	long := strings.Repeat("a", 5000)
	for field, text := range map[string]string{
		"spec.proxyConfig.httpProxy": `{"proxyConfig": {"httpProxy": "http://` + long + `"}}`,
		"spec.registries[0].source":  `{"registries": [{"source": "` + long + `", "mirror": "m"}]}`,
		"spec.registries[0].mirror":  `{"registries": [{"source": "s", "mirror": "` + long + `"}]}`,
		"spec.proxyConfig.noProxy":   `{"proxyConfig": {"noProxy": "` + long + `"}}`,
		"spec.registries":            `{"registries": [` + strings.Repeat(`{"mirror": "m"},`, 50) + `{"mirror": "m"}]}`,
		"spec.nodePlacement.tolerations": `{"nodePlacement": {"tolerations": [` +
			strings.Repeat(`{"operator": "Exists"},`, 50) + `{"operator": "Exists"}]}}`,
	} {
		_, wrong := validateConfiguration(spec(t, text))
		if len(wrong) != 1 || !strings.HasPrefix(wrong[0], field+": has ") {
			t.Errorf("%s: errors %q", field, wrong)
		}
	}
}

func TestValidateAnnotation(t *testing.T) {
	tests := map[string]struct {
		annotation string
		want       []addonv1beta1.ImageMirror
		wrong      string
	}{
		"none": {},
		"one": {
			annotation: `{"pullSecret":"a.b","registries":[{"source":"quay.io/a","mirror":"mirror.example.com"}]}`,
			want:       []addonv1beta1.ImageMirror{{Source: "quay.io/a", Mirror: "mirror.example.com"}},
		},
		"not JSON":             {annotation: "registries: []", wrong: "is not a JSON object with the list registries"},
		"something more":       {annotation: `{} {}`, wrong: "is not a JSON object with the list registries"},
		"one that is too long": {annotation: "too long", wrong: "has more than 16384 bytes"},
		"a mirror that is none": {
			annotation: `{"registries":[{"mirror":"a b"}]}`,
			wrong:      `: registries[0].mirror: is not the name of a registry or repository`,
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got, wrong := validateAnnotation(test.annotation)
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("registries (-want +got):\n%s", diff)
			}
			if test.wrong == "" != (len(wrong) == 0) || test.wrong != "" &&
				(!strings.Contains(wrong[0], test.wrong) ||
					!strings.Contains(wrong[0], "open-cluster-management.io/image-registries")) {
				t.Errorf("errors %q, want %q", wrong, test.wrong)
			}
		})
	}
}

func TestIsFrom(t *testing.T) {
	tests := map[string]struct {
		image, registry string
		want            bool
	}{
		"a registry":             {"m.example.com/ocm/a:v1", "m.example.com", true},
		"another port of it":     {"m.example.com:5000/ocm/a:v1", "m.example.com", false},
		"a part of a registry":   {"m.example.com:5000/ocm/a:v1", "m.example.com:5000/ocm", true},
		"a part of a name":       {"m.example.com/ocm-tools/a:v1", "m.example.com/ocm", false},
		"a repository":           {"m.example.com/ocm/a:v1", "m.example.com/ocm/a", true},
		"another repository":     {"m.example.com/ocm/ab:v1", "m.example.com/ocm/a", false},
		"a registry of its name": {"m.example.com.evil/a:v1", "m.example.com", false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := isFrom(test.image, []string{"other", test.registry}); got != test.want {
				t.Errorf("got %t", got)
			}
		})
	}
	if isFrom("m/a", nil) {
		t.Error("without any registry")
	}
}

func TestMirrored(t *testing.T) {
	const digest = "@sha256:0000000000000000000000000000000000000000000000000000000000000000"
	entry := func(source, mirror string) addonv1beta1.ImageMirror {
		return addonv1beta1.ImageMirror{Source: source, Mirror: mirror}
	}
	tests := map[string]struct {
		image      string
		registries []addonv1beta1.ImageMirror
		want       string
	}{
		"no registries": {image: "quay.io/ocm/a:v1", want: "quay.io/ocm/a:v1"},
		"a registry": {
			image: "quay.io/ocm/a:v1", registries: []addonv1beta1.ImageMirror{entry("quay.io", "m:5000")},
			want: "m:5000/ocm/a:v1",
		},
		"a repository": {
			image:      "quay.io/ocm/a:v1",
			registries: []addonv1beta1.ImageMirror{entry("quay.io/ocm/a", "m/b")}, want: "m/b:v1",
		},
		"a digest stays": {
			image: "quay.io/ocm/a" + digest, registries: []addonv1beta1.ImageMirror{entry("quay.io/ocm", "m")},
			want: "m/a" + digest,
		},
		"a tag and a digest stay": {
			image:      "quay.io/ocm/a:v1" + digest,
			registries: []addonv1beta1.ImageMirror{entry("quay.io/ocm/a", "m/b")}, want: "m/b:v1" + digest,
		},
		"no source takes the tag or digest along": {
			image: "quay.io/ocm/a:v1" + digest,
			registries: []addonv1beta1.ImageMirror{
				entry("quay.io/ocm/a:v1"+digest, "m/b"), entry("quay.io/ocm/a:v1", "m/b"), entry("quay.io/ocm/a", "m/c"),
			},
			want: "m/c:v1" + digest,
		},
		"a number may be a tag": {
			image: "a:123", registries: []addonv1beta1.ImageMirror{entry("a:123", "m/b")}, want: "a:123",
		},
		"an image without a registry, a tag and a digest": {
			image: "a", registries: []addonv1beta1.ImageMirror{entry("a", "m/b")}, want: "m/b",
		},
		"every image with a digest": {
			image: "quay.io:5000/a" + digest, registries: []addonv1beta1.ImageMirror{entry("", "m/x")}, want: "m/x/a" + digest,
		},
		"every image": {
			image: "quay.io/ocm/a:v1", registries: []addonv1beta1.ImageMirror{entry("", "m/x")}, want: "m/x/a:v1",
		},
		"a part of a name is another name": {
			image: "quay.io/ocm-tools/a:v1", registries: []addonv1beta1.ImageMirror{entry("quay.io/ocm", "m")},
			want: "quay.io/ocm-tools/a:v1",
		},
		"a host without its port is another host": {
			image: "quay.io:5000/a:v1", registries: []addonv1beta1.ImageMirror{entry("quay.io", "m")}, want: "quay.io:5000/a:v1",
		},
		"the last that matches": {
			image:      "quay.io/ocm/a:v1",
			registries: []addonv1beta1.ImageMirror{entry("", "m1"), entry("quay.io", "m2"), entry("docker.io", "m3")},
			want:       "m2/ocm/a:v1",
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := mirrored(test.image, test.registries); got != test.want {
				t.Errorf("got %s, want %s", got, test.want)
			}
		})
	}
}
