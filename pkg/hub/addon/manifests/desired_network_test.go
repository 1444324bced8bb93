package manifests

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	"open-cluster-management.io/cluster-inventory-addon/internal/apitest"
	"open-cluster-management.io/cluster-inventory-addon/internal/manifesttest"
	embedded "open-cluster-management.io/cluster-inventory-addon/manifests"
)

func isolated() Values {
	v := values()
	v.NetworkPolicy = &NetworkPolicy{APIServerPorts: []int32{443, 6443}, DNSPorts: []int32{53}}
	return v
}

func policyPort(protocol corev1.Protocol, number int32) networkingv1.NetworkPolicyPort {
	return networkingv1.NetworkPolicyPort{Protocol: ptr.To(protocol), Port: ptr.To(intstr.FromInt32(number))}
}

// Each policy is for the pods of one workload, lets the kubelet probe them, and lets them
// connect to name servers and API servers, and to nothing else.
func TestNetworkPoliciesOfAgentAndCleanup(t *testing.T) {
	objects := rendered(t, isolated())
	egress := []networkingv1.NetworkPolicyEgressRule{
		{Ports: []networkingv1.NetworkPolicyPort{policyPort("UDP", 53), policyPort("TCP", 53)}},
		{Ports: []networkingv1.NetworkPolicyPort{policyPort("TCP", 443), policyPort("TCP", 6443)}},
	}
	for name, ingress := range map[string][]networkingv1.NetworkPolicyIngressRule{
		"cluster-inventory-agent":   {{Ports: []networkingv1.NetworkPolicyPort{policyPort("TCP", 8081)}}},
		"cluster-inventory-cleanup": nil,
	} {
		want := networkingv1.NetworkPolicySpec{
			PodSelector: metav1.LabelSelector{MatchLabels: map[string]string{"app.kubernetes.io/name": name}},
			PolicyTypes: []networkingv1.PolicyType{"Ingress", "Egress"},
			Ingress:     ingress,
			Egress:      egress,
		}
		policy := manifesttest.Find[networkingv1.NetworkPolicy](t, objects, "NetworkPolicy", name)
		if diff := cmp.Diff(want, policy.Spec); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
		if policy.Namespace != "agents" || policy.Labels["app.kubernetes.io/managed-by"] != "cluster-inventory-addon" {
			t.Errorf("%s is in %q with labels %v", name, policy.Namespace, policy.Labels)
		}
		if !slices.ContainsFunc(objects, func(object *unstructured.Unstructured) bool {
			labels, _, _ := unstructured.NestedStringMap(object.Object, "spec", "template", "metadata", "labels")
			return labels["app.kubernetes.io/name"] == name
		}) {
			t.Errorf("no pod has the label that %s selects", name)
		}
	}
}

// Without a policy in an earlier revision, there is none.
func TestNetworkPoliciesAreOnlyWhereTheyAreAskedFor(t *testing.T) {
	tmpl, err := newTemplates()
	apitest.Must(t, err)
	for _, revision := range []string{embedded.Previous, embedded.Revision} {
		without, with := values(), isolated()
		without.Manifests, with.Manifests = revision, revision
		for want, v := range map[int]Values{0: without, 2: with} {
			objects, err := tmpl.of(v).render(v)
			apitest.Must(t, err)
			objects = slices.DeleteFunc(objects, func(object *unstructured.Unstructured) bool {
				return object.GetKind() != "NetworkPolicy"
			})
			if len(objects) != want {
				t.Errorf("revision %s has %d NetworkPolicies, want %d", revision, len(objects), want)
			}
		}
	}
}

func TestNetworkPoliciesAllowWhatIsConfigured(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*Values)
		want   []networkingv1.NetworkPolicyEgressRule // after that for name servers
	}{
		"the networks of the API servers": {
			change: func(v *Values) { v.NetworkPolicy.APIServerCIDRs = []string{"192.0.2.0/24", "2001:db8::/32"} },
			want: []networkingv1.NetworkPolicyEgressRule{{
				Ports: []networkingv1.NetworkPolicyPort{policyPort("TCP", 443), policyPort("TCP", 6443)},
				To: []networkingv1.NetworkPolicyPeer{
					{IPBlock: &networkingv1.IPBlock{CIDR: "192.0.2.0/24"}}, {IPBlock: &networkingv1.IPBlock{CIDR: "2001:db8::/32"}},
				},
			}},
		},
		"a proxy at any address": {
			change: func(v *Values) {
				v.NetworkPolicy.APIServerPorts = []int32{16443}
				v.Proxy = Proxy{HTTP: "http://proxy:3128", HTTPS: "https://user:secret@proxy"}
			},
			want: []networkingv1.NetworkPolicyEgressRule{
				{Ports: []networkingv1.NetworkPolicyPort{policyPort("TCP", 16443)}},
				{Ports: []networkingv1.NetworkPolicyPort{policyPort("TCP", 443), policyPort("TCP", 3128)}},
			},
		},
		"one proxy for both": {
			change: func(v *Values) {
				v.NetworkPolicy.APIServerPorts = []int32{6443}
				v.Proxy = Proxy{HTTP: "http://proxy", HTTPS: "http://proxy"}
			},
			want: []networkingv1.NetworkPolicyEgressRule{
				{Ports: []networkingv1.NetworkPolicyPort{policyPort("TCP", 6443)}},
				{Ports: []networkingv1.NetworkPolicyPort{policyPort("TCP", 80)}},
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			v := isolated()
			test.change(&v)
			policy := manifesttest.Find[networkingv1.NetworkPolicy](
				t, rendered(t, v), "NetworkPolicy", "cluster-inventory-agent")
			if diff := cmp.Diff(test.want, policy.Spec.Egress[1:]); diff != "" {
				t.Errorf("egress (-want +got):\n%s", diff)
			}
		})
	}
}
