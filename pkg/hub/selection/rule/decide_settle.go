package rule

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"open-cluster-management.io/cluster-inventory-addon/pkg/kube"
)

// Memory is what the process remembers about what is absent for a pair. Durations are zero when nothing is
// left to wait for.
type Memory struct {
	Now time.Time

	// Absent is since when the cluster has been absent from the decisions of the namespace's Placements, if
	// IsUnchosen.
	Absent time.Time

	// Settling is how long to wait before that counts: it has only just begun, or slices are being written.
	Settling time.Duration

	// Vanished is how long Placements that published may be missing, because they may be replaced.
	Vanished time.Duration

	// Started is how long a Placement may be missing that vanished before this process could see it, and
	// StartedWithProfiles the same if the namespace had profiles then, otherwise zero.
	Started, StartedWithProfiles time.Duration

	// Uninstalled is since when the addon has been absent, and Installs what may create it again according to
	// the cache, if the answer is ByAddon.
	Uninstalled time.Time
	Installs    *Installs
}

// Live is what was read live about an absence, once a Settlement asked for it.
type Live struct {
	Installs *Installs
	Slices   []*Placement // those of Settlement.ReadSlices; nil where there is none
}

// Settlement is what to do about a result.
type Settlement struct {
	// Observation is what the Result rests on.
	Observation Observation
	Result      Result

	// Wait is how long to wait before the pair is observed again, because nothing may be withdrawn yet.
	Wait time.Duration

	// IsFinal is true if neither the addon nor a decision can bring the cluster back soon.
	IsFinal bool

	// What must be read live before there is a Result: the Placements of the install strategy, or some of the
	// namespace, with their slices.
	ReadInstalls bool
	ReadSlices   []types.NamespacedName
}

// RestsOnAbsence reports whether Settle may change a result.
func RestsOnAbsence(o Observation, r Result) bool {
	switch r.Answer {
	case No:
		return slices.Contains(r.Rests, PlacementCRD) || r.ByAddon
	case Yes:
		return len(o.Placements) == 0
	default:
		return false
	}
}

// IsUnchosen reports whether the cluster is absent from the decisions of the namespace's Placements, also if
// its addon is absent, too.
func IsUnchosen(o Observation, r Result) bool {
	if r.ByAddon {
		_, r = assumingAddon(o)
	}
	return r.ByPlacement
}

func assumingAddon(o Observation) (Observation, Result) {
	o.AssumesAddon = true
	return o, Pair(o)
}

// Settle decides about a result that something absent may change: a decision for the cluster, its addon, or
// the Placements of the namespace. An absence from decisions counts once it has lasted. While slices cannot
// tell a cluster that moves from one that was removed, the answer is Unknown, for as long as longest. A Yes
// becomes Unknown if it rests on the absence of Placements that have only just disappeared: without them a
// namespace shows every cluster of its sets.
func Settle(o Observation, r Result, m Memory, live Live, longest time.Duration) Settlement {
	s := Settlement{Observation: o, Result: r}
	switch {
	case r.ByAddon:
		return s.addon(m, live, longest)
	case r.ByPlacement:
		return s.decisions(m, live, longest)
	case r.Answer == No && slices.Contains(r.Rests, PlacementCRD) && m.Started > 0:
		s.Result = r.Postponed(m.Started, whyStarted) // the namespace requires a Placement, and none is known yet
	case r.Answer == Yes && len(o.Placements) == 0:
		s.Result = widened(o, r, m)
	}
	return s
}

const (
	whyStarted = "awaits a decision: the manager has just started, so a Placement may be missing only for a moment"
	whyMoving  = "Placement %q does not name it, but may be moving it to another slice of its decisions"
	whyReturns = "keeps its profile: the addon is being removed, but the install strategy may create it again"
)

// widened is Settle for a Yes in a namespace without Placements. After a start, it concerns only namespaces
// that had profiles, and of these only pairs without one: existing profiles stay.
func widened(o Observation, r Result, m Memory) Result {
	switch {
	case len(o.Lost) > 0 && m.Vanished > 0:
		return r.Vanished(m.Vanished, o.Lost...)
	case len(o.Lost) == 0 && o.Profile == nil && m.StartedWithProfiles > 0:
		return r.Postponed(m.StartedWithProfiles, whyStarted)
	default:
		return r
	}
}

// decisions is Settle for a cluster that is absent from the decisions of the namespace's Placements.
func (s Settlement) decisions(m Memory, live Live, longest time.Duration) Settlement {
	o := s.Observation
	left := kube.TimeLeft(m.Absent, longest, m.Now)
	var moving []string
	for _, p := range o.Placements {
		if p.MayMove(o.Name) {
			moving = append(moving, p.Placement.Name)
			s.Result.Inconclusive = append(s.Result.Inconclusive, p.key())
		}
	}
	hiding := Hiding(o, left == 0)
	switch {
	case m.Settling > 0:
		s.Wait = m.Settling
	// The pair's own absence ends this wait, too, or a Placement that is recreated all the time would keep it.
	case m.Vanished > 0 && kube.TimeLeft(m.Absent, kube.AbsenceCounts, m.Now) > 0:
		s.Result = s.Result.Vanished(m.Vanished, o.Lost...)
	case m.Started > 0: // another Placement may have disappeared before
		s.Result = s.Result.Postponed(m.Started, whyStarted)
	case len(moving) > 0 && left > 0:
		s.Result = s.Result.Unsettled(left, whyMoving, moving...)
	case len(hiding) > 0 && live.Slices == nil:
		s.ReadSlices = hiding
	default:
		if choosing := Choosing(live.Slices, hiding, o.Name, left == 0); choosing != "" {
			s.Result = s.Result.Unsettled(kube.Sooner(left, LagRecheck), whyMoving, choosing)
		}
	}
	return s
}

// Hiding returns the Placements of an observation that may choose a cluster which has been absent from their
// slices for a while, although the cached slices deny that: those of a kind that hides clusters, and all if
// the cache may lag or nothing more is to be waited for (finally).
func Hiding(o Observation, finally bool) (hiding []types.NamespacedName) {
	all := finally || o.Lagging.Any(PlacementCRD, DecisionCRD)
	for _, p := range o.Placements {
		if all || p.MayHide() {
			hiding = append(hiding, p.key())
		}
	}
	return hiding
}

// Choosing names one of Hiding that, read live, chooses a cluster or may choose it; "" if none does. Finally,
// only one that names the cluster does.
func Choosing(live []*Placement, hiding []types.NamespacedName, cluster string, finally bool) string {
	for i, p := range live {
		if p == nil { // the cache will show that it is gone
			return hiding[i].Name
		}
		now := p.Observed(cluster)
		if now.Decides || !finally && (UndecidedReason(now) != "" || now.MayMove(cluster)) {
			return hiding[i].Name
		}
	}
	return ""
}

// addon is Settle for a cluster whose addon is absent or being deleted. OCM's addon manager deletes it as soon
// as no slice of the install strategy's Placements names the cluster, and creates it again when one does
// (open-cluster-management-io/ocm issue 1346). So the install strategy is read live if the cache denies that,
// although its slices are of a kind that hides clusters, until the absence has lasted for longest.
func (s Settlement) addon(m Memory, live Live, longest time.Duration) Settlement {
	assumed, rest := assumingAddon(s.Observation)
	install := m.Installs.Of(assumed.Name)
	if !install.MayReturn && install.hides && kube.TimeLeft(m.Uninstalled, longest, m.Now) > 0 {
		if live.Installs == nil {
			s.ReadInstalls = true
			return s
		}
		install = live.Installs.Of(assumed.Name)
	}
	if !install.MayReturn || rest.Answer == No && !rest.ByPlacement {
		s.IsFinal = true
		return s
	}
	if rest.ByPlacement {
		settled := Settlement{Observation: assumed, Result: rest}.decisions(m, live, longest)
		if settled.Wait > 0 || settled.ReadSlices != nil || settled.Result.Answer == No {
			return settled
		}
		rest = settled.Result
	}
	if install.Named {
		longest = LongestMove // OCM creates the addon again as soon as it can
	}
	if left := kube.TimeLeft(m.Uninstalled, min(longest, install.Longest), m.Now); left > 0 {
		s.Result = s.Result.Postponed(kube.Sooner(left, rest.Again), whyReturns)
		s.Result.Undecided = rest.Undecided
		return s
	}
	s.Result.Inconclusive = install.Placements
	return s
}
