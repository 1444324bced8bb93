package credentials

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
	authv1beta1 "open-cluster-management.io/managed-serviceaccount/apis/authentication/v1beta1"
	inventoryv1alpha1 "sigs.k8s.io/cluster-inventory-api/apis/v1alpha1"

	"open-cluster-management.io/cluster-inventory-addon/pkg/contract"
)

// maxNameBytes is the longest name of a Secret.
const maxNameBytes = 253

// observed is what the caches say of one account and of every namespace that it
// names or that holds a copy of its token.
type observed struct {
	key types.NamespacedName // the cluster's namespace, and the account's name

	// known is true when the accounts' cache can be believed.
	known   bool
	account *authv1beta1.ManagedServiceAccount // nil when there is none that is labelled

	// silent is true when the account names no namespaces and need not: then nobody
	// expects a copy where the cluster is not published.
	silent bool

	draining bool

	// held is true while upstream's own syncer may be on: nothing is written then.
	held bool

	targets []observedTarget // by namespace
}

type observedTarget struct {
	namespace string

	// wanted is true when the account is to be copied there, as far as the account
	// goes.
	wanted    bool
	selection Selection
	profile   observedProfile

	// rivals are the other accounts that would be copied there under the same
	// name.
	rivals []types.NamespacedName

	// present is true when there is a copy, as far as is known.
	present bool
}

// observedProfile is the ClusterProfile of a pair. The zero value: there is none
// that may own a copy, or not yet.
type observedProfile struct {
	owner types.UID // of ours
	name  string

	// why is, when there can be no copy beside the profile that is there, a
	// fragment of a sentence about the cluster.
	why string
}

// judgeProfile looks at a pair's profile; nil: there is none.
func judgeProfile(profile *inventoryv1alpha1.ClusterProfile, cluster string) observedProfile {
	switch {
	case profile == nil:
		return observedProfile{}
	case profile.Spec.ClusterManager.Name != contract.ClusterManagerName:
		return observedProfile{why: fmt.Sprintf("has a ClusterProfile of cluster manager %q in its place", profile.Spec.ClusterManager.Name)}
	case profile.DeletionTimestamp != nil:
		return observedProfile{why: "has a ClusterProfile there that is being deleted and held by finalizers " + strings.Join(profile.Finalizers, ", ")}
	case profile.Labels[contract.LabelManagedBy] != contract.ManagedBy, profile.Labels[contract.LabelClusterName] != cluster:
		return observedProfile{} // about to be adopted or put right
	default:
		return observedProfile{owner: profile.UID, name: profile.Name}
	}
}

// action is what is to be done about one account in one namespace.
type action int

const (
	// leave: neither make nor change nor delete anything.
	leave action = iota
	// withdraw: delete the copy, if there is one.
	withdraw
	// maintain: keep a copy that is there true, but make none.
	maintain
	// publish: there must be a copy.
	publish
)

// decision is what follows for one namespace.
type decision struct {
	namespace string
	action    action
	profile   observedProfile

	// reason and why say, for people, what keeps the copy from being there; reason
	// is empty when there is nothing to say.
	reason string
	why    string
}

// decide goes through what always forbids a copy, what forbids one there, and what
// cannot be told yet, in this order.
func decide(o observed, t observedTarget) decision {
	d := decision{namespace: t.namespace, profile: t.profile}
	d.action, d.reason, d.why = judge(o, t)
	if o.silent && d.reason == contract.ReasonTargetNotEntitled {
		d.reason, d.why = "", ""
	}
	return d
}

func judge(o observed, t observedTarget) (what action, reason, why string) {
	switch {
	case o.draining:
		return withdraw, "", ""
	case o.known && (o.account == nil || o.account.DeletionTimestamp != nil || !t.wanted):
		return withdraw, "", ""
	case !isNamespace(t.namespace):
		return leave, contract.ReasonTargetNotEntitled, "that is no name of a namespace"
	case len(copyName(o.key)) > maxNameBytes:
		return withdraw, contract.ReasonNameTooLong, fmt.Sprintf("the Secret's name would have %d bytes, and %d are allowed; name the account shorter", len(copyName(o.key)), maxNameBytes)
	case t.selection.Answer == No:
		return withdraw, contract.ReasonTargetNotEntitled, "the cluster " + t.selection.Why
	case t.profile.why != "":
		return withdraw, contract.ReasonTargetNotEntitled, "the cluster " + t.profile.why
	case len(t.rivals) > 0:
		return withdraw, contract.ReasonNameCollision, fmt.Sprintf("the Secret %s would also be that of %s; rename all but one of these accounts", copyName(o.key), accountNames(t.rivals))
	case !o.known:
		return leave, "", ""
	case o.held:
		return leave, "", ""
	case t.selection.Answer == Unknown:
		return maintain, contract.ReasonSelectionUnknown, "the cluster " + t.selection.Why
	case t.profile.owner == "":
		return maintain, contract.ReasonTargetNotEntitled, "the cluster's ClusterProfile is not there yet"
	default:
		return publish, "", ""
	}
}

func isNamespace(name string) bool { return len(validation.IsDNS1123Label(name)) == 0 }

func accountNames(accounts []types.NamespacedName) string {
	names := make([]string, 0, len(accounts))
	for _, account := range accounts {
		names = append(names, fmt.Sprintf("account %s of cluster %s", account.Name, account.Namespace))
	}
	slices.Sort(names)
	return strings.Join(names, ", ")
}

// copyName is the name of an account's copies: what an exec plugin that knows
// cluster and account asks for.
func copyName(account types.NamespacedName) string {
	return account.Namespace + "-" + account.Name
}

// copyKey is an account's copy in one namespace.
func copyKey(account types.NamespacedName, namespace string) types.NamespacedName {
	return types.NamespacedName{Namespace: namespace, Name: copyName(account)}
}

// namedNamespaces are those an account names to be copied to; named is false when
// it is silent.
func namedNamespaces(account *authv1beta1.ManagedServiceAccount) (namespaces []string, named bool) {
	list, named := account.Annotations[contract.AnnotationSyncToNamespaces]
	for _, namespace := range strings.Split(list, ",") {
		if namespace = strings.TrimSpace(namespace); namespace != "" {
			namespaces = append(namespaces, namespace)
		}
	}
	slices.Sort(namespaces)
	return slices.Compact(namespaces), named
}

// isLabelled tells whether an account may be copied at all.
func isLabelled(account *authv1beta1.ManagedServiceAccount) bool {
	return account.Labels[contract.LabelSyncToProfile] == "true"
}

// accountOf returns the account a Secret says it is a copy of. ok is false when
// it does not say so in every way a copy does.
func accountOf(meta metav1.Object) (account types.NamespacedName, ok bool) {
	labels, annotations := meta.GetLabels(), meta.GetAnnotations()
	account = types.NamespacedName{Namespace: annotations[contract.AnnotationSourceCluster], Name: annotations[contract.AnnotationSourceAccount]}
	ok = labels[contract.LabelManagedBy] == contract.ManagedBy && labels[contract.LabelCredential] == "true" &&
		account.Namespace != "" && account.Name != "" && meta.GetName() == copyName(account)
	return account, ok
}

func copyLabels() map[string]string {
	return map[string]string{contract.LabelManagedBy: contract.ManagedBy, contract.LabelCredential: "true"}
}

func copyAnnotations(account types.NamespacedName, expires time.Time) map[string]string {
	return map[string]string{
		contract.AnnotationSourceCluster: account.Namespace,
		contract.AnnotationSourceAccount: account.Name,
		contract.AnnotationExpires:       expires.UTC().Format(time.RFC3339),
	}
}

func owners(profile observedProfile) []metav1.OwnerReference {
	return []metav1.OwnerReference{{
		APIVersion: inventoryv1alpha1.GroupVersion.String(),
		Kind:       "ClusterProfile",
		Name:       profile.name,
		UID:        profile.owner,
	}}
}

// ownerOf returns the UID of the one profile that owns a copy, or "".
func ownerOf(secret *corev1.Secret) types.UID {
	if len(secret.OwnerReferences) == 1 && secret.OwnerReferences[0].Kind == "ClusterProfile" {
		return secret.OwnerReferences[0].UID
	}
	return ""
}

// desiredCopy is an account's copy as it is made.
func desiredCopy(account types.NamespacedName, namespace string, profile observedProfile, c content) *corev1.Secret {
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Namespace:       namespace,
			Name:            copyName(account),
			Labels:          copyLabels(),
			Annotations:     copyAnnotations(account, c.expires),
			OwnerReferences: owners(profile),
		},
		Type: corev1.SecretTypeOpaque,
		Data: c.data(),
	}
}

// isRight tells whether a copy is as it should be. Labels and annotations of
// others do not matter; a profile that cannot be told may be any.
func isRight(have *corev1.Secret, account types.NamespacedName, profile observedProfile, c content) bool {
	return apiequality.Semantic.DeepEqual(have.Data, c.data()) &&
		contains(have.Labels, copyLabels()) && contains(have.Annotations, copyAnnotations(account, c.expires)) &&
		(profile.owner == "" || apiequality.Semantic.DeepEqual(have.OwnerReferences, owners(profile)))
}

// mustBeReplaced tells whether a copy cannot be changed into what it should be.
func mustBeReplaced(have *corev1.Secret) bool {
	return have.Type != corev1.SecretTypeOpaque || have.Immutable != nil && *have.Immutable
}

func contains(have, want map[string]string) bool {
	for key, value := range want {
		if have[key] != value {
			return false
		}
	}
	return true
}

// copyPatch is the JSON patch that makes a copy what it should be. The API server
// refuses it with a conflict unless the copy is still at that version, so the
// copy's labels and annotations are those given.
func copyPatch(resourceVersion string, labels, annotations map[string]string, account types.NamespacedName, profile observedProfile, c content) ([]byte, error) {
	patch := []operation{
		{"replace", "/metadata/resourceVersion", resourceVersion},
		{"add", "/data", c.data()},
		{"add", "/metadata/labels", merged(labels, copyLabels())},
		{"add", "/metadata/annotations", merged(annotations, copyAnnotations(account, c.expires))},
	}
	if profile.owner != "" {
		patch = append(patch, operation{"add", "/metadata/ownerReferences", owners(profile)})
	}
	return json.Marshal(patch)
}

// releasePatch is the JSON patch that takes every finalizer off a copy, so that
// it goes when it is deleted.
func releasePatch(resourceVersion string) ([]byte, error) {
	return json.Marshal([]operation{
		{"replace", "/metadata/resourceVersion", resourceVersion},
		{"add", "/metadata/finalizers", []string{}},
	})
}

// operation is one step of a JSON patch (RFC 6902).
type operation struct {
	Op    string `json:"op"`
	Path  string `json:"path"`
	Value any    `json:"value"`
}

func merged(have, want map[string]string) map[string]string {
	all := maps.Clone(want)
	for key, value := range have {
		if _, ours := all[key]; !ours {
			all[key] = value
		}
	}
	return all
}
