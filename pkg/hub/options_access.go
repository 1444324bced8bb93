package hub

import (
	"os"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/util/validation"

	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/access"
	"open-cluster-management.io/cluster-inventory-addon/pkg/kube"
)

// AccessOptions are the flags that configure the access providers in profiles. CAFile has the CABundle.
type AccessOptions struct {
	access.ClusterProxyOptions

	CAFile string
}

func newAccessOptions() AccessOptions {
	return AccessOptions{ClusterProxyOptions: access.ClusterProxyOptions{
		Enabled:       true,
		Namespace:     "open-cluster-management-addon",
		Configuration: "cluster-proxy",
	}}
}

func (o *AccessOptions) addFlags(flags *pflag.FlagSet) {
	flags.BoolVar(&o.Enabled, "access-cluster-proxy", o.Enabled,
		"publish the access provider through cluster-proxy; if false, entries of its name are left alone")
	flags.StringVar(&o.Namespace, "access-cluster-proxy-namespace", o.Namespace,
		"cluster-proxy's namespace on the hub")
	flags.StringVar(&o.Configuration, "access-cluster-proxy-configuration", o.Configuration,
		"name of cluster-proxy's ManagedProxyConfiguration")
	flags.StringVar(&o.URL, "access-cluster-proxy-url", o.URL,
		"https URL at which consumers outside the hub reach cluster-proxy's user server (default: its Service)")
	flags.StringVar(&o.CAFile, "access-cluster-proxy-ca-file", o.CAFile,
		"file with the CA, in PEM, of the server at that URL (default: the user server's own CA)")
}

// validate collects all invalid values, and reads the CA file.
func (o *AccessOptions) validate(errs *kube.FlagErrors) {
	if problems := validation.IsDNS1123Label(o.Namespace); len(problems) > 0 {
		errs.Add("access-cluster-proxy-namespace",
			"%q is not a namespace name: %s", o.Namespace, problems[0])
	}
	if problems := validation.IsDNS1123Subdomain(o.Configuration); len(problems) > 0 {
		errs.Add("access-cluster-proxy-configuration",
			"%q is not a name: %s", o.Configuration, problems[0])
	}
	if o.URL != "" {
		if err := access.CheckURL(o.URL); err != nil {
			errs.Add("access-cluster-proxy-url", "%q %v", o.URL, err)
		}
	}
	if o.CAFile == "" {
		return
	}
	text, err := os.ReadFile(o.CAFile)
	if err != nil {
		errs.Add("access-cluster-proxy-ca-file", "%v", err)
		return
	}
	if o.CABundle, err = access.ParseCA(text); err != nil {
		errs.Add("access-cluster-proxy-ca-file", "%q %v", o.CAFile, err)
	}
}
