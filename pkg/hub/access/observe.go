package access

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"open-cluster-management.io/cluster-inventory-addon/pkg/contract"
	"open-cluster-management.io/cluster-inventory-addon/pkg/kube"
	"open-cluster-management.io/cluster-inventory-addon/pkg/kube/watch"
)

const configurationCRD = "managedproxyconfigurations.proxy.open-cluster-management.io"

var (
	addonKind = schema.GroupVersionKind{
		Group: "addon.open-cluster-management.io", Version: "v1beta1", Kind: "ManagedClusterAddOn",
	}

	// configurationKind is read without its Go type, whose module requires all of
	// cluster-proxy's dependencies.
	configurationKind = schema.GroupVersionKind{
		Group: "proxy.open-cluster-management.io", Version: "v1alpha1", Kind: "ManagedProxyConfiguration",
	}
)

// listener is notified of changes. None of its functions may block.
type listener struct {
	shared  func()               // the shared state
	addon   func(cluster string) // a cluster that got cluster-proxy
	cluster func(cluster string) // a ManagedCluster with another API server
}

// observer follows the sources of access providers. Start runs it until the context ends;
// until it starts, everything is unknown.
type observer struct {
	opts     Options
	client   client.WithWatch
	listener listener

	// These run all the time; nil if they are not configured.
	crds, services, secrets, states, addons, direct *watch.Follower

	proxied *proxied // the clusters with cluster-proxy's addon

	// configurations runs while the CRD with configurationUID exists. Only the reconciler
	// uses both.
	configurations     *watch.Follower
	configurationUID   types.UID
	stopConfigurations context.CancelFunc

	mu sync.Mutex
	// clusters runs once an entry refers to a ManagedCluster.
	clusters *watch.Follower
	// ctx is that of Start, for followers that start later; nil before and after.
	ctx     context.Context
	running sync.WaitGroup
}

func newObserver(c client.WithWatch, opts Options, l listener) *observer {
	o := &observer{opts: opts, client: c, listener: l, proxied: newProxied()}
	if opts.Namespace != "" {
		o.direct = o.follow(&corev1.ConfigMap{}, &corev1.ConfigMapList{},
			client.InNamespace(opts.Namespace), client.MatchingLabels{contract.LabelDirectAccess: "true"})
	}
	proxy := opts.ClusterProxy
	if !proxy.Enabled {
		return o
	}
	proxy.Gate.Subscribe(l.shared)
	there := client.InNamespace(proxy.Namespace)
	o.crds = o.follow(kube.Partial(kube.CRDKind), kube.PartialList(kube.CRDKind), named(configurationCRD))
	o.addons = o.followAddons()
	if proxy.URL == "" {
		o.services = o.follow(&corev1.Service{}, &corev1.ServiceList{}, there, named(userServerService))
	}
	if len(proxy.CABundle) > 0 {
		return o
	}
	o.secrets = o.follow(&corev1.Secret{}, &corev1.SecretList{}, there, named(userServerSecret))
	if opts.Namespace != "" {
		o.states = o.follow(&corev1.ConfigMap{}, &corev1.ConfigMapList{},
			client.InNamespace(opts.Namespace), named(contract.AccessStateName))
	}
	return o
}

func named(name string) client.ListOption {
	return client.MatchingFields{metav1.ObjectNameField: name}
}

// follow follows objects that concern all clusters.
func (o *observer) follow(obj client.Object, list client.ObjectList, selected ...client.ListOption) *watch.Follower {
	changed := func(_, _ client.Object) { o.listener.shared() }
	return watch.NewFollower(o.client, o.following(obj, list, changed, selected...))
}

func (o *observer) following(
	obj client.Object, list client.ObjectList, changed func(before, after client.Object), selected ...client.ListOption,
) watch.Follow {
	return watch.Follow{
		Object: obj, List: list, Select: selected, Trim: trim,
		Changed:     changed,
		SkipInitial: true, // Synced announces all of it
		Synced:      o.listener.shared,
		Failed:      func(error) { o.listener.shared() },
	}
}

func (o *observer) followAddons() *watch.Follower {
	var addons *watch.Follower
	follow := o.following(kube.Partial(addonKind), kube.PartialList(addonKind), o.addonChanged, named(proxyAddonName))
	follow.Synced = func() {
		for _, addon := range addons.Objects() {
			if isThere(addon) {
				o.proxied.came(addon.GetNamespace())
				// It may have been deleted meanwhile, and its deletion announced before its
				// arrival.
				if !isThere(addons.Get(client.ObjectKeyFromObject(addon).String())) {
					o.proxied.went(addon.GetNamespace(), o.opts.Clock.Now())
				}
			}
		}
		o.listener.shared()
	}
	addons = watch.NewFollower(o.client, follow)
	return addons
}

// Start implements manager.Runnable, on the elected leader.
func (o *observer) Start(ctx context.Context) error {
	o.mu.Lock()
	o.ctx = ctx
	o.mu.Unlock()
	for _, f := range o.steady() {
		if f != nil {
			o.run(f) //nolint:contextcheck // it runs until Start ends
		}
	}
	o.listener.shared()
	<-ctx.Done()
	o.mu.Lock()
	o.ctx = nil
	o.mu.Unlock()
	o.running.Wait()
	return nil
}

// run runs a follower until stop is called or Start ends.
func (o *observer) run(f *watch.Follower) (stop context.CancelFunc) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.ctx == nil {
		return func() {}
	}
	ctx, stop := context.WithCancel(o.ctx)
	o.running.Go(func() { f.Run(ctx) })
	return stop
}

// steady returns the followers that run all the time.
func (o *observer) steady() []*watch.Follower {
	return []*watch.Follower{o.crds, o.services, o.secrets, o.states, o.addons, o.direct}
}

// observe returns the facts about the objects that concern all clusters. It starts to
// follow the kinds that turn out to be needed.
func (o *observer) observe() sharedFacts {
	o.followConfigurations()
	facts := sharedFacts{
		stable:         o.stable(),
		entriesUnknown: o.direct.Unknown(),
		addonsUnknown:  o.addons.Unknown(),
	}
	if facts.entriesUnknown == "" {
		facts.entries = directEntries(objectsOf[*corev1.ConfigMap](o.direct))
	}
	if o.followClusters(facts.entries) {
		facts.stable = false
	}
	facts.clustersUnknown = o.clusters.Unknown()
	if o.opts.ClusterProxy.Enabled {
		facts.proxy = o.proxyFacts()
	}
	return facts
}

func (o *observer) stable() bool {
	all := append(o.steady(), o.configurations, o.clusters)
	return !slices.ContainsFunc(all, func(f *watch.Follower) bool { return !f.Stable() }) &&
		(!o.opts.ClusterProxy.Enabled || o.opts.ClusterProxy.Gate.Stable())
}

// followConfigurations follows ManagedProxyConfigurations while their CRD exists.
func (o *observer) followConfigurations() {
	var uid types.UID
	if crd := o.crds.Get(configurationCRD); isThere(crd) {
		uid = crd.GetUID()
	}
	if uid == o.configurationUID {
		return
	}
	if o.configurations != nil {
		o.stopConfigurations()
		o.configurations = nil
	}
	o.configurationUID = uid
	if uid != "" {
		object, list := &unstructured.Unstructured{}, &unstructured.UnstructuredList{}
		object.SetGroupVersionKind(configurationKind)
		list.SetGroupVersionKind(configurationKind.GroupVersion().WithKind(configurationKind.Kind + "List"))
		o.configurations = o.follow(object, list)
		o.stopConfigurations = o.run(o.configurations)
	}
}

// followClusters follows ManagedClusters once an entry refers to one, and reports whether
// it has only just started.
func (o *observer) followClusters(entries map[string]directEntry) bool {
	uses := func(e directEntry) bool { return e.fromManagedCluster }
	if o.clusters != nil || !slices.ContainsFunc(slices.Collect(maps.Values(entries)), uses) {
		return false
	}
	clusters := watch.NewFollower(o.client,
		o.following(&clusterv1.ManagedCluster{}, &clusterv1.ManagedClusterList{}, o.clusterChanged))
	o.mu.Lock()
	o.clusters = clusters
	o.mu.Unlock()
	o.run(clusters)
	return true
}

func (o *observer) proxyFacts() proxyFacts {
	there := o.opts.ClusterProxy.Namespace + "/"
	facts := proxyFacts{
		unknown:    o.crds.Unknown(),
		service:    findObject[corev1.Service](o.services, there+userServerService),
		secret:     findObject[corev1.Secret](o.secrets, there+userServerSecret),
		remembered: findObject[corev1.ConfigMap](o.states, o.stateKey()),
	}
	facts.gateOn, facts.gate.text, facts.gate.transient = o.opts.ClusterProxy.Gate.Verdict()
	if facts.unknown == "" && o.configurations != nil {
		facts.served = true
		facts.unknown = o.configurations.Unknown()
		facts.configurations = configurationsOf(o.configurations)
	}
	return facts
}

func (o *observer) stateKey() string { return o.opts.Namespace + "/" + contract.AccessStateName }

func (o *observer) clusterFacts(cluster string, shared *snapshot) clusterFacts {
	facts := clusterFacts{
		name:           cluster,
		proxiedUnknown: shared.addonsUnknown,
		direct:         directFacts{unknown: shared.entriesUnknown},
	}
	if o.opts.ClusterProxy.Enabled && facts.proxiedUnknown == "" {
		var known bool
		facts.proxied, known = o.proxied.of(cluster, isThere(o.addons.Get(cluster+"/"+proxyAddonName)))
		if !known {
			facts.proxiedUnknown = watch.NotFoundYet
		}
	}
	if entry, ok := shared.entries[cluster]; ok {
		facts.direct.entry = &entry
		if entry.fromManagedCluster {
			facts.direct.cluster = o.clientConfigs(cluster)
			facts.direct.cluster.unknown = shared.clustersUnknown
		}
	}
	return facts
}

func (o *observer) clientConfigs(cluster string) found[[]clusterv1.ClientConfig] {
	o.mu.Lock()
	clusters := o.clusters
	o.mu.Unlock()
	managed := findObject[clusterv1.ManagedCluster](clusters, cluster)
	result := found[[]clusterv1.ClientConfig]{unknown: managed.unknown}
	if managed.object != nil {
		result.object = &managed.object.Spec.ManagedClusterClientConfigs
	}
	return result
}

// addonChanged announces clusters that got cluster-proxy. The loss of it is announced when
// it counts.
func (o *observer) addonChanged(before, after client.Object) {
	cluster := cmp.Or(after, before).GetNamespace()
	switch {
	case isThere(after):
		if o.proxied.came(cluster) {
			o.listener.addon(cluster)
		}
	case isThere(before):
		if o.proxied.went(cluster, o.opts.Clock.Now()) {
			o.listener.shared()
		}
	}
}

// isThere reports whether an object exists and is not being deleted.
func isThere(obj client.Object) bool { return obj != nil && obj.GetDeletionTimestamp() == nil }

// clusterChanged announces clusters whose ManagedCluster names another API server.
func (o *observer) clusterChanged(before, after client.Object) {
	configs := func(obj client.Object) []clusterv1.ClientConfig {
		if cluster, ok := obj.(*clusterv1.ManagedCluster); ok {
			return cluster.Spec.ManagedClusterClientConfigs
		}
		return nil
	}
	if !apiequality.Semantic.DeepEqual(configs(before), configs(after)) {
		o.listener.cluster(cmp.Or(after, before).GetName())
	}
}

// findObject returns what a follower knows about one object, as T. An object that is being
// deleted counts as absent.
func findObject[T any](f *watch.Follower, key string) found[T] {
	result := found[T]{unknown: f.Unknown()}
	if result.unknown != "" {
		return result
	}
	if obj := f.Get(key); isThere(obj) {
		result.object, _ = any(obj).(*T)
	}
	return result
}

func objectsOf[T client.Object](f *watch.Follower) []T {
	var list []T
	for _, obj := range f.Objects() {
		if typed, ok := obj.(T); ok {
			list = append(list, typed)
		}
	}
	return list
}

func configurationsOf(f *watch.Follower) []configuration {
	var list []configuration
	for _, object := range objectsOf[*unstructured.Unstructured](f) {
		if !isThere(object) {
			continue
		}
		c := configuration{name: object.GetName()}
		c.namespace, _, _ = unstructured.NestedString(object.Object, "spec", "proxyServer", "namespace")
		userServer, _, _ := unstructured.NestedFieldNoCopy(object.Object, "spec", "userServer")
		c.userServer = userServer != nil
		list = append(list, c)
	}
	slices.SortFunc(list, func(a, b configuration) int { return cmp.Compare(a.name, b.name) })
	return list
}
