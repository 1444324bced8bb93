package rule

import (
	"cmp"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
)

// LongestMove is how long an absence from decisions is disregarded because the slices cannot
// tell a cluster that moves from one that was removed. OCM repeats a failed write after ten
// minutes at the latest, but a cluster that was removed on purpose must not stay that long.
const LongestMove = 2 * time.Minute

// fullSlice is how many clusters OCM puts into a slice before it begins the next one
// (maxNumOfClusterDecisions, pkg/placement/controllers/scheduling).
const fullSlice = 100

// layout is how the clusters of a Placement are spread over its slices.
//
// OCM sorts the clusters by name, cuts them into slices of fullSlice and writes these one by
// one, from the first to the last. It does not retry a failed write for up to ten minutes.
// So any slice may be of another state than its neighbour: a cluster that another one pushes
// into the next slice is in neither until that is written, and so is one that changes its
// decision group.
type layout struct {
	// ranges are the slices in OCM's order. They are set only if they are as OCM leaves them:
	// in one group, sorted, and full except for the last one.
	ranges []nameRange

	// unlike says that they are not: OCM or another client is still writing.
	unlike bool

	// grouped is true if there are decision groups. Then nothing tells a cluster that changes
	// its group from one that is no longer chosen.
	grouped bool
}

// nameRange is the first and the last name in one slice, both empty if the slice is.
type nameRange struct {
	first, last string
	count       int
}

// layoutOf returns the layout of all slices of a Placement.
func layoutOf(decisions []clusterv1beta1.PlacementDecision) *layout {
	l := &layout{}
	ordered := make([]*clusterv1beta1.PlacementDecision, len(decisions))
	for i := range decisions {
		ordered[i] = &decisions[i]
		l.grouped = l.grouped || GroupOf(&decisions[i]) != Group{}
	}
	slices.SortFunc(ordered, func(a, b *clusterv1beta1.PlacementDecision) int {
		return cmp.Or(cmp.Compare(numberOf(a.Name), numberOf(b.Name)), cmp.Compare(a.Name, b.Name))
	})
	for i, decision := range ordered {
		r, sorted := rangeOf(decision)
		if i > 0 {
			before := l.ranges[i-1]
			l.unlike = l.unlike || before.count != fullSlice || r.first <= before.last
		}
		l.unlike = l.unlike || !sorted || r.count > fullSlice
		l.ranges = append(l.ranges, r)
	}
	if l.unlike || l.grouped {
		l.ranges = nil
	}
	return l
}

// numberOf returns the number of a slice, which OCM names <placement>-decision-<number>.
func numberOf(name string) int {
	number, err := strconv.Atoi(name[strings.LastIndex(name, "-")+1:])
	if err != nil {
		return math.MaxInt
	}
	return number
}

// rangeOf returns the range of a slice, and whether its names are sorted.
func rangeOf(decision *clusterv1beta1.PlacementDecision) (r nameRange, sorted bool) {
	sorted = true
	for _, d := range decision.Status.Decisions {
		sorted = sorted && d.ClusterName > r.last
		if r.count == 0 {
			r.first = d.ClusterName
		}
		r.last = d.ClusterName
		r.count++
	}
	return r, sorted
}

// mayMove reports whether a cluster that is in no slice may be moving from one to another,
// according to the slices. It is not if the names in one slice enclose its name: whether that
// slice is of the state before or after, it would contain the cluster. Before the first slice
// and behind one that is not full there is no other slice.
func (l *layout) mayMove(cluster string) bool {
	if l.grouped || l.unlike {
		return true
	}
	at, inside := l.find(cluster)
	return !inside && at > 0 && l.ranges[at-1].count == fullSlice
}

// spans reports whether one slice has names on both sides of a cluster's.
func (l *layout) spans(cluster string) bool {
	_, inside := l.find(cluster)
	return inside
}

// find returns the first slice that ends behind a name, and whether it begins before it.
func (l *layout) find(name string) (at int, inside bool) {
	at, _ = slices.BinarySearchFunc(l.ranges, name, func(r nameRange, name string) int {
		return cmp.Compare(r.last, name)
	})
	return at, at < len(l.ranges) && l.ranges[at].first < name
}

// mayHide reports whether the slices are of a kind in which a chosen cluster may be missing
// for a moment, regardless of its name.
func (l *layout) mayHide() bool {
	return l.grouped || l.unlike || len(l.ranges) > 1 || len(l.ranges) == 1 && l.ranges[0].count == fullSlice
}

// MayMove reports whether a cluster for which the Placement does not decide may be on its
// way from one slice to another. It may if the slices do not add up, unless one spans it.
func (p ObservedPlacement) MayMove(cluster string) bool {
	return IsGrouped(p.Placement) || p.surplus() != 0 && !p.spans(cluster) || p.Summary.layout.mayMove(cluster)
}

// spans reports whether one slice shows that OCM did not choose a cluster when it wrote it.
func (p ObservedPlacement) spans(cluster string) bool {
	return !IsGrouped(p.Placement) && p.Summary.layout.spans(cluster)
}

// MayHide reports whether a chosen cluster may be missing from the Placement's slices for a
// moment.
func (p ObservedPlacement) MayHide() bool {
	return IsGrouped(p.Placement) || p.Summary.layout.mayHide()
}
