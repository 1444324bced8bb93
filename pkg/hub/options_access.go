package hub

import (
	"os"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/util/validation"

	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/access"
	"open-cluster-management.io/cluster-inventory-addon/pkg/kube"
)

// AccessOptions are the flags that configure the access providers in profiles.
type AccessOptions struct {
	// ClusterProxy publishes the access provider through cluster-proxy.
	ClusterProxy bool

	// ClusterProxyNamespace is cluster-proxy's namespace on the hub.
	ClusterProxyNamespace string

	// ClusterProxyConfiguration is the name of cluster-proxy's ManagedProxyConfiguration.
	ClusterProxyConfiguration string

	// ClusterProxyURL is where consumers reach cluster-proxy's user server; if empty, at
	// its Service.
	ClusterProxyURL string

	// ClusterProxyCAFile is a file with the CA, in PEM, of the server at that URL; if
	// empty, the user server's own CA is used.
	ClusterProxyCAFile string

	caBundle []byte // content of ClusterProxyCAFile
}

func newAccessOptions() AccessOptions {
	return AccessOptions{
		ClusterProxy:              true,
		ClusterProxyNamespace:     "open-cluster-management-addon",
		ClusterProxyConfiguration: "cluster-proxy",
	}
}

func (o *AccessOptions) addFlags(flags *pflag.FlagSet) {
	flags.BoolVar(&o.ClusterProxy, "access-cluster-proxy", o.ClusterProxy,
		"publish the access provider through cluster-proxy; if false, entries of its name are left alone")
	flags.StringVar(&o.ClusterProxyNamespace, "access-cluster-proxy-namespace", o.ClusterProxyNamespace,
		"cluster-proxy's namespace on the hub")
	flags.StringVar(&o.ClusterProxyConfiguration, "access-cluster-proxy-configuration", o.ClusterProxyConfiguration,
		"name of cluster-proxy's ManagedProxyConfiguration")
	flags.StringVar(&o.ClusterProxyURL, "access-cluster-proxy-url", o.ClusterProxyURL,
		"https URL at which consumers outside the hub reach cluster-proxy's user server (default: its Service)")
	flags.StringVar(&o.ClusterProxyCAFile, "access-cluster-proxy-ca-file", o.ClusterProxyCAFile,
		"file with the CA, in PEM, of the server at that URL (default: the user server's own CA)")
}

// validate collects all invalid values, and reads the CA file.
func (o *AccessOptions) validate(mistakes *kube.Mistakes) {
	if problems := validation.IsDNS1123Label(o.ClusterProxyNamespace); len(problems) > 0 {
		mistakes.Add("access-cluster-proxy-namespace",
			"%q is not a namespace name: %s", o.ClusterProxyNamespace, problems[0])
	}
	if problems := validation.IsDNS1123Subdomain(o.ClusterProxyConfiguration); len(problems) > 0 {
		mistakes.Add("access-cluster-proxy-configuration",
			"%q is not a name: %s", o.ClusterProxyConfiguration, problems[0])
	}
	if o.ClusterProxyURL != "" {
		if err := access.CheckURL(o.ClusterProxyURL); err != nil {
			mistakes.Add("access-cluster-proxy-url", "%q %v", o.ClusterProxyURL, err)
		}
	}
	if o.ClusterProxyCAFile == "" {
		return
	}
	text, err := os.ReadFile(o.ClusterProxyCAFile)
	if err != nil {
		mistakes.Add("access-cluster-proxy-ca-file", "%v", err)
		return
	}
	if o.caBundle, err = access.ParseCA(text); err != nil {
		mistakes.Add("access-cluster-proxy-ca-file", "%q %v", o.ClusterProxyCAFile, err)
	}
}

// options returns the options of package access. The namespace is the manager's; the
// gate is nil if the provider through cluster-proxy is not published.
func (o *AccessOptions) options(namespace string, gate access.ProxyGate) access.Options {
	return access.Options{
		Namespace: namespace,
		ClusterProxy: access.ClusterProxyOptions{
			Enabled:       o.ClusterProxy,
			Namespace:     o.ClusterProxyNamespace,
			Configuration: o.ClusterProxyConfiguration,
			URL:           o.ClusterProxyURL,
			CABundle:      o.caBundle,
			Gate:          gate,
		},
	}
}
