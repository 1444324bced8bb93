package hub

import (
	"crypto/tls"
	"os"
	"path/filepath"

	"github.com/spf13/pflag"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"open-cluster-management.io/cluster-inventory-addon/pkg/kube"
)

// MetricsOptions are the flags that configure which metrics there are and who may read
// them.
type MetricsOptions struct {
	// BindAddress is host:port; "0" turns the server off.
	BindAddress string

	// Secure serves them over TLS, to those whom the hub lets get the path /metrics.
	// Otherwise whoever reaches the address reads them.
	Secure bool

	// CertDir is a directory with tls.crt and tls.key, which may be replaced at any time;
	// if it is empty, the manager makes itself a certificate whenever it starts.
	CertDir string

	// ByNamespace tells the namespaces of profiles apart.
	ByNamespace bool
}

func newMetricsOptions() MetricsOptions { return MetricsOptions{BindAddress: ":8080", Secure: true} }

func (o *MetricsOptions) addFlags(flags *pflag.FlagSet) {
	flags.StringVar(&o.BindAddress, "metrics-bind-address", o.BindAddress,
		`host:port of /metrics; "0" turns it off`)
	flags.BoolVar(&o.Secure, "metrics-secure", o.Secure,
		"serve metrics over TLS, to those whom the hub lets get /metrics; if false, in plain text to everybody")
	flags.StringVar(&o.CertDir, "metrics-cert-dir", o.CertDir,
		"directory with tls.crt and tls.key for that (default: a certificate that the manager makes itself)")
	flags.BoolVar(&o.ByNamespace, "metrics-by-namespace", o.ByNamespace,
		"give the metrics of profiles a label with the namespace; there may be thousands")
}

func (o *MetricsOptions) validate(mistakes *kube.Mistakes) {
	mistakes.Address("metrics-bind-address", o.BindAddress)
	if o.CertDir == "" {
		return
	}
	if !o.Secure {
		mistakes.Add("metrics-cert-dir", "is of no use with --metrics-secure=false")
		return
	}
	for _, name := range []string{"tls.crt", "tls.key"} {
		// Without them the server would make itself a certificate.
		if _, err := os.Stat(filepath.Join(o.CertDir, name)); err != nil {
			mistakes.Add("metrics-cert-dir", "%v", err)
		}
	}
}

// server says how metrics are served.
func (o *MetricsOptions) server() metricsserver.Options {
	options := metricsserver.Options{BindAddress: o.BindAddress}
	if o.Secure {
		options.SecureServing = true
		options.CertDir = o.CertDir
		options.FilterProvider = reviewed
		// Nobody who scrapes needs more than one request at a time.
		options.TLSOpts = []func(*tls.Config){func(c *tls.Config) { c.NextProtos = []string{"http/1.1"} }}
	}
	return options
}
