package scale

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	workv1 "open-cluster-management.io/api/work/v1"
	inventoryv1alpha1 "sigs.k8s.io/cluster-inventory-api/apis/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"open-cluster-management.io/cluster-inventory-addon/test/e2e/bench/scale/meter"
	"open-cluster-management.io/cluster-inventory-addon/test/e2e/bench/scale/observe"
	"open-cluster-management.io/cluster-inventory-addon/test/e2e/bench/scale/report"
	"open-cluster-management.io/cluster-inventory-addon/test/e2e/simulated"
	"open-cluster-management.io/cluster-inventory-addon/test/fleet"
)

// Options configure a run.
type Options struct {
	// Clusters is how many are simulated.
	Clusters int
	// Pairs is how often the raw writer and this addon take turns, and the manager restarts.
	Pairs int
	// Stream is how long edits arrive at a rate; writers other than this addon get a third
	// of it.
	Stream time.Duration
	// Parts are the parts to run after the addon is enabled, of Parts; none means all.
	Parts []string
	// Commit is the measured commit, for the report.
	Commit string
	// Out receives the progress.
	Out io.Writer
}

// syncerName is managed-serviceaccount's syncer, as the meter names it.
const syncerName = "token-syncer"

// Namespaces of consumers.
const (
	ofRaw    = "bench-raw"
	ofAddon  = "bench-addon"
	ofSecond = "bench-second"
	ofSwap   = "bench-swap"
	ofGate   = "bench-gate"
	ofTokens = "bench-tokens"
	ofSyncer = "bench-syncer"
)

type bench struct {
	fleet    *fleet.Fleet
	hub      client.WithWatch
	o        Options
	run      *report.Run
	clusters *population
	accounts accounts
	raw      *rawWriter
	programs *programs
	meter    *meter.Meter

	// managed is the board of the ManagedClusters themselves.
	profiles, managed, works, secrets *observe.Board
}

// Run measures everything with one number of clusters, on a hub without clusters that has
// the addon installed. It stops what it started, but the hub's objects stay: the fleet is
// to be thrown away. When it returns an error, the run holds the earlier results.
func Run(ctx context.Context, f *fleet.Fleet, o Options) (*report.Run, error) {
	for _, part := range o.Parts {
		if !slices.Contains(Parts, part) {
			return nil, fmt.Errorf("there is no part %q: want some of %s", part, strings.Join(Parts, ", "))
		}
	}
	run := &report.Run{
		Clusters: o.Clusters, Claims: claimCount, Began: time.Now(), Commit: o.Commit, Machine: report.ThisMachine(),
	}
	b := &bench{
		fleet: f, o: o, run: run,
		profiles: observe.NewBoard(), managed: observe.NewBoard(),
		works: observe.NewBoard(), secrets: observe.NewBoard(),
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	err := b.prepare(ctx)
	if err == nil {
		err = b.all(ctx)
		err = errors.Join(err, b.restore(context.WithoutCancel(ctx)))
	}
	run.Seconds = time.Since(run.Began).Seconds()
	return run, err
}

// prepare creates the clusters and starts the observation.
func (b *bench) prepare(ctx context.Context) error {
	cfg, err := b.fleet.Hub()
	if err != nil {
		return err
	}
	kube, err := kubernetes.NewForConfig(cfg)
	if err != nil {
		return err
	}
	if b.hub, err = b.fleet.Client(fleet.HubName); err != nil {
		return err
	}
	if b.programs, err = newPrograms(ctx, b.fleet, b.hub); err != nil {
		return err
	}
	b.meter = &meter.Meter{Hub: kube.RESTClient(), Processes: b.programs.current}
	b.clusters = newPopulation(b.hub, b.o.Clusters)
	b.accounts = newAccounts(b.hub, b.clusters, cfg.CAData)
	b.raw = &rawWriter{hub: b.hub, clusters: b.clusters, manager: noManager}
	if err := b.fleet.AccountKind(ctx); err != nil {
		return err
	}
	for _, namespace := range []string{ofTokens, ofSyncer, ofRaw} {
		if err := b.createNamespace(ctx, namespace); err != nil {
			return err
		}
	}
	if err := b.observe(ctx); err != nil {
		return err
	}
	b.say("creating %d clusters", b.o.Clusters)
	if err := b.clusters.create(ctx); err != nil {
		return fmt.Errorf("create the clusters: %w", err)
	}
	b.say("created")
	return b.rest(ctx, bound(b.o.Clusters))
}

// observe follows every kind that is waited for.
func (b *bench) observe(ctx context.Context) error {
	work := &metav1.PartialObjectMetadata{}
	work.APIVersion, work.Kind = workv1.GroupVersion.String(), "ManifestWork"
	agents := simulated.NewWorkAgents(b.hub, b.o.Clusters)
	agents.Run(ctx)
	for _, kind := range []struct {
		object client.Object
		list   func() client.ObjectList
		board  *observe.Board
		read   observe.Read
		in     string
	}{
		{&inventoryv1alpha1.ClusterProfile{}, listOf[inventoryv1alpha1.ClusterProfileList], b.profiles, readProfile, ""},
		{&clusterv1.ManagedCluster{}, listOf[clusterv1.ManagedClusterList], b.managed, readCluster, ""},
		{work, worksList, b.works, readWork(agents), ""},
		// Not in all namespaces, which would show each token twice.
		{&corev1.Secret{}, listOf[corev1.SecretList], b.secrets, readSecret, ofTokens},
		{&corev1.Secret{}, listOf[corev1.SecretList], b.secrets, readSecret, ofSyncer},
		{&corev1.Secret{}, listOf[corev1.SecretList], b.secrets, readSecret, ofRaw},
	} {
		source := &cache.ListWatch{
			ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
				list := kind.list()
				return list, b.hub.List(ctx, list, &client.ListOptions{Namespace: kind.in, Raw: &options})
			},
			WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
				return b.hub.Watch(ctx, kind.list(), &client.ListOptions{Namespace: kind.in, Raw: &options})
			},
		}
		if err := kind.board.Follow(ctx, source, kind.object, kind.read); err != nil {
			return err
		}
	}
	return nil
}

// listOf returns an empty list of a kind.
func listOf[L any, P interface {
	*L
	client.ObjectList
}]() client.ObjectList {
	return P(new(L))
}

func worksList() client.ObjectList {
	works := &metav1.PartialObjectMetadataList{}
	works.APIVersion, works.Kind = workv1.GroupVersion.String(), "ManifestWorkList"
	return works
}

// readWork reads a ManifestWork of the addon, and has its cluster report it.
func readWork(agents *simulated.WorkAgents) observe.Read {
	return func(object any) (observe.Key, int, bool) {
		work, ok := object.(*metav1.PartialObjectMetadata)
		if !ok || !agents.Follow(work) {
			return observe.Key{}, 0, false
		}
		return observe.Key{Namespace: work.Namespace, Name: work.Name}, 0, true
	}
}

// readProfile reads a ClusterProfile.
func readProfile(object any) (observe.Key, int, bool) {
	profile, ok := object.(*inventoryv1alpha1.ClusterProfile)
	if !ok {
		return observe.Key{}, 0, false
	}
	key := observe.Key{Namespace: profile.Namespace, Name: profile.Name}
	if len(profile.Status.Properties) < claimCount {
		return key, observe.Incomplete, true
	}
	for _, property := range profile.Status.Properties {
		if property.Name != serialClaim {
			continue
		}
		if serial, err := strconv.Atoi(property.Value); err == nil {
			return key, serial, true
		}
	}
	return key, observe.Incomplete, true
}

// readCluster reads a ManagedCluster.
func readCluster(object any) (observe.Key, int, bool) {
	cluster, ok := object.(*clusterv1.ManagedCluster)
	if !ok {
		return observe.Key{}, 0, false
	}
	key := observe.Key{Name: cluster.Name}
	for _, claim := range cluster.Status.ClusterClaims {
		if claim.Name != serialClaim {
			continue
		}
		if serial, err := strconv.Atoi(claim.Value); err == nil {
			return key, serial, true
		}
	}
	return key, observe.Incomplete, true
}

// Parts of a run, in their order: the raw writer and the addon take turns; operations on a
// bound fleet; OCM's gate; copies of tokens.
var Parts = []string{"pairs", "bound", "gate", "tokens"}

// all runs the parts in order. First the addon is alone on the hub; then others replace it;
// in the end it copies tokens.
func (b *bench) all(ctx context.Context) error {
	parts := map[string]func(context.Context) error{
		"pairs": b.pairs, "bound": b.bound, "gate": b.gated, "tokens": b.tokens,
	}
	if err := b.part(ctx, "enable", b.enable); err != nil {
		return err
	}
	for _, name := range Parts {
		if len(b.o.Parts) > 0 && !slices.Contains(b.o.Parts, name) {
			continue
		}
		if err := b.part(ctx, name, parts[name]); err != nil {
			return err
		}
	}
	return nil
}

// part records a failure; the next part runs nevertheless.
func (b *bench) part(ctx context.Context, name string, do func(context.Context) error) error {
	err := do(ctx)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err != nil {
		b.say("%s: %v", name, err)
		b.run.Steps = append(b.run.Steps, report.Step{Scenario: name, Outcome: err.Error()})
	}
	return nil
}

// pairs makes the raw writer and the addon take turns, so that other load on the machine
// affects both.
func (b *bench) pairs(ctx context.Context) error {
	for round := 1; round <= b.o.Pairs; round++ {
		if err := b.lifecycle(ctx, b.rawly(), ofRaw, round); err != nil {
			return err
		}
		if err := b.lifecycle(ctx, b.by(report.Addon), ofAddon, round); err != nil {
			return err
		}
	}
	return nil
}

// bound measures operations on a bound fleet.
func (b *bench) bound(ctx context.Context) error {
	addon := b.by(report.Addon)
	err := b.unmeasured(ctx, func(ctx context.Context) error {
		return errors.Join(b.createNamespace(ctx, ofAddon), addon.bind(ctx, ofAddon))
	})
	if err != nil {
		return err
	}
	if err := b.editStream(ctx, report.Addon, ofAddon, b.o.Stream); err != nil {
		return err
	}
	if err := b.flap(ctx, report.Addon, ofAddon, b.o.Stream/2); err != nil {
		return err
	}
	if err := b.second(ctx, ofSecond); err != nil {
		return err
	}
	for round := 1; round <= b.o.Pairs; round++ {
		if err := b.restart(ctx, round); err != nil {
			return err
		}
	}
	err = b.unmeasured(ctx, func(ctx context.Context) error {
		return errors.Join(addon.unbind(ctx, ofAddon), addon.unbind(ctx, ofSecond))
	})
	if err != nil {
		return err
	}
	return b.swap(ctx, report.Addon, ofSwap)
}

// gated measures OCM's gate in the addon's place.
func (b *bench) gated(ctx context.Context) (err error) {
	if err := b.programs.stopAddon(ctx); err != nil {
		return err
	}
	if err := b.unmeasured(ctx, b.programs.startGate); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.programs.stopGate(ctx)) }()
	err = b.lifecycle(ctx, b.by(report.Gate), ofGate, 1, func(ctx context.Context) error {
		return b.editStream(ctx, report.Gate, ofGate, b.o.Stream/3)
	})
	if err != nil {
		return err
	}
	return b.swap(ctx, report.Gate, ofGate)
}

// tokens measures copies of tokens: by the benchmark itself, by managed-serviceaccount's
// syncer, and by the addon.
func (b *bench) tokens(ctx context.Context) error {
	if err := b.unmeasured(ctx, b.accounts.create); err != nil {
		return fmt.Errorf("create the accounts: %w", err)
	}
	if err := b.copies(ctx, b.copiesRawly(ofRaw), ofRaw); err != nil {
		return err
	}
	if err := b.synced(ctx); err != nil {
		return err
	}
	if err := b.programs.startAddon(ctx); err != nil {
		return err
	}
	err := b.unmeasured(ctx, func(ctx context.Context) error { return b.by(report.Addon).bind(ctx, ofTokens) })
	if err != nil {
		return err
	}
	if err := b.copies(ctx, b.copiesBy(report.Addon, ofTokens), ofTokens); err != nil {
		return err
	}
	return b.revoke(ctx, ofTokens)
}

// synced makes managed-serviceaccount's syncer copy to a namespace with profiles that the
// raw writer created.
func (b *bench) synced(ctx context.Context) error {
	ofOCM := rawWriter{hub: b.hub, clusters: b.clusters, manager: ocmManager}
	if err := ofOCM.create(ctx, ofSyncer); err != nil {
		return err
	}
	syncer, err := b.fleet.TokenSyncer(ctx, b.o.Out)
	if err != nil {
		return err
	}
	err = b.unmeasured(ctx, func(ctx context.Context) error { return b.programs.ensure(ctx, syncer) })
	if err != nil {
		return err
	}
	if err := b.copies(ctx, b.copiesBy(report.Syncer, ofSyncer), ofSyncer); err != nil {
		return err
	}
	if err := b.programs.stopSyncer(ctx, syncer); err != nil {
		return err
	}
	return simulated.Each(ctx, b.clusters.size(), b.accounts.revoke)
}

// restore returns the fleet's programs to their original state. It does not wait for
// readiness, because the user may have interrupted the run.
func (b *bench) restore(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, startLimit)
	defer cancel()
	var problems []error
	processes, err := b.fleet.Processes(ctx)
	if err != nil {
		return err
	}
	for _, p := range processes {
		if p.Name == fleet.HubName+"/"+syncerName && p.Wanted {
			problems = append(problems, b.fleet.Stop(ctx, p.Name))
		}
	}
	return errors.Join(append(problems,
		b.fleet.Ensure(ctx, b.programs.registration), b.programs.scaleAddon(ctx, 1))...)
}
