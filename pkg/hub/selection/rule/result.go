package rule

import (
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// Answer is the rule's answer for one pair of namespace and cluster. Only No may
// take anything away.
type Answer int

const (
	// Unknown means that there is no answer, or not yet.
	Unknown Answer = iota
	// No means that the namespace must not have a profile of the cluster.
	No
	// Yes means that the namespace must have a profile of the cluster.
	Yes
)

// Result is the rule's answer for one pair, with its reasons.
type Result struct {
	Answer Answer

	// Why completes, for No and Unknown, a sentence that begins with the cluster.
	Why string

	// Again is set by selection's Rule.Selected and Rule.Settle if time alone will change the answer: when
	// to ask again.
	Again time.Duration

	// Untrusted is true if the answer is Unknown because the caches do not show what exists:
	// the rule is not prepared, the hub does not serve a kind, missing objects may come back,
	// a Placement has only just vanished, a cluster may be moving between slices, or a cache may
	// be older than this process. Then no one may be given anything, not even a rotated token.
	Untrusted bool

	// NotReady is true if the answer is Unknown because the rule is not prepared yet. Its
	// subscribers are notified when it is.
	NotReady bool

	// Rests names the CRDs whose missing objects may be the reason for the No or Yes.
	// Before anything is done because of it, selection's Rule.Settle makes sure that these were not
	// deleted with their CRD.
	Rests []string

	// Going is true if the answer is No because the cluster or its addon is being deleted. Then
	// it rests on existing objects.
	Going bool

	// Bindings names the namespace's set bindings whose set selects the cluster or may do so.
	// Without any, no consumer expects a profile.
	Bindings []string

	// Member is true if the set of one of the Bindings is known to select the cluster.
	Member bool

	// Undecided names the Placements that keep the answer Unknown.
	Undecided []string

	// ByPlacement is true if only the cluster's absence from the decisions of Placements
	// speaks against a profile. Such a No must last before it counts: see Rule.Settle.
	ByPlacement bool

	// BySetType is true if the answer is No because the only sets that may select the cluster
	// are not exclusive.
	BySetType bool

	// ByAddon is the same as ByPlacement for the absence of the addon.
	ByAddon bool

	// Inconclusive names the Placements whose slices could not tell a move of the cluster from
	// its removal until the longest wait was over, so that the No counts now.
	Inconclusive []types.NamespacedName
}

const (
	// WhyLags is the Why of an answer that the hub does not confirm.
	WhyLags = "is decided when the manager's cache has caught up with the hub"

	// LagRecheck is how soon to look again at what the cache lacks and the hub has.
	LagRecheck = time.Second
)

// Unsettled makes a No Unknown until it is time to ask again. why is about each of the
// Placements.
func (r Result) Unsettled(again time.Duration, why string, placements ...string) Result {
	var reasons []string
	for _, name := range placements[:min(len(placements), maxReasons)] {
		reasons = append(reasons, fmt.Sprintf(why, name))
	}
	r = r.Postponed(again, "awaits a decision: "+strings.Join(reasons, "; "))
	r.Undecided = placements
	return r
}

// Postponed makes a result Unknown until it is time to ask again.
func (r Result) Postponed(again time.Duration, why string) Result {
	return Result{Why: why, Again: again, Untrusted: true, Bindings: r.Bindings, Member: r.Member}
}

// Vanished is unsettled for Placements that do not exist: no event of theirs will come.
func (r Result) Vanished(again time.Duration, placements ...string) Result {
	r = r.Unsettled(again, "Placement %q has vanished, and may be about to be recreated", placements...)
	r.Undecided = nil
	return r
}

// Lagging makes an answer Unknown that the hub does not confirm, until the cache has caught up.
func (r Result) Lagging() Result {
	return Result{Why: WhyLags, Again: LagRecheck, Untrusted: true, Bindings: r.Bindings, Member: r.Member}
}
