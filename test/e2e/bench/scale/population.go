package scale

import (
	"context"
	"fmt"
	"strconv"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	clusterv1beta2 "open-cluster-management.io/api/cluster/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"open-cluster-management.io/cluster-inventory-addon/test/e2e/simulated"
)

const (
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

// population is the simulated clusters. Only the benchmark writes their status.
type population struct {
	hub      client.Client
	clusters *simulated.Clusters
	names    []string
	index    map[string]int

	members []member
}

type member struct {
	mu     sync.Mutex // held during an edit, so that edits of one cluster are in order
	serial int
	half   int
}

func newPopulation(hub client.Client, n int) *population {
	p := &population{
		hub: hub, clusters: simulated.NewClusters(hub), index: map[string]int{}, members: make([]member, n),
	}
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

// create creates sets and clusters.
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
	clusters := make([]simulated.Cluster, p.size())
	for i, name := range p.names {
		clusters[i] = simulated.Cluster{
			Name: name, Labels: map[string]string{setLabel: allSet, halfLabel: halves[p.members[i].half]},
			Claims: p.claims(i, 0),
		}
	}
	return p.clusters.Create(ctx, clusters...)
}

func halfSet(half string) string { return "bench-" + half }

// edit changes a claim of a cluster, as its registration agent does: one merge patch of the
// status. It calls editing with the new serial first.
func (p *population) edit(ctx context.Context, i int, editing func(serial int)) error {
	m := &p.members[i]
	m.mu.Lock()
	defer m.mu.Unlock()
	m.serial++
	editing(m.serial)
	return p.clusters.PatchStatus(ctx, p.names[i], map[string]any{"clusterClaims": p.claims(i, m.serial)})
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
	return simulated.Each(ctx, p.size(), func(ctx context.Context, i int) error {
		p.members[i].half = 1 - p.members[i].half
		patch := fmt.Appendf(nil, `{"metadata":{"labels":{%q:%q}}}`, halfLabel, halves[p.members[i].half])
		cluster := &clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: p.names[i]}}
		return p.hub.Patch(ctx, cluster, client.RawPatch(types.MergePatchType, patch))
	})
}
