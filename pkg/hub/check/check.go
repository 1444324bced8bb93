package check

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"open-cluster-management.io/cluster-inventory-addon/pkg/contract"
	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/policies"
)

const (
	// pause is the time between two looks. A manager renews its Lease every second.
	pause = 2 * time.Second

	// requestTimeout bounds a request, so that one without an answer leaves time for another.
	requestTimeout = 10 * time.Second
)

// Options configures the check.
type Options struct {
	// Namespace is the manager's.
	Namespace string

	// Timeout is how long to wait for what is missing.
	Timeout time.Duration
}

// Run returns once nothing is missing. What is missing is written to out whenever that
// changes, and is the error after the timeout.
func Run(ctx context.Context, cfg *rest.Config, out io.Writer, opts Options) error {
	cfg = rest.CopyConfig(cfg)
	cfg.Timeout = min(requestTimeout, opts.Timeout) // discovery has no context
	checker, err := New(cfg, opts.Namespace)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, opts.Timeout)
	defer cancel()
	reported := ""
	for {
		missing, err := checker.Look(ctx)
		if err == nil && len(missing) == 0 {
			fmt.Fprintln(out, "Nothing is missing, and the manager works.")
			return nil
		}
		if err != nil && (ctx.Err() == nil || reported == "") {
			missing = append(missing, err.Error())
		}
		if now := strings.Join(missing, "\n"); now != reported && now != "" {
			reported = now
			fmt.Fprintln(out, "Waiting:\n"+now)
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return errors.New("incomplete after " + opts.Timeout.String() + ": " + strings.ReplaceAll(reported, "\n", "; "))
		}
	}
}

// Checker looks at one installation.
type Checker struct {
	namespace string
	client    client.Client
	discovery discovery.DiscoveryInterface
	policies  *policies.Checker
	first     *coordinationv1.Lease // the first that was held
}

// New returns a Checker that works as the user of cfg, who should be the manager.
func New(cfg *rest.Config, namespace string) (*Checker, error) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		authorizationv1.AddToScheme, coordinationv1.AddToScheme, addonv1beta1.Install,
	} {
		if err := add(scheme); err != nil {
			return nil, err
		}
	}
	c, err := client.New(cfg, client.Options{Scheme: scheme})
	if err != nil {
		return nil, err
	}
	served, err := discovery.NewDiscoveryClientForConfig(cfg)
	if err != nil {
		return nil, err
	}
	enforced, err := policies.New(cfg, nil, namespace)
	if err != nil {
		return nil, err
	}
	return &Checker{namespace: namespace, client: c, discovery: served, policies: enforced}, nil
}

// Look returns what is missing. It takes two looks to see that the manager works.
func (c *Checker) Look(ctx context.Context) ([]string, error) {
	var (
		s   seen
		err error
	)
	if s.served, err = c.served(); err != nil {
		return nil, err
	}
	if s.refused, err = c.refused(ctx); err != nil {
		return nil, err
	}
	if s.defined, err = c.defined(ctx); err != nil {
		return nil, err
	}
	if s.policies, err = c.policies.Check(ctx); err != nil {
		return nil, err
	}
	if s.lease, err = c.lease(ctx); err != nil {
		return nil, err
	}
	s.before = c.first
	if c.first == nil && s.lease != nil && s.lease.Spec.RenewTime != nil {
		c.first = s.lease
	}
	return validate(s), nil
}

func (c *Checker) served() ([]api, error) {
	var served []api
	asked := map[string]bool{}
	for _, required := range requiredAPIs() {
		if asked[required.groupVersion] {
			continue
		}
		asked[required.groupVersion] = true
		list, err := c.discovery.ServerResourcesForGroupVersion(required.groupVersion)
		if apierrors.IsNotFound(err) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("asking for the resources of %s: %w", required.groupVersion, err)
		}
		for _, resource := range list.APIResources {
			served = append(served, api{required.groupVersion, resource.Name})
		}
	}
	return served, nil
}

func (c *Checker) refused(ctx context.Context) ([]authorizationv1.ResourceAttributes, error) {
	var refused []authorizationv1.ResourceAttributes
	for _, right := range requiredRights(c.namespace) {
		review := &authorizationv1.SelfSubjectAccessReview{
			Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: &right},
		}
		if err := c.client.Create(ctx, review); err != nil {
			return nil, fmt.Errorf("asking whether the manager may %s: %w", describe(right), err)
		}
		if !review.Status.Allowed {
			refused = append(refused, right)
		}
	}
	return refused, nil
}

func (c *Checker) defined(ctx context.Context) (bool, error) {
	definitions := &addonv1beta1.ClusterManagementAddOnList{}
	err := c.client.List(ctx, definitions, client.MatchingFields{metav1.ObjectNameField: contract.AddonName})
	if apierrors.IsForbidden(err) || apimeta.IsNoMatchError(err) {
		return false, nil // its right, or its API, is missing
	}
	return len(definitions.Items) > 0, err
}

func (c *Checker) lease(ctx context.Context) (*coordinationv1.Lease, error) {
	lease := &coordinationv1.Lease{}
	err := c.client.Get(ctx, client.ObjectKey{Namespace: c.namespace, Name: contract.LeaseName}, lease)
	if apierrors.IsNotFound(err) || apierrors.IsForbidden(err) {
		return nil, nil
	}
	return lease, err
}
