package policies

import (
	"context"
	"errors"
	"fmt"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"open-cluster-management.io/cluster-inventory-addon/pkg/kube"
)

// Checker checks the policies as the manager.
type Checker struct {
	client    client.Client
	namespace string
}

// New returns a Checker that works as the user of cfg, who should be the manager in this
// namespace. mapper knows the kinds; if it is nil, they are discovered.
func New(cfg *rest.Config, mapper meta.RESTMapper, namespace string) (*Checker, error) {
	c, err := client.New(cfg, client.Options{Mapper: mapper})
	if err != nil {
		return nil, err
	}
	return &Checker{client: c, namespace: namespace}, nil
}

// Check returns, by its name, why each policy is not enforced, or "". An error means that the
// API server did not answer about the policies that are missing.
func (c *Checker) Check(ctx context.Context) (found map[string]string, failed error) {
	found = map[string]string{}
	for _, policy := range All() {
		problem, needed, err := c.check(ctx, policy)
		if err != nil {
			failed = errors.Join(failed, fmt.Errorf("checking ValidatingAdmissionPolicy %s: %w", policy.Name, err))
		} else if needed {
			found[policy.Name] = problem
		}
	}
	return found, failed
}

func (c *Checker) check(ctx context.Context, p Policy) (problem string, needed bool, err error) {
	policy := &admissionregistrationv1.ValidatingAdmissionPolicy{}
	binding := &admissionregistrationv1.ValidatingAdmissionPolicyBinding{}
	for _, object := range []client.Object{policy, binding} {
		err := c.client.Get(ctx, client.ObjectKey{Name: p.Name}, object)
		switch {
		case apierrors.IsForbidden(err), meta.IsNoMatchError(err), kube.IsUnserved(err):
			return "it cannot be read: " + err.Error(), true, nil
		case client.IgnoreNotFound(err) != nil:
			return "", false, err
		}
	}
	problem = p.Validate(existing(policy), existing(binding), c.namespace)
	if policy.UID == "" && p.Limits != nil {
		needed, err := c.may(ctx, *p.Limits)
		return problem, needed, err
	}
	if try := attempts[p.Name]; problem == "" && try != nil {
		answer := try(ctx, c.client, c.namespace)
		if !isAnswer(p.Name, answer) {
			return "", false, answer
		}
		if answer == nil {
			problem = "the API server accepts what it must refuse"
		}
	}
	return problem, true, nil
}

// existing returns nil if an object was not found.
func existing[P client.Object](object P) P {
	if object.GetUID() == "" {
		var none P
		return none
	}
	return object
}

func (c *Checker) may(ctx context.Context, right authorizationv1.ResourceAttributes) (bool, error) {
	review := &authorizationv1.SelfSubjectAccessReview{
		Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: &right},
	}
	err := c.client.Create(ctx, review)
	return review.Status.Allowed, err
}
