package selection

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync/atomic"
	"time"

	"golang.org/x/sync/singleflight"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/utils/clock"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
	clusterv1beta2 "open-cluster-management.io/api/cluster/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"open-cluster-management.io/cluster-inventory-addon/pkg/contract"
	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/selection/routes"
	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/selection/rule"
	"open-cluster-management.io/cluster-inventory-addon/pkg/kube"
)

const (
	// liveTimeout bounds a live read.
	liveTimeout = 10 * time.Second

	// liveKept is how long a live read serves those for whom it is recent enough.
	liveKept = time.Minute
)

// liveReads reads decisive objects live. One read serves all callers that ask for the same
// and for whom it is recent enough: hundreds of clusters leave a Placement at once. It is
// safe for concurrent use.
type liveReads struct {
	reader client.Reader
	clock  clock.PassiveClock
	group  singleflight.Group
	reads  kube.Memory[string, liveRead]
	swept  atomic.Pointer[time.Time]
}

type liveRead struct {
	began time.Time
	found any
}

func newLiveReads(reader client.Reader, clock clock.PassiveClock) *liveReads {
	return &liveReads{reader: reader, clock: clock}
}

// recent returns the later of a time and the last second, whose reads all callers share.
func (l *liveReads) recent(since time.Time) time.Time {
	if recent := l.clock.Now().Add(-settleTime); recent.After(since) {
		return recent
	}
	return since
}

// placement reads a Placement and its slices, nil if it does not exist, not before the given
// time.
func (l *liveReads) placement(
	ctx context.Context, key types.NamespacedName, since time.Time,
) (*rule.Placement, error) {
	found, err := l.shared(ctx, placementRead(key), since, func(ctx context.Context) (any, error) {
		// The slices first: OCM writes them before the Placement's status. No label can name a longer name.
		decisions := &clusterv1beta1.PlacementDecisionList{}
		if len(key.Name) <= validation.LabelValueMaxLength {
			of := client.MatchingLabels{clusterv1beta1.PlacementLabel: key.Name}
			if err := l.reader.List(ctx, decisions, client.InNamespace(key.Namespace), of); err != nil {
				return nil, fmt.Errorf("reading the decisions of Placement %s: %w", key, err)
			}
		}
		// There is a right to list Placements, and none to get them.
		named := &clusterv1beta1.PlacementList{}
		if err := l.reader.List(ctx, named, client.InNamespace(key.Namespace), nameIs(key.Name)); err != nil {
			return nil, fmt.Errorf("reading Placement %s: %w", key, err)
		}
		if len(named.Items) == 0 {
			return (*rule.Placement)(nil), nil
		}
		p := rule.NewPlacement(&named.Items[0], decisions.Items)
		return &p, nil
	})
	if err != nil {
		return nil, err
	}
	return found.(*rule.Placement), nil
}

func nameIs(name string) client.ListOption {
	return client.MatchingFields{metav1.ObjectNameField: name}
}

// shared returns the result of a read that did not begin before the given time.
func (l *liveReads) shared(
	ctx context.Context, key string, since time.Time, read func(context.Context) (any, error),
) (any, error) {
	for {
		if last, ok := l.reads.Load(key); ok && !last.began.Before(since) {
			return last.found, nil
		}
		// A read that another caller started may have begun too early.
		got, err, _ := l.group.Do(key, func() (any, error) {
			ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), liveTimeout)
			defer cancel()
			next := liveRead{began: l.clock.Now()}
			var err error
			if next.found, err = read(ctx); err == nil {
				l.keep(key, next)
			}
			return next, err
		})
		if err != nil {
			return nil, err
		}
		if got := got.(liveRead); !got.began.Before(since) {
			return got.found, nil
		}
		if err := ctx.Err(); err != nil {
			return nil, err
		}
	}
}

// confirm makes sure that the objects a result rests on were not deleted with their CRD. If
// they may have been, the result becomes Unknown: an event of the CRD will enqueue the
// pair. They are also read live while the cache may be older than this process, and if the
// result is pieced together. Placements are read live as well before their absence alone counts,
// in a namespace that requires one. A Yes must hold on the hub, as in ConfirmYes.
func (r *Rule) confirm(
	ctx context.Context, pair types.NamespacedName, o rule.Observation, result rule.Result,
) (rule.Result, error) {
	confirmed, err := r.confirmDefinitions(ctx, result)
	switch {
	case err != nil:
	case confirmed.Answer == rule.Yes:
		confirmed, err = r.recheckYes(ctx, pair, o, confirmed)
	case confirmed.Answer != rule.No || result.Going:
	case o.Lagging.Any(result.Rests...), isPieced(o, result):
		confirmed, err = r.recheckNo(ctx, pair, o, confirmed, r.clock.Now())
	case len(result.Rests) == 1 && result.Rests[0] == rule.PlacementCRD:
		confirmed, err = r.recheckNo(ctx, pair, o, confirmed, r.live.recent(time.Time{}))
	}
	if err == nil && slices.Contains(result.Rests, rule.PlacementCRD) && confirmed.Answer != rule.Unknown {
		r.settling.rememberDeleted(pair.Namespace, r.clock.Now())
	}
	return confirmed, err
}

// isPieced reports whether a No joins what the caches of bindings, sets and clusters show, or those of
// addons and of the install strategy, which have separate watches. When a second set was bound before
// the cluster moved there, a set unbound after it had left that, or the strategy changed after it had
// created an addon again, they may show together what the hub never was.
func isPieced(o rule.Observation, no rule.Result) bool {
	return slices.Contains(no.Rests, rule.SetCRD) && !slices.Contains(no.Rests, rule.PlacementCRD) ||
		slices.Contains(no.Rests, rule.AddonCRD) && o.Addon == nil
}

// confirmDefinitions is confirm for results that concern no pair.
func (r *Rule) confirmDefinitions(ctx context.Context, result rule.Result) (rule.Result, error) {
	confirm := r.definitions.Confirm
	if result.Going {
		confirm = r.definitions.ConfirmPresent
	}
	doubtful, err := confirm(ctx, result.Rests...)
	if doubtful != "" {
		result = result.Doubt(doubtful)
	}
	return result, err
}

// recheckNo decides a No again with live reads of the kinds on which it rests. It reads only
// those that it needs, and no earlier than the given time. If they say otherwise, the answer
// is Unknown until the cache has caught up.
func (r *Rule) recheckNo(
	ctx context.Context, pair types.NamespacedName, o rule.Observation, result rule.Result, since time.Time,
) (rule.Result, error) {
	live := o
	for _, crd := range result.Rests {
		var err error
		switch crd {
		case rule.ClusterCRD:
			live.Cluster, err = r.live.cluster(ctx, pair.Name)
		case rule.AddonCRD:
			key := types.NamespacedName{Namespace: pair.Name, Name: contract.AddonName}
			live.Addon, err = liveObject[addonv1beta1.ManagedClusterAddOn](ctx, r.live, key,
				&addonv1beta1.ManagedClusterAddOnList{}, since)
		case rule.BindingCRD:
			live.Bindings, _, err = r.live.bindings(ctx, pair.Namespace, since)
		case rule.PlacementCRD:
			live.Placements, err = r.observeLivePlacements(ctx, pair, since)
		}
		if err != nil {
			return result, err
		}
	}
	// What is missing from the cache may have hidden another reason, which was not read live.
	isUnread := func(crd string) bool { return !slices.Contains(result.Rests, crd) }
	if now := rule.Pair(live); now.Answer == rule.No && !slices.ContainsFunc(now.Rests, isUnread) {
		return result, nil
	}
	return result.Lagging(), nil
}

func (r *Rule) observeLivePlacements(
	ctx context.Context, pair types.NamespacedName, since time.Time,
) ([]rule.ObservedPlacement, error) {
	publishing, err := r.live.publishing(ctx, pair.Namespace, since)
	if err != nil {
		return nil, err
	}
	placements := make([]rule.ObservedPlacement, 0, len(publishing))
	for _, name := range slices.Sorted(maps.Keys(publishing)) {
		placements = append(placements, publishing[name].Observed(pair.Name))
	}
	return placements, nil
}

// ConfirmYes decides a Yes about a pair again, with the bindings of the namespace, their sets and
// the cluster read live, for what must not be given to a namespace by mistake. Their caches are
// of different ages: a cluster that moves to a set which was just unbound seems to be bound
// until the unbinding is seen, and a namespace whose binding is seen before its Placement seems to show all
// clusters of the set. If the hub says otherwise, the answer is Unknown.
func (r *Rule) ConfirmYes(ctx context.Context, pair types.NamespacedName) (rule.Result, error) {
	o, result, err := r.Observe(ctx, pair)
	if err != nil || result.Answer != rule.Yes {
		return result, err
	}
	return r.recheckYes(ctx, pair, o, result)
}

// recheckYes is ConfirmYes for a Yes about what was observed.
func (r *Rule) recheckYes(
	ctx context.Context, pair types.NamespacedName, o rule.Observation, result rule.Result,
) (rule.Result, error) {
	live, since, before := o, r.granting.recent(time.Time{}), ""
	var err error
	if len(o.Placements) == 0 { // the namespace may require one
		key, list := types.NamespacedName{Name: pair.Namespace}, kube.PartialList(kube.NamespaceKind)
		if live.Namespace, err = liveObject[metav1.PartialObjectMetadata](ctx, r.granting, key, list, since); err != nil {
			return result, err
		}
	}
	for range 2 {
		var version string
		if live.Bindings, version, err = r.granting.bindings(ctx, pair.Namespace, since); err != nil {
			return result, err
		}
		same, err := r.readRegistration(ctx, &live)
		if err != nil {
			return result, err
		}
		if !same {
			break
		}
		// The bindings were read while the cluster was so: it has not changed since, or not between
		// two reads of it.
		if now := live.Cluster.ResourceVersion; !kube.IsNewer(now, version) || now == before {
			if rule.Pair(live).Answer != rule.Yes {
				break
			}
			isHidden := false
			if len(o.Placements) == 0 {
				isHidden, err = r.granting.hasPublishing(ctx, pair.Namespace, version, since)
			}
			if isHidden {
				break
			}
			return result, err
		}
		before, since = live.Cluster.ResourceVersion, r.clock.Now()
	}
	return result.Lagging(), nil
}

// readRegistration reads an observation's cluster live, and its addon if that is not younger:
// it may be of a cluster that had the name before. same is false unless they are those observed.
func (r *Rule) readRegistration(ctx context.Context, o *rule.Observation) (same bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, liveTimeout)
	defer cancel()
	cluster, addon, reader := o.Cluster, o.Addon, r.granting.reader
	if o.Cluster, err = r.granting.cluster(ctx, o.Name); err != nil || o.Cluster == nil || o.Cluster.UID != cluster.UID {
		return false, err
	}
	if addon == nil || o.Cluster.CreationTimestamp.Before(&addon.CreationTimestamp) {
		return true, nil
	}
	key := types.NamespacedName{Namespace: o.Name, Name: contract.AddonName}
	o.Addon, err = readObject[addonv1beta1.ManagedClusterAddOn](ctx, reader, key, &addonv1beta1.ManagedClusterAddOnList{})
	return err == nil && o.Addon != nil && o.Addon.UID == addon.UID, err
}

// IsOutdated reports whether the hub has a newer version of an observed cluster. Only a cache that may be
// older than this process is doubted, so it reads nothing otherwise, and then once a second at most.
func (r *Rule) IsOutdated(ctx context.Context, o rule.Observation) (bool, error) {
	if o.Cluster == nil || !o.Lagging.Any(rule.ClusterCRD) {
		return false, nil
	}
	key, since := types.NamespacedName{Name: o.Name}, r.granting.recent(time.Time{})
	found, err := r.granting.shared(ctx, "version of cluster "+o.Name, since, func(ctx context.Context) (any, error) {
		clusters := kube.PartialList(clusterKind("v1", "ManagedCluster"))
		return readObject[metav1.PartialObjectMetadata](ctx, r.granting.reader, key, clusters)
	})
	if err != nil {
		return false, err
	}
	live := found.(*metav1.PartialObjectMetadata)
	return live == nil || kube.IsNewer(live.ResourceVersion, o.Cluster.ResourceVersion), nil
}

// liveInstalls reads the install strategy and its Placements, not before the addon was seen absent: the
// caches of these and of addons have separate watches, and any of them may lag. wait is how long to wait for
// the next read: clusters lose the addon many at a time, and one read a second serves all of them.
func (r *Rule) liveInstalls(
	ctx context.Context, cluster string, since time.Time,
) (read *rule.Installs, wait time.Duration, err error) {
	since = r.live.recent(since)
	definitions := &addonv1beta1.ClusterManagementAddOnList{}
	if wait := r.live.tooSoon(objectRead(definitions, definitionKey), since); wait > 0 {
		return nil, wait, nil
	}
	definition, err := liveObject[addonv1beta1.ClusterManagementAddOn](ctx, r.live, definitionKey, definitions, since)
	if err != nil {
		return nil, 0, err
	}
	read = rule.NewInstalls(definition)
	for i, key := range read.Keys {
		if wait := r.live.tooSoon(placementRead(key), since); wait > 0 {
			return nil, wait, nil
		}
		p, err := r.live.placement(ctx, key, since)
		if err != nil {
			return nil, 0, err
		}
		if p != nil {
			now := p.Observed(cluster)
			read.Placements[i] = &now
		}
	}
	return read, 0, nil
}

// liveObject reads one object as readObject does, not before the given time.
func liveObject[T any](
	ctx context.Context, l *liveReads, key types.NamespacedName, list client.ObjectList, since time.Time,
) (*T, error) {
	found, err := l.shared(ctx, objectRead(list, key), since, func(ctx context.Context) (any, error) {
		return readObject[T](ctx, l.reader, key, list)
	})
	if err != nil {
		return nil, err
	}
	return found.(*T), nil
}

// readObject reads one object, nil if it does not exist. There is a right to list all kinds of which
// the rule reads objects, and none to get them.
func readObject[T any](
	ctx context.Context, reader client.Reader, key types.NamespacedName, list client.ObjectList,
) (*T, error) {
	if err := reader.List(ctx, list, client.InNamespace(key.Namespace), nameIs(key.Name)); err != nil {
		return nil, fmt.Errorf("reading %s: %w", objectRead(list, key), err)
	}
	items, err := meta.ExtractList(list)
	if err != nil || len(items) == 0 {
		return nil, err
	}
	object, _ := any(items[0]).(*T)
	return object, nil
}

// cluster reads a cluster. What is read is not kept for others: there are as many clusters as profiles, and
// spokes decide how large they are.
func (l *liveReads) cluster(ctx context.Context, name string) (*clusterv1.ManagedCluster, error) {
	ctx, cancel := context.WithTimeout(ctx, liveTimeout)
	defer cancel()
	key := types.NamespacedName{Name: name}
	return readObject[clusterv1.ManagedCluster](ctx, l.reader, key, &clusterv1.ManagedClusterList{})
}

// bindings reads the set bindings of a namespace, and then their sets. version is the resource
// version of the former.
func (l *liveReads) bindings(
	ctx context.Context, namespace string, since time.Time,
) (bindings []rule.Binding, version string, err error) {
	found, err := l.shared(ctx, "bindings in "+namespace, since, func(ctx context.Context) (any, error) {
		list := &clusterv1beta2.ManagedClusterSetBindingList{}
		if err := l.reader.List(ctx, list, client.InNamespace(namespace)); err != nil {
			return nil, fmt.Errorf("reading set bindings: %w", err)
		}
		return list, nil
	})
	if err != nil {
		return nil, "", err
	}
	list := found.(*clusterv1beta2.ManagedClusterSetBindingList)
	bindings = make([]rule.Binding, len(list.Items))
	for i := range list.Items {
		bindings[i].Binding = &list.Items[i]
		key := types.NamespacedName{Name: list.Items[i].Spec.ClusterSet}
		bindings[i].Set, err = liveObject[clusterv1beta2.ManagedClusterSet](ctx, l, key,
			&clusterv1beta2.ManagedClusterSetList{}, since)
		if err != nil {
			return nil, "", err
		}
	}
	return bindings, list.ResourceVersion, nil
}

// placements reads some Placements of one namespace and their slices, nil for those that do
// not exist. For more than one it reads all that publish there.
func (l *liveReads) placements(
	ctx context.Context, keys []types.NamespacedName, since time.Time,
) ([]*rule.Placement, error) {
	live := make([]*rule.Placement, len(keys))
	switch len(keys) {
	case 0:
		return nil, nil
	case 1:
		var err error
		live[0], err = l.placement(ctx, keys[0], since)
		return live, err
	}
	all, err := l.publishing(ctx, keys[0].Namespace, since)
	for i, key := range keys {
		live[i] = all[key.Name]
	}
	return live, err
}

// publishing reads the publishing Placements of a namespace with their slices, by name.
func (l *liveReads) publishing(
	ctx context.Context, namespace string, since time.Time,
) (map[string]*rule.Placement, error) {
	found, err := l.shared(ctx, "placements in "+namespace, since, func(ctx context.Context) (any, error) {
		decisions := &clusterv1beta1.PlacementDecisionList{}
		if err := l.reader.List(ctx, decisions, client.InNamespace(namespace)); err != nil {
			return nil, fmt.Errorf("reading PlacementDecisions: %w", err)
		}
		list := &clusterv1beta1.PlacementList{}
		labelled := client.MatchingLabels{contract.LabelPublish: routes.Published}
		if err := l.reader.List(ctx, list, client.InNamespace(namespace), labelled); err != nil {
			return nil, fmt.Errorf("reading publishing Placements: %w", err)
		}
		own := map[string][]clusterv1beta1.PlacementDecision{}
		for i := range decisions.Items {
			of := rule.PlacementOf(&decisions.Items[i])
			own[of] = append(own[of], decisions.Items[i])
		}
		placements := make(map[string]*rule.Placement, len(list.Items))
		for i := range list.Items {
			p := rule.NewPlacement(&list.Items[i], own[list.Items[i].Name])
			placements[list.Items[i].Name] = &p
		}
		return placements, nil
	})
	if err != nil {
		return nil, err
	}
	return found.(map[string]*rule.Placement), nil
}

// hasPublishing reports whether a Placement publishes in a namespace, as of a resource version or later: an older
// read, which is shared, may not show what was created before the bindings that were read since.
func (l *liveReads) hasPublishing(
	ctx context.Context, namespace, version string, since time.Time,
) (has bool, err error) {
	for range 2 {
		found, err := l.shared(ctx, "one Placement in "+namespace, since, func(ctx context.Context) (any, error) {
			list := &clusterv1beta1.PlacementList{}
			labelled := client.MatchingLabels{contract.LabelPublish: routes.Published}
			err := l.reader.List(ctx, list, client.InNamespace(namespace), labelled, client.Limit(1))
			return list, err
		})
		if err != nil {
			return false, fmt.Errorf("looking for publishing Placements: %w", err)
		}
		list := found.(*clusterv1beta1.PlacementList)
		if has = len(list.Items) > 0; has || !kube.IsNewer(version, list.ResourceVersion) {
			break
		}
		since = l.clock.Now()
	}
	return has, nil
}

// tooSoon returns how long to wait before the same is read again for a caller for whom the last
// read began too early, so that one read a second serves all callers.
func (l *liveReads) tooSoon(read string, since time.Time) time.Duration {
	last, ok := l.reads.Load(read)
	if !ok || !last.began.Before(since) {
		return 0
	}
	return kube.TimeLeft(last.began, settleTime, l.clock.Now())
}

func placementRead(key types.NamespacedName) string { return "placement " + key.String() }

func objectRead(list client.ObjectList, key types.NamespacedName) string {
	return fmt.Sprintf("%T %s", list, key)
}

// keep stores a read, and drops old ones, once in a while.
func (l *liveReads) keep(key string, read liveRead) {
	l.reads.Set(key, read)
	if swept := l.swept.Load(); swept == nil || read.began.Sub(*swept) > liveKept {
		l.swept.Store(&read.began)
		l.reads.DeleteFunc(func(_ string, old liveRead) bool { return read.began.Sub(old.began) > liveKept })
	}
}
