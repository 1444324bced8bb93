package target

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	inventoryv1alpha1 "sigs.k8s.io/cluster-inventory-api/apis/v1alpha1"

	"open-cluster-management.io/cluster-inventory-addon/pkg/contract"
	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/credentials/bearer"
)

// MaxNameBytes is the longest name of a Secret.
const MaxNameBytes = 253

// Name returns the name of an account's copies: the name that an exec plugin derives from
// cluster and account.
func Name(account types.NamespacedName) string { return account.Namespace + "-" + account.Name }

// Key returns the key of an account's copy in one namespace.
func Key(account types.NamespacedName, namespace string) types.NamespacedName {
	return types.NamespacedName{Namespace: namespace, Name: Name(account)}
}

// Owner is the ClusterProfile that owns a copy. The zero value is unknown.
type Owner struct {
	UID  types.UID
	Name string
}

// Want describes an account's copy in one namespace.
type Want struct {
	Account   types.NamespacedName
	Namespace string
	Token     bearer.Token

	// Owner of the copy; while it is unknown, the copy's owner is left as it is.
	Owner Owner

	// Create allows creating a missing copy, replacing one that cannot be changed, and taking over one of
	// upstream's syncer.
	Create bool

	// MayCopy is asked right before a missing copy is created, one is replaced, or one is changed that
	// this process has not written before: only its labels say that it is a copy.
	MayCopy func() bool

	// Revoked reports whether the right to the copy has ended in the meantime. It is called before each write.
	Revoked func() bool
}

func (w Want) key() types.NamespacedName { return Key(w.Account, w.Namespace) }

func (w Want) data() map[string][]byte {
	return map[string][]byte{contract.CredentialTokenKey: w.Token.Token, contract.CredentialCAKey: w.Token.CA}
}

func (w Want) annotations() map[string]string {
	return map[string]string{
		contract.AnnotationSourceCluster: w.Account.Namespace,
		contract.AnnotationSourceAccount: w.Account.Name,
		contract.AnnotationExpires:       w.Token.Expires.UTC().Format(time.RFC3339),
	}
}

func (w Want) owners() []metav1.OwnerReference {
	return []metav1.OwnerReference{{
		APIVersion: inventoryv1alpha1.GroupVersion.String(),
		Kind:       "ClusterProfile",
		Name:       w.Owner.Name,
		UID:        w.Owner.UID,
	}}
}

// Labels are on every copy, and select copies.
func Labels() map[string]string {
	return map[string]string{contract.LabelManagedBy: contract.ManagedBy, contract.LabelCredential: "true"}
}

// SourceOf returns the account whose copy a Secret claims to be. ok is false unless it does
// so in every way a copy does.
func SourceOf(meta metav1.Object) (account types.NamespacedName, ok bool) {
	annotations := meta.GetAnnotations()
	account = types.NamespacedName{
		Namespace: annotations[contract.AnnotationSourceCluster],
		Name:      annotations[contract.AnnotationSourceAccount],
	}
	ok = contains(meta.GetLabels(), Labels()) && account.Namespace != "" && account.Name != "" &&
		meta.GetName() == Name(account)
	return account, ok
}

// isUnmarked reports whether a Secret is an account's copy, but another client has removed its
// labels or annotations while no manager ran. The API server knows who wrote it, and its one owner
// says whose token it holds.
func isUnmarked(secret *corev1.Secret, account types.NamespacedName, writer string) bool {
	return secret.Name == Name(account) && !hasUpstreamLabel(secret) &&
		ownerOf(secret) != "" && secret.OwnerReferences[0].Name == account.Namespace && isWrittenBy(secret, writer)
}

// isWrittenBy reports whether the API server knows that a writer wrote a Secret.
func isWrittenBy(secret *corev1.Secret, writer string) bool {
	return slices.ContainsFunc(secret.ManagedFields, func(entry metav1.ManagedFieldsEntry) bool {
		return entry.Manager == writer
	})
}

// hasMark reports whether a Secret has at least one of the marks by which the chart's policy recognizes copies.
func hasMark(secret *corev1.Secret, writer string) bool {
	_, isLabeled := secret.Labels[contract.LabelCredential]
	_, isAnnotated := secret.Annotations[contract.AnnotationSourceCluster]
	return isLabeled || isAnnotated || isWrittenBy(secret, writer)
}

// DesiredCopy returns a copy as it is created.
func DesiredCopy(w Want) *corev1.Secret {
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Namespace:       w.Namespace,
			Name:            Name(w.Account),
			Labels:          Labels(),
			Annotations:     w.annotations(),
			OwnerReferences: w.owners(),
		},
		Type: corev1.SecretTypeOpaque,
		Data: w.data(),
	}
}

// step is what to do with the Secret that has a copy's name.
type step int

const (
	leaveForeign step = iota // it is not a copy
	keep                     // it is as it should be
	patch                    // it differs, or is upstream's and may be taken over
	replace                  // it cannot be changed into what it should be
)

// nextStep compares the existing Secret with the desired copy. isCopy says whether it is
// the account's copy.
func nextStep(have *corev1.Secret, isCopy bool, w Want) step {
	switch {
	case !isCopy && isUpstreams(have) && validateUpstreams(have, w) == "":
		return patch
	case !isCopy:
		return leaveForeign
	case have.Type != corev1.SecretTypeOpaque, have.Immutable != nil && *have.Immutable, have.DeletionTimestamp != nil:
		return replace
	case matches(have, w):
		return keep
	default:
		return patch
	}
}

// matches reports whether a copy is in its desired state. Other labels and annotations do
// not matter, except for upstream's: its syncer would consider the copy its own.
func matches(have *corev1.Secret, w Want) bool {
	return !hasUpstreamLabel(have) && apiequality.Semantic.DeepEqual(have.Data, w.data()) &&
		contains(have.Labels, Labels()) && contains(have.Annotations, w.annotations()) &&
		(w.Owner.UID == "" || apiequality.Semantic.DeepEqual(have.OwnerReferences, w.owners()))
}

func contains(have, want map[string]string) bool {
	for key, value := range want {
		if have[key] != value {
			return false
		}
	}
	return true
}

// ownerOf returns the UID of the one profile that owns a copy, or "".
func ownerOf(secret *corev1.Secret) types.UID {
	if len(secret.OwnerReferences) == 1 && secret.OwnerReferences[0].Kind == "ClusterProfile" {
		return secret.OwnerReferences[0].UID
	}
	return ""
}

// copyPatch returns the fields of the JSON merge patch that brings a copy to its desired state. have is
// the existing Secret, whose other data and upstream's label are removed; nil means that it is what
// this process wrote.
func copyPatch(have *corev1.Secret, w Want) map[string]any {
	data, labels := map[string]any{}, map[string]any{}
	if have != nil {
		for key := range have.Data {
			data[key] = nil
		}
		if hasUpstreamLabel(have) {
			labels[contract.LabelUpstreamSynced] = nil
		}
	}
	for key, value := range w.data() {
		data[key] = value
	}
	for key, value := range Labels() {
		labels[key] = value
	}
	metadata := map[string]any{"labels": labels, "annotations": w.annotations()}
	if w.Owner.UID != "" {
		metadata["ownerReferences"] = w.owners()
	}
	return map[string]any{"metadata": metadata, "data": data}
}
