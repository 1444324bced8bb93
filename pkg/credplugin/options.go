package credplugin

import (
	"os"
	"strings"
	"time"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/util/validation"
)

// Options is the plugin's command line and the environment variables it reads: $KUBERNETES_EXEC_INFO, an
// ExecCredential, and $NAMESPACE, that of the Secret if it is not the one the plugin runs in.
type Options struct {
	ManagedServiceAccount string
	MaxCache              time.Duration
	Timeout               time.Duration
	ExecInfo              string
	Namespace             string
}

// NewOptions returns the defaults, and what the environment variables say.
func NewOptions() *Options {
	return &Options{
		MaxCache:  5 * time.Minute,
		Timeout:   10 * time.Second,
		ExecInfo:  os.Getenv("KUBERNETES_EXEC_INFO"),
		Namespace: strings.TrimSpace(os.Getenv("NAMESPACE")),
	}
}

// AddFlags adds the flags of the command line.
func (o *Options) AddFlags(flags *pflag.FlagSet) {
	flags.StringVar(&o.ManagedServiceAccount, "managed-serviceaccount", o.ManagedServiceAccount,
		"name of the ManagedServiceAccount whose token to use (required)")
	flags.DurationVar(&o.MaxCache, "max-cache", o.MaxCache,
		"how long a client may use a token before it asks again; "+
			"a running client loses a withdrawn token within that time")
	flags.DurationVar(&o.Timeout, "timeout", o.Timeout, "how long the whole call may take")
}

// Validate returns the first error it finds.
func (o *Options) Validate() error {
	switch {
	case o.ManagedServiceAccount == "":
		return failf(ExitUsage, "--managed-serviceaccount: is required")
	case len(validation.IsDNS1123Subdomain(o.ManagedServiceAccount)) > 0:
		return failf(ExitUsage, "--managed-serviceaccount: %q is not the name of an account", o.ManagedServiceAccount)
	case o.MaxCache <= 0:
		return failf(ExitUsage, "--max-cache: %s is not positive", o.MaxCache)
	case o.Timeout <= 0:
		return failf(ExitUsage, "--timeout: %s is not positive", o.Timeout)
	case o.Namespace != "" && len(validation.IsDNS1123Label(o.Namespace)) > 0:
		return failf(ExitUsage, "$NAMESPACE: %q is not the name of a namespace", o.Namespace)
	}
	return nil
}
