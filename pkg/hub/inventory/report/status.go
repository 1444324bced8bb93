package report

import (
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"open-cluster-management.io/cluster-inventory-addon/pkg/contract"
	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/conditions"
	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/inventory/profiles"
	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/selection"
	"open-cluster-management.io/cluster-inventory-addon/pkg/kube"
)

const (
	// maxMessageBytes bounds the message of ProfilesSynced.
	maxMessageBytes = 1024

	// syncedMessage is the only message of the condition while nothing is wrong, so that
	// publishing a cluster in one more namespace writes no addon. The profiles' label shows
	// which namespaces these are.
	syncedMessage = "Every ClusterProfile that this cluster should have is up to date."

	// transient is how long a state must last that often ends by itself.
	transient = 5 * time.Second

	// incomplete is how long to wait for the outcomes of other namespaces before problems
	// in some are written, and for decisions: a tenant's Placement may concern thousands of addons.
	incomplete = 30 * time.Second
)

// Kind is the kind of a pair's outcome.
type Kind int

const (
	// Withheld means that there must be no profile, and there is none of ours.
	Withheld Kind = iota
	// InPlace means that the profile is as it should be.
	InPlace
	// Undecided means that it is unknown whether there must be a profile.
	Undecided
	// Doubtful is undecided, without a profile or a set that is known to select the cluster.
	// One invalid set makes every cluster of the hub doubtful, so this is reported only
	// where the set is bound.
	Doubtful
	// Foreign means that the profile belongs to another cluster manager.
	Foreign
	// LeftAlone is a profile of our cluster manager that this addon did not create and that
	// should not exist.
	LeftAlone
	// Failed means that the API server refused a write.
	Failed
	// Contested means that another client keeps changing the profile.
	Contested
)

// Outcome is what to report about a pair.
type Outcome struct {
	Kind Kind

	// Why completes a sentence that begins with the cluster; empty when InPlace.
	Why string

	// Reason is one of the metrics' reasons, if the profile is withheld where a consumer may
	// expect one.
	Reason string

	// Properties lists what was left out of the profile, and why.
	Properties []string

	// Access lists the access providers missing from the profile, and why.
	Access []string

	// CrowdedOut lists the access providers for which other writers of the profile leave no
	// room.
	CrowdedOut []string

	// RefusedID is the member id that the cluster asks for and does not get.
	RefusedID string

	// Going is true if the namespace is being deleted, so that the outcome is soon forgotten.
	Going bool

	// HeldBack is true if changes of the profile have had to wait for its budget for a while.
	HeldBack bool

	// Bindings and Placements are the objects of the namespace that a user who misses the
	// profile, or an access provider, would look at.
	Bindings   []string
	Placements []string
}

// Of returns the outcome for a pair whose profile needs nothing more.
func Of(o profiles.Observed, s selection.Result, properties []string) Outcome {
	// There is an outcome for every pair, and there may be thousands of Placements.
	placements := slices.Clone(s.Undecided[:min(len(s.Undecided), profiles.MaxNames)])
	out := Outcome{Why: s.Why, Bindings: s.Bindings, Placements: placements}
	switch {
	case o.Profile != nil && !selection.IsOurs(o.Profile):
		if s.Answer != selection.No {
			out.Kind = Foreign
			out.Why = fmt.Sprintf("has a ClusterProfile of cluster manager %q in its place", o.Profile.Spec.ClusterManager.Name)
		}
	case s.Answer == selection.Yes && profiles.IsTerminating(o.Namespace):
		out.Kind, out.Going, out.Why = Failed, true, "cannot be published: the Namespace is being deleted"
	case s.Answer == selection.Yes && o.Profile != nil && o.Profile.DeletionTimestamp != nil:
		out.Kind = Failed
		out.Why = "cannot be published: its ClusterProfile is being deleted and held by finalizers " +
			kube.ListNames(o.Profile.Finalizers, profiles.MaxNames)
	case s.Answer == selection.Yes:
		out = Outcome{
			Kind: InPlace, Properties: properties, Access: o.Access.Problems, RefusedID: o.Member.Refused,
		}
		if o.Cluster != nil {
			_, out.CrowdedOut = profiles.DesiredAccess(o)
		}
		if len(out.Access) > 0 || len(out.CrowdedOut) > 0 {
			out.Bindings = s.Bindings
		}
	case s.Answer == selection.Unknown && o.Profile == nil && !s.Member:
		out.Kind = Doubtful
	case s.Answer == selection.Unknown:
		out.Kind, out.Properties = Undecided, properties
		if o.Profile != nil {
			out.Access = o.Access.Problems
		}
	case o.Profile != nil && !selection.IsMarked(o.Profile):
		out.Kind = LeftAlone
		out.Why = "has a ClusterProfile that this addon did not create and leaves alone, although the cluster " + s.Why
	}
	if out.Kind == Withheld && len(s.Bindings) > 0 {
		out.Reason = withheldFor(o, s)
	}
	return out
}

// ProfilesSynced summarizes the outcomes of the namespaces that concern a cluster in the
// condition on its addon. Incomplete outcomes can show a problem, but never that there is
// none.
func ProfilesSynced(byNamespace map[string]Outcome, isComplete bool) *conditions.Desired {
	namespaces := make(map[Kind][]string)
	for namespace, out := range byNamespace {
		namespaces[out.Kind] = append(namespaces[out.Kind], namespace)
	}
	var condition *conditions.Desired
	var sentences []string
	add := func(status metav1.ConditionStatus, reason string, what ...string) {
		if condition == nil && len(what) > 0 {
			condition = &conditions.Desired{Status: status, Reason: reason}
		}
		sentences = append(sentences, what...)
	}
	add(metav1.ConditionFalse, contract.ReasonWriteFailed, group(byNamespace, namespaces[Failed])...)
	add(metav1.ConditionFalse, contract.ReasonContested, group(byNamespace, namespaces[Contested])...)
	add(metav1.ConditionFalse, contract.ReasonForeignProfile, group(byNamespace, namespaces[Foreign])...)
	add(metav1.ConditionUnknown, contract.ReasonSelectionUnknown, group(byNamespace, namespaces[Undecided])...)
	left := problemsOf(byNamespace, func(out Outcome) []string { return out.Properties })
	if len(left) > 0 {
		add(metav1.ConditionFalse, contract.ReasonInvalidProperties,
			"Left out: "+kube.ListNames(left, profiles.MaxNames)+".")
	}
	add(metav1.ConditionFalse, contract.ReasonAccessUnavailable,
		problemsOf(byNamespace, func(out Outcome) []string { return out.Access })...)
	isUnknown := condition != nil && condition.Status == metav1.ConditionUnknown
	isGoing := len(namespaces[Failed]) > 0 && !slices.ContainsFunc(namespaces[Failed], func(namespace string) bool {
		return !byNamespace[namespace].Going
	})
	switch {
	case condition == nil && !isComplete:
		return nil
	case condition == nil:
		return &conditions.Desired{Status: metav1.ConditionTrue, Reason: contract.ReasonSynced, Message: syncedMessage}
	case !isComplete:
		condition.HoldBack = incomplete
	case isUnknown, isGoing: // longer than the manager itself waits for what has vanished
		condition.HoldBack = kube.LastingAfter
	case condition.Reason == contract.ReasonAccessUnavailable:
		condition.HoldBack = transient
	}
	condition.Message = kube.Shorten(strings.Join(sentences, " "), maxMessageBytes)
	return condition
}

// group returns a sentence for each reason, with the namespaces that share it.
func group(byNamespace map[string]Outcome, namespaces []string) []string {
	byReason := map[string][]string{}
	for _, namespace := range namespaces {
		why := byNamespace[namespace].Why
		byReason[why] = append(byReason[why], namespace)
	}
	sentences := make([]string, 0, len(byReason))
	for why, where := range byReason {
		names := kube.ListNames(kube.SortedNames(where), profiles.MaxNames)
		sentences = append(sentences, fmt.Sprintf("In %s: the cluster %s.", names, strings.TrimSuffix(why, ".")))
	}
	slices.Sort(sentences)
	return sentences
}

// problemsOf returns one kind of problems of all outcomes, sorted and without duplicates.
func problemsOf(byNamespace map[string]Outcome, of func(Outcome) []string) []string {
	var all []string
	for _, out := range byNamespace {
		all = append(all, of(out)...)
	}
	return kube.SortedNames(all)
}

// Blocked returns the condition while no profile may be written at all. An event announces
// when upstream's gate begins to forbid writing.
func Blocked(by profiles.Verdict) *conditions.Desired {
	return &conditions.Desired{
		Status:   metav1.ConditionFalse,
		Reason:   by.Reason,
		Message:  kube.Shorten(by.Message, maxMessageBytes),
		Warn:     by.Reason == contract.ReasonUpstreamGateOn || by.Reason == contract.ReasonUpstreamGateUnknown,
		HoldBack: by.HoldBack,
	}
}

// Unserved returns the condition while the hub does not serve ClusterProfiles.
func Unserved() *conditions.Desired {
	const format = "The hub does not serve ClusterProfiles: the CustomResourceDefinition %s is missing."
	return Blocked(profiles.Verdict{
		Reason: contract.ReasonProfileAPIMissing, Message: fmt.Sprintf(format, selection.ProfileCRD), HoldBack: transient,
	})
}
