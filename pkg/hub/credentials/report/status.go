package report

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"open-cluster-management.io/cluster-inventory-addon/pkg/contract"
	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/conditions"
	"open-cluster-management.io/cluster-inventory-addon/pkg/kube"
)

const (
	// maxMessageBytes bounds the message of CredentialsSynced.
	maxMessageBytes = 1024

	// MaxNames bounds how many names a sentence of it lists.
	MaxNames = 10

	// copiedMessage is the only message of the condition while nothing is wrong, so that
	// copying an account writes no addon. The copies' annotations show where they are.
	copiedMessage = "All tokens of this cluster's accounts are copied."

	// incomplete is how long to wait for the problems of all accounts before those of some
	// are written.
	incomplete = 30 * time.Second
)

// order of the reasons: the first of several becomes the condition's.
var order = []string{
	contract.ReasonDraining,
	contract.ReasonUpstreamSyncerOn,
	contract.ReasonNameCollision,
	contract.ReasonNameTooLong,
	contract.ReasonForeignSecret,
	contract.ReasonInvalidSource,
	contract.ReasonNoTarget,
	contract.ReasonTargetNotEntitled,
	contract.ReasonContested,
	contract.ReasonCopyFailed,
	contract.ReasonSelectionUnknown,
}

// general reasons concern every account alike.
var general = map[string]string{
	contract.ReasonDraining: "Copies of tokens are being removed, and none are created: " +
		"the manager runs with credentials.mode=draining.",
	contract.ReasonUpstreamSyncerOn: "No copies are written: ClusterRole " + contract.UpstreamSyncerClusterRole +
		" says that managed-serviceaccount's own syncer is on, which writes Secrets of the same names. " +
		"Turn its feature gate off, or, if it is off, set credentials.upstreamSyncer=off.",
}

// SyncerUnknown is the message while it is unknown whether upstream's syncer is on.
func SyncerUnknown(why string) string {
	return "No copies are written, only withdrawn: it is not known whether managed-serviceaccount's own syncer, which " +
		"writes Secrets of the same names, is on, because ClusterRole " + contract.UpstreamSyncerClusterRole + " " + why +
		". Fix that, or, if the syncer is off, set credentials.upstreamSyncer=off."
}

// CredentialsSynced summarizes the problems of a cluster's accounts in the condition on its
// addon. If those of some accounts are unknown, it can report a problem, but never that
// there is none.
func CredentialsSynced(byAccount map[string][]Problem, isComplete bool) *conditions.Desired {
	var condition *conditions.Desired
	var sentences []string
	for _, reason := range order {
		for _, sentence := range sentencesOf(reason, byAccount) {
			if condition == nil {
				condition = &conditions.Desired{Status: metav1.ConditionFalse, Reason: reason}
			}
			sentences = append(sentences, sentence)
		}
	}
	if condition != nil && condition.Reason == contract.ReasonSelectionUnknown {
		condition.Status = metav1.ConditionUnknown
	}
	switch {
	case condition == nil && !isComplete:
		return nil
	case condition == nil:
		return &conditions.Desired{Status: metav1.ConditionTrue, Reason: contract.ReasonCopied, Message: copiedMessage}
	case !isComplete:
		condition.HoldBack = incomplete
	case condition.Status == metav1.ConditionUnknown: // longer than the manager itself waits for what has vanished
		condition.HoldBack = kube.LastingAfter
	}
	condition.Message = kube.Shorten(strings.Join(sentences, " "), maxMessageBytes)
	return condition
}

// sentencesOf says, for one reason, what is wrong with which account and where.
func sentencesOf(reason string, byAccount map[string][]Problem) []string {
	var sentences []string
	for _, account := range slices.Sorted(maps.Keys(byAccount)) {
		where := map[string][]string{} // by text
		for _, p := range byAccount[account] {
			if p.Reason == reason {
				where[p.Text] = append(where[p.Text], p.Namespace)
			}
		}
		for _, text := range slices.Sorted(maps.Keys(where)) {
			sentences = append(sentences, Sentence(reason, account, where[text], text))
		}
	}
	return slices.Compact(sentences)
}

// Sentence says in which namespaces, if any in particular, an account is not copied, and why.
func Sentence(reason, account string, where []string, text string) string {
	if general, ok := general[reason]; ok {
		return cmp.Or(text, general)
	}
	if reason == contract.ReasonNoTarget {
		return fmt.Sprintf("Account %s is copied nowhere: name the namespaces, for instance with the annotation "+
			"%s=team-a,team-b.", account, contract.AnnotationSyncToNamespaces)
	}
	verb := "is not copied"
	switch reason {
	case contract.ReasonSelectionUnknown:
		verb = "is left as it is"
	case contract.ReasonContested:
		verb = "has contested copies"
	case contract.ReasonCopyFailed:
		verb = "could not be copied or withdrawn"
	}
	isEverywhere := func(namespace string) bool { return namespace == "" }
	if where = slices.DeleteFunc(kube.SortedNames(where), isEverywhere); len(where) > 0 {
		verb += " in " + kube.ListNames(where, MaxNames)
	}
	return fmt.Sprintf("Account %s %s: %s.", account, verb, strings.TrimSuffix(text, "."))
}
