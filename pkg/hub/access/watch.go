package access

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"open-cluster-management.io/cluster-inventory-addon/pkg/contract"
	"open-cluster-management.io/cluster-inventory-addon/pkg/kube"
)

// Name is what this concern is called in logs and as a field manager.
const Name = "hub.access"

const (
	// settleTimeout bounds how long profiles wait, at the start, for an API server
	// that does not answer.
	settleTimeout = 15 * time.Second

	// A refused write of the state is tried again after retryFirst, then at
	// doubling intervals up to retryMost.
	retryFirst = time.Second
	retryMost  = time.Minute

	// timerMost bounds how long a timer runs: one for decades is none.
	timerMost = 24 * time.Hour
)

// Options configure the ways in.
type Options struct {
	// Namespace is the manager's own: it holds what is remembered of the CA, and
	// the ConfigMaps that say how clusters are reached directly. Empty, there is
	// neither.
	Namespace string

	// ClusterProxy configures the way through cluster-proxy.
	ClusterProxy ClusterProxyOptions

	// Clock is the time; nil means the real one.
	Clock clock.Clock
}

// ClusterProxyOptions configure the way through cluster-proxy.
type ClusterProxyOptions struct {
	// Enabled is false when access providers of cluster-proxy's name are not this
	// addon's to write or to remove.
	Enabled bool

	// Namespace is cluster-proxy's on the hub.
	Namespace string

	// Configuration is the name of the ManagedProxyConfiguration.
	Configuration string

	// URL is where consumers reach the user server, for those outside the hub;
	// empty means the Service in Namespace.
	URL string

	// CABundle is, in PEM, what the certificate at URL is verified by; empty means
	// the user server's own CA.
	CABundle []byte

	// Gate tells whether cluster-proxy writes these access providers itself.
	// Required if Enabled.
	Gate ProxyGate

	// stateNamespace is where the CA is remembered, for messages.
	stateNamespace string
}

// ProxyGate tells whether cluster-proxy writes access providers itself.
type ProxyGate interface {
	// Verdict reports whether it does. problem completes a sentence about an access
	// provider: why it is left alone, because cluster-proxy writes it or because
	// that cannot be told. It is empty when cluster-proxy does not.
	Verdict() (on bool, problem string)

	// Stable reports whether the verdict is known, or stays unknown unless somebody
	// acts.
	Stable() bool

	// Subscribe has changed called whenever the verdict may have changed.
	Subscribe(changed func())
}

// Watch follows everything that access providers are made of and says, from
// memory, what each cluster's are to be.
type Watch struct {
	opts   Options
	client client.WithWatch
	dirty  chan struct{}

	// Followers that run all the time; nil for those that are not configured.
	crds, services, secrets, states, addons, direct *follower

	// ready is closed when everything has been looked at once.
	ready chan struct{}

	// Only the working loop's: configurations runs while the CRD of
	// configurationUID is there.
	run                func(context.Context, *follower)
	isReady            bool
	configurations     *follower
	configurationUID   types.UID
	stopConfigurations context.CancelFunc
	expectations       *kube.Expectations
	written            *corev1.ConfigMap // what this process remembered last
	retry              time.Duration

	mu sync.Mutex
	// clusters runs once some direct entry wants what the ManagedCluster says.
	clusters *follower
	last     *snapshot
	changed  []func(cluster string)
}

// snapshot is what was last made of all that is followed.
type snapshot struct {
	endpoint endpoint
	entries  map[string]directEntry

	// Why what is read cluster by cluster is not known; empty when it is.
	addonsUnknown, entriesUnknown, clustersUnknown string
}

// Add makes the manager run what follows the ways in.
func Add(mgr manager.Manager, opts Options) (*Watch, error) {
	c, err := client.NewWithWatch(mgr.GetConfig(), client.Options{HTTPClient: mgr.GetHTTPClient(), Scheme: mgr.GetScheme(), Mapper: mgr.GetRESTMapper()})
	if err != nil {
		return nil, fmt.Errorf("access: %w", err)
	}
	if opts.Clock == nil {
		opts.Clock = clock.RealClock{}
	}
	opts.ClusterProxy.stateNamespace = opts.Namespace
	w := &Watch{
		opts: opts, client: c, dirty: make(chan struct{}, 1), ready: make(chan struct{}),
		expectations: kube.NewExpectations(), retry: retryFirst,
	}
	w.follow()
	return w, mgr.Add(w)
}

// follow makes the followers that run all the time.
func (w *Watch) follow() {
	named := func(name string) client.ListOption {
		return client.MatchingFieldsSelector{Selector: fields.OneTermEqualSelector("metadata.name", name)}
	}
	if w.opts.Namespace != "" {
		here := client.InNamespace(w.opts.Namespace)
		w.direct = newFollower(w.client, &corev1.ConfigMap{}, &corev1.ConfigMapList{}, w.anyChange, here, client.MatchingLabels{contract.LabelDirectAccess: "true"})
	}
	proxy := w.opts.ClusterProxy
	if !proxy.Enabled {
		return
	}
	there := client.InNamespace(proxy.Namespace)
	w.crds = newFollower(w.client, partial(crdKind), partialList(crdKind), w.anyChange, named(configurationCRD))
	w.addons = newFollower(w.client, partial(addonKind), partialList(addonKind), w.addonChange, named(proxyAddonName))
	proxy.Gate.Subscribe(w.look)
	if proxy.URL == "" {
		w.services = newFollower(w.client, &corev1.Service{}, &corev1.ServiceList{}, w.anyChange, there, named(userServerService))
	}
	if len(proxy.CABundle) > 0 {
		return
	}
	w.secrets = newFollower(w.client, &corev1.Secret{}, &corev1.SecretList{}, w.anyChange, there, named(userServerSecret))
	if w.opts.Namespace != "" {
		w.states = newFollower(w.client, &corev1.ConfigMap{}, &corev1.ConfigMapList{}, w.anyChange, client.InNamespace(w.opts.Namespace), named(contract.AccessStateName))
	}
}

// Of returns what the access providers of a cluster are to be. It reads memory
// only.
func (w *Watch) Of(cluster string) Decision {
	w.mu.Lock()
	last, clusters := w.last, w.clusters
	w.mu.Unlock()
	if last == nil {
		return Decision{}
	}
	facts := clusterFacts{
		name:           cluster,
		proxiedUnknown: last.addonsUnknown,
		direct:         directFacts{unknown: last.entriesUnknown},
	}
	if addon := w.addons.get(cluster + "/" + proxyAddonName); addon != nil {
		facts.proxied = addon.GetDeletionTimestamp() == nil
	}
	if entry, ok := last.entries[cluster]; ok {
		facts.direct.entry = &entry
		if entry.fromManagedCluster {
			facts.direct.cluster = clientConfigsOf(clusters, cluster)
			facts.direct.cluster.unknown = last.clustersUnknown
		}
	}
	return decide(w.opts.ClusterProxy, last.endpoint, facts)
}

// Subscribe has changed called, from then on, when something other may be said
// of a cluster than before: of every cluster when the name is empty.
func (w *Watch) Subscribe(changed func(cluster string)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.changed = append(w.changed, changed)
}

// WaitForSync waits until everything is known that can be: what may not be read
// is not waited for, nor, for longer than some seconds, what does not answer. It
// fails only when the context ends.
func (w *Watch) WaitForSync(ctx context.Context) error {
	patience := w.opts.Clock.NewTimer(settleTimeout)
	defer patience.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-patience.C():
		log.FromContext(ctx).Info("Not all that access providers are made of could be read; they stay as they are meanwhile")
	case <-w.ready:
	}
	return nil
}

// Start follows until the context ends.
func (w *Watch) Start(ctx context.Context) error {
	ctx = log.IntoContext(ctx, log.FromContext(ctx).WithName(Name))
	var group sync.WaitGroup
	defer group.Wait()
	w.run = func(ctx context.Context, f *follower) {
		group.Go(func() { f.run(ctx, w.look) })
	}
	for _, f := range w.steady() {
		if f != nil {
			w.run(ctx, f)
		}
	}
	for {
		timer := w.opts.Clock.NewTimer(w.evaluate(ctx))
		select {
		case <-ctx.Done():
			timer.Stop()
			return nil
		case <-w.dirty:
		case <-timer.C():
		}
		timer.Stop()
	}
}

// steady are the followers that run all the time.
func (w *Watch) steady() []*follower {
	return []*follower{w.crds, w.services, w.secrets, w.states, w.addons, w.direct}
}

// look has everything looked at again.
func (w *Watch) look() {
	select {
	case w.dirty <- struct{}{}:
	default:
	}
}

// evaluate looks at what all clusters share, tells of what is other than before,
// and returns after how long at most to look again.
func (w *Watch) evaluate(ctx context.Context) time.Duration {
	w.followConfigurations(ctx)
	settled := !slices.ContainsFunc(append(w.steady(), w.configurations, w.clusters), func(f *follower) bool { return !f.settled() })
	if w.opts.ClusterProxy.Enabled && !w.opts.ClusterProxy.Gate.Stable() {
		settled = false
	}

	now := w.opts.Clock.Now()
	next := &snapshot{entriesUnknown: w.direct.unknown(), addonsUnknown: w.addons.unknown()}
	if next.entriesUnknown == "" {
		next.entries = directEntries(w.configMaps())
	}
	if w.followClusters(ctx, next.entries) {
		settled = false
	}
	next.clustersUnknown = w.clusters.unknown()
	var plan rotation
	if w.opts.ClusterProxy.Enabled {
		next.endpoint, plan = desiredEndpoint(w.opts.ClusterProxy, w.proxyFacts(now), now)
	}
	w.publish(ctx, next)
	if settled && !w.isReady {
		w.isReady = true
		close(w.ready)
	}
	again := w.remember(ctx, plan.remember, now)
	if !plan.until.IsZero() {
		// A certificate is good up to and including that second.
		again = min(again, max(plan.until.Sub(now), 0)+time.Second)
	}
	return again
}

// followConfigurations follows ManagedProxyConfigurations while their CRD is
// there.
func (w *Watch) followConfigurations(ctx context.Context) {
	var uid types.UID
	if crd := w.crds.get(configurationCRD); crd != nil && crd.GetDeletionTimestamp() == nil {
		uid = crd.GetUID()
	}
	if uid == w.configurationUID {
		return
	}
	if w.configurations != nil {
		w.stopConfigurations()
		w.configurations = nil
	}
	w.configurationUID = uid
	if uid != "" {
		obj, list := whole(configurationKind)
		w.configurations = newFollower(w.client, obj, list, w.anyChange)
		ctx, w.stopConfigurations = context.WithCancel(ctx)
		w.run(ctx, w.configurations)
	}
}

// followClusters follows ManagedClusters once some entry wants what they say,
// and tells whether it has only begun to.
func (w *Watch) followClusters(ctx context.Context, entries map[string]directEntry) bool {
	wanted := slices.ContainsFunc(slices.Collect(maps.Values(entries)), func(e directEntry) bool { return e.fromManagedCluster })
	if !wanted || w.clusters != nil {
		return false
	}
	clusters := newFollower(w.client, &clusterv1.ManagedCluster{}, &clusterv1.ManagedClusterList{}, w.clusterChange)
	w.mu.Lock()
	w.clusters = clusters
	w.mu.Unlock()
	w.run(ctx, clusters)
	return true
}

func (w *Watch) configMaps() []*corev1.ConfigMap {
	var list []*corev1.ConfigMap
	for _, obj := range w.direct.objects() {
		if configMap, ok := obj.(*corev1.ConfigMap); ok {
			list = append(list, configMap)
		}
	}
	return list
}

func (w *Watch) proxyFacts(now time.Time) proxyFacts {
	there := w.opts.ClusterProxy.Namespace + "/"
	facts := proxyFacts{
		unknown:    w.crds.unknown(),
		service:    foundOf[corev1.Service](w.services, there+userServerService),
		secret:     foundOf[corev1.Secret](w.secrets, there+userServerSecret),
		remembered: w.latest(foundOf[corev1.ConfigMap](w.states, w.stateKey().String()), now),
	}
	facts.gateOn, facts.gateProblem = w.opts.ClusterProxy.Gate.Verdict()
	if facts.unknown == "" && w.configurations != nil {
		facts.served = true
		facts.unknown = w.configurations.unknown()
		facts.configurations = configurationsOf(w.configurations)
	}
	return facts
}

// publish makes next what is said from now on, and tells of it where it is other
// than before.
func (w *Watch) publish(ctx context.Context, next *snapshot) {
	w.mu.Lock()
	last := w.last
	w.last = next
	w.mu.Unlock()
	switch {
	case last == nil:
	case !last.endpoint.equal(next.endpoint), last.addonsUnknown != next.addonsUnknown,
		last.entriesUnknown != next.entriesUnknown, last.clustersUnknown != next.clustersUnknown:
		log.FromContext(ctx).Info("The way into clusters changed", "server", next.endpoint.server, "problem", next.endpoint.problem)
		w.notify("")
	default:
		for cluster := range last.entries {
			if _, still := next.entries[cluster]; !still {
				w.notify(cluster)
			}
		}
		for cluster, entry := range next.entries {
			if before, ok := last.entries[cluster]; !ok || before != entry {
				w.notify(cluster)
			}
		}
	}
}

func (w *Watch) notify(cluster string) {
	w.mu.Lock()
	changed := w.changed
	w.mu.Unlock()
	for _, tell := range changed {
		tell(cluster)
	}
}

func (w *Watch) anyChange(_, _ client.Object) { w.look() }

// addonChange tells when a cluster gets or loses cluster-proxy.
func (w *Watch) addonChange(before, after client.Object) {
	present := func(obj client.Object) bool { return obj != nil && obj.GetDeletionTimestamp() == nil }
	switch {
	case before == nil && after == nil:
		w.look()
	case present(before) == present(after):
	case after != nil:
		w.notify(after.GetNamespace())
	default:
		w.notify(before.GetNamespace())
	}
}

// clusterChange tells when a ManagedCluster says another way in and somebody
// wants to know.
func (w *Watch) clusterChange(before, after client.Object) {
	if before == nil && after == nil {
		w.look()
		return
	}
	configs := func(obj client.Object) []clusterv1.ClientConfig {
		if cluster, ok := obj.(*clusterv1.ManagedCluster); ok {
			return cluster.Spec.ManagedClusterClientConfigs
		}
		return nil
	}
	if apiequality.Semantic.DeepEqual(configs(before), configs(after)) {
		return
	}
	name := ""
	for _, obj := range []client.Object{before, after} {
		if obj != nil {
			name = obj.GetName()
		}
	}
	w.mu.Lock()
	wanted := w.last != nil && w.last.entries[name].fromManagedCluster
	w.mu.Unlock()
	if wanted {
		w.notify(name)
	}
}

func (w *Watch) stateKey() types.NamespacedName {
	return types.NamespacedName{Namespace: w.opts.Namespace, Name: contract.AccessStateName}
}

// latest returns what is remembered: what this process wrote, until that is seen
// among what is followed. What was published meanwhile must not be forgotten.
func (w *Watch) latest(followed found[corev1.ConfigMap], now time.Time) found[corev1.ConfigMap] {
	var seen client.Object
	if followed.object != nil {
		seen = followed.object
	}
	if w.expectations.Wait(w.stateKey(), seen, now) > 0 {
		followed.object = w.written
	}
	return followed
}

// remember writes what is published, if that is not what is remembered, and
// returns after how long at most to look again.
func (w *Watch) remember(ctx context.Context, bundle []byte, now time.Time) time.Duration {
	if bundle == nil || w.states == nil {
		return timerMost
	}
	key := w.stateKey()
	current := w.states.get(key.String())
	if wait := w.expectations.Wait(key, current, now); wait > 0 {
		return wait
	}
	written, err := w.writeState(ctx, current, bundle)
	if err != nil {
		log.FromContext(ctx).Error(err, "Remembering the CA of cluster-proxy", "configMap", key)
		wait := w.retry
		w.retry = min(2*w.retry, retryMost)
		return wait
	}
	w.retry = retryFirst
	w.wrote(written, now)
	return timerMost
}

func (w *Watch) wrote(state *corev1.ConfigMap, now time.Time) {
	w.written = state
	w.expectations.Wrote(state, now)
}

// writeState makes the state say the bundle and nothing else.
func (w *Watch) writeState(ctx context.Context, current client.Object, bundle []byte) (*corev1.ConfigMap, error) {
	key, entry := w.stateKey(), w.opts.ClusterProxy.Namespace
	state := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}}
	before, ok := current.(*corev1.ConfigMap)
	if !ok {
		state.Data = map[string]string{entry: string(bundle)}
		return state, w.client.Create(ctx, state, client.FieldOwner(Name))
	}
	data := map[string]any{entry: string(bundle)}
	for other := range before.Data {
		if other != entry {
			data[other] = nil
		}
	}
	patch, err := kube.MergePatch(before.ResourceVersion, map[string]any{"data": data})
	if err != nil {
		return nil, err
	}
	return state, w.client.Patch(ctx, state, patch, client.FieldOwner(Name))
}
