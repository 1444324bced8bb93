package spoke

import (
	"os"
	"time"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/util/validation"

	"open-cluster-management.io/cluster-inventory-addon/pkg/contract"
	"open-cluster-management.io/cluster-inventory-addon/pkg/kube"
)

// Options is the command line of the running agent. The help of its flags says what the fields mean.
type Options struct {
	Kubeconfig             string
	Hosted                 bool
	HubKubeconfig          string // may be replaced while the agent runs
	ClusterName            string
	AddonUID               string
	InstallNamespace       string
	ClaimLimit             int
	ReservedClaimSuffixes  []string
	ReservedProperties     []string // property.Reserved
	HealthProbeBindAddress string
	MetricsBindAddress     string

	// ProxyCABundle are CA certificates, in PEM, for the proxy between the agent and the
	// hub, if it is an https proxy. The proxy itself is that of the kubeconfig or else of
	// the environment (HTTPS_PROXY, NO_PROXY).
	ProxyCABundle string
}

func newOptions() *Options {
	return &Options{
		HubKubeconfig:          "/var/run/hub/kubeconfig",
		ProxyCABundle:          os.Getenv(contract.VariableProxyCA),
		ClaimLimit:             contract.DefaultClaimLimit,
		HealthProbeBindAddress: ":8081",
		MetricsBindAddress:     "0",
	}
}

func (o *Options) addFlags(flags *pflag.FlagSet) {
	flags.StringVar(&o.Kubeconfig, "kubeconfig", o.Kubeconfig,
		"path of the spoke's kubeconfig (default: the pod's service account)")
	flags.BoolVar(&o.Hosted, "hosted", o.Hosted,
		"run on another cluster than the spoke: wait for --kubeconfig, and report on the hub why it cannot be used")
	flags.StringVar(&o.HubKubeconfig, "hub-kubeconfig", o.HubKubeconfig, "path of the hub's kubeconfig")
	flags.StringVar(&o.ClusterName, "cluster-name", o.ClusterName, "name of the ManagedCluster (required)")
	flags.StringVar(&o.AddonUID, "addon-uid", o.AddonUID, "UID of the ManagedClusterAddOn (required)")
	flags.StringVar(&o.InstallNamespace, "install-namespace", o.InstallNamespace,
		"namespace the agent runs in (required)")
	flags.IntVar(&o.ClaimLimit, "claim-limit", o.ClaimLimit, "how many custom cluster claims the klusterlet reports")
	flags.StringSliceVar(&o.ReservedClaimSuffixes, "reserved-claim-suffixes", o.ReservedClaimSuffixes,
		"name suffixes of claims the klusterlet reports beyond its limit")
	flags.StringSliceVar(&o.ReservedProperties, "reserved-properties", o.ReservedProperties,
		"patterns of names that no ClusterProperty is published under; as in path.Match, * matches any part of a name")
	flags.StringVar(&o.HealthProbeBindAddress, "health-probe-bind-address", o.HealthProbeBindAddress,
		`host:port of /healthz and /readyz; "0" turns them off`)
	flags.StringVar(&o.MetricsBindAddress, "metrics-bind-address", o.MetricsBindAddress,
		`host:port of /metrics; "0" turns it off`)
}

func (o *Options) complete() {
	o.HealthProbeBindAddress = kube.BindAddress(o.HealthProbeBindAddress)
	o.MetricsBindAddress = kube.BindAddress(o.MetricsBindAddress)
}

// Validate returns an error that lists every invalid flag on one line.
func (o *Options) Validate() error {
	var errs kube.FlagErrors
	checkNamespace(&errs, "cluster-name", o.ClusterName)
	checkNamespace(&errs, "install-namespace", o.InstallNamespace)
	errs.Required("addon-uid", o.AddonUID)
	errs.Required("hub-kubeconfig", o.HubKubeconfig)
	if o.Hosted {
		errs.Required("kubeconfig", o.Kubeconfig)
	}
	errs.Address("health-probe-bind-address", o.HealthProbeBindAddress)
	errs.Address("metrics-bind-address", o.MetricsBindAddress)
	if o.ClaimLimit < 0 {
		errs.Add("claim-limit", "%d is negative", o.ClaimLimit)
	}
	errs.Patterns("reserved-properties", o.ReservedProperties)
	return errs.Err()
}

// CleanupOptions is the command line of the hook.
type CleanupOptions struct {
	Kubeconfig       string
	AddonUID         string
	InstallNamespace string
	Timeout          time.Duration
}

func (o *CleanupOptions) addFlags(flags *pflag.FlagSet) {
	flags.StringVar(&o.Kubeconfig, "kubeconfig", o.Kubeconfig,
		"path of the spoke's kubeconfig (default: the pod's service account)")
	flags.StringVar(&o.AddonUID, "addon-uid", o.AddonUID,
		"UID of the ManagedClusterAddOn that is being removed (required)")
	flags.StringVar(&o.InstallNamespace, "install-namespace", o.InstallNamespace,
		"namespace the agent runs in (required)")
	flags.DurationVar(&o.Timeout, "timeout", o.Timeout, "how long to wait for a running agent to stop publishing")
}

// Validate returns an error that lists every invalid flag on one line.
func (o *CleanupOptions) Validate() error {
	var errs kube.FlagErrors
	checkNamespace(&errs, "install-namespace", o.InstallNamespace)
	errs.Required("addon-uid", o.AddonUID)
	if o.Timeout < 0 {
		errs.Add("timeout", "%s is negative", o.Timeout)
	}
	return errs.Err()
}

// checkNamespace records an error if the flag's value is not the name of a namespace.
func checkNamespace(errs *kube.FlagErrors, flag, name string) {
	errs.Required(flag, name)
	if problems := validation.IsDNS1123Label(name); name != "" && len(problems) > 0 {
		errs.Add(flag, "%q is not a namespace name: %s", name, problems[0])
	}
}
