package inventory

import (
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"open-cluster-management.io/cluster-inventory-addon/pkg/contract"
	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/selection"
	"open-cluster-management.io/cluster-inventory-addon/pkg/kube"
)

const (
	// maxMessageBytes bounds the message of ProfilesSynced.
	maxMessageBytes = 1024

	// maxNames bounds how many names a message or an event lists.
	maxNames = 10
)

// outcomeKind is what became of a pair.
type outcomeKind int

const (
	// withheld: there must be no profile, and there is none of ours.
	withheld outcomeKind = iota
	// inPlace: the profile is what it should be.
	inPlace
	// undecided: it is unknown whether there must be a profile.
	undecided
	// doubtful: undecided, without a profile or a set that is known to select the
	// cluster. One invalid set makes every cluster of the hub doubtful without saying
	// anything about it, so this is reported only where the set is bound.
	doubtful
	// foreign: the profile belongs to another cluster manager.
	foreign
	// leftAlone: a profile of our cluster manager that this addon did not make and
	// that should not be there.
	leftAlone
	// failed: the API server refused a write.
	failed
)

// outcome is what to report about a pair.
type outcome struct {
	kind outcomeKind

	// why completes a sentence that begins with the cluster; empty when inPlace.
	why string

	// properties says what of the cluster was left out of the profile, and why.
	properties []string

	// access says which access providers are missing from the profile, and why.
	access []string

	// bindings and placements are the objects of the namespace that somebody who
	// misses the profile would look at.
	bindings   []string
	placements []string
}

// isUnexpected is true when there must be no profile and nothing in the namespace
// makes anybody expect one.
func (o outcome) isUnexpected() bool { return o.kind == withheld && len(o.bindings) == 0 }

// outcomeOf returns the outcome for a pair about whose profile nothing is left to
// do.
func outcomeOf(o observed, s selection.Result, properties []string) outcome {
	out := outcome{why: s.Why, bindings: s.Bindings, placements: s.Undecided}
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
			strings.Join(o.Profile.Finalizers, ", ")
	case s.Answer == selection.Yes:
		out = outcome{kind: inPlace, properties: properties, access: o.access.Problems}
	case s.Answer == selection.Unknown && o.Profile == nil && !s.Member:
		out.kind = doubtful
	case s.Answer == selection.Unknown:
		out.kind, out.properties = undecided, properties
		if o.Profile != nil {
			out.access = o.access.Problems
		}
	case o.Profile != nil && !selection.IsMarked(o.Profile):
		out.kind = leftAlone
		out.why = "has a ClusterProfile that this addon did not make and leaves alone, although the cluster " + s.Why
	}
	return out
}

// profilesSynced sums up the outcomes of all namespaces that concern a cluster
// into the condition on its addon.
func profilesSynced(byNamespace map[string]outcome) metav1.Condition {
	condition := metav1.Condition{
		Type: contract.ConditionProfilesSynced, Status: metav1.ConditionTrue, Reason: contract.ReasonNotSelected,
	}
	namespaces := make(map[outcomeKind][]string)
	for namespace, out := range byNamespace {
		namespaces[out.kind] = append(namespaces[out.kind], namespace)
	}
	var sentences []string
	for _, problem := range []struct {
		kind   outcomeKind
		status metav1.ConditionStatus
		reason string
	}{
		{failed, metav1.ConditionFalse, contract.ReasonWriteFailed},
		{foreign, metav1.ConditionFalse, contract.ReasonForeignProfile},
		{undecided, metav1.ConditionUnknown, contract.ReasonSelectionUnknown},
	} {
		for _, why := range group(byNamespace, namespaces[problem.kind]) {
			if len(sentences) == 0 {
				condition.Status, condition.Reason = problem.status, problem.reason
			}
			sentences = append(sentences, why)
		}
	}
	if left := leftOut(byNamespace); len(left) > 0 {
		if len(sentences) == 0 {
			condition.Status, condition.Reason = metav1.ConditionFalse, contract.ReasonInvalidProperties
		}
		sentences = append(sentences, "Left out: "+kube.ListNames(left, maxNames)+".")
	}
	if missing := accessProblems(byNamespace); len(missing) > 0 {
		if len(sentences) == 0 {
			condition.Status, condition.Reason = metav1.ConditionFalse, contract.ReasonAccessUnavailable
		}
		sentences = append(sentences, missing...)
	}
	if good := kube.SortedNames(namespaces[inPlace]); len(good) > 0 {
		if len(sentences) == 0 {
			condition.Reason = contract.ReasonSynced
		}
		sentences = append(sentences, "Profiles in place in: "+kube.ListNames(good, maxNames)+".")
	}
	if len(sentences) == 0 {
		sentences = append([]string{"No namespace is to hold a profile."}, group(byNamespace, namespaces[withheld])...)
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

// blocked returns the condition while no profile may be written at all.
func blocked(reason, message string) metav1.Condition {
	return metav1.Condition{
		Type:    contract.ConditionProfilesSynced,
		Status:  metav1.ConditionFalse,
		Reason:  reason,
		Message: kube.Shorten(message, maxMessageBytes),
	}
}
