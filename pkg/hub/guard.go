package hub

import (
	"context"

	rbacv1 "k8s.io/api/rbac/v1"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"open-cluster-management.io/cluster-inventory-addon/pkg/contract"
	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/inventory/profiles"
	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/uninstall"
	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/upstream"
	"open-cluster-management.io/cluster-inventory-addon/pkg/kube"
)

// profileGuard combines, for the inventory, everything that may forbid writing profiles.
type profileGuard struct {
	reader client.Reader
	gate   interface {
		Verdict(ctx context.Context) (upstream.Verdict, error)
	}
}

// guardObjects are the kinds on which the guard's verdict depends.
func guardObjects() []client.Object {
	return []client.Object{&rbacv1.ClusterRole{}, &addonv1beta1.ClusterManagementAddOn{}}
}

// verdict asks upstream's gate first: profiles that upstream owns are not ours to keep,
// either. Their access providers are ours: OCM's registration controller, which owns the
// rest, leaves them alone.
func (g profileGuard) verdict(ctx context.Context) (profiles.Verdict, error) {
	gate, err := g.gate.Verdict(ctx)
	if err != nil {
		return profiles.Verdict{}, err
	}
	kept, err := uninstall.ProfilesKept(ctx, g.reader)
	switch {
	case err != nil:
		return profiles.Verdict{}, err
	case !gate.Allowed:
		isUpstreams := gate.Reason == contract.ReasonUpstreamGateOn
		return profiles.Verdict{Reason: gate.Reason, Message: gate.Message, Access: isUpstreams && kept.Why == ""}, nil
	case kept.Why != "":
		verdict := profiles.Verdict{Reason: contract.ReasonProfilesKept, Message: kept.Why}
		if kept.Missing {
			verdict.HoldBack = kube.LastingAfter
		}
		return verdict, nil
	default:
		return profiles.Verdict{Allowed: true}, nil
	}
}
