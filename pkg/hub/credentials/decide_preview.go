package credentials

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"
	authv1beta1 "open-cluster-management.io/managed-serviceaccount/apis/authentication/v1beta1"
	inventoryv1alpha1 "sigs.k8s.io/cluster-inventory-api/apis/v1alpha1"

	"open-cluster-management.io/cluster-inventory-addon/pkg/contract"
	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/credentials/source"
	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/credentials/target"
	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/selection"
)

// Preview is what would happen to an account in one namespace, determined without its token,
// other accounts, and existing Secrets.
type Preview struct {
	// Names is true if the account names any namespace, and Wanted if it names this one.
	Names  bool
	Wanted bool

	// Secret is the name of the copy.
	Secret string

	// Expires is when the token expires; zero if the account does not say.
	Expires time.Time

	// Reason, one of ConditionCredentialsSynced, and Why say what prevents copying the
	// token; both are empty if nothing does.
	Reason, Why string
}

// Named returns the namespaces that an account names. does is false if it says nothing of them,
// which differs from naming none.
func Named(account *authv1beta1.ManagedServiceAccount) (namespaces []string, does bool) {
	named := source.NamedNamespaces(account)
	return named.Namespaces, named.Is
}

// PreviewOf evaluates an account for one namespace, in which the cluster is selected as
// given and has that profile, nil if there is none. Unless requireTarget is true, an account
// that names no namespaces is copied wherever its cluster is selected.
func PreviewOf(
	account *authv1beta1.ManagedServiceAccount, namespace string, requireTarget bool, selected selection.Result,
	profile *inventoryv1alpha1.ClusterProfile, now time.Time,
) Preview {
	key := types.NamespacedName{Namespace: account.Namespace, Name: account.Name}
	named := source.NamedNamespaces(account)
	preview := Preview{
		Names: len(named.Namespaces) > 0, Wanted: slices.Contains(named.Namespaces, namespace), Secret: target.Name(key),
	}
	if !named.Is && !requireTarget {
		preview.Names, preview.Wanted = true, selected.Answer == selection.Yes
	}
	if account.Status.ExpirationTimestamp != nil {
		preview.Expires = account.Status.ExpirationTimestamp.Time
	}
	if !preview.Wanted {
		return preview
	}
	decided := decideTarget(observed{key: key, now: now, known: true, account: account}, observedTarget{
		namespace: namespace, wanted: true, selection: selected, profile: profileState(profile),
	})
	preview.Reason, preview.Why = decided.reason, decided.why
	if refusal := source.ReferenceOf(account).Refusal(account.Name, now); preview.Reason == "" && refusal.Problem != "" {
		preview.Reason, preview.Why = contract.ReasonInvalidSource, refusal.Problem
	}
	return preview
}
