package report

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"golang.org/x/time/rate"

	"open-cluster-management.io/cluster-inventory-addon/pkg/kube"
)

// An agent creates at most 20 events in a minute: the first eventsAtOnce, and then one in each
// eventInterval.
const (
	eventsAtOnce  = 5
	eventInterval = 4 * time.Second
)

// EventHistory is what an agent remembers of its events, for all sessions of its process. The
// limit of events bounds its size, because an entry expires within kube.EventPeriod. It is not
// safe for concurrent use.
type EventHistory struct {
	limiter *rate.Limiter

	// repeat is when an event may be created again.
	repeat map[topic]time.Time

	// last are the names of the last properties with an event, by rank.
	last map[int]string

	// paused is until when none is created, because the API server refused one. failing is true
	// until it admits one.
	paused  time.Time
	failing bool
}

// NewEventHistory returns the history of an agent that has created no event.
func NewEventHistory() *EventHistory {
	return &EventHistory{
		limiter: rate.NewLimiter(rate.Every(eventInterval), eventsAtOnce),
		repeat:  map[topic]time.Time{},
		last:    map[int]string{},
	}
}

// due returns the notices that an event is to be created for, in this order, and how soon there
// may be another; zero means never. Claims beyond the limit, which may be thousands, come last.
// Otherwise the names take turns.
func (h *EventHistory) due(current []notice, now time.Time) (due []notice, next time.Duration) {
	for about, repeat := range h.repeat {
		if !repeat.After(now) {
			delete(h.repeat, about)
		}
	}
	for _, n := range current {
		if repeat, isKnown := h.repeat[n.topic]; isKnown {
			next = kube.Sooner(next, repeat.Sub(now))
		} else {
			due = append(due, n)
		}
	}
	slices.SortFunc(due, func(a, b notice) int {
		return cmp.Or(cmp.Compare(a.rank(), b.rank()), cmp.Compare(h.turn(a), h.turn(b)), strings.Compare(a.name, b.name))
	})
	return due, next
}

// allow reports whether an event may be created now or, if not, when to look again.
func (h *EventHistory) allow(now time.Time) (bool, time.Duration) {
	if wait := h.paused.Sub(now); wait > 0 {
		return false, wait
	}
	if h.limiter.AllowN(now, 1) {
		return true, 0
	}
	return false, eventsAtOnce * eventInterval
}

// created remembers an event, which may be repeated later.
func (h *EventHistory) created(n notice, repeat time.Time) {
	h.repeat[n.topic] = repeat
	h.last[n.rank()] = n.name
}

func (h *EventHistory) turn(n notice) int {
	if n.name > h.last[n.rank()] {
		return 0
	}
	return 1
}

func (n notice) rank() int {
	if n.reason == reasonClaimLimit {
		return 1
	}
	return 0
}
