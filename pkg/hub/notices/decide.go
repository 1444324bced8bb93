package notices

import (
	"time"

	"open-cluster-management.io/cluster-inventory-addon/pkg/kube"
)

// topic is what there is one event about at a time.
type topic struct {
	subject Subject
	reason  string
}

func (n Notice) topic() topic { return topic{n.Subject, n.Reason} }

// lastEvent is the last event about a topic.
type lastEvent struct {
	notice Notice // zero if it does not hold any more
	at     time.Time

	// repeat is when to create the same event again, if it still holds.
	repeat time.Time
}

// due is a notice to create an event from now.
type due struct {
	notice Notice

	// stable is true if a process before this one may have created the same event.
	stable bool
}

// decided is what follows from the notices of a scope.
type decided struct {
	due        []due
	lastEvents map[topic]lastEvent // to remember
	again      time.Duration
}

// decide compares the notices of a scope, each of another topic, with the last events.
func decide(before map[topic]lastEvent, current []Notice, now time.Time) decided {
	d := decided{lastEvents: make(map[topic]lastEvent, len(current))}
	for _, notice := range current {
		last, known := before[notice.topic()]
		if !known {
			d.due = append(d.due, due{notice: notice, stable: true})
			continue
		}
		d.lastEvents[notice.topic()] = last
		isSame, next := last.notice == notice, last.at.Add(Interval)
		if isSame {
			next = last.repeat
		}
		if left := next.Sub(now); left > 0 {
			d.again = kube.Sooner(d.again, left)
		} else {
			d.due = append(d.due, due{notice: notice, stable: isSame})
		}
	}
	for about, last := range before {
		if _, isCurrent := d.lastEvents[about]; isCurrent {
			continue
		}
		// If the same holds again within the period, the event that is there already does not
		// count: the new one is news.
		if left := last.at.Add(kube.EventPeriod).Sub(now); left > 0 {
			d.lastEvents[about] = lastEvent{at: last.at}
			d.again = kube.Sooner(d.again, left)
		}
	}
	return d
}
