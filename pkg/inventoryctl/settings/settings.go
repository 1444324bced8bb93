// Package settings knows the manager's flags on which the answers of kubectl inventory depend. It
// reads them from the manager's Deployment, so that the plugin decides as the running
// manager does.
package settings

import (
	"fmt"
	"io"

	"github.com/spf13/pflag"
	appsv1 "k8s.io/api/apps/v1"

	"open-cluster-management.io/cluster-inventory-addon/pkg/contract"
	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/inventory/profiles"
	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/upstream"
)

// CopyingEnabled is the value of CredentialsMode with which tokens are copied.
const CopyingEnabled = "enabled"

// Settings are flags of the manager.
type Settings struct {
	// Known is false if the manager's flags may not be read; then these are its defaults.
	Known bool

	// Changed are the flags below that differ from the defaults, as on a command line.
	Changed []string

	// Problem says with which flag the manager cannot have started; then the settings are its
	// defaults. It is "" if there is none.
	Problem string

	Limits profiles.Limits

	// LabelAllow are the patterns of labels that the manager copies to profiles.
	LabelAllow []string

	// ExclusiveSetsOnly publishes clusters only through exclusive sets.
	ExclusiveSetsOnly bool

	// UpstreamGates and RegistrationClusterRole say how the manager determines whether OCM's own
	// ClusterProfile feature gate is on, and UpstreamSyncer how it does so for
	// managed-serviceaccount's syncer.
	UpstreamGates           string
	RegistrationClusterRole string
	UpstreamSyncer          string

	// CredentialsMode is "enabled", "draining" or "disabled".
	CredentialsMode string

	// RequireTarget copies tokens only to the namespaces that their accounts name.
	RequireTarget bool

	// ClusterProxy publishes the access provider through cluster-proxy, whose namespace is
	// ClusterProxyNamespace. ClusterProxyURL is where consumers reach it; "" means its Service.
	ClusterProxy          bool
	ClusterProxyNamespace string
	ClusterProxyURL       string
}

// Default returns the settings of a manager without flags.
func Default() Settings {
	return Settings{
		Limits: profiles.Limits{
			Properties: contract.DefaultMaxProperties, PropertyBytes: contract.DefaultMaxPropertyBytes,
		},
		UpstreamGates:           string(upstream.OverrideNone),
		RegistrationClusterRole: upstream.DefaultRegistrationClusterRole,
		UpstreamSyncer:          string(upstream.OverrideNone),
		CredentialsMode:         CopyingEnabled,
		RequireTarget:           true,
		ClusterProxy:            true,
		ClusterProxyNamespace:   "open-cluster-management-addon",
	}
}

// Of returns the settings of the manager in a Deployment.
func Of(deployment *appsv1.Deployment) Settings {
	s := Default()
	s.Known = true
	flags := s.flags()
	for _, container := range deployment.Spec.Template.Spec.Containers {
		if container.Name != "manager" {
			continue
		}
		if err := flags.Parse(container.Args); err != nil {
			unknown := Default()
			unknown.Known, unknown.Problem = true, err.Error()
			return unknown
		}
	}
	flags.VisitAll(func(flag *pflag.Flag) {
		if flag.Value.String() != flag.DefValue {
			s.Changed = append(s.Changed, fmt.Sprintf("--%s=%s", flag.Name, flag.Value))
		}
	})
	return s
}

// flags returns the flags that write to these settings. Unknown ones are ignored.
func (s *Settings) flags() *pflag.FlagSet {
	flags := pflag.NewFlagSet("manager", pflag.ContinueOnError)
	flags.ParseErrorsAllowlist.UnknownFlags = true
	flags.SetOutput(io.Discard)
	flags.IntVar(&s.Limits.Properties, "max-properties", s.Limits.Properties, "")
	flags.IntVar(&s.Limits.PropertyBytes, "max-property-bytes", s.Limits.PropertyBytes, "")
	flags.StringSliceVar(&s.Limits.PropertyLabels, "property-label", nil, "")
	flags.StringSliceVar(&s.LabelAllow, "label-allow", nil, "")
	flags.BoolVar(&s.ExclusiveSetsOnly, "exclusive-sets-only", false, "")
	flags.StringVar(&s.UpstreamGates, "upstream-gates", s.UpstreamGates, "")
	flags.StringVar(
		&s.RegistrationClusterRole, "upstream-registration-clusterrole", s.RegistrationClusterRole, "")
	flags.StringVar(&s.UpstreamSyncer, "credentials-upstream-syncer", s.UpstreamSyncer, "")
	flags.StringVar(&s.CredentialsMode, "credentials-mode", s.CredentialsMode, "")
	flags.BoolVar(&s.RequireTarget, "credentials-require-target", s.RequireTarget, "")
	flags.BoolVar(&s.ClusterProxy, "access-cluster-proxy", s.ClusterProxy, "")
	flags.StringVar(&s.ClusterProxyNamespace, "access-cluster-proxy-namespace", s.ClusterProxyNamespace, "")
	flags.StringVar(&s.ClusterProxyURL, "access-cluster-proxy-url", s.ClusterProxyURL, "")
	return flags
}
