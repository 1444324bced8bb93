package hub

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	controllermetrics "sigs.k8s.io/controller-runtime/pkg/metrics"

	"open-cluster-management.io/cluster-inventory-addon/pkg/contract"
	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/access"
	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/addon"
	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/addon/release"
	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/addon/stored"
	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/agents"
	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/conditions"
	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/credentials"
	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/decisions"
	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/inventory"
	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/kinds"
	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/metrics"
	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/notices"
	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/policies"
	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/selection"
	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/upstream"
	"open-cluster-management.io/cluster-inventory-addon/pkg/kube/watch"
)

const (
	// userAgent names the manager in the API server's logs and metrics.
	userAgent = "cluster-inventory-manager"

	// definitionsControllerName follows the CRDs of everything whose absence matters, and
	// notifies the other controllers when they are deleted or created.
	definitionsControllerName = "hub.definitions"

	// shutdownTimeout bounds how long writes in flight delay the exit.
	shutdownTimeout = 10 * time.Second

	// leaseDuration is after how long a leader that was killed is replaced, counted from when another
	// manager last saw a renewal. Since each checks every one to 2.2 times retryPeriod, that is 15
	// seconds at most.
	leaseDuration = 10 * time.Second

	// renewDeadline is how long a leader that cannot renew its lease continues. It exits before
	// another may take over, and writes nothing from then on (fenceWrites).
	renewDeadline = 8 * time.Second

	// retryPeriod is how often the leader renews its lease.
	retryPeriod = time.Second

	// relistWithin is for how long the caches are listed again, one after the other, after the
	// hub could not be reached. All together cost the hub as much as when the manager starts. A
	// manager without leader election does not notice that etcd was restored (fenceWrites). Its
	// caches then contradict each other until they are listed again, and what is written may be
	// what the restored hub does not say.
	relistWithin = time.Second
)

// run waits for the hub and runs the manager, with its health probes, until the
// context ends.
func run(ctx context.Context, cfg *rest.Config, opts *Options) error {
	counts := metrics.New(metrics.Options{ByNamespace: opts.Metrics.ByNamespace, Clock: clock.RealClock{}})
	if err := controllermetrics.Registry.Register(counts); err != nil {
		return fmt.Errorf("registering metrics: %w", err)
	}
	defer controllermetrics.Registry.Unregister(counts)
	ctx, restart := context.WithCancelCause(ctx)
	defer restart(nil)
	cfg, outages := watch.RelistAfterOutage(cfg, relistWithin)
	cfg = counts.CountWrites(boundWrites(cfg, writeTimeout))
	if opts.LeaderElect {
		cfg = fenceWrites(cfg, &fence{
			limit: renewDeadline, clock: clock.RealClock{}, outage: outages.Last,
			restored: func() { restart(errRestored) },
		})
	}
	cfg.UserAgent = userAgent
	health, err := newHealth(opts.HealthProbeBindAddress)
	if err != nil {
		return err
	}
	err = health.serveWhile(ctx, func(ctx context.Context) error { return runManager(ctx, cfg, opts, health, counts) })
	if errors.Is(context.Cause(ctx), errRestored) {
		return errRestored
	}
	return err
}

// runManager runs the manager once the hub serves the APIs that it requires.
func runManager(
	ctx context.Context, cfg *rest.Config, opts *Options, health *health, counts *metrics.Metrics,
) error {
	served, err := waitForOCM(ctx, cfg, health.setNotReady)
	if err != nil {
		return fmt.Errorf("connecting to the hub %s: %w", cfg.Host, err)
	}
	if !served {
		return nil
	}
	mgr, err := newManager(ctx, cfg, opts)
	if err != nil {
		return fmt.Errorf("connecting to the hub %s: %w", cfg.Host, err)
	}
	if err := addControllers(ctx, mgr, opts, counts); err != nil {
		return err
	}
	health.setReady()
	if opts.LeaderElect {
		lease := client.ObjectKey{Namespace: opts.LeaderElectNamespace, Name: contract.LeaseName}
		waitForLease(ctx, mgr.GetAPIReader(), lease, leasePatience)
	}
	return mgr.Start(ctx)
}

func newManager(ctx context.Context, cfg *rest.Config, opts *Options) (manager.Manager, error) {
	mapper, err := kinds.NewMapper(nil, nil)
	if err != nil {
		return nil, err
	}
	live, err := client.New(cfg, client.Options{Mapper: mapper})
	if err != nil {
		return nil, err
	}
	cached := cacheOptions(opts)
	informers, err := stored.Informers(ctx, cfg, live)
	if err != nil {
		return nil, err
	}
	cached.NewInformer = listTrimmed(informers, cached.ByObject)
	return manager.New(cfg, manager.Options{
		Scheme:                        kinds.NewScheme(),
		MapperProvider:                kinds.NewMapper,
		Logger:                        logr.FromContextOrDiscard(ctx),
		Cache:                         cached,
		HealthProbeBindAddress:        "0", // served by health, which begins earlier
		Metrics:                       opts.Metrics.server(),
		PprofBindAddress:              opts.PprofBindAddress,
		LeaderElection:                opts.LeaderElect,
		LeaderElectionID:              contract.LeaseName,
		LeaderElectionNamespace:       opts.LeaderElectNamespace,
		LeaderElectionReleaseOnCancel: true,
		LeaseDuration:                 ptr.To(leaseDuration),
		RenewDeadline:                 ptr.To(renewDeadline),
		RetryPeriod:                   ptr.To(retryPeriod),
		GracefulShutdownTimeout:       ptr.To(shutdownTimeout),
		Controller:                    config.Controller{SkipNameValidation: &opts.severalManagers},
	})
}

// addControllers lists everything that the manager runs.
func addControllers(ctx context.Context, mgr manager.Manager, opts *Options, counts *metrics.Metrics) error {
	definitions := watch.NewDefinitions(mgr.GetAPIReader(), clock.RealClock{})
	if err := definitions.AddTo(mgr, definitionsControllerName); err != nil {
		return fmt.Errorf("adding %s: %w", definitionsControllerName, err)
	}
	rule := selection.New(mgr.GetCache(), mgr.GetAPIReader(), definitions, clock.RealClock{})
	rule.ExclusiveSetsOnly = opts.ExclusiveSetsOnly
	configured, err := addon.Add(ctx, mgr, addon.Options{
		Reinstalls:        reinstalls(rule),
		AllowedRegistries: opts.AgentAllowedRegistries,
		Release: release.Options{
			Unreachable: opts.CleanupTimeout, Job: opts.CleanupJobTimeout, HostedAgents: opts.HostedAgents,
		},
	})
	if err != nil {
		return fmt.Errorf("adding the addon controllers: %w", err)
	}
	resolver, err := addAccess(mgr, opts, counts)
	if err != nil {
		return fmt.Errorf("adding the access controller: %w", err)
	}
	gate, err := upstream.AddRegistrationGate(mgr, opts.UpstreamRegistrationClusterRole,
		upstream.Override(opts.UpstreamGates), clock.RealClock{}, counts.Upstream(metrics.WriterRegistration))
	if err != nil {
		return fmt.Errorf("adding the gate for OCM's own ClusterProfiles: %w", err)
	}
	events, err := notices.Add(mgr, clock.RealClock{})
	if err != nil {
		return err
	}
	references, err := addDecisions(ctx, mgr, opts, rule, definitions)
	if err != nil {
		return fmt.Errorf("adding the decisions controllers: %w", err)
	}
	profiles, err := inventory.Add(ctx, mgr, inventory.Options{
		Rule:         rule,
		Guard:        profileGuard{reader: mgr.GetClient(), gate: gate}.verdict,
		GuardObjects: guardObjects(),
		GuardChanges: gate.Subscribe,
		LabelAllow:   opts.LabelAllow,
		WriteEvery:   opts.WriteInterval,
		Workers:      opts.Workers, WorkersPerNamespace: opts.WorkersPerNamespace,
		Access:     resolver,
		References: references,
		Events:     events,
		Metrics:    counts,
		Clock:      clock.RealClock{},
	})
	if err != nil {
		return fmt.Errorf("adding the inventory controllers: %w", err)
	}
	syncer, err := addSyncer(mgr, opts, counts)
	if err != nil {
		return err
	}
	tokens, err := credentials.Add(ctx, mgr, credentials.Options{
		Mode:           credentials.Mode(opts.CredentialsMode),
		RequireTarget:  opts.CredentialsRequireTarget,
		Rule:           rule,
		Definitions:    definitions,
		UpstreamSyncer: syncer,
		ServiceAccount: opts.serviceAccount(),
		WriteEvery:     opts.WriteInterval,
		Workers:        opts.Workers, WorkersPerNamespace: opts.WorkersPerNamespace,
		Events:  events,
		Metrics: counts,
		Clock:   clock.RealClock{},
	})
	if err != nil {
		return fmt.Errorf("adding the credentials controllers: %w", err)
	}
	if err := agents.Add(mgr, counts); err != nil {
		return fmt.Errorf("adding the counts of agents: %w", err)
	}
	if err := addPolicies(mgr, opts, counts); err != nil {
		return fmt.Errorf("adding the watch of the admission policies: %w", err)
	}
	return conditions.Add(ctx, mgr, conditions.Options{
		Sources: []conditions.Source{configured, profiles, tokens}, Clock: clock.RealClock{},
	})
}

func addPolicies(mgr manager.Manager, opts *Options, counts *metrics.Metrics) error {
	checker, err := policies.New(mgr.GetConfig(), mgr.GetRESTMapper(), opts.LeaderElectNamespace)
	if err != nil {
		return err
	}
	return mgr.Add(&policies.Watch{Checker: checker, Patience: policies.Patience, Report: counts.PolicyEnforced})
}

// reinstalls asks the rule, which knows Placements' decisions, for the addon.
func reinstalls(rule *selection.Rule) addon.Reinstalls {
	return func(ctx context.Context, addon *addonv1beta1.ManagedClusterAddOn) (again, known bool, err error) {
		answer, err := rule.Reinstalls(ctx, addon)
		return answer == selection.Yes, answer != selection.Unknown, err
	}
}

// addDecisions returns the references to profiles; nil if there are none.
func addDecisions(
	ctx context.Context, mgr manager.Manager, opts *Options, rule *selection.Rule, definitions *watch.Definitions,
) (inventory.References, error) {
	if !opts.Decisions {
		return nil, nil
	}
	return decisions.Add(ctx, mgr, decisions.Options{
		Rule:        rule,
		Definitions: definitions,
		Workers:     opts.Workers, WorkersPerNamespace: opts.WorkersPerNamespace,
		Clock: clock.RealClock{},
	})
}

func addAccess(mgr manager.Manager, opts *Options, counts *metrics.Metrics) (*access.Resolver, error) {
	proxy := opts.Access.ClusterProxyOptions
	if proxy.Enabled {
		gate, err := upstream.AddProxyGate(mgr, proxy.Namespace, clock.RealClock{},
			counts.Upstream(metrics.WriterClusterProxy))
		if err != nil {
			return nil, err
		}
		gate.Subscribe(func() { gate.Verdict() })
		proxy.Gate = gate
	}
	return access.Add(mgr, access.Options{
		Namespace: opts.LeaderElectNamespace, ClusterProxy: proxy, Clock: clock.RealClock{},
	})
}

// addSyncer returns nil if credentials are disabled: then the manager has neither the right
// nor a reason to look for the syncer.
func addSyncer(mgr manager.Manager, opts *Options, counts *metrics.Metrics) (credentials.UpstreamSyncer, error) {
	if credentials.Mode(opts.CredentialsMode) == credentials.ModeDisabled {
		return nil, nil
	}
	syncer, err := upstream.AddSyncer(mgr, upstream.Override(opts.CredentialsUpstreamSyncer), clock.RealClock{},
		counts.Upstream(metrics.WriterServiceAccount))
	if err != nil {
		return nil, fmt.Errorf("looking for managed-serviceaccount's own syncer: %w", err)
	}
	syncer.Subscribe(func() { syncer.On() })
	return syncer, nil
}
