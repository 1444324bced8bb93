package manifests

import (
	"cmp"
	"net/url"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
)

// egress is what both pods may connect to.
func (v Values) egress() []networkingv1.NetworkPolicyEgressRule {
	allowed := v.NetworkPolicy
	servers := networkingv1.NetworkPolicyEgressRule{Ports: onPorts(corev1.ProtocolTCP, allowed.APIServerPorts)}
	for _, cidr := range allowed.APIServerCIDRs {
		servers.To = append(servers.To, networkingv1.NetworkPolicyPeer{IPBlock: &networkingv1.IPBlock{CIDR: cidr}})
	}
	rules := []networkingv1.NetworkPolicyEgressRule{
		{Ports: slices.Concat(onPorts(corev1.ProtocolUDP, allowed.DNSPorts), onPorts(corev1.ProtocolTCP, allowed.DNSPorts))},
		servers,
	}
	// A proxy is given by its name, so its address is not known.
	if ports := v.Proxy.ports(); len(ports) > 0 {
		rules = append(rules, networkingv1.NetworkPolicyEgressRule{Ports: onPorts(corev1.ProtocolTCP, ports)})
	}
	return rules
}

func onPorts(protocol corev1.Protocol, numbers []int32) []networkingv1.NetworkPolicyPort {
	var ports []networkingv1.NetworkPolicyPort
	for _, number := range numbers {
		ports = append(ports, networkingv1.NetworkPolicyPort{
			Protocol: ptr.To(protocol), Port: ptr.To(intstr.FromInt32(number)),
		})
	}
	return ports
}

// ports are those of the proxies, sorted.
func (p Proxy) ports() []int32 {
	defaults := map[string]string{"http": "80", "https": "443"}
	var ports []int32
	for _, given := range []string{p.HTTP, p.HTTPS} {
		parsed, err := url.Parse(given)
		if err != nil {
			continue // validateProxyURL has refused it
		}
		port, err := strconv.ParseUint(cmp.Or(parsed.Port(), defaults[parsed.Scheme]), 10, 16)
		if err != nil {
			continue // there is no such proxy, or no client can connect to it
		}
		ports = append(ports, int32(port))
	}
	slices.Sort(ports)
	return slices.Compact(ports)
}
