package report

import (
	"time"

	"open-cluster-management.io/cluster-inventory-addon/pkg/kube"
	"open-cluster-management.io/cluster-inventory-addon/pkg/spoke/property"
)

// lateTime is how long the claim of a property may be missing before that is reported.
// Usually it takes milliseconds; reporting at once would turn the condition False and back
// to True with every burst of new properties.
const lateTime = 5 * time.Second

// awaited knows since when claims have been missing, or outdated, by name.
type awaited struct{ kube.Debounce[string] }

// count adds the claims that are missing but not late to seen, and returns how soon the
// first of them is late, or zero if there are none.
func (a *awaited) count(seen *observed, now time.Time) time.Duration {
	missing := map[string]bool{}
	for _, p := range seen.properties {
		missing[p.Name] = p.Obstacle(seen.Reserved) == property.ObstacleNone
	}
	for _, c := range seen.claims {
		delete(missing, c.name)
	}
	early, soonest := a.early(missing, now)
	for _, name := range early {
		seen.claims = append(seen.claims, claim{name: name, ours: true})
	}
	return soonest
}

// early returns the names that are true but have not been so for lateTime, and how soon the first
// of them has, or zero if there are none.
func (a *awaited) early(names map[string]bool, now time.Time) (early []string, soonest time.Duration) {
	a.OverUnless(func(name string) bool { return names[name] })
	for name, isTrue := range names {
		if !isTrue {
			continue
		}
		if left := a.Left(name, lateTime, now); left > 0 {
			early = append(early, name)
			soonest = kube.Sooner(soonest, left)
		}
	}
	return early, soonest
}
