package configuration

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/addon/manifests"
)

func TestValidateNetworkPolicy(t *testing.T) {
	for name, test := range map[string]struct {
		given *manifests.NetworkPolicy
		want  fieldErrors
	}{
		"none": {},
		"a sound one": {given: &manifests.NetworkPolicy{
			APIServerPorts: []int32{443, 6443}, DNSPorts: []int32{53},
		}},
		"two networks": {given: &manifests.NetworkPolicy{
			APIServerCIDRs: []string{"192.0.2.7/32", "::/0"}, APIServerPorts: []int32{1}, DNSPorts: []int32{65535},
		}},
		"nothing in it": {given: &manifests.NetworkPolicy{}, want: fieldErrors{
			"spec.networkPolicy.apiServerPorts: is empty", "spec.networkPolicy.dnsPorts: is empty",
		}},
		"an address": {
			given: &manifests.NetworkPolicy{APIServerCIDRs: []string{"192.0.2.7"}, APIServerPorts: []int32{1}, DNSPorts: []int32{1}},
			want:  fieldErrors{`spec.networkPolicy.apiServerCIDRs: "192.0.2.7" is not a network, such as 192.0.2.0/24`},
		},
		"an address in a network": {
			given: &manifests.NetworkPolicy{APIServerCIDRs: []string{"192.0.2.7/24"}, APIServerPorts: []int32{1}, DNSPorts: []int32{1}},
			want:  fieldErrors{`spec.networkPolicy.apiServerCIDRs: "192.0.2.7/24" is not a network, such as 192.0.2.0/24`},
		},
		"ports that are none": {
			given: &manifests.NetworkPolicy{APIServerPorts: []int32{0}, DNSPorts: []int32{65536}},
			want: fieldErrors{
				"spec.networkPolicy.apiServerPorts: 0 is not a port: must be between 1 and 65535, inclusive",
				"spec.networkPolicy.dnsPorts: 65536 is not a port: must be between 1 and 65535, inclusive",
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			var wrong fieldErrors
			validateNetworkPolicy(test.given, &wrong)
			if diff := cmp.Diff(test.want, wrong); diff != "" {
				t.Errorf("errors (-want +got):\n%s", diff)
			}
		})
	}
}
