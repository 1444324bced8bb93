package hub

import (
	"crypto/tls"
	"os"
	"path/filepath"

	"github.com/spf13/pflag"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"open-cluster-management.io/cluster-inventory-addon/pkg/kube"
)

// MetricsOptions are the flags that configure the metrics and who may read them. The files in CertDir may be
// replaced at any time.
type MetricsOptions struct {
	BindAddress string
	Secure      bool
	CertDir     string
	ByNamespace bool
}

func newMetricsOptions() MetricsOptions { return MetricsOptions{BindAddress: ":8080", Secure: true} }

func (o *MetricsOptions) addFlags(flags *pflag.FlagSet) {
	flags.StringVar(&o.BindAddress, "metrics-bind-address", o.BindAddress,
		`host:port of /metrics; "0" turns it off`)
	flags.BoolVar(&o.Secure, "metrics-secure", o.Secure,
		"serve metrics over TLS, to clients that the hub allows to get /metrics; if false, in plain text to everyone")
	flags.StringVar(&o.CertDir, "metrics-cert-dir", o.CertDir,
		"directory with the tls.crt and tls.key of --metrics-secure (default: a self-signed certificate)")
	flags.BoolVar(&o.ByNamespace, "metrics-by-namespace", o.ByNamespace,
		"add the label namespace to the metrics of profiles; there may be thousands of namespaces")
}

func (o *MetricsOptions) validate(errs *kube.FlagErrors) {
	errs.Address("metrics-bind-address", o.BindAddress)
	if o.CertDir == "" {
		return
	}
	if !o.Secure {
		errs.Add("metrics-cert-dir", "has no effect with --metrics-secure=false")
		return
	}
	for _, name := range []string{"tls.crt", "tls.key"} {
		// Without them the server would create a self-signed certificate.
		if _, err := os.Stat(filepath.Join(o.CertDir, name)); err != nil {
			errs.Add("metrics-cert-dir", "%v", err)
		}
	}
}

func (o *MetricsOptions) server() metricsserver.Options {
	options := metricsserver.Options{BindAddress: o.BindAddress}
	if o.Secure {
		options.SecureServing = true
		options.CertDir = o.CertDir
		options.FilterProvider = reviewed
		// No scraper needs more than one request at a time.
		options.TLSOpts = []func(*tls.Config){func(c *tls.Config) { c.NextProtos = []string{"http/1.1"} }}
	}
	return options
}
