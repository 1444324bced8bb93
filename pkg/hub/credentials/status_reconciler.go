package credentials

import (
	"context"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"open-cluster-management.io/cluster-inventory-addon/pkg/contract"
	"open-cluster-management.io/cluster-inventory-addon/pkg/kube"
)

// StatusReconciler keeps the condition CredentialsSynced on a cluster's addon.
// The request's name is the cluster.
type StatusReconciler struct {
	reader       client.Reader // caches
	writer       client.Client
	clock        clock.PassiveClock
	accounts     *accounts
	outcomes     *outcomes
	expectations *kube.Expectations
}

// Reconcile writes the condition if it does not say what is so. It is not there
// before the cluster has had an account to copy, and is left while an account has
// not been looked at.
func (r *StatusReconciler) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	key := types.NamespacedName{Namespace: req.Name, Name: contract.AddonName}
	addon := &addonv1beta1.ManagedClusterAddOn{}
	err := r.reader.Get(ctx, key, addon, uncopied)
	if err != nil || addon.DeletionTimestamp != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	if wait := r.expectations.Wait(key, addon, r.clock.Now()); wait > 0 {
		return reconcile.Result{RequeueAfter: wait}, nil
	}
	byAccount := r.outcomes.of(req.Name)
	accounts, err := r.accounts.list(ctx, client.InNamespace(req.Name))
	if err != nil || r.accounts.filled() == nil {
		return reconcile.Result{}, err
	}
	for i := range accounts {
		if _, ok := byAccount[accounts[i].Name]; !ok {
			return reconcile.Result{}, nil // its outcome is an event
		}
	}
	if len(byAccount) == 0 && apimeta.FindStatusCondition(addon.Status.Conditions, contract.ConditionCredentialsSynced) == nil {
		return reconcile.Result{}, nil
	}
	_, err = kube.WriteCondition(ctx, r.writer, addon, addon.Status.Conditions, credentialsSynced(byAccount), client.FieldOwner(StatusControllerName), r.expectations, r.clock.Now())
	return reconcile.Result{}, err
}
