package metrics

import (
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	"open-cluster-management.io/cluster-inventory-addon/pkg/kube"
)

// forgetAfter is how long a change of a cluster is remembered. A later write is not
// measured: most later writes have another reason, and refused ones are counted as failed.
const forgetAfter = 10 * time.Minute

// changes remembers the last change of each cluster, until it is forgotten, and which of its
// profiles show it. So only current changes take memory, and the first write after a change
// can be distinguished from writes for other reasons.
type changes struct {
	clock clock.PassiveClock

	mu       sync.Mutex
	clusters map[string]*change
	order    []*change // by time; superseded ones stay until they are old
}

type change struct {
	cluster string
	version string // resource version
	at      time.Time
	marked  time.Time // when it was added to order
	served  []string  // namespaces
}

func newChanges(clock clock.PassiveClock) *changes {
	return &changes{clock: clock, clusters: map[string]*change{}}
}

func (c *changes) changed(cluster, version string) {
	now := c.clock.Now()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.forgetOld(now)
	next := &change{cluster: cluster, version: version, at: now, marked: now}
	if before := c.clusters[cluster]; before != nil && len(before.served) == 0 {
		next.at = before.at // namespaces that wait for the earlier change keep waiting
	}
	c.clusters[cluster] = next
	c.order = append(c.order, next)
}

// forgetOld drops old changes. It requires the lock.
func (c *changes) forgetOld(now time.Time) {
	old := 0
	for old < len(c.order) && now.Sub(c.order[old].marked) > forgetAfter {
		if change := c.order[old]; c.clusters[change.cluster] == change {
			delete(c.clusters, change.cluster)
		}
		old++
	}
	clear(c.order[:old]) // the rest stays where it is: there may be hundreds of thousands
	c.order = c.order[old:]
}

// served records that the profile in a namespace shows the cluster at a version, and
// returns how long ago the cluster changed; ok is false if that is unknown, or if the
// profile has shown the change before.
func (c *changes) served(pair types.NamespacedName, version string) (after time.Duration, ok bool) {
	now := c.clock.Now()
	c.mu.Lock()
	defer c.mu.Unlock()
	change := c.clusters[pair.Name]
	if change == nil || kube.IsNewer(change.version, version) || slices.Contains(change.served, pair.Namespace) {
		return 0, false
	}
	change.served = append(change.served, pair.Namespace)
	after = now.Sub(change.at)
	return after, after >= 0 && after <= forgetAfter
}
