package access

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"open-cluster-management.io/cluster-inventory-addon/pkg/kube"
	"open-cluster-management.io/cluster-inventory-addon/pkg/kube/watch"
)

// syncTimeout bounds how long profiles wait, after a start, for an API server that does not
// respond.
const syncTimeout = 15 * time.Second

// Resolver determines, from memory, which access providers each cluster should have. Its
// reconciler resolves the shared state into a snapshot; a cluster's own facts are read from
// the followers on request.
type Resolver struct {
	opts     Options
	observer *observer
	state    *state // nil if nothing is stored
	trigger  watch.Trigger

	// ready is closed when everything readable has been read once.
	ready    chan struct{}
	isReady  sync.Once
	absences absences // of the reconciler

	last       atomic.Pointer[snapshot]
	subscribed kube.Subscribers[string]
}

// Of returns which access providers a cluster should have. It reads memory only.
func (r *Resolver) Of(cluster string) Decision {
	last := r.last.Load()
	if last == nil {
		return Decision{}
	}
	return decide(r.opts.ClusterProxy, last.endpoint, r.observer.clusterFacts(cluster, last))
}

// Subscribe has changed called whenever Of may return something else for a cluster, or,
// with an empty name, for every cluster.
func (r *Resolver) Subscribe(changed func(cluster string)) { r.subscribed.Subscribe(changed) }

// WaitForSync waits until everything that can be known is known. It does not wait for what
// may not be read, and only some seconds for an API server that does not respond. It fails
// only if the context ends.
func (r *Resolver) WaitForSync(ctx context.Context) error {
	timeout := r.opts.Clock.NewTimer(syncTimeout)
	defer timeout.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timeout.C():
		log.FromContext(ctx).Info("Some sources of access providers could not be read in time; " +
			"access providers stay as they are until they can")
	case <-r.ready:
	}
	return nil
}

// Reconcile resolves what all clusters share, announces changes, and stores the published
// CA.
func (r *Resolver) Reconcile(ctx context.Context, _ reconcile.Request) (reconcile.Result, error) {
	now := r.opts.Clock.Now()
	facts := r.observer.observe() //nolint:contextcheck // followers outlive this reconciliation
	facts.proxy.remembered = r.state.latest(facts.proxy.remembered, now)
	without, wait := r.settle(&facts, now)
	next, plan := resolve(r.opts.ClusterProxy, facts, now)
	r.publish(ctx, next)
	for _, cluster := range without {
		r.subscribed.Notify(cluster)
	}
	if facts.stable {
		r.isReady.Do(func() { close(r.ready) })
	}
	stored := r.observer.states.Get(r.observer.stateKey()) // even if it is being deleted
	unseen, err := r.state.remember(ctx, stored, plan.remember, now)
	if err != nil {
		return reconcile.Result{}, err
	}
	return reconcile.Result{RequeueAfter: kube.Sooner(wait, requeueAfter(unseen, plan.until, now))}, nil
}

// settle holds back absences until they count. It returns the clusters that no longer have
// cluster-proxy, and the time until another absence counts; zero means that none is
// pending.
func (r *Resolver) settle(facts *sharedFacts, now time.Time) (without []string, wait time.Duration) {
	if !r.opts.ClusterProxy.Enabled {
		return nil, 0
	}
	facts.proxy, wait = r.absences.settle(r.opts.ClusterProxy, facts.proxy, now)
	without, left := r.observer.proxied.settle(facts.addonsUnknown == "", now)
	return without, kube.Sooner(wait, left)
}

// publish makes Of use next, and announces the differences from before.
func (r *Resolver) publish(ctx context.Context, next *snapshot) {
	last := r.last.Swap(next)
	if last == nil {
		return
	}
	changed := changedClusters(last, next)
	if len(changed) == 1 && changed[0] == everyCluster {
		log.FromContext(ctx).Info("Access to clusters changed",
			"server", next.endpoint.server, "problem", next.endpoint.problem.text)
	}
	for _, cluster := range changed {
		r.subscribed.Notify(cluster)
	}
}

// notifyIfUsed handles changes of ManagedClusters, which matter only to clusters whose
// entry refers to their ManagedCluster.
func (r *Resolver) notifyIfUsed(cluster string) {
	if last := r.last.Load(); last != nil && last.entries[cluster].fromManagedCluster {
		r.subscribed.Notify(cluster)
	}
}
