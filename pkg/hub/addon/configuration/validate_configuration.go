package configuration

import (
	"cmp"
	"fmt"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/utils/ptr"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"

	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/addon/manifests"
)

// The variables that a configuration may set (spec.customizedVariables). Any other is an
// error: a misspelt one would silently have no effect.
const (
	variableLogLevel   = "logLevel"
	variableClaimLimit = "claimLimit"
)

const (
	maxLogLevel   = 10
	maxClaimLimit = 10000

	// maxPlacementEntries bounds node selectors and tolerations.
	maxPlacementEntries = 50

	// presetNamespace is the API's default for a configuration without an install
	// namespace. So it cannot be distinguished from an explicit one.
	presetNamespace = "open-cluster-management-agent-addon"

	// reservedPrefix starts the names of the namespaces of Kubernetes itself. Their Secrets
	// and accounts have rights on all of the spoke.
	reservedPrefix = "kube-"
)

// overrides are a configuration's changes of the settings of all agents. They are checked:
// nothing of a configuration reaches a manifest in any other way.
type overrides struct {
	// installNamespace is empty if the configuration names none.
	installNamespace string

	// claimLimit and logLevel are nil if they are not set.
	claimLimit *int
	logLevel   *int

	nodeSelector map[string]string
	tolerations  []corev1.Toleration

	// agentResources and cleanupResources are nil if they are not set.
	agentResources   *corev1.ResourceRequirements
	cleanupResources *corev1.ResourceRequirements

	registries []addonv1beta1.ImageMirror
	proxy      manifests.Proxy
}

func (o overrides) applyTo(v manifests.Values) manifests.Values {
	v.InstallNamespace = cmp.Or(o.installNamespace, v.InstallNamespace)
	v.Image = mirrored(v.Image, o.registries)
	v.ClaimLimit = ptr.Deref(o.claimLimit, v.ClaimLimit)
	v.LogLevel = ptr.Deref(o.logLevel, v.LogLevel)
	v.NodeSelector, v.Tolerations = o.nodeSelector, o.tolerations
	v.AgentResources, v.CleanupResources = o.agentResources, o.cleanupResources
	v.Proxy = o.proxy
	return v
}

// fieldErrors are those in a configuration, each with its field. They never contain values of
// fields that may hold a password.
type fieldErrors []string

func (m *fieldErrors) add(field, format string, args ...any) {
	*m = append(*m, field+": "+fmt.Sprintf(format, args...))
}

// expect adds the first of the problems that a value has as what it should be.
func (m *fieldErrors) expect(what, field, value string, problems []string) {
	if len(problems) > 0 {
		m.add(field, "%q is not a %s: %s", value, what, problems[0])
	}
}

// configurationSpec is the spec of an AddOnDeploymentConfig, with quantities that are not
// parsed yet: an error in one must name its field.
type configurationSpec struct {
	CustomizedVariables   []addonv1beta1.CustomizedVariable `json:"customizedVariables"`
	NodePlacement         *addonv1beta1.NodePlacement       `json:"nodePlacement"`
	Registries            []addonv1beta1.ImageMirror        `json:"registries"`
	ProxyConfig           addonv1beta1.ProxyConfig          `json:"proxyConfig"`
	AgentInstallNamespace string                            `json:"agentInstallNamespace"`
	ResourceRequirements  []containerResources              `json:"resourceRequirements"`
}

type containerResources struct {
	ContainerID string    `json:"containerID"`
	Resources   resources `json:"resources"`
}

type resources struct {
	Limits   map[string]any `json:"limits"`
	Requests map[string]any `json:"requests"`
	Claims   []any          `json:"claims"`
}

// validateConfiguration returns what the spec of an AddOnDeploymentConfig changes, and all of
// its errors. With any error, nothing of it may be used.
func validateConfiguration(spec map[string]any) (overrides, fieldErrors) {
	var (
		decoded configurationSpec
		wrong   fieldErrors
		result  overrides
	)
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(spec, &decoded); err != nil {
		wrong.add("spec", "%v", err)
		return overrides{}, wrong
	}
	result.installNamespace = validateNamespace(decoded.AgentInstallNamespace, &wrong)
	validateVariables(decoded.CustomizedVariables, &result, &wrong)
	if placement := decoded.NodePlacement; placement != nil {
		result.nodeSelector = validateNodeSelector(placement.NodeSelector, &wrong)
		result.tolerations = validateTolerations(placement.Tolerations, &wrong)
	}
	validateResources(decoded.ResourceRequirements, &result, &wrong)
	result.registries = validateRegistries("spec.registries", decoded.Registries, &wrong)
	result.proxy = validateProxy(decoded.ProxyConfig, &wrong)
	if len(wrong) > 0 {
		return overrides{}, wrong
	}
	return result, nil
}

func validateNamespace(name string, wrong *fieldErrors) string {
	if name == "" || name == presetNamespace {
		return ""
	}
	const field = "spec.agentInstallNamespace"
	wrong.expect("namespace name", field, name, validation.IsDNS1123Label(name))
	if name == metav1.NamespaceDefault || strings.HasPrefix(name, reservedPrefix) {
		wrong.add(field, "%q is reserved for Kubernetes", name)
	}
	return name
}

func validateVariables(variables []addonv1beta1.CustomizedVariable, result *overrides, wrong *fieldErrors) {
	for _, variable := range variables {
		switch variable.Name {
		case variableLogLevel:
			result.logLevel = validateNumber(variable, maxLogLevel, wrong)
		case variableClaimLimit:
			result.claimLimit = validateNumber(variable, maxClaimLimit, wrong)
		default:
			wrong.add(variableField(variable.Name), "is unknown; use %s or %s", variableClaimLimit, variableLogLevel)
		}
	}
}

func validateNumber(variable addonv1beta1.CustomizedVariable, most int, wrong *fieldErrors) *int {
	number, err := strconv.Atoi(variable.Value)
	if err != nil || number < 0 || number > most {
		wrong.add(variableField(variable.Name), "%q is not a whole number from 0 to %d", variable.Value, most)
	}
	return &number
}

func variableField(name string) string { return fmt.Sprintf("spec.customizedVariables[%s]", name) }

func validateNodeSelector(selector map[string]string, wrong *fieldErrors) map[string]string {
	const field = "spec.nodePlacement.nodeSelector"
	if len(selector) > maxPlacementEntries {
		wrong.add(field, "has %d labels, more than %d", len(selector), maxPlacementEntries)
		return nil
	}
	for _, key := range slices.Sorted(maps.Keys(selector)) {
		at := fmt.Sprintf("%s[%s]", field, key)
		if problems := validation.IsQualifiedName(key); len(problems) > 0 {
			wrong.add(at, "is not a label key: %s", problems[0])
		}
		wrong.expect("label value", at, selector[key], validation.IsValidLabelValue(selector[key]))
	}
	return selector
}

func validateTolerations(tolerations []corev1.Toleration, wrong *fieldErrors) []corev1.Toleration {
	const field = "spec.nodePlacement.tolerations"
	if len(tolerations) > maxPlacementEntries {
		wrong.add(field, "has %d entries, more than %d", len(tolerations), maxPlacementEntries)
		return nil
	}
	for i, toleration := range tolerations {
		validateToleration(fmt.Sprintf("%s[%d]", field, i), toleration, wrong)
	}
	return tolerations
}

// validateToleration checks what the spoke's API server would check: it would refuse the
// agent's whole Deployment because of one error.
func validateToleration(field string, toleration corev1.Toleration, wrong *fieldErrors) {
	if toleration.Key != "" {
		wrong.expect("taint key", field+".key", toleration.Key, validation.IsQualifiedName(toleration.Key))
	}
	switch toleration.Operator {
	case corev1.TolerationOpEqual, "":
		if toleration.Key == "" {
			wrong.add(field+".operator", "without a key it must be %s", corev1.TolerationOpExists)
		}
		wrong.expect("taint value", field+".value", toleration.Value, validation.IsValidLabelValue(toleration.Value))
	case corev1.TolerationOpExists:
		if toleration.Value != "" {
			wrong.add(field+".value", "must be empty with the operator %s", corev1.TolerationOpExists)
		}
	default:
		wrong.add(field+".operator", "%q is neither %s nor %s",
			toleration.Operator, corev1.TolerationOpExists, corev1.TolerationOpEqual)
	}
	switch toleration.Effect {
	case "", corev1.TaintEffectNoSchedule, corev1.TaintEffectPreferNoSchedule, corev1.TaintEffectNoExecute:
	default:
		wrong.add(field+".effect", "%q is not one of %s, %s, %s", toleration.Effect,
			corev1.TaintEffectNoSchedule, corev1.TaintEffectPreferNoSchedule, corev1.TaintEffectNoExecute)
	}
	if toleration.TolerationSeconds != nil && toleration.Effect != corev1.TaintEffectNoExecute {
		wrong.add(field+".tolerationSeconds", "needs the effect %s", corev1.TaintEffectNoExecute)
	}
}

// The containers for which resources may be set, as in a containerID.
var (
	agentContainer   = []string{"deployments", manifests.AgentName, "agent"}
	cleanupContainer = []string{"jobs", "cluster-inventory-cleanup", "cleanup"}
)

// validateResources checks every entry, even for containers that this addon does not have: one
// configuration may serve several addons. Of the entries that match a container, the last
// one wins.
func validateResources(entries []containerResources, result *overrides, wrong *fieldErrors) {
	for i, entry := range entries {
		field := fmt.Sprintf("spec.resourceRequirements[%d]", i)
		parts := strings.Split(entry.ContainerID, ":")
		if len(parts) != 3 || slices.Contains(parts, "") {
			wrong.add(field+".containerID", "%q does not consist of three parts, as in %q",
				entry.ContainerID, strings.Join(agentContainer, ":"))
			continue
		}
		required := validateRequirements(field+".resources", entry.Resources, wrong)
		if matchesContainer(parts, agentContainer) {
			result.agentResources = required
		}
		if matchesContainer(parts, cleanupContainer) {
			result.cleanupResources = required
		}
	}
}

// matchesContainer compares part by part. An asterisk stands for any characters.
func matchesContainer(pattern, container []string) bool {
	for i, part := range pattern {
		literal := strings.NewReplacer(`\`, `\\`, `?`, `\?`, `[`, `\[`).Replace(part)
		if matched, err := path.Match(literal, container[i]); err != nil || !matched {
			return false
		}
	}
	return true
}

func validateRequirements(field string, given resources, wrong *fieldErrors) *corev1.ResourceRequirements {
	if len(given.Claims) > 0 {
		wrong.add(field+".claims", "are not supported")
	}
	required := &corev1.ResourceRequirements{
		Limits:   validateQuantities(field+".limits", given.Limits, wrong),
		Requests: validateQuantities(field+".requests", given.Requests, wrong),
	}
	for _, name := range slices.Sorted(maps.Keys(required.Requests)) {
		request, limit := required.Requests[name], required.Limits[name]
		if _, limited := required.Limits[name]; limited && request.Cmp(limit) > 0 {
			wrong.add(fmt.Sprintf("%s.requests[%s]", field, name), "%s is more than the limit %s", &request, &limit)
		}
	}
	return required
}

func validateQuantities(field string, given map[string]any, wrong *fieldErrors) corev1.ResourceList {
	var list corev1.ResourceList
	for _, name := range slices.Sorted(maps.Keys(given)) {
		at := fmt.Sprintf("%s[%s]", field, name)
		switch kind := corev1.ResourceName(name); kind {
		case corev1.ResourceCPU, corev1.ResourceMemory, corev1.ResourceEphemeralStorage:
			quantity, err := resource.ParseQuantity(fmt.Sprint(given[name]))
			if err != nil {
				wrong.add(at, "%q is not a quantity: %v", fmt.Sprint(given[name]), err)
				continue
			}
			if quantity.Sign() < 0 {
				wrong.add(at, "%s is negative", &quantity)
			}
			if list == nil {
				list = corev1.ResourceList{}
			}
			list[kind] = quantity
		default:
			wrong.add(at, "is not one of %s, %s, %s",
				corev1.ResourceCPU, corev1.ResourceMemory, corev1.ResourceEphemeralStorage)
		}
	}
	return list
}
