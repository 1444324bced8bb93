package configuration

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation"

	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/addon/manifests"
	"open-cluster-management.io/cluster-inventory-addon/pkg/kube"
)

type revisionSpec struct {
	manifests.Revision `json:",inline"`

	LogFormat string `json:"logFormat"`
}

// The log formats of agents; an AgentRevision without one means text.
const (
	logFormatText = "text"
	logFormatJSON = "json"
)

// validateRevision returns the values of an AgentRevision, and all of its errors. Its
// CustomResourceDefinition refuses most fieldErrors, but not the manifests of another version
// of the manager.
func validateRevision(spec map[string]any) (manifests.Values, fieldErrors) {
	var (
		decoded revisionSpec
		wrong   fieldErrors
	)
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(spec, &decoded); err != nil {
		wrong.add("spec", "%v", err)
		return manifests.Values{}, wrong
	}
	if !slices.Contains(manifests.Revisions(), decoded.Manifests) {
		wrong.add("spec.manifests", "%q is not one of this manager's revisions, which are %s",
			decoded.Manifests, strings.Join(manifests.Revisions(), " and "))
	}
	if decoded.Image == "" || strings.ContainsAny(decoded.Image, " \t\r\n") {
		wrong.add("spec.image", "%q is not an image", decoded.Image)
	}
	switch corev1.PullPolicy(decoded.PullPolicy) {
	case corev1.PullAlways, corev1.PullIfNotPresent, corev1.PullNever:
	default:
		wrong.add("spec.imagePullPolicy", "%q is not one of %s, %s, %s", decoded.PullPolicy,
			corev1.PullAlways, corev1.PullIfNotPresent, corev1.PullNever)
	}
	for _, secret := range decoded.PullSecrets {
		wrong.expect("Secret name", "spec.imagePullSecrets", secret, validation.IsDNS1123Subdomain(secret))
	}
	namespace := decoded.InstallNamespace
	wrong.expect("namespace name", "spec.installNamespace", namespace, validation.IsDNS1123Label(namespace))
	if decoded.ClaimLimit < 0 {
		wrong.add("spec.claimLimit", "%d is negative", decoded.ClaimLimit)
	}
	if decoded.LogLevel < 0 {
		wrong.add("spec.logLevel", "%d is negative", decoded.LogLevel)
	}
	if !slices.Contains([]string{"", logFormatText, logFormatJSON}, decoded.LogFormat) {
		wrong.add("spec.logFormat", "%q is not %s or %s", decoded.LogFormat, logFormatText, logFormatJSON)
	}
	for _, pattern := range decoded.ReservedProperties {
		if !kube.IsPattern(pattern) || strings.ContainsAny(pattern, ",\" \t\r\n") { // agents split them at commas
			wrong.add("spec.reservedProperties", "%q is not a pattern of names", pattern)
		}
	}
	validateNetworkPolicy(decoded.NetworkPolicy, &wrong)
	validateUsers(decoded.Users, &wrong)
	if len(wrong) > 0 {
		return manifests.Values{}, wrong
	}
	return manifests.Values{Revision: decoded.Revision, JSONLogs: decoded.LogFormat == logFormatJSON}, nil
}

func validateUsers(given manifests.PodUsers, wrong *fieldErrors) {
	const field = "spec.podSecurityContext"
	if user := given.RunAsUser; user != nil && *user < 1 {
		wrong.add(field+".runAsUser", "%d is root, or no user", *user)
	}
	if group := given.RunAsGroup; group != nil && *group < 0 {
		wrong.add(field+".runAsGroup", "%d is negative", *group)
	}
	if group := given.FSGroup; group != nil && *group < 0 {
		wrong.add(field+".fsGroup", "%d is negative", *group)
	}
}
