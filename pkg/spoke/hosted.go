package spoke

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	authorizationclient "k8s.io/client-go/kubernetes/typed/authorization/v1"
	"k8s.io/client-go/rest"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	clusterv1alpha1 "open-cluster-management.io/api/cluster/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"open-cluster-management.io/cluster-inventory-addon/pkg/contract"
	"open-cluster-management.io/cluster-inventory-addon/pkg/kube"
	"open-cluster-management.io/cluster-inventory-addon/pkg/spoke/property"
	"open-cluster-management.io/cluster-inventory-addon/pkg/spoke/report"
)

// looksPerProbe is how many times the kubeconfig is read for each request that checks
// whether it still works.
const looksPerProbe = 6

// probeTimeout limits one request that checks whether the kubeconfig works.
const probeTimeout = 10 * time.Second

// endPatience is how long publishing may take to end. The manager's own limit does not
// apply while it waits for a cache that never syncs: then it cannot be stopped, and keeps a
// CPU busy (controller-runtime, pkg/manager, runnableGroup.Start).
const endPatience = 40 * time.Second

// errEndless ends the process, because publishing cannot be ended otherwise.
var errEndless = errors.New("cannot stop publishing with a kubeconfig of the managed cluster that no longer works")

// runHosted publishes from a cluster that the agent does not run on, while it has a working
// kubeconfig for it. The administrator provides the kubeconfig, and may replace it.
func runHosted(ctx context.Context, hub *clusterAccess, opts Options, pause time.Duration) error {
	managed := &managedAccess{
		clusterAccess: clusterAccess{path: opts.Kubeconfig, relist: relistSpoke},
		needed:        neededOnManaged(opts), pause: pause,
	}
	for ctx.Err() == nil {
		cfg, err := awaitManaged(ctx, managed, hub, opts)
		if cfg == nil || err != nil {
			return err // ctx has ended, or an address cannot be bound
		}
		err = while(ctx, endPatience, func(ctx context.Context) { follow(ctx, managed, cfg) },
			func(ctx context.Context) error { return run(ctx, rest.CopyConfig(cfg), hub, opts) })
		if err != nil {
			return err
		}
	}
	return nil
}

// while publishes until ctx ends or usable returns. It is an error if publishing then does
// not end in time.
func while(
	ctx context.Context, patience time.Duration, usable func(context.Context), publish func(context.Context) error,
) error {
	ctx, cancel := context.WithCancel(ctx)
	followed, ended := make(chan struct{}), make(chan error, 1)
	defer func() {
		cancel()
		<-followed
	}()
	go func() {
		defer close(followed)
		defer cancel()
		usable(ctx)
	}()
	go func() { ended <- publish(ctx) }()
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
	}
	select {
	case err := <-ended:
		return err
	case <-time.After(patience):
		return errEndless
	}
}

// follow returns when ctx ends, the kubeconfig has changed, or it fails twice in a row.
func follow(ctx context.Context, managed *managedAccess, cfg *rest.Config) {
	logger := log.FromContext(ctx)
	failures := 0
	for look := 1; failures < 2; look++ {
		select {
		case <-ctx.Done():
			return
		case <-time.After(managed.pause):
		}
		now, problem := managed.read()
		switch {
		case problem == "" && now != cfg:
			logger.Info("The kubeconfig of the managed cluster has changed: restarting")
			return
		case problem == "" && (failures > 0 || look%looksPerProbe == 0):
			problem = managed.probe(ctx)
		}
		if problem == "" {
			failures = 0
			continue
		}
		failures++
		logger.Info("The kubeconfig of the managed cluster does not work", "problem", problem)
	}
}

// awaitManaged waits for a working kubeconfig of the managed cluster, and reports its
// problems on the hub. It returns nil when ctx ends.
func awaitManaged(ctx context.Context, managed *managedAccess, hub *clusterAccess, opts Options) (*rest.Config, error) {
	stop, err := serveUnready(ctx, opts.HealthProbeBindAddress)
	if err != nil {
		return nil, err
	}
	defer stop()
	logger, before := log.FromContext(ctx), ""
	for {
		cfg, problem := managed.read()
		if problem == "" {
			problem = managed.probe(ctx)
		}
		if problem == "" {
			return cfg, nil
		}
		if problem != before {
			logger.Info("Waiting for a kubeconfig of the managed cluster", "problem", problem)
			before = problem
		}
		if err := reportManaged(ctx, hub, opts, problem); err != nil && ctx.Err() == nil {
			logger.Error(err, "Cannot report the problem of the kubeconfig on the hub")
		}
		select {
		case <-ctx.Done():
			return nil, nil
		case <-time.After(managed.pause):
		}
	}
}

// managedAccess is the access to the managed cluster, and checks whether it works.
type managedAccess struct {
	clusterAccess
	needed []authorizationv1.ResourceAttributes
	pause  time.Duration // between two reads

	// reviews is the client for these checks, made from the configuration reviewed.
	reviewed *rest.Config
	reviews  authorizationclient.AuthorizationV1Interface
}

// read returns the configuration for the managed cluster, or what is wrong with it.
func (m *managedAccess) read() (*rest.Config, string) {
	cfg, err := m.current()
	if err == nil && m.reviewed != cfg {
		var reviews authorizationclient.AuthorizationV1Interface
		if reviews, err = authorizationclient.NewForConfig(withoutProxy(rest.CopyConfig(cfg))); err == nil {
			m.reviewed, m.reviews = cfg, reviews
		}
	}
	switch {
	case err == nil:
		return cfg, ""
	case errors.Is(err, fs.ErrNotExist) && problemOf(err) == wrongKubeconfig:
		return nil, "it does not exist, or has no key kubeconfig"
	default:
		return nil, cmp.Or(problemOf(err), wrongKubeconfig)
	}
}

// probe checks whether the managed cluster grants what the agent needs, and returns why
// not, or "".
func (m *managedAccess) probe(ctx context.Context) string {
	for _, needed := range m.needed {
		ctx, cancel := context.WithTimeout(ctx, probeTimeout)
		review, err := m.reviews.SelfSubjectAccessReviews().Create(ctx, &authorizationv1.SelfSubjectAccessReview{
			Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: &needed},
		}, metav1.CreateOptions{})
		cancel()
		switch {
		case apierrors.IsUnauthorized(err):
			return "the managed cluster refuses its credentials"
		case err != nil:
			log.FromContext(ctx).Info("The managed cluster does not respond", "reason", err.Error())
			return "the managed cluster cannot be reached with it; the agent's log says why"
		case !review.Status.Allowed:
			return fmt.Sprintf("its user may not %s %s", needed.Verb, needed.Resource)
		}
	}
	return ""
}

// neededOnManaged are the rights that the agent requires on the managed cluster. Without
// list and watch, a cache does not sync.
func neededOnManaged(opts Options) []authorizationv1.ResourceAttributes {
	var all []authorizationv1.ResourceAttributes
	add := func(of authorizationv1.ResourceAttributes, verbs ...string) {
		for _, verb := range verbs {
			of.Verb = verb
			all = append(all, of)
		}
	}
	add(authorizationv1.ResourceAttributes{Group: property.Group, Resource: "clusterproperties"}, "list", "watch")
	add(authorizationv1.ResourceAttributes{Group: clusterv1alpha1.GroupName, Resource: "clusterclaims"},
		"list", "watch", "create", "patch", "delete")
	add(authorizationv1.ResourceAttributes{
		Group: "apiextensions.k8s.io", Resource: "customresourcedefinitions", Name: property.CRDName,
	}, "get", "list", "watch")
	add(authorizationv1.ResourceAttributes{
		Resource: "configmaps", Namespace: opts.InstallNamespace, Name: contract.CleanupMarkerName,
	}, "list", "watch", "patch")
	return all
}

// reportManaged writes the condition that says why the kubeconfig cannot be used.
func reportManaged(ctx context.Context, hub *clusterAccess, opts Options, problem string) error {
	cfg, err := hub.current()
	if cfg == nil {
		return err // otherwise the previous one may still work
	}
	c, err := client.New(cfg, client.Options{Scheme: newScheme(), Mapper: newMapper()})
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	// The agent may list and watch its addon, not get it.
	addons := &addonv1beta1.ManagedClusterAddOnList{}
	err = c.List(ctx, addons, client.InNamespace(opts.ClusterName),
		client.MatchingFields{metav1.ObjectNameField: contract.AddonName})
	if err != nil || len(addons.Items) == 0 || addons.Items[0].UID != types.UID(opts.AddonUID) {
		return err
	}
	addon := &addons.Items[0]
	patch, err := kube.ConditionPatch(addon.ResourceVersion, addon.Status.Conditions, metav1.Condition{
		Type: contract.ConditionPropertiesPublished, Status: metav1.ConditionFalse,
		Reason: contract.ReasonManagedKubeconfigInvalid,
		Message: fmt.Sprintf("The Secret %s/%s on the hosting cluster, with the kubeconfig of the managed cluster, "+
			"cannot be used: %s.", opts.InstallNamespace, contract.ManagedKubeconfigSecret, problem),
		LastTransitionTime: metav1.Now(),
	})
	if err != nil || patch == nil {
		return err
	}
	return client.WithFieldOwner(c, report.ControllerName).Status().Patch(ctx, addon, patch)
}

// serveUnready serves the probes while no manager does: the process is alive, but not
// ready.
func serveUnready(ctx context.Context, address string) (stop func(), err error) {
	if address == "0" {
		return func() {}, nil
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", address)
	if err != nil {
		return nil, fmt.Errorf("serving the probes: %w", err)
	}
	probes := http.NewServeMux()
	probes.HandleFunc("/healthz", func(http.ResponseWriter, *http.Request) {})
	probes.HandleFunc("/readyz", func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusServiceUnavailable)
		_, _ = io.WriteString(w, "waiting for a kubeconfig of the managed cluster")
	})
	server := &http.Server{Handler: probes, ReadHeaderTimeout: probeTimeout}
	served := make(chan struct{})
	go func() {
		defer close(served)
		_ = server.Serve(listener)
	}()
	return func() {
		_ = server.Close()
		<-served // now the address is free
	}, nil
}
