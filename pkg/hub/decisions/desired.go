package decisions

import (
	"cmp"
	"maps"
	"math"
	"slices"

	"k8s.io/apimachinery/pkg/util/sets"

	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/selection"
)

// maxReferences is how many references a slice may hold (SIG-Multicluster, KEP-5313).
const maxReferences = 100

// noIndex is the index of a slice whose label has none: it comes last.
const noIndex = math.MaxInt

// slice is one PlacementDecision of ours: as it is, or as it must be.
type slice struct {
	name     string
	index    int
	group    selection.Group
	clusters []string // of the references; sorted in the desired slice

	// altered is true if another part of the slice differs from what this addon writes.
	altered bool
}

// action is the kind of a write.
type action int

const (
	create action = iota
	update
	remove
)

// write is one request.
type write struct {
	action action
	slice  slice // its state afterwards; for a removal, only the name
}

// draft is a slice on its way from its present to its desired state.
type draft struct {
	now    slice
	exists bool

	next    slice
	members sets.Set[string] // of next
	removed bool

	moving []string // clusters that must move to another slice
	gains  int      // number of clusters that this slice lacks
}

func (d *draft) free() int { return maxReferences - len(d.members) }

// isTouched reports whether a slice must be written even if nothing is added to it.
func (d *draft) isTouched() bool {
	return !d.exists || d.now.altered || d.now.index == noIndex || len(d.members) != len(d.now.clusters)
}

// plan turns the slices of a Placement into slices with the wanted clusters.
type plan struct {
	want   map[string]selection.Group
	drafts []*draft
	placed map[string]*draft
	number func(n int) string // names the n-th slice
	taken  map[string]bool    // names
}

// desiredWrites returns the writes, in order, that make slices hold the wanted clusters,
// each in a slice of its group; without any cluster, that is one empty slice. After each
// write, every wanted cluster that was in a slice before is still in one: a cluster that
// moves is added before it is removed.
//
// It writes as little as possible. Clusters stay where they are, new ones fill slices that have
// room, and slices keep their index: adding or removing a cluster is one write. Slices are
// refilled only when there are more than twice as many as needed.
//
// number names the n-th slice; names taken by others are skipped.
func desiredWrites(
	current []slice, want map[string]selection.Group, number func(int) string, taken map[string]bool,
) []write {
	p := &plan{want: want, placed: make(map[string]*draft, len(want)), number: number, taken: map[string]bool{}}
	maps.Copy(p.taken, taken)
	p.take(current)
	p.fill(p.unplaced())
	p.drop()
	p.compact()
	p.assignIndexes()
	return p.schedule()
}

// take starts from the present slices: wanted clusters stay where they are.
func (p *plan) take(current []slice) {
	current = slices.Clone(current)
	slices.SortFunc(current, func(a, b slice) int {
		return cmp.Or(cmp.Compare(a.index, b.index), cmp.Compare(a.name, b.name))
	})
	for _, now := range current {
		p.taken[now.name] = true
		d := &draft{now: now, exists: true, next: now, members: sets.New[string]()}
		d.next.group = p.bestGroup(now)
		for _, cluster := range now.clusters {
			group, wanted := p.want[cluster]
			if wanted && group == d.next.group && p.placed[cluster] == nil {
				d.members.Insert(cluster)
				p.placed[cluster] = d
			}
		}
		p.drafts = append(p.drafts, d)
	}
}

// bestGroup is the group to which most clusters of a slice belong; in case of a tie, the
// slice's own.
func (p *plan) bestGroup(now slice) selection.Group {
	counts := map[selection.Group]int{}
	for _, cluster := range now.clusters {
		if group, wanted := p.want[cluster]; wanted && p.placed[cluster] == nil {
			counts[group]++
		}
	}
	best := now.group
	for _, group := range slices.SortedFunc(maps.Keys(counts), compareGroups) {
		if counts[group] > counts[best] {
			best = group
		}
	}
	return best
}

// unplaced returns the wanted clusters that have no place yet, by group, sorted.
func (p *plan) unplaced() map[selection.Group][]string {
	clusters := map[selection.Group][]string{}
	for cluster, group := range p.want {
		if p.placed[cluster] == nil {
			clusters[group] = append(clusters[group], cluster)
		}
	}
	for _, list := range clusters {
		slices.Sort(list)
	}
	return clusters
}

// fill gives clusters a place: in slices of their group that are written anyway, then in
// others with room, those with most room first, then in empty ones, and then in new ones.
func (p *plan) fill(clusters map[selection.Group][]string) {
	for _, group := range slices.SortedFunc(maps.Keys(clusters), compareGroups) {
		rest := clusters[group]
		for _, d := range p.withRoom(group) {
			rest = p.place(d, group, rest)
		}
		for len(rest) > 0 {
			rest = p.place(p.open(), group, rest)
		}
	}
}

// withRoom returns the slices that may take clusters of a group, in the order in which to
// fill them.
func (p *plan) withRoom(group selection.Group) []*draft {
	var some []*draft
	for _, d := range p.remaining() {
		if len(d.members) == 0 || d.next.group == group && d.free() > 0 {
			some = append(some, d)
		}
	}
	rank := func(d *draft) int {
		switch {
		case d.isTouched():
			return 0
		case len(d.members) > 0:
			return 1
		default:
			return 2
		}
	}
	slices.SortStableFunc(some, func(a, b *draft) int {
		return cmp.Or(cmp.Compare(rank(a), rank(b)), cmp.Compare(b.free(), a.free()))
	})
	return some
}

// place puts as many clusters into a slice as fit, and returns the others.
func (p *plan) place(d *draft, group selection.Group, clusters []string) (rest []string) {
	n := min(len(clusters), d.free())
	if n == 0 {
		return clusters
	}
	d.next.group = group
	d.members.Insert(clusters[:n]...)
	for _, cluster := range clusters[:n] {
		p.placed[cluster] = d
	}
	return clusters[n:]
}

// open adds a new slice.
func (p *plan) open() *draft {
	n := 0
	for p.taken[p.number(n)] {
		n++
	}
	d := &draft{members: sets.New[string](), next: slice{name: p.number(n), index: noIndex}}
	p.taken[d.next.name] = true
	p.drafts = append(p.drafts, d)
	return d
}

// drop removes the last slices if they have become empty now, which is one write as well.
// Others that become empty stay, with room for later clusters: removing one would take
// another write for its index. One slice always stays.
func (p *plan) drop() {
	if len(p.drafts) == 0 {
		p.open()
	}
	for last := len(p.drafts) - 1; last > 0; last-- {
		d := p.drafts[last]
		if len(d.members) > 0 || len(d.now.clusters) == 0 {
			return
		}
		d.removed = true
	}
}

// compact refills slices if there are more than twice as many as needed. Without any
// cluster, exactly one is needed.
func (p *plan) compact() {
	sizes := map[selection.Group]int{}
	for _, group := range p.want {
		sizes[group]++
	}
	needed := 0
	for _, size := range sizes {
		needed += slicesFor(size)
	}
	remaining := p.remaining()
	if len(p.want) == 0 {
		for _, d := range remaining[1:] {
			d.removed = true
		}
		return
	}
	if len(remaining) <= 2*needed {
		return
	}
	kept := map[selection.Group]int{}
	homeless := map[selection.Group][]string{}
	for _, d := range remaining {
		group := d.next.group
		if len(d.members) > 0 && kept[group] < slicesFor(sizes[group]) {
			kept[group]++
			continue
		}
		d.removed = true
		homeless[group] = append(homeless[group], sets.List(d.members)...)
		d.members = sets.New[string]()
	}
	p.fill(homeless)
}

// remaining returns the slices that are not removed.
func (p *plan) remaining() []*draft {
	return slices.DeleteFunc(slices.Clone(p.drafts), func(d *draft) bool { return d.removed })
}

func slicesFor(clusters int) int { return (clusters + maxReferences - 1) / maxReferences }

// assignIndexes numbers the remaining slices from 0. A slice keeps its index unless that is
// too high now or taken: then it gets the lowest free one.
func (p *plan) assignIndexes() {
	stay := p.remaining()
	used := make([]bool, len(stay))
	var others []*draft
	for _, d := range stay {
		if index := d.next.index; index < len(stay) && !used[index] {
			used[index] = true
		} else {
			others = append(others, d)
		}
	}
	free := 0
	for _, d := range others {
		for used[free] {
			free++
		}
		d.next.index = free
		used[free] = true
	}
}

// schedule returns the writes, in an order in which no wanted cluster that was in a slice
// is ever missing.
func (p *plan) schedule() []write {
	s := schedule{plan: p, present: map[string]int{}}
	for _, d := range p.drafts {
		s.prepare(d)
	}
	for len(s.pending) > 0 {
		if !s.finishOne() && !s.uniteOne() {
			s.divert()
		}
	}
	return s.writes
}

// schedule holds the order of writes while it is computed.
type schedule struct {
	*plan
	pending []*draft
	writes  []write

	// present counts in how many slices a wanted cluster is at the moment.
	present map[string]int
}

// prepare determines whether a slice must be written.
func (s *schedule) prepare(d *draft) {
	here := sets.New(d.now.clusters...)
	for cluster := range here {
		if _, wanted := s.want[cluster]; wanted {
			s.present[cluster]++
			if !d.members.Has(cluster) {
				d.moving = append(d.moving, cluster)
			}
		}
	}
	d.gains = d.members.Difference(here).Len()
	d.next.clusters = sets.List(d.members)
	d.next.altered = false
	if d.removed && d.exists || !d.removed && !d.isDone() {
		s.pending = append(s.pending, d)
	}
}

// isDone reports whether a slice is in its desired state.
func (d *draft) isDone() bool {
	return d.exists && !d.now.altered && d.now.index == d.next.index && d.now.group == d.next.group &&
		slices.Equal(d.now.clusters, d.next.clusters)
}

// held returns the clusters that must still stay in a slice, because they are in no other.
func (s *schedule) held(d *draft) []string {
	var list []string
	for _, cluster := range d.moving {
		if s.present[cluster] < 2 {
			list = append(list, cluster)
		}
	}
	return list
}

// finishOne writes a slice in its desired state, if that removes nothing too early: first
// slices that lose a cluster permanently, since a deletion waits for that, and last those
// that are only renumbered or removed, so that no index is missing in between.
func (s *schedule) finishOne() bool {
	best, bestRank := -1, 0
	for i, d := range s.pending {
		rank := s.rank(d)
		if best >= 0 && rank >= bestRank || len(s.held(d)) > 0 {
			continue
		}
		best, bestRank = i, rank
	}
	if best < 0 {
		return false
	}
	d := s.pending[best]
	s.pending = slices.Delete(s.pending, best, best+1)
	if d.removed {
		s.writes = append(s.writes, write{action: remove, slice: slice{name: d.now.name}})
	} else {
		s.put(d, d.next)
	}
	for _, cluster := range d.moving {
		s.present[cluster]--
	}
	return true
}

func (s *schedule) rank(d *draft) int {
	switch {
	case d.removed:
		return 3
	case len(d.now.clusters) > len(d.members)-d.gains+len(d.moving): // some are no longer wanted
		return 0
	case d.gains > 0 || len(d.moving) > 0:
		return 1
	default:
		return 2
	}
}

// put writes a slice, whose new clusters are present from then on.
func (s *schedule) put(d *draft, next slice) {
	does := update
	if !d.exists {
		does = create
	}
	s.writes = append(s.writes, write{action: does, slice: next})
	for _, cluster := range next.clusters {
		if !slices.Contains(d.now.clusters, cluster) {
			s.present[cluster]++
		}
	}
	d.now, d.exists, d.gains = next, true, 0
}

// uniteOne writes a slice with both its new clusters and those that must still stay, if
// they fit. The rest follows later.
func (s *schedule) uniteOne() bool {
	var best *draft
	var held []string
	for _, d := range s.pending {
		if stay := s.held(d); d.gains > 0 && len(d.members)+len(stay) <= maxReferences &&
			(best == nil || len(stay) < len(held)) {
			best, held = d, stay
		}
	}
	if best == nil {
		return false
	}
	union := best.next
	union.clusters = slices.Sorted(slices.Values(slices.Concat(best.next.clusters, held)))
	s.put(best, union)
	for _, cluster := range best.moving {
		if !slices.Contains(held, cluster) {
			s.present[cluster]--
		}
	}
	best.moving = held
	return true
}

// divert breaks a cycle of full slices that wait for each other: the clusters that should
// move into one of them go to a new slice.
func (s *schedule) divert() {
	for _, d := range s.pending {
		if d.removed || d.gains == 0 {
			continue
		}
		fresh := s.open()
		fresh.next.index, fresh.next.group = s.indexed(), d.next.group
		for _, cluster := range d.next.clusters {
			if !slices.Contains(d.now.clusters, cluster) {
				d.members.Delete(cluster)
				fresh.members.Insert(cluster)
			}
		}
		d.gains = 0
		d.next.clusters = sets.List(d.members)
		s.prepare(fresh)
		return
	}
	s.pending = nil // impossible: waiting for a cluster means waiting for a slice that gains it
}

// indexed counts the remaining slices that have an index.
func (s *schedule) indexed() (count int) {
	for _, d := range s.remaining() {
		if d.next.index != noIndex {
			count++
		}
	}
	return count
}

func compareGroups(a, b selection.Group) int {
	return cmp.Or(cmp.Compare(a.Index, b.Index), cmp.Compare(a.Name, b.Name))
}
