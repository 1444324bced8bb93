package hub

import (
	"os"
	"regexp"
	"strings"
	"time"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/types"

	"open-cluster-management.io/cluster-inventory-addon/pkg/contract"
	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/credentials"
	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/inventory/profiles"
	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/upstream"
	"open-cluster-management.io/cluster-inventory-addon/pkg/kube"
	"open-cluster-management.io/cluster-inventory-addon/pkg/kube/fair"
)

// Options is the manager's command line. The help of its flags says what the fields mean.
type Options struct {
	severalManagers bool // more than one in a process, as in tests

	Kubeconfig                      string
	AgentAllowedRegistries          []string
	HostedAgents                    bool
	CleanupTimeout                  time.Duration
	CleanupJobTimeout               time.Duration
	Workers                         int
	WorkersPerNamespace             int
	UpstreamGates                   string
	UpstreamRegistrationClusterRole string
	ExclusiveSetsOnly               bool
	LabelAllow                      []string // kube.IsPattern
	Limits                          profiles.Limits
	WriteInterval                   time.Duration
	Decisions                       bool
	Access                          AccessOptions
	CredentialsMode                 string
	CredentialsRequireTarget        bool
	CredentialsUpstreamSyncer       string
	CredentialsServiceAccount       string // the subject of the RoleBindings that the manager makes for itself
	HealthProbeBindAddress          string
	Metrics                         MetricsOptions
	PprofBindAddress                string
	LeaderElect                     bool
	LeaderElectNamespace            string
}

// The largest limits of a profile. An object of more than one and a half MiB does not fit
// into etcd, and every property takes some 70 bytes in addition to its name and value.
const (
	mostProperties    = 5000
	mostPropertyBytes = 512 << 10
)

// The limits of WriteInterval. With the longest, a profile is written as seldom as KEP-4322
// plans for: one update in thirty seconds on average.
const (
	leastWriteInterval = 100 * time.Millisecond
	mostWriteInterval  = 30 * time.Second
)

func newOptions() *Options {
	return &Options{
		CleanupTimeout:                  5 * time.Minute,
		CleanupJobTimeout:               30 * time.Minute,
		Workers:                         fair.DefaultWorkers,
		WorkersPerNamespace:             fair.DefaultPerGroup,
		UpstreamGates:                   string(upstream.OverrideNone),
		UpstreamRegistrationClusterRole: upstream.DefaultRegistrationClusterRole,
		Limits: profiles.Limits{
			Properties: contract.DefaultMaxProperties, PropertyBytes: contract.DefaultMaxPropertyBytes,
		},
		WriteInterval:             time.Second,
		Decisions:                 true,
		CredentialsMode:           string(credentials.ModeEnabled),
		CredentialsRequireTarget:  true,
		CredentialsUpstreamSyncer: string(upstream.OverrideNone),
		CredentialsServiceAccount: os.Getenv("POD_NAMESPACE") + "/" + contract.ManagerServiceAccount,
		Access:                    newAccessOptions(),
		HealthProbeBindAddress:    ":8081",
		Metrics:                   newMetricsOptions(),
		PprofBindAddress:          "0",
		LeaderElect:               true,
		LeaderElectNamespace:      os.Getenv("POD_NAMESPACE"),
	}
}

func (o *Options) addFlags(flags *pflag.FlagSet) {
	addKubeconfigFlag(flags, &o.Kubeconfig)
	flags.StringSliceVar(&o.AgentAllowedRegistries, "allowed-registry", o.AgentAllowedRegistries,
		"registry, or registry path, from which configurations may pull the agent's image; may be repeated")
	flags.BoolVar(&o.HostedAgents, "hosted-agents", o.HostedAgents,
		"let agents run on hosting clusters, for which the manager reads all ManifestWorks of the hub")
	flags.DurationVar(&o.CleanupTimeout, "cleanup-timeout", o.CleanupTimeout,
		"how long an unreachable spoke delays the removal of its addon")
	flags.DurationVar(&o.CleanupJobTimeout, "cleanup-job-timeout", o.CleanupJobTimeout,
		"how long a clean-up Job that does not succeed delays the removal of its addon; at least --cleanup-timeout")
	flags.IntVar(&o.Workers, "workers", o.Workers, "how many profiles, and how many accounts, are processed at a time")
	flags.IntVar(&o.WorkersPerNamespace, "workers-per-namespace", o.WorkersPerNamespace,
		"how many of these may be in one namespace; edits and removals are counted apart from less urgent work")
	addUpstreamFlags(flags, &o.UpstreamGates, &o.UpstreamRegistrationClusterRole)
	flags.BoolVar(&o.ExclusiveSetsOnly, "exclusive-sets-only", o.ExclusiveSetsOnly,
		"publish clusters only through exclusive ManagedClusterSets: clusters may put themselves into the others")
	flags.StringSliceVar(&o.LabelAllow, "label-allow", o.LabelAllow,
		"patterns of ManagedCluster label keys to copy to profiles; as in path.Match, * does not match a slash")
	flags.StringSliceVar(&o.Limits.PropertyLabels, "property-label", o.Limits.PropertyLabels,
		"property that profiles show as a label, too, if its value is a label value; may be repeated")
	flags.IntVar(&o.Limits.Properties, "max-properties", o.Limits.Properties,
		"maximum number of properties of a profile; the first by name are kept")
	flags.IntVar(&o.Limits.PropertyBytes, "max-property-bytes", o.Limits.PropertyBytes,
		"maximum size, in bytes, of the names and values of a profile's properties together")
	flags.DurationVar(&o.WriteInterval, "profile-write-interval", o.WriteInterval,
		"how often a profile, or a copy of a token, is written after ten writes in a row, from 100ms to 30s; "+
			"health, access and removal never wait")
	flags.BoolVar(&o.Decisions, "decisions", o.Decisions,
		"publish the decisions of Placements as PlacementDecisions of SIG-Multicluster, once the hub serves these")
	flags.StringVar(&o.CredentialsMode, "credentials-mode", o.CredentialsMode,
		`"enabled" copies tokens of ManagedServiceAccounts to consumers; "draining" removes all copies; `+
			`"disabled" copies nothing, and the manager refuses to start while copies exist`)
	flags.BoolVar(&o.CredentialsRequireTarget, "credentials-require-target", o.CredentialsRequireTarget,
		"copy a token only to the namespaces that its account names; "+
			"if false, an account that names none is copied wherever its cluster has a profile")
	flags.StringVar(&o.CredentialsUpstreamSyncer, "credentials-upstream-syncer", o.CredentialsUpstreamSyncer,
		`"auto" infers from its ClusterRole whether managed-serviceaccount's own syncer is on; `+
			`"off" asserts that it is off although the ClusterRole exists`)
	flags.StringVar(&o.CredentialsServiceAccount, "credentials-service-account", o.CredentialsServiceAccount,
		"the manager's own service account, namespace/name (default: in $POD_NAMESPACE)")
	o.Access.addFlags(flags)
	flags.StringVar(&o.HealthProbeBindAddress, "health-probe-bind-address", o.HealthProbeBindAddress,
		`host:port of /healthz and /readyz; "0" turns them off`)
	o.Metrics.addFlags(flags)
	flags.StringVar(&o.PprofBindAddress, "pprof-bind-address", o.PprofBindAddress,
		`host:port of /debug/pprof, which needs no credentials; "0" turns it off`)
	flags.BoolVar(&o.LeaderElect, "leader-elect", o.LeaderElect, "run the controllers in one replica at a time")
	flags.StringVar(&o.LeaderElectNamespace, "leader-elect-namespace", o.LeaderElectNamespace,
		"namespace of the leader election's Lease (default: $POD_NAMESPACE)")
}

// complete rewrites the addresses for net.Listen.
func (o *Options) complete() {
	o.HealthProbeBindAddress = kube.BindAddress(o.HealthProbeBindAddress)
	o.Metrics.BindAddress = kube.BindAddress(o.Metrics.BindAddress)
	o.PprofBindAddress = kube.BindAddress(o.PprofBindAddress)
}

// isRegistry matches a registry, a registry path, or a repository, without scheme, tag and digest.
var isRegistry = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]*(:[0-9]+)?(/[A-Za-z0-9._-]+)*$`)

// validate returns all invalid values in one error; each names its flag.
func (o *Options) validate() error {
	var errs kube.FlagErrors
	for _, registry := range o.AgentAllowedRegistries {
		if !isRegistry.MatchString(registry) {
			errs.Add("allowed-registry", "%q is not a registry or a registry path", registry)
		}
	}
	errs.Positive("cleanup-timeout", o.CleanupTimeout)
	errs.Positive("cleanup-job-timeout", o.CleanupJobTimeout)
	if o.Workers < 1 {
		errs.Add("workers", "%d is not positive", o.Workers)
	}
	if o.WorkersPerNamespace < 1 {
		errs.Add("workers-per-namespace", "%d is not positive", o.WorkersPerNamespace)
	}
	validateOverride(&errs, "upstream-gates", o.UpstreamGates)
	errs.Required("upstream-registration-clusterrole", o.UpstreamRegistrationClusterRole)
	errs.Patterns("label-allow", o.LabelAllow)
	for _, name := range o.Limits.PropertyLabels {
		if problem := profiles.LabelProblem(name); problem != "" {
			errs.Add("property-label", "%s", problem)
		}
	}
	validateLimit(&errs, "max-properties", o.Limits.Properties, mostProperties)
	validateLimit(&errs, "max-property-bytes", o.Limits.PropertyBytes, mostPropertyBytes)
	if o.WriteInterval < leastWriteInterval || o.WriteInterval > mostWriteInterval {
		errs.Add("profile-write-interval", "%s is not between %s and %s",
			o.WriteInterval, leastWriteInterval, mostWriteInterval)
	}
	o.validateCredentials(&errs)
	o.Access.validate(&errs)
	errs.Address("health-probe-bind-address", o.HealthProbeBindAddress)
	o.Metrics.validate(&errs)
	errs.Address("pprof-bind-address", o.PprofBindAddress)
	if o.LeaderElect && o.LeaderElectNamespace == "" {
		errs.Add("leader-elect-namespace", "is required when $POD_NAMESPACE is not set")
	}
	return errs.Err()
}

func (o *Options) validateCredentials(errs *kube.FlagErrors) {
	validateCredentialsMode(errs, o.CredentialsMode)
	validateOverride(errs, "credentials-upstream-syncer", o.CredentialsUpstreamSyncer)
	account := o.serviceAccount()
	if credentials.Mode(o.CredentialsMode) != credentials.ModeDisabled && (account.Namespace == "" || account.Name == "") {
		errs.Add("credentials-service-account",
			"%q is not namespace/name; $POD_NAMESPACE gives the namespace in a pod", o.CredentialsServiceAccount)
	}
}

func validateCredentialsMode(errs *kube.FlagErrors, value string) {
	switch credentials.Mode(value) {
	case credentials.ModeEnabled, credentials.ModeDraining, credentials.ModeDisabled:
	default:
		errs.Add("credentials-mode", "%q is not one of %s, %s, %s",
			value, credentials.ModeEnabled, credentials.ModeDraining, credentials.ModeDisabled)
	}
}

func addKubeconfigFlag(flags *pflag.FlagSet, kubeconfig *string) {
	flags.StringVar(kubeconfig, "kubeconfig", *kubeconfig,
		"path of the hub's kubeconfig (default: the pod's service account)")
}

// addUpstreamFlags adds the flags that say what tells of OCM's own ClusterProfile gate.
func addUpstreamFlags(flags *pflag.FlagSet, gates, registrationClusterRole *string) {
	flags.StringVar(gates, "upstream-gates", *gates,
		`"auto" infers from its ClusterRole whether OCM's own ClusterProfile feature gate is on; `+
			`"off" asserts that it is off where that cannot be determined`)
	flags.StringVar(
		registrationClusterRole, "upstream-registration-clusterrole", *registrationClusterRole,
		"ClusterRole of OCM's registration controller, which shows whether that gate is on")
}

func validateLimit(errs *kube.FlagErrors, flag string, value, most int) {
	if value < 1 || value > most {
		errs.Add(flag, "%d is not between 1 and %d", value, most)
	}
}

func validateOverride(errs *kube.FlagErrors, flag, value string) {
	if o := upstream.Override(value); o != upstream.OverrideNone && o != upstream.OverrideOff {
		errs.Add(flag, "%q is neither %q nor %q", value, upstream.OverrideNone, upstream.OverrideOff)
	}
}

func (o *Options) serviceAccount() types.NamespacedName {
	namespace, name, _ := strings.Cut(o.CredentialsServiceAccount, "/")
	return types.NamespacedName{Namespace: namespace, Name: name}
}
