package inventory

import (
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"open-cluster-management.io/cluster-inventory-addon/pkg/contract"
	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/conditions"
	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/selection"
	"open-cluster-management.io/cluster-inventory-addon/pkg/kube"
)

const (
	// maxMessageBytes bounds the message of ProfilesSynced.
	maxMessageBytes = 1024

	// maxNames bounds how many names a message or an event lists.
	maxNames = 10

	// syncedMessage is the only message of the condition while nothing is wrong, so that
	// publishing a cluster in one more namespace writes no addon. The profiles' label shows
	// which namespaces these are.
	syncedMessage = "Every ClusterProfile that this cluster should have is up to date."

	// passing is how long a state must last that is often transient.
	passing = 5 * time.Second

	// incomplete is how long to wait for the outcomes of other namespaces before problems
	// in some are written.
	incomplete = 30 * time.Second
)

// outcomeKind is the kind of a pair's outcome.
type outcomeKind int

const (
	// withheld: there must be no profile, and there is none of ours.
	withheld outcomeKind = iota
	// inPlace: the profile is as it should be.
	inPlace
	// undecided: it is unknown whether there must be a profile.
	undecided
	// doubtful: undecided, without a profile or a set that is known to select the cluster.
	// One invalid set makes every cluster of the hub doubtful, so this is reported only
	// where the set is bound.
	doubtful
	// foreign: the profile belongs to another cluster manager.
	foreign
	// leftAlone: a profile of our cluster manager that this addon did not create and that
	// should not exist.
	leftAlone
	// failed: the API server refused a write.
	failed
	// contested: another client keeps changing the profile.
	contested
)

// outcome is what to report about a pair.
type outcome struct {
	kind outcomeKind

	// why completes a sentence that begins with the cluster; empty when inPlace.
	why string

	// reason is one of the metrics' reasons, if the profile is withheld where somebody may
	// expect one.
	reason string

	// properties lists what was left out of the profile, and why.
	properties []string

	// access lists the access providers missing from the profile, and why.
	access []string

	// crowdedOut lists the access providers for which other writers of the profile leave no
	// room.
	crowdedOut []string

	// refusedID is the member id that the cluster asks for and does not get.
	refusedID string

	// heldBack is true if changes of the profile have had to wait for its budget for a while.
	heldBack bool

	// bindings and placements are the objects of the namespace that somebody who
	// misses the profile, or an access provider, would look at.
	bindings   []string
	placements []string
}

// outcomeOf returns the outcome for a pair whose profile needs nothing more.
func outcomeOf(o observed, s selection.Result, properties []string) outcome {
	// There is an outcome for every pair, and there may be thousands of Placements.
	placements := slices.Clone(s.Undecided[:min(len(s.Undecided), maxNames)])
	out := outcome{why: s.Why, bindings: s.Bindings, placements: placements}
	switch {
	case o.Profile != nil && !selection.IsOurs(o.Profile):
		if s.Answer != selection.No {
			out.kind = foreign
			out.why = fmt.Sprintf("has a ClusterProfile of cluster manager %q in its place", o.Profile.Spec.ClusterManager.Name)
		}
	case s.Answer == selection.Yes && isTerminating(o.Namespace):
		out.kind, out.why = failed, "cannot be published: the Namespace is being deleted"
	case s.Answer == selection.Yes && o.Profile != nil && o.Profile.DeletionTimestamp != nil:
		out.kind = failed
		out.why = "cannot be published: its ClusterProfile is being deleted and held by finalizers " +
			kube.ListNames(o.Profile.Finalizers, maxNames)
	case s.Answer == selection.Yes:
		out = outcome{
			kind: inPlace, properties: properties, access: o.access.Problems, refusedID: o.member.refused,
		}
		if o.Cluster != nil {
			_, out.crowdedOut = desiredAccess(o)
		}
		if len(out.access) > 0 || len(out.crowdedOut) > 0 {
			out.bindings = s.Bindings
		}
	case s.Answer == selection.Unknown && o.Profile == nil && !s.Member:
		out.kind = doubtful
	case s.Answer == selection.Unknown:
		out.kind, out.properties = undecided, properties
		if o.Profile != nil {
			out.access = o.access.Problems
		}
	case o.Profile != nil && !selection.IsMarked(o.Profile):
		out.kind = leftAlone
		out.why = "has a ClusterProfile that this addon did not create and leaves alone, although the cluster " + s.Why
	}
	if out.kind == withheld && len(s.Bindings) > 0 {
		out.reason = withheldFor(o, s)
	}
	return out
}

// profilesSynced summarizes the outcomes of the namespaces that concern a cluster in the
// condition on its addon. Incomplete outcomes can show a problem, but never that there is
// none.
func profilesSynced(byNamespace map[string]outcome, isComplete bool) *conditions.Desired {
	namespaces := make(map[outcomeKind][]string)
	for namespace, out := range byNamespace {
		namespaces[out.kind] = append(namespaces[out.kind], namespace)
	}
	var condition *conditions.Desired
	var sentences []string
	add := func(status metav1.ConditionStatus, reason string, what ...string) {
		if condition == nil && len(what) > 0 {
			condition = &conditions.Desired{Status: status, Reason: reason}
		}
		sentences = append(sentences, what...)
	}
	add(metav1.ConditionFalse, contract.ReasonWriteFailed, group(byNamespace, namespaces[failed])...)
	add(metav1.ConditionFalse, contract.ReasonContested, group(byNamespace, namespaces[contested])...)
	add(metav1.ConditionFalse, contract.ReasonForeignProfile, group(byNamespace, namespaces[foreign])...)
	add(metav1.ConditionUnknown, contract.ReasonSelectionUnknown, group(byNamespace, namespaces[undecided])...)
	if left := leftOut(byNamespace); len(left) > 0 {
		add(metav1.ConditionFalse, contract.ReasonInvalidProperties,
			"Left out: "+kube.ListNames(left, maxNames)+".")
	}
	add(metav1.ConditionFalse, contract.ReasonAccessUnavailable, accessProblems(byNamespace)...)
	switch {
	case condition == nil && !isComplete:
		return nil
	case condition == nil:
		return &conditions.Desired{Status: metav1.ConditionTrue, Reason: contract.ReasonSynced, Message: syncedMessage}
	case !isComplete:
		condition.HoldBack = incomplete
	case condition.Status == metav1.ConditionUnknown:
		condition.HoldBack = passing
	}
	condition.Message = kube.Shorten(strings.Join(sentences, " "), maxMessageBytes)
	return condition
}

// group returns a sentence for each reason, with the namespaces that share it.
func group(byNamespace map[string]outcome, namespaces []string) []string {
	byReason := map[string][]string{}
	for _, namespace := range namespaces {
		why := byNamespace[namespace].why
		byReason[why] = append(byReason[why], namespace)
	}
	sentences := make([]string, 0, len(byReason))
	for why, where := range byReason {
		names := kube.ListNames(kube.SortedNames(where), maxNames)
		sentences = append(sentences, fmt.Sprintf("In %s: the cluster %s.", names, strings.TrimSuffix(why, ".")))
	}
	slices.Sort(sentences)
	return sentences
}

func leftOut(byNamespace map[string]outcome) []string {
	var problems []string
	for _, out := range byNamespace {
		problems = append(problems, out.properties...)
	}
	return kube.SortedNames(problems)
}

func accessProblems(byNamespace map[string]outcome) []string {
	var problems []string
	for _, out := range byNamespace {
		problems = append(problems, out.access...)
	}
	return kube.SortedNames(problems)
}

// blocked returns the condition while no profile may be written at all. An event announces
// when upstream's gate begins to forbid writing.
func blocked(reason, message string) *conditions.Desired {
	return &conditions.Desired{
		Status:  metav1.ConditionFalse,
		Reason:  reason,
		Message: kube.Shorten(message, maxMessageBytes),
		Warn:    reason == contract.ReasonUpstreamGateOn || reason == contract.ReasonUpstreamGateUnknown,
	}
}
