package access

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/util/sets"

	"open-cluster-management.io/cluster-inventory-addon/pkg/kube"
)

// absenceGrain is the precision with which absences of addons are timed: when many clusters
// lose theirs one after the other, absences within it are processed together.
const absenceGrain = time.Second

// proxied knows which clusters have cluster-proxy's addon. A cluster that loses it counts
// as having it for kube.AbsenceCounts. A cluster without it at the start may have lost it a
// moment before: for that time it is unknown. It is safe for concurrent use.
type proxied struct {
	mu sync.Mutex

	has  sets.Set[string]
	lost kube.Debounce[string] // those whose absence does not count yet

	// began is when the addons were first known; zero before.
	began time.Time
	// settled is true when a cluster that never had the addon counts as such.
	settled bool
	// requested are the clusters that were requested while they were unknown.
	requested sets.Set[string]
}

func newProxied() *proxied { return &proxied{has: sets.Set[string]{}, requested: sets.Set[string]{}} }

// came records that clusters have the addon. It reports whether that is news.
func (p *proxied) came(clusters ...string) (news bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, cluster := range clusters {
		_, lost := p.lost.Begun(cluster)
		news = news || !p.has.Has(cluster) && !lost
		p.has.Insert(cluster)
		p.lost.Over(cluster)
		p.requested.Delete(cluster)
	}
	return news
}

// went records that a cluster does not have the addon any more. It reports whether settle
// must be called for that: it is the first of those whose absence does not count yet.
func (p *proxied) went(cluster string, now time.Time) (first bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.has.Delete(cluster)
	p.lost.Since(cluster, now)
	return p.lost.Len() == 1
}

// of reports whether a cluster counts as having the addon; known is false when that is not
// known yet. cached says whether the cache has it now, which changes a moment before came or
// went is called.
func (p *proxied) of(cluster string, cached bool) (has, known bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	_, lost := p.lost.Begun(cluster)
	switch {
	case cached || lost || p.has.Has(cluster):
		return true, true
	case !p.settled:
		p.requested.Insert(cluster)
		return false, false
	default:
		return false, true
	}
}

// settle returns the clusters whose absence counts from now on, and how long until
// there may be others; zero means that none are waiting. known says whether the
// addons are.
func (p *proxied) settle(known bool, now time.Time) (without []string, wait time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if known && p.began.IsZero() {
		p.began = now
	}
	if !p.began.IsZero() && !p.settled {
		if wait = p.began.Add(kube.AbsenceCounts).Sub(now); wait <= 0 {
			p.settled, wait = true, 0
			without = append(without, p.requested.UnsortedList()...)
			p.requested.Clear()
		}
	}
	for _, cluster := range p.lost.Keys() {
		left := p.lost.Left(cluster, kube.AbsenceCounts, now)
		if left == 0 {
			p.lost.Over(cluster)
			without = append(without, cluster)
			continue
		}
		wait = kube.Sooner(wait, max(left, absenceGrain))
	}
	return without, wait
}
