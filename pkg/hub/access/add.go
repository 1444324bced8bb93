package access

import (
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"open-cluster-management.io/cluster-inventory-addon/pkg/kube/watch"
)

// ControllerName is the controller's name in logs, metrics and as field manager.
const ControllerName = "hub.access"

const (
	// A refused write of the state is retried after retryFirst, then at doubling intervals
	// up to retryMost.
	retryFirst = time.Second
	retryMost  = time.Minute
)

// Options configure the Resolver.
type Options struct {
	// Namespace is the manager's own: it holds the state, and the ConfigMaps that describe
	// how clusters are reached directly. If it is empty, there is neither.
	Namespace string

	// ClusterProxy configures access through cluster-proxy.
	ClusterProxy ClusterProxyOptions

	// Clock is the time, also for the controller's queue.
	Clock clock.WithTicker
}

// ClusterProxyOptions configure access through cluster-proxy.
type ClusterProxyOptions struct {
	// Enabled is false if access providers with cluster-proxy's name are not this addon's
	// to write or to remove.
	Enabled bool

	// Namespace is cluster-proxy's namespace on the hub.
	Namespace string

	// Configuration is the name of the ManagedProxyConfiguration.
	Configuration string

	// URL is where consumers outside the hub reach the user server; empty means the Service
	// in Namespace.
	URL string

	// CABundle, in PEM, verifies the certificate at URL; empty means the user
	// server's own CA.
	CABundle []byte

	// Gate decides whether cluster-proxy writes these access providers itself. Required if
	// Enabled.
	Gate ProxyGate

	// stateNamespace is the namespace of the state, for messages.
	stateNamespace string
}

// ProxyGate decides whether cluster-proxy writes access providers itself.
type ProxyGate interface {
	// Verdict reports whether it does. problem completes a sentence about an access
	// provider: why it is left alone, because cluster-proxy writes it or because that is
	// unknown. It is empty if cluster-proxy does not write it. transient is true if that will
	// be known within moments.
	Verdict() (on bool, problem string, transient bool)

	// Stable reports whether the verdict is known, or remains unknown until a user acts.
	Stable() bool

	// Subscribe has changed called whenever the verdict may have changed.
	Subscribe(changed func())
}

// onlyKey is the controller's only request: it resolves what all clusters share.
var onlyKey = types.NamespacedName{Name: "access"}

// Add registers the controller of a Resolver, and its sources.
func Add(mgr manager.Manager, opts Options) (*Resolver, error) {
	c, err := watch.NewWatchClient(mgr)
	if err != nil {
		return nil, err
	}
	opts.ClusterProxy.stateNamespace = opts.Namespace
	r := &Resolver{opts: opts, ready: make(chan struct{})}
	r.observer = newObserver(c, opts, listener{
		shared:  func() { r.trigger.Enqueue(onlyKey) },
		addon:   r.subscribed.Notify,
		cluster: r.notifyIfUsed,
	})
	if opts.Namespace != "" {
		r.state = newState(c, opts.Namespace, opts.ClusterProxy.Namespace)
	}
	if err := mgr.Add(r.observer); err != nil {
		return nil, err
	}
	return r, builder.ControllerManagedBy(mgr).
		Named(ControllerName).
		WithOptions(controller.Options{
			RateLimiter: workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](retryFirst, retryMost),
			// On the same clock as the certificates' expiry from which RequeueAfter is computed.
			NewQueue: func(
				name string, limiter workqueue.TypedRateLimiter[reconcile.Request],
			) workqueue.TypedRateLimitingInterface[reconcile.Request] {
				config := workqueue.TypedRateLimitingQueueConfig[reconcile.Request]{Name: name, Clock: opts.Clock}
				return workqueue.NewTypedRateLimitingQueueWithConfig(limiter, config)
			},
		}).
		WatchesRawSource(&r.trigger).
		Complete(r)
}
