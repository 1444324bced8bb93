package scale

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	clusterv1beta2 "open-cluster-management.io/api/cluster/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	// workers is how many requests the benchmark has in flight when it writes at full
	// speed.
	workers = 8

	setLabel = "cluster.open-cluster-management.io/clusterset"
	// allSet has every cluster.
	allSet = "bench-all"
	// halfLabel names the half of the fleet to which a cluster belongs; there is a set for
	// each.
	halfLabel = "bench.example/half"
	// serialClaim is the claim that edits change.
	serialClaim = "serial.bench.example"
	claimCount  = 10
)

var halves = []string{"left", "right"}

// each calls do with the numbers below n, on all workers, and stops at the first error.
func each(ctx context.Context, n int, do func(ctx context.Context, i int) error) error {
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

// population is the simulated clusters. Only the benchmark writes their status.
type population struct {
	hub   client.Client
	names []string
	index map[string]int
	// began is the time in the conditions of all clusters.
	began time.Time
	// rights are those that Open Cluster Management gave the first cluster.
	rights rights

	members []member
}

type member struct {
	mu     sync.Mutex // held during an edit, so that edits of one cluster are in order
	serial int
	half   int
}

func newPopulation(hub client.Client, n int) *population {
	p := &population{hub: hub, index: map[string]int{}, began: time.Now().UTC(), members: make([]member, n)}
	for i := range n {
		name := fmt.Sprintf("bench-%05d", i)
		p.names = append(p.names, name)
		p.index[name] = i
		p.members[i].half = i % 2
	}
	return p
}

func (p *population) size() int { return len(p.names) }

// claims returns the claims of a cluster.
func (p *population) claims(i, serial int) []clusterv1.ManagedClusterClaim {
	return []clusterv1.ManagedClusterClaim{
		{Name: "id.k8s.io", Value: fmt.Sprintf("0f3c1d5e-77aa-4c1e-9b60-%012d", i)},
		{Name: "kubeversion.open-cluster-management.io", Value: "v1.35.4"},
		{Name: "platform.open-cluster-management.io", Value: "AWS"},
		{Name: "product.open-cluster-management.io", Value: "EKS"},
		{Name: "region.bench.example", Value: fmt.Sprintf("eu-west-%d", i%4+1)},
		{Name: "zone.bench.example", Value: fmt.Sprintf("eu-west-%d%c", i%4+1, 'a'+rune(i%3))},
		{Name: "environment.bench.example", Value: []string{"production", "staging", "test"}[i%3]},
		{Name: "owner.bench.example", Value: fmt.Sprintf("team-%02d", i%40)},
		{Name: "nodes.bench.example", Value: strconv.Itoa(3 + i%90)},
		{Name: serialClaim, Value: strconv.Itoa(serial)},
	}
}

// create creates sets and clusters in the state in which a registration agent keeps them.
// Their namespaces exist before, as in an import. All clusters have from the start what
// Open Cluster Management's registration controller created for the first one.
func (p *population) create(ctx context.Context) error {
	sets := []*clusterv1beta2.ManagedClusterSet{{
		ObjectMeta: metav1.ObjectMeta{Name: allSet},
		Spec: clusterv1beta2.ManagedClusterSetSpec{
			ClusterSelector: clusterv1beta2.ManagedClusterSelector{SelectorType: clusterv1beta2.ExclusiveClusterSetLabel},
		},
	}}
	for _, half := range halves {
		sets = append(sets, &clusterv1beta2.ManagedClusterSet{
			ObjectMeta: metav1.ObjectMeta{Name: halfSet(half)},
			Spec: clusterv1beta2.ManagedClusterSetSpec{ClusterSelector: clusterv1beta2.ManagedClusterSelector{
				SelectorType:  clusterv1beta2.LabelSelector,
				LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{halfLabel: half}},
			}},
		})
	}
	for _, set := range sets {
		if err := p.hub.Create(ctx, set); err != nil {
			return fmt.Errorf("create the set %s: %w", set.Name, err)
		}
	}
	if err := p.createCluster(ctx, 0); err != nil {
		return err
	}
	if err := p.rights.learn(ctx, p.hub, p.names[0]); err != nil {
		return err
	}
	return each(ctx, p.size()-1, func(ctx context.Context, i int) error { return p.createCluster(ctx, i+1) })
}

func halfSet(half string) string { return "bench-" + half }

func (p *population) createCluster(ctx context.Context, i int) error {
	name := p.names[i]
	err := p.hub.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
		Name: name, Labels: map[string]string{clusterv1.ClusterNameLabelKey: name},
	}})
	if err != nil {
		return err
	}
	var finalizers []string
	if i > 0 {
		if err := p.rights.create(ctx, p.hub, name); err != nil {
			return err
		}
		finalizers = []string{clusterv1.ManagedClusterFinalizer}
	}
	err = p.hub.Create(ctx, &clusterv1.ManagedCluster{
		ObjectMeta: metav1.ObjectMeta{
			Name: name, Labels: map[string]string{setLabel: allSet, halfLabel: halves[p.members[i].half]},
			Finalizers: finalizers,
		},
		Spec: clusterv1.ManagedClusterSpec{HubAcceptsClient: true, LeaseDurationSeconds: 3600},
	})
	if err != nil {
		return err
	}
	joined := func(conditionType, reason, message string) metav1.Condition {
		return metav1.Condition{
			Type: conditionType, Status: metav1.ConditionTrue, Reason: reason, Message: message,
			LastTransitionTime: metav1.NewTime(p.began),
		}
	}
	return p.patchStatus(ctx, name, map[string]any{
		"version": map[string]any{"kubernetes": "v1.35.4"},
		"conditions": []metav1.Condition{
			joined(clusterv1.ManagedClusterConditionHubAccepted, "HubClusterAdminAccepted",
				"Accepted by hub cluster admin"),
			joined(clusterv1.ManagedClusterConditionJoined, "ManagedClusterJoined", ""),
			joined(clusterv1.ManagedClusterConditionAvailable, "ManagedClusterAvailable", ""),
		},
		"clusterClaims": p.claims(i, 0),
	})
}

func (p *population) patchStatus(ctx context.Context, name string, status map[string]any) error {
	patch, err := json.Marshal(map[string]any{"status": status})
	if err != nil {
		return err
	}
	cluster := &clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: name}}
	return p.hub.Status().Patch(ctx, cluster, client.RawPatch(types.MergePatchType, patch))
}

// edit changes a claim of a cluster, as its registration agent does: one merge patch of the
// status. It calls editing with the new serial first.
func (p *population) edit(ctx context.Context, i int, editing func(serial int)) error {
	m := &p.members[i]
	m.mu.Lock()
	defer m.mu.Unlock()
	m.serial++
	editing(m.serial)
	return p.patchStatus(ctx, p.names[i], map[string]any{"clusterClaims": p.claims(i, m.serial)})
}

// serial returns the cluster's present serial.
func (p *population) serial(i int) int {
	m := &p.members[i]
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.serial
}

// inHalf returns the clusters of a half.
func (p *population) inHalf(half int) map[string]bool {
	names := map[string]bool{}
	for i := range p.members {
		if p.members[i].half == half {
			names[p.names[i]] = true
		}
	}
	return names
}

// swap moves every cluster to the other half, so that the number in each stays the same.
func (p *population) swap(ctx context.Context) error {
	return each(ctx, p.size(), func(ctx context.Context, i int) error {
		p.members[i].half = 1 - p.members[i].half
		patch := fmt.Appendf(nil, `{"metadata":{"labels":{%q:%q}}}`, halfLabel, halves[p.members[i].half])
		cluster := &clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: p.names[i]}}
		return p.hub.Patch(ctx, cluster, client.RawPatch(types.MergePatchType, patch))
	})
}
