package simulated

import (
	"context"
	"encoding/json"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// workers is how many requests are in flight when many clusters are written.
const workers = 8

// Each calls do with the numbers below n, on all workers, and stops at the first error.
func Each(ctx context.Context, n int, do func(ctx context.Context, i int) error) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(workers)
	for i := range n {
		if ctx.Err() != nil {
			break
		}
		group.Go(func() error { return do(ctx, i) })
	}
	return group.Wait()
}

// Cluster is one to be created.
type Cluster struct {
	Name   string
	Labels map[string]string
	Claims []clusterv1.ManagedClusterClaim
}

// Clusters creates simulated clusters on a hub, whose status no other client writes.
type Clusters struct {
	hub client.Client
	// began is the time in the conditions of all clusters.
	began time.Time
	// rights are those that Open Cluster Management gave the first cluster.
	rights rights
}

// NewClusters returns the clusters of a hub, none yet.
func NewClusters(hub client.Client) *Clusters {
	return &Clusters{hub: hub, began: time.Now().UTC()}
}

// Began is the time in the conditions of all clusters.
func (c *Clusters) Began() time.Time { return c.began }

// Create creates clusters in the state in which a registration agent keeps them. Their
// namespaces exist before, as in an import. All clusters have from the start what Open
// Cluster Management's registration controller created for the first one.
func (c *Clusters) Create(ctx context.Context, clusters ...Cluster) error {
	if c.rights.of == "" && len(clusters) > 0 {
		first := clusters[0]
		clusters = clusters[1:]
		if err := c.create(ctx, first); err != nil {
			return err
		}
		if err := c.rights.learn(ctx, c.hub, first.Name); err != nil {
			return err
		}
	}
	return Each(ctx, len(clusters), func(ctx context.Context, i int) error { return c.create(ctx, clusters[i]) })
}

func (c *Clusters) create(ctx context.Context, cluster Cluster) error {
	err := c.hub.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
		Name: cluster.Name, Labels: map[string]string{clusterv1.ClusterNameLabelKey: cluster.Name},
	}})
	if err != nil {
		return err
	}
	var finalizers []string
	if c.rights.of != "" {
		if err := c.rights.create(ctx, c.hub, cluster.Name); err != nil {
			return err
		}
		finalizers = []string{clusterv1.ManagedClusterFinalizer}
	}
	err = c.hub.Create(ctx, &clusterv1.ManagedCluster{
		ObjectMeta: metav1.ObjectMeta{Name: cluster.Name, Labels: cluster.Labels, Finalizers: finalizers},
		Spec:       clusterv1.ManagedClusterSpec{HubAcceptsClient: true, LeaseDurationSeconds: 3600},
	})
	if err != nil {
		return err
	}
	joined := func(conditionType, reason, message string) metav1.Condition {
		return metav1.Condition{
			Type: conditionType, Status: metav1.ConditionTrue, Reason: reason, Message: message,
			LastTransitionTime: metav1.NewTime(c.began),
		}
	}
	return c.PatchStatus(ctx, cluster.Name, map[string]any{
		"version": map[string]any{"kubernetes": "v1.35.4"},
		"conditions": []metav1.Condition{
			joined(clusterv1.ManagedClusterConditionHubAccepted, "HubClusterAdminAccepted",
				"Accepted by hub cluster admin"),
			joined(clusterv1.ManagedClusterConditionJoined, "ManagedClusterJoined", ""),
			joined(clusterv1.ManagedClusterConditionAvailable, "ManagedClusterAvailable", ""),
		},
		"clusterClaims": cluster.Claims,
	})
}

// PatchStatus changes a part of a cluster's status, as its registration agent does.
func (c *Clusters) PatchStatus(ctx context.Context, name string, status map[string]any) error {
	patch, err := json.Marshal(map[string]any{"status": status})
	if err != nil {
		return err
	}
	cluster := &clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: name}}
	return c.hub.Status().Patch(ctx, cluster, client.RawPatch(types.MergePatchType, patch))
}
