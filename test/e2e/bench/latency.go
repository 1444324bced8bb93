package bench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	clusterv1beta2 "open-cluster-management.io/api/cluster/v1beta2"
	inventoryv1alpha1 "sigs.k8s.io/cluster-inventory-api/apis/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"open-cluster-management.io/cluster-inventory-addon/test/e2e/bench/stats"
	"open-cluster-management.io/cluster-inventory-addon/test/fleet/await"
)

const (
	namespace = "bench-latency"
	setName   = "bench-latency"
	setLabel  = "cluster.open-cluster-management.io/clusterset"
	// bare and those whose names begin with published are ManagedClusters without a klusterlet,
	// so that only the benchmark writes their claims: the bare loop publishes the one, the
	// manager the others.
	published = "bench-published"
	bare      = "bench-bare"
	property  = "bench.example"

	// spread is how many clusters the manager publishes in turn. Each profile has a budget
	// (chart value profiles.writeInterval), which a single one would use up.
	spread = 10
	// spokeEvery is the time between two edits on the spoke, which has one profile: a little
	// more than the budget's interval.
	spokeEvery = 1100 * time.Millisecond

	// warmUp is how many edits of each kind precede the counted ones.
	warmUp = 5
	// pause lets the fleet come to rest between two edits.
	pause = 60 * time.Millisecond
	// lost is how long the run waits for anything.
	lost = 20 * time.Second
	// retryPeriod is between attempts while a run is prepared.
	retryPeriod = 100 * time.Millisecond
)

// Result is the result of one run.
type Result struct {
	// EndToEnd is from before the edit of the ClusterProperty on the spoke until a
	// consumer's watch on the hub shows it in the ClusterProfile.
	EndToEnd stats.Sample
	// HubHop is from before the write of a ManagedCluster's claims until a
	// consumer's watch shows them in its ClusterProfile.
	HubHop stats.Sample
	// Bare is the same as HubHop, with a loop that watches and patches in place
	// of the manager.
	Bare stats.Sample
}

// Print writes the report.
func (r Result) Print(out io.Writer) {
	fmt.Fprintf(out, "property edit on the spoke -> profile   %s\n", r.EndToEnd)
	fmt.Fprintf(out, "ManagedCluster write -> profile         %s\n", r.HubHop)
	fmt.Fprintf(out, "ManagedCluster write -> bare loop       %s\n", r.Bare)
	if p50 := r.Bare.Quantile(0.5); p50 > 0 {
		fmt.Fprintf(out, "hub hop / bare loop                     p50 x %.2f   p99 x %.2f\n",
			float64(r.HubHop.Quantile(0.5))/float64(p50), float64(r.HubHop.Quantile(0.99))/float64(r.Bare.Quantile(0.99)))
	}
}

// Latency measures n edits of each kind, taking turns. The spoke must be in the
// inventory of the hub; hub and spoke are administrators' clients.
func Latency(ctx context.Context, hub, spoke client.WithWatch, cluster string, n int) (_ Result, err error) {
	b := &bench{hub: hub, spoke: spoke, cluster: cluster, profiles: newBoard()}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer func() { err = errors.Join(err, b.tearDown(context.WithoutCancel(ctx))) }()
	if err := b.setUp(ctx); err != nil {
		return Result{}, err
	}
	result := Result{}
	turns := time.NewTicker(spokeEvery)
	defer turns.Stop()
	for i := range warmUp + n {
		value := fmt.Sprintf("%d", i)
		select {
		case <-turns.C:
		case <-ctx.Done():
			return Result{}, ctx.Err()
		}
		endToEnd, err := b.time(ctx, cluster, value, b.editProperty)
		if err != nil {
			return Result{}, err
		}
		next := publishedName(i % spread)
		hubHop, err := b.time(ctx, next, value, b.writeClaims(next))
		if err != nil {
			return Result{}, err
		}
		loop, err := b.time(ctx, bare, value, b.writeClaims(bare))
		if err != nil {
			return Result{}, err
		}
		if i >= warmUp {
			result.EndToEnd = append(result.EndToEnd, endToEnd)
			result.HubHop = append(result.HubHop, hubHop)
			result.Bare = append(result.Bare, loop)
		}
	}
	return result, nil
}

type bench struct {
	hub, spoke client.WithWatch
	cluster    string
	before     string
	profiles   *board
}

// time makes an edit and returns how much later the consumer saw it.
func (b *bench) time(
	ctx context.Context, profile, value string, edit func(context.Context, string) error,
) (time.Duration, error) {
	seen := b.profiles.expect(profile, value)
	start := time.Now()
	if err := edit(ctx, value); err != nil {
		return 0, fmt.Errorf("editing %s: %w", profile, err)
	}
	select {
	case at := <-seen:
		rest := time.NewTimer(pause)
		defer rest.Stop()
		select {
		case <-rest.C:
		case <-ctx.Done():
			return 0, ctx.Err()
		}
		return at.Sub(start), nil
	case <-time.After(lost):
		return 0, fmt.Errorf("the edit of %s was not seen within %s", profile, lost)
	case <-ctx.Done():
		return 0, ctx.Err()
	}
}

func (b *bench) editProperty(ctx context.Context, value string) error {
	return b.spoke.Patch(
		ctx, newProperty(), client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"spec":{"value":%q}}`, value)),
	)
}

// writeClaims writes the claims as a klusterlet does: one merge patch of the
// status.
func (b *bench) writeClaims(cluster string) func(context.Context, string) error {
	return func(ctx context.Context, value string) error {
		patch := fmt.Appendf(nil, `{"status":{"clusterClaims":[{"name":%q,"value":%q}]}}`, property, value)
		object := &clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: cluster}}
		return b.hub.Status().Patch(ctx, object, client.RawPatch(types.MergePatchType, patch))
	}
}

func newProperty() *unstructured.Unstructured {
	object := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"value": "start"}}}
	object.SetAPIVersion("about.k8s.io/v1beta1")
	object.SetKind("ClusterProperty")
	object.SetName(property)
	return object
}

func (b *bench) setUp(ctx context.Context) error {
	managed := &clusterv1.ManagedCluster{}
	if err := b.hub.Get(ctx, client.ObjectKey{Name: b.cluster}, managed); err != nil {
		return err
	}
	b.before = managed.Labels[setLabel]
	for _, object := range b.objects() {
		if err := b.hub.Create(ctx, object); err != nil {
			return fmt.Errorf("creating %T %s: %w", object, object.GetName(), err)
		}
	}
	if err := b.moveCluster(ctx, setName); err != nil {
		return err
	}
	for _, cluster := range simulated() {
		if err := looksJoined(ctx, b.hub, cluster); err != nil {
			return err
		}
	}
	for _, cluster := range b.withAddon() {
		err := await.Success(ctx, "the addon to be enabled on "+cluster, lost, retryPeriod, func(ctx context.Context) error {
			return client.IgnoreAlreadyExists(b.hub.Create(ctx, addonOf(cluster)))
		})
		if err != nil {
			return err
		}
	}
	// The addon installs the API.
	err := await.Success(ctx, "a property to be made", lost, retryPeriod, func(ctx context.Context) error {
		return b.spoke.Create(ctx, newProperty())
	})
	if err != nil {
		return err
	}
	for _, cluster := range b.withAddon() {
		profile := &inventoryv1alpha1.ClusterProfile{}
		err := await.Success(ctx, "the profile of "+cluster, lost, retryPeriod, func(ctx context.Context) error {
			return b.hub.Get(ctx, client.ObjectKey{Namespace: namespace, Name: cluster}, profile)
		})
		if err != nil {
			return err
		}
	}
	if err := b.follow(ctx); err != nil {
		return err
	}
	return b.bareLoop(ctx)
}

// objects returns the benchmark's objects on the hub, in order of creation.
func (b *bench) objects() []client.Object {
	managed := func(name string) *clusterv1.ManagedCluster {
		return &clusterv1.ManagedCluster{
			ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{setLabel: setName}},
			Spec:       clusterv1.ManagedClusterSpec{HubAcceptsClient: true, LeaseDurationSeconds: 3600},
		}
	}
	objects := []client.Object{
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}},
		&clusterv1beta2.ManagedClusterSet{
			ObjectMeta: metav1.ObjectMeta{Name: setName},
			Spec: clusterv1beta2.ManagedClusterSetSpec{
				ClusterSelector: clusterv1beta2.ManagedClusterSelector{SelectorType: clusterv1beta2.ExclusiveClusterSetLabel},
			},
		},
		&clusterv1beta2.ManagedClusterSetBinding{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: setName},
			Spec:       clusterv1beta2.ManagedClusterSetBindingSpec{ClusterSet: setName},
		},
		&inventoryv1alpha1.ClusterProfile{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: bare},
			Spec: inventoryv1alpha1.ClusterProfileSpec{
				DisplayName:    bare,
				ClusterManager: inventoryv1alpha1.ClusterManager{Name: "bench"},
			},
		},
	}
	for _, cluster := range simulated() {
		objects = append(objects, managed(cluster))
	}
	return objects
}

// publishedName returns the name of one of the clusters that the manager publishes.
func publishedName(i int) string { return fmt.Sprintf("%s-%d", published, i) }

// simulated returns the clusters without a klusterlet.
func simulated() []string {
	names := []string{bare}
	for i := range spread {
		names = append(names, publishedName(i))
	}
	return names
}

// withAddon returns the clusters whose profiles the manager makes.
func (b *bench) withAddon() []string { return append(simulated()[1:], b.cluster) }

// looksJoined gives a cluster without a klusterlet the status of a joined one.
func looksJoined(ctx context.Context, hub client.Client, cluster string) error {
	object := &clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: cluster}}
	patch := fmt.Appendf(nil, `{"status":{"version":{"kubernetes":"v1.35.4"},"conditions":[`+
		`{"type":"ManagedClusterConditionAvailable","status":"True","reason":"Bench","message":"",`+
		`"lastTransitionTime":%[1]q},`+
		`{"type":"ManagedClusterJoined","status":"True","reason":"Bench","message":"","lastTransitionTime":%[1]q}]}}`,
		time.Now().UTC().Format(time.RFC3339))
	return hub.Status().Patch(ctx, object, client.RawPatch(types.MergePatchType, patch))
}

func (b *bench) moveCluster(ctx context.Context, set string) error {
	patch := fmt.Appendf(nil, `{"metadata":{"labels":{%q:%q}}}`, setLabel, set)
	if set == "" {
		patch = fmt.Appendf(nil, `{"metadata":{"labels":{%q:null}}}`, setLabel)
	}
	return b.hub.Patch(
		ctx,
		&clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: b.cluster}},
		client.RawPatch(types.MergePatchType, patch),
	)
}

// ignoreMissing ignores that an object, or its kind, does not exist.
func ignoreMissing(err error) error {
	if meta.IsNoMatchError(err) {
		return nil
	}
	return client.IgnoreNotFound(err)
}

func addonOf(cluster string) *addonv1beta1.ManagedClusterAddOn {
	return &addonv1beta1.ManagedClusterAddOn{ObjectMeta: metav1.ObjectMeta{Namespace: cluster, Name: "cluster-inventory"}}
}

func (b *bench) tearDown(ctx context.Context) error {
	problems := []error{
		b.moveCluster(ctx, b.before),
		ignoreMissing(b.spoke.Delete(ctx, newProperty())),
	}
	for _, cluster := range simulated() {
		problems = append(problems, letGo(ctx, b.hub, cluster))
	}
	objects := b.objects()
	for i := range objects {
		problems = append(problems, client.IgnoreNotFound(b.hub.Delete(ctx, objects[len(objects)-1-i])))
	}
	return errors.Join(problems...)
}

// letGo removes the addon of a cluster without a klusterlet, which will never clean it up.
func letGo(ctx context.Context, hub client.Client, cluster string) error {
	free := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`))
	return errors.Join(
		client.IgnoreNotFound(hub.Delete(ctx, addonOf(cluster))),
		client.IgnoreNotFound(hub.Patch(ctx, addonOf(cluster), free)))
}

// follow is the consumer: it records when each profile shows a value.
func (b *bench) follow(ctx context.Context) error {
	watcher, err := b.hub.Watch(ctx, &inventoryv1alpha1.ClusterProfileList{}, client.InNamespace(namespace))
	if err != nil {
		return err
	}
	go func() {
		defer watcher.Stop()
		for event := range watcher.ResultChan() {
			profile, ok := event.Object.(*inventoryv1alpha1.ClusterProfile)
			if !ok || event.Type == watch.Deleted {
				continue
			}
			for _, p := range profile.Status.Properties {
				if p.Name == property {
					b.profiles.saw(profile.Name, p.Value)
				}
			}
		}
	}()
	return nil
}

// bareLoop is the minimum that could do the manager's job: on every event of its
// ManagedCluster it patches the properties of its profile.
func (b *bench) bareLoop(ctx context.Context) error {
	watcher, err := b.hub.Watch(ctx, &clusterv1.ManagedClusterList{}, client.MatchingFields{"metadata.name": bare})
	if err != nil {
		return err
	}
	go func() {
		defer watcher.Stop()
		for event := range watcher.ResultChan() {
			managed, ok := event.Object.(*clusterv1.ManagedCluster)
			if !ok || len(managed.Status.ClusterClaims) == 0 ||
				!meta.IsStatusConditionTrue(managed.Status.Conditions, clusterv1.ManagedClusterConditionJoined) {
				continue
			}
			claim := managed.Status.ClusterClaims[0]
			patch := fmt.Appendf(
				nil,
				`{"status":{"properties":[{"name":%q,"value":%q,"lastObservedTime":%q}]}}`,
				claim.Name,
				claim.Value,
				time.Now().UTC().Format(time.RFC3339),
			)
			profile := &inventoryv1alpha1.ClusterProfile{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: bare}}
			// An edit that is not patched is not seen, and ends the run.
			_ = b.hub.Status().Patch(ctx, profile, client.RawPatch(types.MergePatchType, patch))
		}
	}()
	return nil
}
