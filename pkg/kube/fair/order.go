package fair

import (
	"container/list"

	"open-cluster-management.io/cluster-inventory-addon/pkg/kube/watch"
)

// class is a priority as the queue distinguishes them; lower ones are served first.
type class int

const (
	urgent class = iota
	normal
	low
	classes
)

func classOf(priority int) class {
	switch {
	case priority >= watch.PriorityHigh:
		return urgent
	case priority >= watch.PriorityNormal:
		return normal
	default:
		return low
	}
}

func (c class) priority() int {
	return [classes]int{watch.PriorityHigh, watch.PriorityNormal, watch.PriorityLow}[c]
}

// order decides which ready request is handed out next. It is not safe for concurrent use.
type order struct {
	workers  int
	perGroup int
	reserved [classes]int // workers that a class leaves to higher ones
	lower    int          // workers that urgent requests, which may be stuck, leave to lower classes

	rings    [classes]ring
	busy     int
	urgent   int                      // of busy
	inFlight map[string]*[classes]int // by group
}

// ring holds the groups that have requests of one class, in the order of their turns.
type ring struct {
	turns *list.List // of *line
	lines map[string]*list.Element
	size  int
}

// line holds the requests of one group and class, in order of arrival.
type line struct {
	group   string
	entries *list.List // of *entry
}

func newOrder(workers, perGroup int) *order {
	o := &order{
		workers:  workers,
		perGroup: perGroup,
		reserved: [classes]int{normal: workers / 8, low: workers / 4},
		lower:    workers / 8,
		inFlight: map[string]*[classes]int{},
	}
	for class := range o.rings {
		o.rings[class] = ring{turns: list.New(), lines: map[string]*list.Element{}}
	}
	return o
}

// push puts an entry at the end of its group's line.
func (o *order) push(e *entry) {
	r := &o.rings[e.class]
	turn := r.lines[e.group]
	if turn == nil {
		turn = r.turns.PushBack(&line{group: e.group, entries: list.New()})
		r.lines[e.group] = turn
	}
	e.place = turn.Value.(*line).entries.PushBack(e)
	r.size++
}

func (o *order) remove(e *entry) {
	r := &o.rings[e.class]
	turn := r.lines[e.group]
	entries := turn.Value.(*line).entries
	entries.Remove(e.place)
	e.place = nil
	r.size--
	if entries.Len() == 0 {
		r.turns.Remove(turn)
		delete(r.lines, e.group)
	}
}

// next returns the entry whose turn it is, or nil if none may be handed out now.
func (o *order) next() *entry {
	for class := range classes {
		free := o.workers - o.busy - o.reserved[class]
		if class == urgent {
			free = min(free, o.workers-o.lower-o.urgent)
		} else {
			free = max(free, o.lower-(o.busy-o.urgent))
		}
		if free <= 0 {
			continue // there may be thousands of groups
		}
		for turn := o.rings[class].turns.Front(); turn != nil; turn = turn.Next() {
			l := turn.Value.(*line)
			if o.working(l.group, class) < min(o.perGroup, free) {
				return l.entries.Front().Value.(*entry)
			}
		}
	}
	return nil
}

// working returns how many requests of a group are in progress, not counting lower classes:
// these may be stuck.
func (o *order) working(group string, least class) int {
	counts := o.inFlight[group]
	if counts == nil {
		return 0
	}
	n := 0
	for class := range least + 1 {
		n += counts[class]
	}
	return n
}

// begin removes an entry that is now in progress. Its group has had its turn.
func (o *order) begin(e *entry) {
	r := &o.rings[e.class]
	r.turns.MoveToBack(r.lines[e.group])
	o.remove(e)
	if o.inFlight[e.group] == nil {
		o.inFlight[e.group] = &[classes]int{}
	}
	o.inFlight[e.group][e.class]++
	o.busy++
	if e.class == urgent {
		o.urgent++
	}
}

// end records that an entry is no longer in progress.
func (o *order) end(e *entry) {
	o.busy--
	if e.class == urgent {
		o.urgent--
	}
	counts := o.inFlight[e.group]
	counts[e.class]--
	if *counts == ([classes]int{}) {
		delete(o.inFlight, e.group)
	}
}

func (o *order) len() int {
	n := 0
	for class := range o.rings {
		n += o.rings[class].size
	}
	return n
}
