package check

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	authorizationv1 "k8s.io/api/authorization/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

func lease(holder string, renewed int64) *coordinationv1.Lease {
	return &coordinationv1.Lease{Spec: coordinationv1.LeaseSpec{
		HolderIdentity: ptr.To(holder), RenewTime: ptr.To(metav1.NewMicroTime(time.Unix(renewed, 0))),
	}}
}

func TestValidate(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*seen)
		want   []string
	}{
		"nothing is missing": {change: func(*seen) {}},
		"a definition was not installed": {
			change: func(s *seen) { s.served = s.served[:len(s.served)-1] },
			want:   []string{"the hub does not serve clusterprofiles of multicluster.x-k8s.io/v1alpha1"},
		},
		"rights are missing": {
			change: func(s *seen) {
				s.refused = []authorizationv1.ResourceAttributes{
					{Verb: "patch", Group: "g", Resource: "r", Subresource: "status", Name: "n"},
					{Verb: "list", Resource: "configmaps", Namespace: "ns"},
				}
			},
			want: []string{"the manager may not patch r/status n of g", "the manager may not list configmaps in ns"},
		},
		"the addon is not defined": {
			change: func(s *seen) { s.defined = false },
			want:   []string{"there is no ClusterManagementAddOn cluster-inventory"},
		},
		"a policy is not enforced": {
			change: func(s *seen) { s.policies = map[string]string{"a": "", "b": "it does not exist"} },
			want:   []string{"the hub does not enforce ValidatingAdmissionPolicy b: it does not exist"},
		},
		"no Lease": {
			change: func(s *seen) { s.lease = nil }, want: []string{"there is no Lease cluster-inventory-manager"},
		},
		"a Lease that the chart has made": {
			change: func(s *seen) { s.lease = &coordinationv1.Lease{} },
			want:   []string{"no manager leads: no one holds Lease cluster-inventory-manager"},
		},
		"a Lease that was released": {
			change: func(s *seen) { s.lease = lease("", 2) },
			want:   []string{"no manager leads: no one holds Lease cluster-inventory-manager"},
		},
		"a Lease seen for the first time": {
			change: func(s *seen) { s.before = nil },
			want:   []string{"the manager a has not renewed Lease cluster-inventory-manager since this check began"},
		},
		"a Lease of a manager that is gone": {
			change: func(s *seen) { s.before = lease("a", 2) },
			want:   []string{"the manager a has not renewed Lease cluster-inventory-manager since this check began"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := seen{served: requiredAPIs(), defined: true, lease: lease("a", 2), before: lease("a", 1)}
			test.change(&s)
			if diff := cmp.Diff(test.want, validate(s)); diff != "" {
				t.Errorf("missing (-want +got):\n%s", diff)
			}
		})
	}
}
