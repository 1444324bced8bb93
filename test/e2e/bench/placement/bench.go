package placement

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
	clusterv1beta2 "open-cluster-management.io/api/cluster/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"open-cluster-management.io/cluster-inventory-addon/test/e2e/simulated"
	"open-cluster-management.io/cluster-inventory-addon/test/e2e/witness"
	"open-cluster-management.io/cluster-inventory-addon/test/fleet"
	"open-cluster-management.io/cluster-inventory-addon/test/fleet/await"
)

const (
	// Set has every cluster. The chart is installed with installStrategy.type=Placements and
	// installStrategy.placement.clusterSet=Set.
	Set = "bench-all"

	setLabel = "cluster.open-cluster-management.io/clusterset"
	// enabledLabel, publishedLabel and canaryLabel are what Placements choose by: that of
	// the chart, the publishing one, and the former's first group.
	enabledLabel   = "bench.example/enabled"
	publishedLabel = "bench.example/published"
	canaryLabel    = "bench.example/canary"

	addonName      = "cluster-inventory"
	publishLabel   = "inventory.open-cluster-management.io/publish"
	installedBy    = "cluster-inventory" // the chart's Placement
	team           = "bench-team"        // the consumer's namespace
	view           = "bench-view"        // its publishing Placement
	slice          = 100                 // clusters in a full slice of decisions
	small          = 60                  // clusters of a Placement with one slice
	spares         = 4                   // clusters in front of all others, and as many behind
	canaryEvery    = 13
	canaryHalfPace = 7

	// quiet is how long everything must stay as expected before an action is over.
	quiet = 4 * time.Second
	// perCluster is how much longer that may take for each cluster.
	perCluster = 300 * time.Millisecond
	lookEvery  = 50 * time.Millisecond
)

// Parts of a run, in their order: actions on the Placement of the install strategy,
// removals from it, actions on a publishing Placement and removals from that, and actions
// on both while a slice's writes are slow or refused.
var Parts = []string{"install", "removals", "publishing", "slow-publishing", "slow-install"}

// Options configure a run.
type Options struct {
	// Clusters is how many the Placements choose.
	Clusters int
	// Parts are the parts to run; none means all.
	Parts []string
	// Rounds is how often each removal is measured.
	Rounds int
	// Out receives the progress.
	Out io.Writer
}

// bench is a run.
type bench struct {
	fleet    *fleet.Fleet
	hub      client.WithWatch
	o        Options
	began    time.Time
	result   *Result
	slow     *slowWrites
	names    []string // of the clusters that the Placements choose, in order
	front    []string // sort before all others
	back     []string
	accounts map[string]*simulated.Account

	addons, cleanups, installed, published *witness.Log
	seen                                   *witness.Consumer

	// now is what everything should look like after the last action.
	now expectation
}

// expectation is which clusters should have what.
type expectation struct {
	// enabled are those that the chart's Placement chooses, nil under Manual; published
	// those that the publishing Placement does, nil without one.
	enabled, published map[string]bool
	// manual are those with an addon under Manual.
	manual map[string]bool
	// unbound is true while the set is not bound to the consumer's namespace.
	unbound bool
	// without are clusters that have no profile although they are chosen.
	without map[string]bool
}

// Run measures everything on a hub without clusters that has the addon installed for Set. It
// stops what it started, but the hub's objects stay: the fleet is to be thrown away. When it
// returns an error, the result holds what was measured before.
func Run(ctx context.Context, f *fleet.Fleet, o Options) (*Result, error) {
	for _, part := range o.Parts {
		if !slices.Contains(Parts, part) {
			return nil, fmt.Errorf("there is no part %q: want some of %s", part, strings.Join(Parts, ", "))
		}
	}
	if o.Clusters < slice+2 {
		return nil, fmt.Errorf("%d clusters: want more than two slices' worth of at least %d", o.Clusters, slice+2)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	b := &bench{
		fleet: f, o: o, began: time.Now(), accounts: map[string]*simulated.Account{},
		result: &Result{Clusters: o.Clusters},
	}
	err := b.prepare(ctx)
	if err == nil {
		err = b.all(ctx)
	}
	if b.slow != nil {
		err = errors.Join(err, b.slow.close(context.WithoutCancel(ctx)))
	}
	return b.result, err
}

func (b *bench) all(ctx context.Context) error {
	parts := map[string]func(context.Context) error{
		"install": b.install, "removals": b.installRemovals, "publishing": b.publishing,
		"slow-publishing": b.slowPublishing, "slow-install": b.slowInstall,
	}
	for _, name := range Parts {
		if len(b.o.Parts) > 0 && !slices.Contains(b.o.Parts, name) {
			continue
		}
		if err := parts[name](ctx); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return nil
}

// prepare creates the clusters, first without any Placement that chooses them.
func (b *bench) prepare(ctx context.Context) (err error) {
	if b.hub, err = b.fleet.Client(fleet.HubName); err != nil {
		return err
	}
	cfg, err := b.fleet.Hub()
	if err != nil {
		return err
	}
	if err := b.fleet.AccountKind(ctx); err != nil {
		return err
	}
	if err := b.patchPlacement(ctx, fleet.ReleaseNamespace, installedBy, choosing(enabledLabel)); err != nil {
		return fmt.Errorf("is the chart installed with installStrategy.type=Placements? %w", err)
	}
	for _, object := range []client.Object{
		&clusterv1beta2.ManagedClusterSet{
			ObjectMeta: metav1.ObjectMeta{Name: Set},
			Spec: clusterv1beta2.ManagedClusterSetSpec{
				ClusterSelector: clusterv1beta2.ManagedClusterSelector{SelectorType: clusterv1beta2.ExclusiveClusterSetLabel},
			},
		},
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: team}},
		binding(),
	} {
		if err := b.hub.Create(ctx, object); err != nil {
			return err
		}
	}
	if err := b.watch(ctx); err != nil {
		return err
	}
	var clusters []simulated.Cluster
	add := func(names *[]string, n int, format string, published string) {
		for i := range n {
			name := fmt.Sprintf(format, i)
			*names = append(*names, name)
			labels := map[string]string{setLabel: Set}
			if published != "" && i%canaryEvery == 0 {
				labels[canaryLabel] = "first"
			} else if published != "" && i%canaryHalfPace == 0 {
				labels[canaryLabel] = "second"
			}
			clusters = append(clusters, simulated.Cluster{Name: name, Labels: labels})
		}
	}
	add(&b.names, b.o.Clusters, "m-%05d", "yes")
	add(&b.front, spares, "a-front-%d", "")
	add(&b.back, spares, "z-back-%d", "")
	b.say("creating %d clusters", len(clusters))
	if err := simulated.NewClusters(b.hub).Create(ctx, clusters...); err != nil {
		return fmt.Errorf("create the clusters: %w", err)
	}
	all := slices.Concat(b.names, b.front, b.back)
	for _, name := range all {
		b.accounts[name] = simulated.NewAccount(b.hub, name, cfg.CAData)
	}
	return simulated.Each(ctx, len(all), func(ctx context.Context, i int) error {
		account := b.accounts[all[i]]
		if err := account.Create(ctx); err != nil {
			return err
		}
		return account.Share(ctx, team)
	})
}

// watch follows everything that can be lost.
func (b *bench) watch(ctx context.Context) (err error) {
	agents := simulated.NewWorkAgents(b.hub, b.o.Clusters)
	agents.Run(ctx)
	if b.cleanups, err = witness.Cleanups(ctx, b.hub, agents); err != nil {
		return err
	}
	if b.addons, err = witness.Addons(ctx, b.hub); err != nil {
		return err
	}
	if b.installed, err = witness.Slices(ctx, b.hub, fleet.ReleaseNamespace, installedBy); err != nil {
		return err
	}
	if b.published, err = witness.Slices(ctx, b.hub, team, view); err != nil {
		return err
	}
	b.seen, err = witness.Follow(ctx, b.hub, team)
	return err
}

func binding() *clusterv1beta2.ManagedClusterSetBinding {
	return &clusterv1beta2.ManagedClusterSetBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: team, Name: Set},
		Spec:       clusterv1beta2.ManagedClusterSetBindingSpec{ClusterSet: Set},
	}
}

// choosing is the predicate of a Placement that chooses the clusters with a label, in JSON.
func choosing(label string) string {
	return fmt.Sprintf(`{"spec":{"predicates":[{"requiredClusterSelector":{"labelSelector":{`+
		`"matchLabels":{%q:"true"}}}}]}}`, label)
}

func (b *bench) patchPlacement(ctx context.Context, namespace, name, patch string) error {
	placement := &clusterv1beta1.Placement{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	return b.hub.Patch(ctx, placement, client.RawPatch(types.MergePatchType, []byte(patch)))
}

// label sets a label of clusters, or removes it.
func (b *bench) label(ctx context.Context, label string, on bool, clusters ...string) error {
	value := "null"
	if on {
		value = `"true"`
	}
	patch := fmt.Appendf(nil, `{"metadata":{"labels":{%q:%s}}}`, label, value)
	return simulated.Each(ctx, len(clusters), func(ctx context.Context, i int) error {
		cluster := &clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: clusters[i]}}
		return b.hub.Patch(ctx, cluster, client.RawPatch(types.MergePatchType, patch))
	})
}

func setOf(names ...string) map[string]bool {
	set := make(map[string]bool, len(names))
	for _, name := range names {
		set[name] = true
	}
	return set
}

// addonsOf returns the clusters that should have the addon.
func (e expectation) addonsOf() map[string]bool {
	if e.enabled != nil {
		return e.enabled
	}
	return e.manual
}

// profilesOf returns the clusters that should have a profile.
func (e expectation) profilesOf() map[string]bool {
	profiles := map[string]bool{}
	for name := range e.addonsOf() {
		if !e.unbound && !e.without[name] && (e.published == nil || e.published[name]) {
			profiles[name] = true
		}
	}
	return profiles
}

// referencesOf returns the clusters that the standard's decisions should refer to.
func (e expectation) referencesOf() map[string]bool {
	if e.published == nil {
		return nil
	}
	return e.profilesOf()
}

// settle waits until everything is as expected and stays so.
func (b *bench) settle(ctx context.Context) error {
	limit := 3*time.Minute + time.Duration(b.o.Clusters)*perCluster
	began := time.Now()
	return await.Success(ctx, "everything to be as expected", limit, lookEvery, func(context.Context) error {
		if time.Since(began) < quiet {
			return errors.New("it may not have begun")
		}
		profiles := b.now.profilesOf()
		for _, part := range []struct {
			what string
			log  *witness.Log
			want map[string]bool
			any  bool
		}{
			{"decisions of the chart's Placement", b.installed, b.now.enabled, b.now.enabled == nil},
			{"decisions of the publishing Placement", b.published, b.now.published, b.now.published == nil},
			{"addons", b.addons, b.now.addonsOf(), false},
			{"profiles", b.seen.Profiles, profiles, false},
			{"references", b.seen.References, b.now.referencesOf(), false},
			{"copies", b.seen.Copies, profiles, false},
		} {
			if since := time.Since(part.log.Changed()); since < quiet {
				return fmt.Errorf("%s changed %s ago", part.what, since)
			}
			if part.any {
				continue
			}
			if err := part.log.Exactly(part.want); err != nil {
				return fmt.Errorf("%s: %w", part.what, err)
			}
		}
		return nil
	})
}

// ready is settle between actions. Copies that are missing then would be missed after each of
// them; it says so and has their accounts looked at again.
func (b *bench) ready(ctx context.Context) error {
	err := b.settle(ctx)
	if err == nil || ctx.Err() != nil {
		return err
	}
	b.say("%v", err)
	for name := range b.now.profilesOf() {
		if slices.Contains(b.seen.Copies.Present(), name) {
			continue
		}
		account := b.accounts[name]
		if err := errors.Join(account.Revoke(ctx), account.Share(ctx, team)); err != nil {
			return err
		}
	}
	return b.settle(ctx)
}

// strategy switches the addon's install strategy.
func (b *bench) strategy(ctx context.Context, strategy string) error {
	patch := fmt.Sprintf(`{"spec":{"installStrategy":{"type":%q,"placements":null}}}`, strategy)
	if strategy == "Placements" {
		patch = fmt.Sprintf(`{"spec":{"installStrategy":{"type":%q,"placements":[{"namespace":%q,"name":%q}]}}}`,
			strategy, fleet.ReleaseNamespace, installedBy)
	}
	addon := &addonv1beta1.ClusterManagementAddOn{ObjectMeta: metav1.ObjectMeta{Name: addonName}}
	return b.hub.Patch(ctx, addon, client.RawPatch(types.MergePatchType, []byte(patch)))
}

func addonOf(cluster string) *addonv1beta1.ManagedClusterAddOn {
	return &addonv1beta1.ManagedClusterAddOn{ObjectMeta: metav1.ObjectMeta{Namespace: cluster, Name: addonName}}
}

func (b *bench) say(format string, args ...any) {
	fmt.Fprintf(b.o.Out, "%6.0f s  "+format+"\n", append([]any{time.Since(b.began).Seconds()}, args...)...)
}
