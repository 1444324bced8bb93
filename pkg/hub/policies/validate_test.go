package policies

import (
	"context"
	"errors"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"
)

// installed are a policy and its binding as the API server stores what the chart has.
func installed(p Policy) (
	*admissionregistrationv1.ValidatingAdmissionPolicy, *admissionregistrationv1.ValidatingAdmissionPolicyBinding,
) {
	stored := admissionregistrationv1.NamedRuleWithOperations{
		ResourceNames: p.resources, RuleWithOperations: *p.rule.DeepCopy(),
	}
	stored.Scope = ptr.To(admissionregistrationv1.AllScopes)
	policy := &admissionregistrationv1.ValidatingAdmissionPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: p.Name},
		Spec: admissionregistrationv1.ValidatingAdmissionPolicySpec{
			FailurePolicy: ptr.To(admissionregistrationv1.Fail),
			MatchConstraints: &admissionregistrationv1.MatchResources{
				NamespaceSelector: &metav1.LabelSelector{}, ObjectSelector: &metav1.LabelSelector{},
				MatchPolicy:   ptr.To(admissionregistrationv1.Equivalent),
				ResourceRules: []admissionregistrationv1.NamedRuleWithOperations{stored},
			},
			Validations: []admissionregistrationv1.Validation{{Expression: "false"}},
		},
	}
	conditions := p.conditions
	if !p.everyone {
		conditions = []string{"request.userInfo.username == 'system:serviceaccount:ns:cluster-inventory-manager'"}
	}
	for _, expression := range conditions {
		policy.Spec.MatchConditions = append(policy.Spec.MatchConditions,
			admissionregistrationv1.MatchCondition{Name: "c", Expression: expression})
	}
	return policy, &admissionregistrationv1.ValidatingAdmissionPolicyBinding{
		Spec: admissionregistrationv1.ValidatingAdmissionPolicyBindingSpec{
			PolicyName: p.Name, ParamRef: p.params.DeepCopy(),
			ValidationActions: []admissionregistrationv1.ValidationAction{admissionregistrationv1.Deny},
		},
	}
}

func TestValidate(t *testing.T) {
	const (
		constraints = "its matchConstraints are not the chart's"
		conditions  = "its matchConditions are not the chart's"
		denies      = "its ValidatingAdmissionPolicyBinding does not deny"
		another     = "its ValidatingAdmissionPolicyBinding is not the chart's"
	)
	type (
		policySpec  = admissionregistrationv1.ValidatingAdmissionPolicySpec
		bindingSpec = admissionregistrationv1.ValidatingAdmissionPolicyBindingSpec
	)
	some := &metav1.LabelSelector{MatchLabels: map[string]string{"a": "b"}}
	for name, test := range map[string]struct {
		change func(*policySpec, *bindingSpec)
		want   string
	}{
		"as installed": {func(*policySpec, *bindingSpec) {}, ""},
		"errors are ignored": {func(p *policySpec, _ *bindingSpec) {
			p.FailurePolicy = ptr.To(admissionregistrationv1.Ignore)
		}, "its failurePolicy is not Fail"},
		"nothing is matched": {func(p *policySpec, _ *bindingSpec) { p.MatchConstraints = nil }, constraints},
		"another resource is matched": {func(p *policySpec, _ *bindingSpec) {
			p.MatchConstraints.ResourceRules[0].Resources = []string{"others"}
		}, constraints},
		"a name is matched": {func(p *policySpec, _ *bindingSpec) {
			p.MatchConstraints.ResourceRules[0].ResourceNames = []string{"one"}
		}, constraints},
		"an operation is not matched": {func(p *policySpec, _ *bindingSpec) {
			p.MatchConstraints.ResourceRules[0].Operations = []admissionregistrationv1.OperationType{"CONNECT"}
		}, constraints},
		"a scope is not matched": {func(p *policySpec, _ *bindingSpec) {
			p.MatchConstraints.ResourceRules[0].Scope = ptr.To(admissionregistrationv1.ClusterScope)
		}, constraints},
		"another rule": {func(p *policySpec, _ *bindingSpec) {
			p.MatchConstraints.ResourceRules = append(p.MatchConstraints.ResourceRules, p.MatchConstraints.ResourceRules[0])
		}, constraints},
		"an exception": {func(p *policySpec, _ *bindingSpec) {
			p.MatchConstraints.ExcludeResourceRules = p.MatchConstraints.ResourceRules
		}, constraints},
		"some namespaces": {func(p *policySpec, _ *bindingSpec) { p.MatchConstraints.NamespaceSelector = some }, constraints},
		"some objects":    {func(p *policySpec, _ *bindingSpec) { p.MatchConstraints.ObjectSelector = some }, constraints},
		"another condition": {func(p *policySpec, _ *bindingSpec) {
			p.MatchConditions = append(p.MatchConditions, admissionregistrationv1.MatchCondition{Expression: "false"})
		}, conditions},
		"a changed condition": {func(p *policySpec, _ *bindingSpec) {
			p.MatchConditions = []admissionregistrationv1.MatchCondition{{Expression: "false"}}
		}, conditions},
		"no validations": {func(p *policySpec, _ *bindingSpec) { p.Validations = nil }, "it validates nothing"},
		"only warnings": {func(_ *policySpec, b *bindingSpec) {
			b.ValidationActions = []admissionregistrationv1.ValidationAction{admissionregistrationv1.Warn}
		}, denies},
		"the binding of another policy": {func(_ *policySpec, b *bindingSpec) { b.PolicyName = "another" }, denies},
		"a binding for some namespaces": {func(_ *policySpec, b *bindingSpec) {
			b.MatchResources = &admissionregistrationv1.MatchResources{NamespaceSelector: some}
		}, another},
		"a binding with another parameter": {func(_ *policySpec, b *bindingSpec) {
			b.ParamRef = &admissionregistrationv1.ParamRef{
				Name: "a", ParameterNotFoundAction: ptr.To(admissionregistrationv1.AllowAction),
			}
		}, another},
	} {
		t.Run(name, func(t *testing.T) {
			for _, p := range All() {
				policy, binding := installed(p)
				test.change(&policy.Spec, &binding.Spec)
				if got := p.Validate(policy, binding, "ns"); got != test.want {
					t.Errorf("%s: %q, want %q", p.Name, got, test.want)
				}
			}
		})
	}
}

func TestValidateMissingObjects(t *testing.T) {
	for _, p := range All() {
		policy, binding := installed(p)
		if got := p.Validate(nil, binding, "ns"); got != "it does not exist" {
			t.Errorf("%s without policy: %q", p.Name, got)
		}
		if got := p.Validate(policy, nil, "ns"); got != "its ValidatingAdmissionPolicyBinding does not exist" {
			t.Errorf("%s without binding: %q", p.Name, got)
		}
	}
}

// Readers of the hub may not know where the manager runs.
func TestValidateTheManagersNamespace(t *testing.T) {
	for _, p := range All() {
		policy, binding := installed(p)
		if got := p.Validate(policy, binding, ""); got != "" {
			t.Errorf("%s in an unknown namespace: %q", p.Name, got)
		}
		if got := p.Validate(policy, binding, "another"); (got == "") != p.everyone {
			t.Errorf("%s in another namespace: %q", p.Name, got)
		}
	}
}

func TestIsAnswer(t *testing.T) {
	resource := schema.GroupResource{Resource: "secrets"}
	for name, test := range map[string]struct {
		err  error
		want bool
	}{
		"accepted":                       {nil, true},
		"no right":                       {apierrors.NewForbidden(resource, "a", errors.New("no")), true},
		"not served":                     {&meta.NoKindMatchError{}, true},
		"refused by the policy":          {errors.New("ValidatingAdmissionPolicy 'p' with binding 'p' denied request: no"), true},
		"something fails at another":     {errors.New("ValidatingAdmissionPolicy 'q' with binding 'q' denied request: no"), false},
		"the API server is overloaded":   {apierrors.NewTooManyRequests("busy", 1), false},
		"a webhook of the hub is broken": {apierrors.NewInternalError(errors.New("failed calling webhook")), false},
		"no answer":                      {context.DeadlineExceeded, false},
	} {
		if got := isAnswer("p", test.err); got != test.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}
