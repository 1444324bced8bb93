package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	mcmanager "sigs.k8s.io/multicluster-runtime/pkg/manager"
	"sigs.k8s.io/multicluster-runtime/pkg/multicluster"
	mcreconcile "sigs.k8s.io/multicluster-runtime/pkg/reconcile"

	"open-cluster-management.io/cluster-inventory-addon/test/e2e/consumers/status"
)

// The data of a ConfigMap: the reconciler sets seen to wanted.
const (
	wantedKey = "wanted"
	seenKey   = "seen"
)

// configMaps reconciles the ConfigMaps of all clusters. It reads each again and again, past
// the cache, so that there is always a request that can fail.
type configMaps struct {
	mgr    mcmanager.Manager
	meters *meters
	every  time.Duration
}

// Reconcile reconciles one ConfigMap of one cluster.
func (r *configMaps) Reconcile(ctx context.Context, req mcreconcile.Request) (ctrl.Result, error) {
	cluster, err := r.mgr.GetCluster(ctx, req.ClusterName)
	if errors.Is(err, multicluster.ErrClusterNotFound) {
		return ctrl.Result{}, nil
	} else if err != nil {
		return ctrl.Result{}, err
	}
	list := &corev1.ConfigMapList{} // a list, because one that is gone is no failed request
	if err := cluster.GetAPIReader().List(
		ctx, list, client.InNamespace(req.Namespace), client.MatchingFields{"metadata.name": req.Name},
	); err != nil {
		return ctrl.Result{}, err
	}
	if len(list.Items) == 0 {
		return ctrl.Result{}, nil
	}
	current := &list.Items[0]
	if wanted := current.Data[wantedKey]; wanted != current.Data[seenKey] {
		patch := fmt.Appendf(nil, `{"data":{%q:%q}}`, seenKey, wanted)
		if err := cluster.GetClient().Patch(ctx, current, client.RawPatch(patchType, patch)); err != nil {
			return ctrl.Result{}, err
		}
	}
	r.meters.of(req.ClusterName.String()).count(func(c *status.Cluster) { c.Reconciles++ })
	return ctrl.Result{RequeueAfter: r.every}, nil
}
