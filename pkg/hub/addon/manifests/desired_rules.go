package manifests

import (
	"encoding/json"
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	workv1 "open-cluster-management.io/api/work/v1"

	"open-cluster-management.io/cluster-inventory-addon/pkg/contract"
)

// availableRules make a ManifestWork available only when its agent is: otherwise existence
// would suffice, and a rollout would continue with an image that cannot be pulled.
//
// The work agent evaluates the rules of a new generation on the existing objects, before it
// applies that generation. Without the content in the rules, the old agent would count as
// the new one for a moment, which is enough for a rollout to continue.
func availableRules(agent *appsv1.Deployment) []workv1.ConditionRule {
	const (
		annotations = "object.metadata.annotations"
		generation  = "object.metadata.generation"
		status      = "object.status"
	)
	noted := fmt.Sprintf("has(%s) && '%s' in %[1]s", annotations, contract.AnnotationContent)
	content := "!(" + noted + ")"
	if value, ok := agent.Annotations[contract.AnnotationContent]; ok {
		content = fmt.Sprintf("%s && %s['%s'] == '%s'", noted, annotations, contract.AnnotationContent, value)
	}
	return []workv1.ConditionRule{{
		Condition: workv1.ManifestAvailable,
		Type:      workv1.CelConditionExpressionsType,
		CelExpressions: []string{
			content,
			fmt.Sprintf("has(%s) && has(%[1]s.observedGeneration) && %[1]s.observedGeneration >= %s", status, generation),
			fmt.Sprintf("has(%s.updatedReplicas) && %[1]s.updatedReplicas >= 1", status),
			fmt.Sprintf("has(%s.availableReplicas) && %[1]s.availableReplicas >= 1", status),
		},
	}}
}

// WithRules adds the rules to the options of a ManifestWork with these manifests. Without
// an agent, it adds nothing.
func WithRules(
	options []workv1.ManifestConfigOption, manifests []workv1.Manifest,
) ([]workv1.ManifestConfigOption, error) {
	agent, err := agentIn(manifests)
	if err != nil || agent == nil {
		return options, err
	}
	ruled := slices.Clone(options)
	for i := range ruled {
		if ruled[i].ResourceIdentifier == AgentDeployment(anyNamespace) {
			ruled[i].ConditionRules = availableRules(agent)
		}
	}
	return ruled, nil
}

// withoutRules reverses WithRules. Options without rules may be shared, and are not
// modified.
func withoutRules(options []workv1.ManifestConfigOption) []workv1.ManifestConfigOption {
	for i := range options {
		if options[i].ResourceIdentifier == AgentDeployment(anyNamespace) && options[i].ConditionRules != nil {
			options[i].ConditionRules = nil
		}
	}
	return options
}

// agentIn returns the agent's Deployment among manifests, or nil.
func agentIn(manifests []workv1.Manifest) (*appsv1.Deployment, error) {
	for _, manifest := range manifests {
		var identity metav1.PartialObjectMetadata
		if err := json.Unmarshal(manifest.Raw, &identity); err != nil {
			return nil, err
		}
		if identity.Kind == "Deployment" && identity.Name == AgentName {
			return &appsv1.Deployment{ObjectMeta: identity.ObjectMeta}, nil
		}
	}
	return nil, nil
}
