package target

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	inventoryv1alpha1 "sigs.k8s.io/cluster-inventory-api/apis/v1alpha1"

	"open-cluster-management.io/cluster-inventory-addon/pkg/contract"
)

// hasUpstreamLabel reports whether a Secret has the label of managed-serviceaccount's own
// syncer of tokens.
func hasUpstreamLabel(have *corev1.Secret) bool {
	_, labelled := have.Labels[contract.LabelUpstreamSynced]
	return labelled
}

// isUpstreams reports whether a Secret claims to be a copy that upstream's syncer created or
// has taken over. That proves nothing: any user who may write Secrets may label them.
func isUpstreams(have *corev1.Secret) bool {
	_, isOurs := SourceOf(have)
	return !isOurs && have.Labels[contract.LabelUpstreamSynced] == have.Name
}

// validateUpstreams returns why a Secret that is labelled as upstream's copy must not become
// this addon's, as the end of a sentence; "" means that it may. The content that upstream's
// syncer writes is known exactly (managed-serviceaccount v0.10.0,
// pkg/addon/manager/controller/clusterprofile_cred_syncer.go), and nothing else is taken
// over, so that no user loses a Secret because of a label. The account's right to a copy
// there was decided before.
func validateUpstreams(have *corev1.Secret, w Want) string {
	managedBy := have.Labels[contract.LabelManagedBy]
	switch {
	case !w.Create || w.Owner.UID == "":
		return "the cluster is not known to be published there"
	case have.DeletionTimestamp != nil:
		return "it is being deleted"
	case len(have.Finalizers) > 0:
		return "finalizers hold it: " + strings.Join(have.Finalizers, ", ")
	case have.Type != corev1.SecretTypeOpaque:
		return fmt.Sprintf("it is of type %.60q", have.Type)
	case have.Immutable != nil && *have.Immutable:
		return "it is immutable"
	case managedBy != "" && managedBy != contract.ManagedBy:
		return fmt.Sprintf("%.60q manages it", managedBy)
	case !isOwnedBy(have.OwnerReferences, w.Owner):
		return "its one owner is not the cluster's ClusterProfile there"
	case !hasKeys(have.Data, contract.CredentialTokenKey, contract.CredentialCAKey):
		return "it holds something else than a token and its CA"
	case !w.Token.IssuedToTheSame(have.Data[contract.CredentialTokenKey]):
		return "its token is not of this account"
	default:
		return ""
	}
}

// isOwnedBy reports whether a profile is the only owner.
func isOwnedBy(owners []metav1.OwnerReference, profile Owner) bool {
	if len(owners) != 1 {
		return false
	}
	group, _, _ := strings.Cut(owners[0].APIVersion, "/")
	return group == inventoryv1alpha1.GroupVersion.Group &&
		owners[0].Kind == "ClusterProfile" && owners[0].UID == profile.UID
}

// hasKeys reports whether the data has exactly these keys.
func hasKeys(data map[string][]byte, keys ...string) bool {
	return len(data) == len(keys) && !slices.ContainsFunc(keys, func(key string) bool { return len(data[key]) == 0 })
}
