package policies

import (
	"regexp"
	"slices"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// byManager is the condition of a policy that restricts a manager alone.
var byManager = regexp.MustCompile(
	`^request\.userInfo\.username == 'system:serviceaccount:([a-z0-9-]+):cluster-inventory-manager'$`)

// Validate says why the API server does not enforce the policy as the chart installs it, or "". Either
// object is nil if there is none. The namespace is the manager's; "" means that it is unknown.
func (p Policy) Validate(
	policy *admissionregistrationv1.ValidatingAdmissionPolicy,
	binding *admissionregistrationv1.ValidatingAdmissionPolicyBinding, namespace string,
) string {
	switch {
	case policy == nil:
		return "it does not exist"
	case policy.Spec.FailurePolicy == nil || *policy.Spec.FailurePolicy != admissionregistrationv1.Fail:
		return "its failurePolicy is not Fail"
	case !p.matches(policy.Spec.MatchConstraints):
		return "its matchConstraints are not the chart's"
	case !p.hasConditions(policy.Spec.MatchConditions, namespace):
		return "its matchConditions are not the chart's"
	case len(policy.Spec.Validations) == 0:
		return "it validates nothing"
	case binding == nil:
		return "its ValidatingAdmissionPolicyBinding does not exist"
	case binding.Spec.PolicyName != p.Name,
		!slices.Contains(binding.Spec.ValidationActions, admissionregistrationv1.Deny):
		return "its ValidatingAdmissionPolicyBinding does not deny"
	case binding.Spec.MatchResources != nil, !equality.Semantic.DeepEqual(binding.Spec.ParamRef, p.params):
		return "its ValidatingAdmissionPolicyBinding is not the chart's"
	}
	return ""
}

// matches compares what the API server matches. The version of a policy that it stores has
// defaults, which match everything.
func (p Policy) matches(found *admissionregistrationv1.MatchResources) bool {
	if found == nil || len(found.ResourceRules) != 1 || len(found.ExcludeResourceRules) > 0 ||
		!matchesAll(found.NamespaceSelector) || !matchesAll(found.ObjectSelector) {
		return false
	}
	wanted := admissionregistrationv1.NamedRuleWithOperations{ResourceNames: p.resources, RuleWithOperations: p.rule}
	rule := *found.ResourceRules[0].DeepCopy()
	if rule.Scope != nil && *rule.Scope == admissionregistrationv1.AllScopes {
		rule.Scope = nil
	}
	return equality.Semantic.DeepEqual(rule, wanted)
}

func matchesAll(selector *metav1.LabelSelector) bool {
	return selector == nil || len(selector.MatchLabels)+len(selector.MatchExpressions) == 0
}

func (p Policy) hasConditions(found []admissionregistrationv1.MatchCondition, namespace string) bool {
	var expressions []string
	for _, condition := range found {
		expressions = append(expressions, condition.Expression)
	}
	if p.everyone {
		return slices.Equal(expressions, p.conditions)
	}
	if len(expressions) != 1 {
		return false
	}
	match := byManager.FindStringSubmatch(expressions[0])
	return match != nil && (namespace == "" || match[1] == namespace)
}

// isAnswer reports whether the answer to an attempt says something about the policy. Acceptance (nil)
// proves that it is not enforced, a refusal that names it the contrary. Another refusal proves
// nothing, because a right or an API is missing or something else refused the request first; what was
// read counts then. Everything else is no answer. A refusal has any code and reason that the policy
// chooses, and names the policy only in the API server's message.
func isAnswer(policy string, err error) bool {
	return err == nil || strings.Contains(err.Error(), "ValidatingAdmissionPolicy '"+policy+"'") ||
		meta.IsNoMatchError(err) || apierrors.IsForbidden(err) || apierrors.IsNotFound(err) ||
		apierrors.IsInvalid(err) || apierrors.IsBadRequest(err)
}

// IsNeeded reports whether one of the manager's ClusterRoles grants what the policy limits. Some of
// them may be nil.
func (p Policy) IsNeeded(roles ...*rbacv1.ClusterRole) bool {
	grants := func(rule rbacv1.PolicyRule) bool {
		return slices.Contains(rule.APIGroups, p.Limits.Group) && slices.Contains(rule.Resources, p.Limits.Resource) &&
			slices.Contains(rule.Verbs, p.Limits.Verb) &&
			(p.Limits.Name == "" || slices.Contains(rule.ResourceNames, p.Limits.Name))
	}
	return p.Limits == nil || slices.ContainsFunc(roles, func(role *rbacv1.ClusterRole) bool {
		return role != nil && slices.ContainsFunc(role.Rules, grants)
	})
}
