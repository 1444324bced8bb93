package report

import (
	"time"

	"open-cluster-management.io/cluster-inventory-addon/pkg/spoke/property"
)

// lateTime is how long the claim of a property may be missing before that is reported.
// Usually it takes milliseconds; reporting at once would turn the condition False and back
// to True with every burst of new properties.
const lateTime = 5 * time.Second

// awaited maps the names of missing claims to the time since which they have been missing.
type awaited map[string]time.Time

// count adds the claims that are missing but not late to seen, and returns how soon the
// first of them is late, or zero if there are none.
func (a awaited) count(seen *observed, now time.Time) time.Duration {
	missing := map[string]bool{}
	for _, p := range seen.properties {
		missing[p.Name] = p.Obstacle(seen.reserved) == property.ObstacleNone
	}
	for _, c := range seen.claims {
		delete(missing, c.name)
	}
	for name := range a {
		if !missing[name] {
			delete(a, name)
		}
	}
	var soonest time.Duration
	for name, wanted := range missing {
		if !wanted {
			continue
		}
		since, known := a[name]
		if !known {
			since = now
			a[name] = now
		}
		left := since.Add(lateTime).Sub(now)
		if left <= 0 {
			continue
		}
		seen.claims = append(seen.claims, claim{name: name, ours: true})
		if soonest == 0 || left < soonest {
			soonest = left
		}
	}
	return soonest
}
