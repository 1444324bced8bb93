package hub

import (
	"context"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"open-cluster-management.io/cluster-inventory-addon/internal/apitest"
	"open-cluster-management.io/cluster-inventory-addon/pkg/contract"
	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/inventory/profiles"
	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/upstream"
)

// saidByGate is what upstream's gate is known to be.
type saidByGate upstream.Verdict

func (g saidByGate) Verdict(context.Context) (upstream.Verdict, error) {
	return upstream.Verdict(g), nil
}

func TestProfileGuard(t *testing.T) {
	kept := map[string]string{"inventory.open-cluster-management.io/keep-profiles": "true"}
	const why = `ClusterManagementAddOn "cluster-inventory" is annotated ` +
		"inventory.open-cluster-management.io/keep-profiles=true, so profiles stay as they are"
	on := saidByGate{Reason: "UpstreamGateOn", Message: "it is on"}
	unknown := saidByGate{Reason: "UpstreamGateUnknown", Message: "who knows"}
	for name, test := range map[string]struct {
		gate        saidByGate
		annotations map[string]string
		missing     bool
		want        profiles.Verdict
	}{
		"nothing forbids it": {gate: saidByGate{Allowed: true}, want: profiles.Verdict{Allowed: true}},
		"profiles are kept by an uninstallation": {
			gate: saidByGate{Allowed: true}, annotations: kept,
			want: profiles.Verdict{Reason: "ProfilesKept", Message: why},
		},
		"the addon is not installed, or it is about to be recreated": {
			gate: saidByGate{Allowed: true}, missing: true,
			want: profiles.Verdict{Reason: "ProfilesKept", HoldBack: 30 * time.Second, Message: `there is no ` +
				`ClusterManagementAddOn "cluster-inventory", so the addon is not installed, and profiles stay as they are`},
		},
		"upstream writes them, except access providers": {
			gate: on, want: profiles.Verdict{Reason: "UpstreamGateOn", Message: "it is on", Access: true},
		},
		"upstream writes them, and an uninstallation keeps them": {
			gate: on, annotations: kept, want: profiles.Verdict{Reason: "UpstreamGateOn", Message: "it is on"},
		},
		"it is unknown whose they are": {
			gate: unknown, want: profiles.Verdict{Reason: "UpstreamGateUnknown", Message: "who knows"},
		},
		"it is not known yet": {gate: saidByGate{}, want: profiles.Verdict{}},
	} {
		t.Run(name, func(t *testing.T) {
			definition := apitest.Getter(func(_ client.ObjectKey, into client.Object) error {
				if test.missing {
					return apierrors.NewNotFound(schema.GroupResource{}, contract.AddonName)
				}
				into.SetAnnotations(test.annotations)
				return nil
			})
			got, err := profileGuard{reader: definition, gate: test.gate}.verdict(t.Context())
			if diff := cmp.Diff(test.want, got); diff != "" || err != nil {
				t.Errorf("error %v; verdict (-want +got):\n%s", err, diff)
			}
		})
	}
}
