package inventory

import (
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"open-cluster-management.io/cluster-inventory-addon/pkg/contract"
	"open-cluster-management.io/cluster-inventory-addon/pkg/kube"
)

const (
	// maxMessageBytes bounds the message of ProfilesSynced.
	maxMessageBytes = 1024

	// maxNames bounds how many names a message or an event lists.
	maxNames = 10
)

// result is how a pair came out.
type result int

const (
	// withheld: there is to be no profile, and there is none of ours.
	withheld result = iota
	// inPlace: the profile is what it should be.
	inPlace
	// undecided: it cannot be told whether there is to be a profile.
	undecided
	// doubtful: undecided, but there is no profile and no set that is known to
	// select the cluster. One set that cannot be understood makes this so of every cluster of the hub, and says
	// nothing about any of them: it is reported where the set is bound.
	doubtful
	// foreign: the profile belongs to another cluster manager.
	foreign
	// leftAlone: a profile of our cluster manager, not made by this addon, that
	// should not be there.
	leftAlone
	// failed: the API server refused what was to be written.
	failed
)

// outcome is what there is to say about a pair.
type outcome struct {
	result result

	// why completes a sentence about the cluster; empty when inPlace.
	why string

	// properties says which claims were left out of the profile.
	properties []string

	// access says which access providers are missing from the profile.
	access []string

	// bindings and placements are the objects of the namespace that somebody
	// who misses the profile would look at.
	bindings   []string
	placements []string
}

// nobodyAsks is true when there is to be no profile, and nothing in the namespace
// because of which somebody may ask for one.
func (o outcome) nobodyAsks() bool { return o.result == withheld && len(o.bindings) == 0 }

// outcomeOf puts the rule's answer for a pair, and the profile that nothing is
// left to be done about, into words.
func outcomeOf(o observed, s selection, properties []string) outcome {
	out := outcome{why: s.why, bindings: s.bindings, placements: s.undecided}
	switch {
	case o.profile != nil && !isOurs(o.profile):
		if s.answer != No {
			out.result = foreign
			out.why = fmt.Sprintf("has a ClusterProfile of cluster manager %q in its place", o.profile.Spec.ClusterManager.Name)
		}
	case s.answer == Yes && isTerminating(o.namespace):
		out.result, out.why = failed, "cannot be published: the Namespace is being deleted"
	case s.answer == Yes && o.profile != nil && o.profile.DeletionTimestamp != nil:
		out.result = failed
		out.why = "cannot be published: its ClusterProfile is being deleted and held by finalizers " + strings.Join(o.profile.Finalizers, ", ")
	case s.answer == Yes:
		out = outcome{result: inPlace, properties: properties, access: o.access.Problems}
	case s.answer == Unknown && o.profile == nil && !s.member:
		out.result = doubtful
	case s.answer == Unknown:
		out.result, out.properties = undecided, properties
		if o.profile != nil {
			out.access = o.access.Problems
		}
	case o.profile != nil && !isMarked(o.profile):
		out.result = leftAlone
		out.why = fmt.Sprintf("has a ClusterProfile that this addon did not make and leaves alone, although the cluster %s", s.why)
	}
	return out
}

// profilesSynced sums up the outcomes of all namespaces that concern a cluster
// into the condition on its addon.
func profilesSynced(byNamespace map[string]outcome) metav1.Condition {
	condition := metav1.Condition{Type: contract.ConditionProfilesSynced, Status: metav1.ConditionTrue, Reason: contract.ReasonNotSelected}
	namespaces := make(map[result][]string)
	for namespace, out := range byNamespace {
		namespaces[out.result] = append(namespaces[out.result], namespace)
	}
	var sentences []string
	for _, problem := range []struct {
		result result
		status metav1.ConditionStatus
		reason string
	}{
		{failed, metav1.ConditionFalse, contract.ReasonWriteFailed},
		{foreign, metav1.ConditionFalse, contract.ReasonForeignProfile},
		{undecided, metav1.ConditionUnknown, contract.ReasonSelectionUnknown},
	} {
		for _, why := range group(byNamespace, namespaces[problem.result]) {
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
		sentences = append(sentences, "Claims left out: "+kube.ListNames(left, maxNames)+".")
	}
	if missing := accessProblems(byNamespace); len(missing) > 0 {
		if len(sentences) == 0 {
			condition.Status, condition.Reason = metav1.ConditionFalse, contract.ReasonAccessUnavailable
		}
		sentences = append(sentences, missing...)
	}
	if good := sorted(namespaces[inPlace]); len(good) > 0 {
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

// group says in one sentence each what the given namespaces have in common.
func group(byNamespace map[string]outcome, namespaces []string) []string {
	byReason := map[string][]string{}
	for _, namespace := range namespaces {
		why := byNamespace[namespace].why
		byReason[why] = append(byReason[why], namespace)
	}
	sentences := make([]string, 0, len(byReason))
	for why, where := range byReason {
		sentences = append(sentences, fmt.Sprintf("In %s: the cluster %s.", kube.ListNames(sorted(where), maxNames), strings.TrimSuffix(why, ".")))
	}
	slices.Sort(sentences)
	return sentences
}

func leftOut(byNamespace map[string]outcome) []string {
	var problems []string
	for _, out := range byNamespace {
		problems = append(problems, out.properties...)
	}
	return sorted(problems)
}

func accessProblems(byNamespace map[string]outcome) []string {
	var problems []string
	for _, out := range byNamespace {
		problems = append(problems, out.access...)
	}
	return sorted(problems)
}

// blocked is the condition while no profile may be written at all.
func blocked(reason, message string) metav1.Condition {
	return metav1.Condition{
		Type:    contract.ConditionProfilesSynced,
		Status:  metav1.ConditionFalse,
		Reason:  reason,
		Message: kube.Shorten(message, maxMessageBytes),
	}
}
