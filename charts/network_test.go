package charts

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	"open-cluster-management.io/cluster-inventory-addon/internal/apitest/hubtest"
	"open-cluster-management.io/cluster-inventory-addon/internal/manifesttest"
)

func policyPort(protocol corev1.Protocol, number int32) networkingv1.NetworkPolicyPort {
	return networkingv1.NetworkPolicyPort{Protocol: ptr.To(protocol), Port: ptr.To(intstr.FromInt32(number))}
}

// TestNetworkPolicyOfTheHub: probes and metrics reach the manager, which reaches name servers
// and the API server, and nothing else.
func TestNetworkPolicyOfTheHub(t *testing.T) {
	type (
		ports = []networkingv1.NetworkPolicyPort
		from  = []networkingv1.NetworkPolicyPeer
	)
	probes := networkingv1.NetworkPolicyIngressRule{Ports: ports{policyPort("TCP", 8081)}}
	metrics := ports{policyPort("TCP", 8080)}
	monitoring := networkingv1.NetworkPolicyPeer{
		NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"kubernetes.io/metadata.name": "monitoring"}},
	}
	for name, test := range map[string]struct {
		values  string
		ingress []networkingv1.NetworkPolicyIngressRule
		egress  []networkingv1.NetworkPolicyEgressRule
	}{
		"by default": {
			values:  "networkPolicy: {enabled: true}",
			ingress: []networkingv1.NetworkPolicyIngressRule{probes, {Ports: metrics}},
			egress: []networkingv1.NetworkPolicyEgressRule{
				{Ports: ports{policyPort("UDP", 53), policyPort("TCP", 53)}},
				{Ports: ports{policyPort("TCP", 443), policyPort("TCP", 6443)}},
			},
		},
		"with everything": {
			values: `
networkPolicy:
  enabled: true
  metricsFrom: [{namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: monitoring}}}]
  apiServerCIDRs: [192.0.2.0/24, "2001:db8::/32"]
  apiServerPorts: [16443]
  dnsPorts: [53, 5353]
`,
			ingress: []networkingv1.NetworkPolicyIngressRule{probes, {Ports: metrics, From: from{monitoring}}},
			egress: []networkingv1.NetworkPolicyEgressRule{
				{Ports: ports{policyPort("UDP", 53), policyPort("TCP", 53), policyPort("UDP", 5353), policyPort("TCP", 5353)}},
				{Ports: ports{policyPort("TCP", 16443)}, To: from{
					{IPBlock: &networkingv1.IPBlock{CIDR: "192.0.2.0/24"}}, {IPBlock: &networkingv1.IPBlock{CIDR: "2001:db8::/32"}},
				}},
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			objects := hubtest.MustRender(t, test.values)
			policy := manifesttest.Find[networkingv1.NetworkPolicy](t, objects, "NetworkPolicy", "cluster-inventory")
			want := networkingv1.NetworkPolicySpec{
				PodSelector: metav1.LabelSelector{MatchLabels: map[string]string{
					"app.kubernetes.io/name": "cluster-inventory", "app.kubernetes.io/instance": "ci",
				}},
				PolicyTypes: []networkingv1.PolicyType{"Ingress", "Egress"},
				Ingress:     test.ingress,
				Egress:      test.egress,
			}
			if diff := cmp.Diff(want, policy.Spec); diff != "" {
				t.Errorf("policy (-want +got):\n%s", diff)
			}
		})
	}
}

// TestNetworkPolicySelectsEveryPod of the release: one that it does not select may connect
// to anything.
func TestNetworkPolicySelectsEveryPod(t *testing.T) {
	objects := hubtest.MustRender(t, "networkPolicy: {enabled: true}")
	policy := manifesttest.Find[networkingv1.NetworkPolicy](t, objects, "NetworkPolicy", "cluster-inventory")
	manager := manifesttest.Find[appsv1.Deployment](t, objects, "Deployment", "cluster-inventory-manager")
	hook := manifesttest.Find[batchv1.Job](t, objects, "Job", "cluster-inventory-uninstall")
	test := manifesttest.Find[corev1.Pod](t, objects, "Pod", "cluster-inventory-test")
	selector, err := metav1.LabelSelectorAsSelector(&policy.Spec.PodSelector)
	if err != nil {
		t.Fatal(err)
	}
	for name, given := range map[string]labels.Set{
		"manager": manager.Spec.Template.Labels, "hook": hook.Spec.Template.Labels, "test": test.Labels,
	} {
		if !selector.Matches(given) {
			t.Errorf("the %s has labels %v", name, given)
		}
	}
	ports := map[string]int32{}
	for _, port := range manager.Spec.Template.Spec.Containers[0].Ports {
		ports[port.Name] = port.ContainerPort
	}
	if diff := cmp.Diff(map[string]int32{"health": 8081, "metrics": 8080}, ports); diff != "" {
		t.Errorf("ports of the manager, which the policy opens (-want +got):\n%s", diff)
	}
}

// TestNetworkPolicyOfAgents is part of what OCM rolls out.
func TestNetworkPolicyOfAgents(t *testing.T) {
	for values, want := range map[string]any{
		"":                               nil,
		"networkPolicy: {enabled: true}": nil, // the hub's
		"agent: {networkPolicy: {dnsPorts: [5353]}}": nil,
		"agent: {networkPolicy: {enabled: true}}": map[string]any{
			"apiServerPorts": []any{443.0, 6443.0}, "dnsPorts": []any{53.0},
		},
		"agent: {networkPolicy: {enabled: true, apiServerCIDRs: [192.0.2.0/24], apiServerPorts: [16443], dnsPorts: [5353]}}": map[string]any{
			"apiServerCIDRs": []any{"192.0.2.0/24"}, "apiServerPorts": []any{16443.0}, "dnsPorts": []any{5353.0},
		},
	} {
		spec := revisionOf(t, hubtest.MustRender(t, values)).Object["spec"].(map[string]any)
		if diff := cmp.Diff(want, spec["networkPolicy"]); diff != "" {
			t.Errorf("%q (-want +got):\n%s", values, diff)
		}
	}
}
