package decisions

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
	clusterv1beta2 "open-cluster-management.io/api/cluster/v1beta2"
	inventoryv1alpha1 "sigs.k8s.io/cluster-inventory-api/apis/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"open-cluster-management.io/cluster-inventory-addon/internal/apitest"
	"open-cluster-management.io/cluster-inventory-addon/internal/apitest/orders"
	"open-cluster-management.io/cluster-inventory-addon/pkg/contract"
	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/selection/rule"
	"open-cluster-management.io/cluster-inventory-addon/pkg/kube"
	"open-cluster-management.io/cluster-inventory-addon/pkg/kube/watch"
)

// TestOrders explores all orders of a small world with one publishing Placement, whose slices
// refer to profiles.
func TestOrders(t *testing.T) {
	orders.SearchAll(t, placementScenarios(), func() orders.Part { return &referring{} })
}

// Forbidden states in addition to those that package orders defines for profiles.
const (
	referenceEarly   = "a reference to a profile that does not exist"
	referenceRemoved = "a reference removed that no state of the hub denied"
	referenceWrong   = "a reference missing or left when nothing happens any more"
	sliceMissing     = "no slice of a Placement that has decided for no cluster"
	sliceLeft        = "a slice of a Placement that publishes nothing"
)

// referring is the part of the world that Reconciler is: the slices of one Placement.
type referring struct {
	world      *orders.World
	reconciler *Reconciler
	state      *orders.State // during a step
}

// progress is a plan whose writes are not all sent.
type progress struct {
	observed observed
	writes   []write
	all      []write
	failed   bool
}

var thePlacement = types.NamespacedName{Namespace: "n1", Name: "p1"}

// Start implements orders.Part.
func (c *referring) Start(w *orders.World) map[string]any {
	if c.world != w {
		c.prepare(w)
	}
	w.Rule.SubscribeReferences(func(types.NamespacedName) {}) // everything is reconciled at any time
	return map[string]any{
		"expected slices": &kube.Expectations{},
		"unseen":          &kube.Memory[types.NamespacedName, unseen]{},
	}
}

func (c *referring) prepare(w *orders.World) {
	c.world = w
	ctx := context.Background()
	for _, index := range indexes {
		orders.Must(w.Cache.IndexField(ctx, &inventoryv1alpha1.PlacementDecision{}, index.name, index.extract))
	}
	definitions := watch.NewDefinitions(w.Live, w)
	of := watch.Source{CRD: sigDecisionCRD, Informer: apitest.SyncedInformer{}, OwnWork: true}
	orders.Must(definitions.Follow(ctx, w.Cache, false, of))
	c.reconciler = &Reconciler{Decisions: &Decisions{
		opts: Options{Rule: w.Rule, Definitions: definitions, Clock: w}, reader: w.Cache,
	}, writer: sliceWriter{c: c}}
	c.reconciler.started.Store(true)
}

// recall makes everything use what the state remembers.
func (c *referring) recall(s *orders.State) {
	c.state = s
	c.reconciler.expectations = s.Memory["expected slices"].(*kube.Expectations)
	c.reconciler.unseen = s.Memory["unseen"].(*kube.Memory[types.NamespacedName, unseen])
	orders.Field(c.reconciler, "brake").SetZero()
}

// Stop implements orders.Part: what was in progress is lost.
func (c *referring) Stop(s *orders.State) { s.Extra = nil }

// Idle implements orders.Part. A profile that must not be referred to is about to be deleted, or to
// stay after all.
func (c *referring) Idle(s *orders.State) bool {
	return s.Extra == nil && !slices.ContainsFunc(s.Pairs(), func(pair types.NamespacedName) bool {
		return c.world.Referable(s, pair) == rule.No
	})
}

// References implements orders.Part.
func (c *referring) References(s *orders.State) orders.ProfileReferences {
	c.recall(s)
	return c.reconciler
}

// Delivered implements orders.Part.
func (c *referring) Delivered(
	_ *orders.World, s *orders.State, kind orders.Kind, key types.NamespacedName, before client.Object,
) {
	if kind != orders.References {
		return
	}
	c.recall(s)
	for _, obj := range []client.Object{before, orders.Cached[*inventoryv1alpha1.PlacementDecision](s, kind, key)} {
		if slice, ok := obj.(*inventoryv1alpha1.PlacementDecision); ok && slice != nil {
			c.reconciler.check(context.Background(), key.Namespace, referredClusters(slice))
		}
	}
}

// Steps implements orders.Part.
func (c *referring) Steps(_ *orders.World, s *orders.State) []orders.Step {
	if s.Extra == nil {
		return []orders.Step{{Name: "reconcile the Placement", Do: func(s *orders.State) error {
			c.recall(s)
			return c.plan(s)
		}}}
	}
	return []orders.Step{{Name: "send the next slice", Do: func(s *orders.State) error {
		c.recall(s)
		return c.send(s)
	}}}
}

// plan is Reconciler.Reconcile up to its first write.
func (c *referring) plan(s *orders.State) error {
	ctx, r := context.Background(), c.reconciler
	o, err := r.observe(ctx, thePlacement)
	if err != nil || r.catchUp(ctx, thePlacement, o) > 0 {
		return err
	}
	choice, err := r.opts.Rule.Choice(ctx, thePlacement)
	if err != nil {
		return err
	}
	writes, _, err := r.plan(ctx, thePlacement, o, choice)
	if err != nil || !r.begin(ctx, thePlacement, added(o.current, writes)) || len(writes) == 0 {
		return err
	}
	s.Extra = &progress{observed: o, writes: writes, all: writes}
	return nil
}

// send is one turn of Reconciler.apply.
func (c *referring) send(s *orders.State) error {
	next := *s.Extra.(*progress)
	w := next.writes[0]
	next.writes = next.writes[1:]
	next.observed.objects = maps.Clone(next.observed.objects)
	var violation error
	if !next.failed || !movesOut(next.observed.objects[w.slice.name], w, next.all) {
		before := c.referred()
		err := c.reconciler.send(context.Background(), thePlacement, next.observed, w)
		switch {
		case err == nil:
			violation = c.check(before, c.referred())
		case apierrors.IsConflict(err), apierrors.IsAlreadyExists(err), apierrors.IsNotFound(err):
			next.failed = true
		default:
			return err
		}
	}
	if s.Extra = &next; len(next.writes) == 0 {
		s.Extra = nil
	}
	return violation
}

// referred returns the clusters to which the hub's slices refer.
func (c *referring) referred() []string {
	var clusters []string
	for _, key := range c.state.Keys(orders.References) {
		clusters = append(clusters, referredClusters(
			orders.Get[*inventoryv1alpha1.PlacementDecision](c.state, orders.References, key))...)
	}
	return clusters
}

func (c *referring) check(before, after []string) error {
	for _, cluster := range after {
		pair := types.NamespacedName{Namespace: thePlacement.Namespace, Name: cluster}
		profile := orders.Get[*inventoryv1alpha1.ClusterProfile](c.state, orders.Profiles, pair)
		if !slices.Contains(before, cluster) && !orders.IsMarked(profile) {
			return orders.Violated(referenceEarly, "%s", pair)
		}
	}
	for _, cluster := range before {
		pair := types.NamespacedName{Namespace: thePlacement.Namespace, Name: cluster}
		if slices.Contains(after, cluster) || c.state.Denied(pair) {
			continue
		}
		if c.hasLeft(cluster) && c.state.Ticks() > 0 { // another Placement chooses it
			continue
		}
		if _, denied := c.state.Shown(pair); denied {
			return orders.Violated(orders.MixedRemoved, "the reference to %s", pair)
		}
		if isPublishing(orders.Get[*clusterv1beta1.Placement](c.state, orders.Placements, thePlacement)) {
			return orders.Violated(referenceRemoved, "%s", pair)
		}
	}
	return nil
}

// hasLeft reports whether the hub or the cache shows that the Placement chooses others: its slices are
// complete, and none of them lists the cluster.
func (c *referring) hasLeft(cluster string) bool {
	return hasLeft(cluster, orders.Get[*clusterv1beta1.Placement](c.state, orders.Placements, thePlacement),
		func(slice types.NamespacedName) *clusterv1beta1.PlacementDecision {
			return orders.Get[*clusterv1beta1.PlacementDecision](c.state, orders.Decisions, slice)
		}) ||
		hasLeft(cluster, orders.Cached[*clusterv1beta1.Placement](c.state, orders.Placements, thePlacement),
			func(slice types.NamespacedName) *clusterv1beta1.PlacementDecision {
				return orders.Cached[*clusterv1beta1.PlacementDecision](c.state, orders.Decisions, slice)
			})
}

func hasLeft(
	cluster string, placement *clusterv1beta1.Placement,
	sliceOf func(types.NamespacedName) *clusterv1beta1.PlacementDecision,
) bool {
	if placement == nil {
		return false
	}
	chosen := sets.New[string]()
	found := 0
	for n := range 2 {
		key := types.NamespacedName{Namespace: placement.Namespace, Name: fmt.Sprintf("%s-decision-%d", placement.Name, n)}
		slice := sliceOf(key)
		if slice == nil {
			continue
		}
		found++
		for _, decision := range slice.Status.Decisions {
			chosen.Insert(decision.ClusterName)
		}
	}
	return found > 0 && !chosen.Has(cluster) && chosen.Len() >= int(placement.Status.NumberOfSelectedClusters)
}

// Check implements orders.Part.
func (c *referring) Check(_ *orders.World, s *orders.State) error {
	c.recall(s)
	namespace := orders.Get[client.Object](s, orders.Namespaces, types.NamespacedName{Name: thePlacement.Namespace})
	if namespace.GetDeletionTimestamp() != nil {
		return nil // everything in it is deleted
	}
	referred := c.referred()
	placement := orders.Get[*clusterv1beta1.Placement](s, orders.Placements, thePlacement)
	decision := orders.Get[*clusterv1beta1.PlacementDecision](s, orders.Decisions,
		types.NamespacedName{Namespace: thePlacement.Namespace, Name: thePlacement.Name + "-decision-0"})
	if decision == nil { // it was lost with its CRD
		return nil
	}
	isComplete := placement != nil && len(decision.Status.Decisions) == int(placement.Status.NumberOfSelectedClusters)
	for _, pair := range s.Pairs() {
		entitled, denied := s.Said(pair)
		isReferred, isChosen := slices.Contains(referred, pair.Name), false
		for _, d := range decision.Status.Decisions {
			isChosen = isChosen || d.ClusterName == pair.Name
		}
		profile := orders.Get[*inventoryv1alpha1.ClusterProfile](s, orders.Profiles, pair)
		isWanted := isPublishing(placement) && isComplete && isChosen && orders.IsMarked(profile)
		if isWanted && entitled && !isReferred || isReferred && (denied || isComplete && !isWanted) {
			return orders.Violated(referenceWrong, "%s: entitled %t, denied %t, there %t", pair, entitled, denied, isReferred)
		}
	}
	return c.checkSlices(s, placement, isComplete && len(decision.Status.Decisions) == 0)
}

// checkSlices checks that there is a slice if the Placement has decided for no cluster and some profile exists, and
// none if no binding publishes, or the Placement does not.
func (c *referring) checkSlices(s *orders.State, placement *clusterv1beta1.Placement, isEmpty bool) error {
	some := len(s.Keys(orders.References)) > 0
	binding := orders.Get[*clusterv1beta2.ManagedClusterSetBinding](s, orders.Bindings,
		types.NamespacedName{Namespace: thePlacement.Namespace, Name: "s1"})
	bound := metav1.ConditionFalse
	if binding != nil && binding.DeletionTimestamp == nil && binding.Labels[contract.LabelPublish] != "false" {
		bound = metav1.ConditionUnknown
		if len(binding.Status.Conditions) > 0 {
			bound = binding.Status.Conditions[0].Status
		}
	}
	profiles := slices.DeleteFunc(s.Pairs(), func(pair types.NamespacedName) bool {
		return !orders.IsMarked(orders.Get[*inventoryv1alpha1.ClusterProfile](s, orders.Profiles, pair))
	})
	switch {
	case some && (!isPublishing(placement) || bound == metav1.ConditionFalse):
		return orders.Violated(sliceLeft, "bound: %s", bound)
	case !some && isPublishing(placement) && bound == metav1.ConditionTrue && isEmpty && len(profiles) > 0:
		return orders.Violated(sliceMissing, "%s", profiles)
	}
	return nil
}

func isPublishing(placement *clusterv1beta1.Placement) bool {
	return placement != nil && placement.DeletionTimestamp == nil && placement.Labels[contract.LabelPublish] == "true"
}

// sliceWriter writes PlacementDecisions to the state that is explored.
type sliceWriter struct {
	client.Client
	c *referring
}

var sliceResource = schema.GroupResource{Resource: "placementdecisions"}

func (w sliceWriter) Create(_ context.Context, obj client.Object, _ ...client.CreateOption) error {
	if w.now(obj) != nil {
		return apierrors.NewAlreadyExists(sliceResource, obj.GetName())
	}
	w.c.state.Create(orders.References, obj)
	return nil
}

func (w sliceWriter) now(obj client.Object) *inventoryv1alpha1.PlacementDecision {
	return orders.Get[*inventoryv1alpha1.PlacementDecision](
		w.c.state, orders.References, client.ObjectKeyFromObject(obj))
}

func (w sliceWriter) Delete(_ context.Context, obj client.Object, opts ...client.DeleteOption) error {
	only := (&client.DeleteOptions{}).ApplyOptions(opts).Preconditions
	switch now := w.now(obj); {
	case now == nil:
		return apierrors.NewNotFound(sliceResource, obj.GetName())
	case only == nil || only.UID == nil || only.ResourceVersion == nil:
		return fmt.Errorf("deleting %s without its version", obj.GetName())
	case *only.UID != now.UID, *only.ResourceVersion != now.ResourceVersion:
		return apierrors.NewConflict(sliceResource, obj.GetName(), nil)
	}
	w.c.state.Delete(orders.References, client.ObjectKeyFromObject(obj))
	return nil
}

func (w sliceWriter) Patch(_ context.Context, obj client.Object, by client.Patch, _ ...client.PatchOption) error {
	body, err := by.Data(obj)
	if err != nil {
		return err
	}
	var patch struct {
		Metadata struct {
			ResourceVersion string
			Labels          map[string]*string
		}
		Decisions     []inventoryv1alpha1.ClusterDecision
		SchedulerName string
	}
	if err := json.Unmarshal(body, &patch); err != nil {
		return err
	}
	now := w.now(obj)
	switch {
	case now == nil:
		return apierrors.NewNotFound(sliceResource, obj.GetName())
	case patch.Metadata.ResourceVersion != now.ResourceVersion:
		return apierrors.NewConflict(sliceResource, obj.GetName(), nil)
	}
	next := now.DeepCopy()
	for key, value := range patch.Metadata.Labels {
		if value == nil {
			delete(next.Labels, key)
		} else {
			next.Labels[key] = *value
		}
	}
	if patch.Decisions != nil {
		next.Decisions = patch.Decisions
	}
	w.c.state.Update(orders.References, next)
	*obj.(*inventoryv1alpha1.PlacementDecision) = *next
	return nil
}

func placementScenarios() []orders.Scenario {
	begin := func(s *orders.State) {
		orders.Fleet(s, "c1", "c2")
		s.AddPlacement("n1", "p1")
		s.Place("n1", "p1", "c1")
		s.Publish("n1", "c1")
		s.Create(orders.References, desiredDecision("n1", "p1", slice{name: nameOf("p1", 0), clusters: []string{"c1"}}))
	}
	placed := orders.Exists(orders.Placements, "n1", "p1")
	return []orders.Scenario{
		beginning(), adding(), unbinding(begin), losing(begin), leaving(begin),
		{
			Name: "referring", Pairs: orders.PairsOf("n1", "c1", "c2"), Budget: 3, Crashes: 1, Losses: 1,
			Tick: 2 * time.Second, Ticks: 2, Begin: begin,
			Changes: []orders.Change{
				{Name: "choose c2", If: placed, Do: func(s *orders.State) { s.Place("n1", "p1", "c2") }},
				{Name: "choose both", If: placed, Do: func(s *orders.State) { s.Place("n1", "p1", "c1", "c2") }},
				{Name: "choose none", If: placed, Do: func(s *orders.State) { s.Place("n1", "p1") }},
				orders.Changes(orders.Clusters, "", "c1", "reject", func(c *clusterv1.ManagedCluster) {
					c.Spec.HubAcceptsClient = false
				}),
				orders.Changes(orders.Clusters, "", "c1", "accept", func(c *clusterv1.ManagedCluster) {
					c.Spec.HubAcceptsClient = true
				}),
			},
		},
		{
			Name: "withdrawing", Pairs: orders.PairsOf("n1", "c1", "c2"), Budget: 3, Crashes: 1,
			Tick: 11 * time.Second, Ticks: 2, Begin: begin,
			Changes: []orders.Change{
				orders.Deletes(orders.Bindings, "n1", "s1"),
				{
					Name: "bind s1 to n1", If: orders.Absent(orders.Bindings, "n1", "s1"),
					Do: func(s *orders.State) { s.Bind("n1", "s1") },
				},
				{Name: "slice c1 c2", If: placed, Do: func(s *orders.State) { s.Slice("n1", "p1", "c1", "c2") }},
				{Name: "select 2", If: placed, Do: func(s *orders.State) { s.Schedule("n1", "p1", 2) }},
				orders.Deletes(orders.Placements, "n1", "p1"),
			},
		},
	}
}

// beginning: a Placement that has decided for no cluster has no slice yet, while another one chooses a cluster.
func beginning() orders.Scenario {
	return orders.Scenario{
		Name: "beginning", Pairs: orders.PairsOf("n1", "c1"), Budget: 2, Crashes: 0,
		Tick: 2 * time.Second, Ticks: 1,
		Begin: func(s *orders.State) {
			orders.Fleet(s, "c1")
			s.AddPlacement("n1", "p1")
			s.Place("n1", "p1")
			s.AddPlacement("n1", "p2")
			s.Place("n1", "p2", "c1")
			s.Publish("n1", "c1")
		},
		Changes: []orders.Change{
			{Name: "slice c1", Do: func(s *orders.State) { s.Slice("n1", "p1", "c1") }},
			{Name: "select 1", Do: func(s *orders.State) { s.Schedule("n1", "p1", 1) }},
			orders.Deletes(orders.Addons, "c1", contract.AddonName),
		},
	}
}

// adding: a profile is to be referred to for the first time, while its cluster goes and comes.
func adding() orders.Scenario {
	return orders.Scenario{
		Name: "adding", Pairs: orders.PairsOf("n1", "c1"), Budget: 2, Crashes: 0, Ticks: 0,
		Begin: func(s *orders.State) {
			orders.Fleet(s, "c1")
			s.AddPlacement("n1", "p1")
			s.Place("n1", "p1", "c1")
			s.Publish("n1", "c1")
		},
		Changes: []orders.Change{
			orders.Changes(orders.Clusters, "", "c1", "reject", func(c *clusterv1.ManagedCluster) {
				c.Spec.HubAcceptsClient = false
			}),
			orders.Changes(orders.Clusters, "", "c1", "accept", func(c *clusterv1.ManagedCluster) {
				c.Spec.HubAcceptsClient = true
			}),
		},
	}
}

// unbinding: the Placement, its namespace or the only binding there ceases to publish.
func unbinding(begin func(*orders.State)) orders.Scenario {
	binding := func(what string, change func(*clusterv1beta2.ManagedClusterSetBinding)) orders.Change {
		return orders.Changes(orders.Bindings, "n1", "s1", what, change)
	}
	return orders.Scenario{
		Name: "unbinding", Pairs: orders.PairsOf("n1", "c1"), Budget: 2, Crashes: 0,
		Tick: 11 * time.Second, Ticks: 1, Begin: begin,
		Changes: []orders.Change{
			binding("forget the condition of", func(b *clusterv1beta2.ManagedClusterSetBinding) { b.Status.Conditions = nil }),
			binding("unbind", func(b *clusterv1beta2.ManagedClusterSetBinding) {
				b.Status.Conditions = []metav1.Condition{
					{Type: clusterv1beta2.ClusterSetBindingBoundType, Status: metav1.ConditionFalse},
				}
			}),
			binding("withhold", func(b *clusterv1beta2.ManagedClusterSetBinding) {
				b.Labels = map[string]string{contract.LabelPublish: "false"}
			}),
			orders.Changes(orders.Placements, "n1", "p1", "unpublish", func(p *clusterv1beta1.Placement) { p.Labels = nil }),
			orders.Changes(orders.Namespaces, "", "n1", "begin to delete", orders.Terminating[*metav1.PartialObjectMetadata]),
			{Name: "choose none", Do: func(s *orders.State) { s.Place("n1", "p1") }},
		},
	}
}

// losing: another client deletes a profile to which a slice refers.
func losing(begin func(*orders.State)) orders.Scenario {
	return orders.Scenario{
		Name: "losing", Pairs: orders.PairsOf("n1", "c1"), Budget: 2, Crashes: 0, Ticks: 0, Begin: begin,
		Changes: []orders.Change{
			orders.Deletes(orders.Profiles, "n1", "c1"),
			orders.Changes(orders.Clusters, "", "c1", "reject", func(c *clusterv1.ManagedCluster) {
				c.Spec.HubAcceptsClient = false
			}),
		},
	}
}

// leaving: the Placement ceases to choose a cluster that another one still chooses, or must be taken for lost.
func leaving(begin func(*orders.State)) orders.Scenario {
	return orders.Scenario{
		Name: "leaving", Pairs: orders.PairsOf("n1", "c1"), Budget: 2, Crashes: 0, Tick: 2 * time.Second, Ticks: 1,
		Begin: func(s *orders.State) {
			begin(s)
			s.AddPlacement("n1", "p2")
			s.Place("n1", "p2", "c1")
			s.AddDefinition(rule.DecisionCRD)
		},
		Changes: []orders.Change{
			{Name: "slice none", Do: func(s *orders.State) { s.Slice("n1", "p1") }},
			{Name: "select none", Do: func(s *orders.State) { s.Schedule("n1", "p1", 0) }},
			orders.Loses(rule.DecisionCRD, orders.Decisions),
			orders.Recreates(rule.DecisionCRD),
		},
	}
}
