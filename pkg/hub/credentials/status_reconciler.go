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
	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/credentials/source"
	"open-cluster-management.io/cluster-inventory-addon/pkg/kube"
)

// StatusReconciler keeps the condition CredentialsSynced on a cluster's addon.
// The request's name is the cluster.
type StatusReconciler struct {
	reader       client.Reader // caches
	writer       client.Client
	clock        clock.PassiveClock
	accounts     *source.Accounts
	outcomes     *outcomes
	expectations *kube.Expectations
}

// Reconcile writes the condition if it differs. A cluster gets the condition with
// its first account to copy, and its condition is left alone while an account has
// not been reconciled.
func (r *StatusReconciler) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	key := types.NamespacedName{Namespace: req.Name, Name: contract.AddonName}
	addon, err := kube.Get(ctx, r.reader, key, &addonv1beta1.ManagedClusterAddOn{})
	if err != nil || addon == nil || addon.DeletionTimestamp != nil {
		return reconcile.Result{}, err
	}
	if wait := r.expectations.Wait(key, addon, r.clock.Now()); wait > 0 {
		return reconcile.Result{RequeueAfter: wait}, nil
	}
	byAccount := r.outcomes.of(req.Name)
	if complete, err := r.isComplete(ctx, req.Name, byAccount); err != nil || !complete {
		return reconcile.Result{}, err
	}
	said := apimeta.FindStatusCondition(addon.Status.Conditions, contract.ConditionCredentialsSynced)
	if len(byAccount) == 0 && said == nil {
		return reconcile.Result{}, nil
	}
	_, err = kube.WriteCondition(ctx, r.writer, addon, addon.Status.Conditions, credentialsSynced(byAccount),
		client.FieldOwner(StatusControllerName), r.expectations, r.clock.Now())
	return reconcile.Result{}, err
}

// isComplete reports whether every account of a cluster has an outcome. Each new
// outcome enqueues the cluster.
func (r *StatusReconciler) isComplete(
	ctx context.Context, cluster string, byAccount map[string]outcome,
) (bool, error) {
	accounts, err := r.accounts.List(ctx, client.InNamespace(cluster))
	if err != nil || !r.accounts.Synced() {
		return false, err
	}
	for i := range accounts {
		if _, ok := byAccount[accounts[i].Name]; !ok {
			return false, nil
		}
	}
	return true, nil
}
