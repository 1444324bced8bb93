package doctor

import (
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/version"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"

	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/upstream"
	"open-cluster-management.io/cluster-inventory-addon/pkg/inventoryctl/decide"
	"open-cluster-management.io/cluster-inventory-addon/pkg/inventoryctl/docs"
)

// safeProxy is the first version of cluster-proxy that does not add its clients' own
// impersonation headers to those of the user that it impersonates.
var safeProxy = version.MustParseSemantic("0.11.0")

// ForwardsImpersonation reports whether a version of cluster-proxy (its manager's Deployment,
// nil if absent or hidden) lets clients choose groups on a cluster, unless its impersonation
// is off there.
func ForwardsImpersonation(proxy *appsv1.Deployment) bool {
	if proxy == nil {
		return false
	}
	found := versionOf(proxy)
	return found != nil && found.LessThan(safeProxy)
}

// ImpersonationFacts summarizes where cluster-proxy impersonates its clients.
type ImpersonationFacts struct {
	Hidden  bool
	Total   int
	On      []string // clusters
	Unknown []string // clusters whose configuration may not be read
}

// Add counts one cluster that has cluster-proxy, with its configurations.
func (i *ImpersonationFacts) Add(cluster string, configs []decide.Object[addonv1beta1.AddOnDeploymentConfig]) {
	i.Total++
	isOff, isHidden := false, false
	for _, config := range configs {
		isHidden = isHidden || config.Hidden
		isOff = isOff || config.Object != nil && slices.Contains(config.Object.Spec.CustomizedVariables,
			addonv1beta1.CustomizedVariable{Name: "enableImpersonation", Value: "false"})
	}
	switch {
	case isOff:
	case isHidden:
		i.Unknown = append(i.Unknown, cluster)
	default:
		i.On = append(i.On, cluster)
	}
}

// DeploymentConfigs names the AddOnDeploymentConfigs of an addon on a cluster.
func DeploymentConfigs(addon *addonv1beta1.ManagedClusterAddOn) []types.NamespacedName {
	var keys []types.NamespacedName
	for _, reference := range addon.Status.ConfigReferences {
		if reference.Group == addonv1beta1.GroupName && reference.Resource == "addondeploymentconfigs" &&
			reference.DesiredConfig != nil {
			keys = append(keys, types.NamespacedName{
				Namespace: reference.DesiredConfig.Namespace, Name: reference.DesiredConfig.Name,
			})
		}
	}
	return keys
}

// proxyDeployment is the namespace and the name of cluster-proxy's Deployment on the hub.
func (f HubFacts) proxyDeployment() string {
	return f.Manager.Settings.ClusterProxyNamespace + "/" + upstream.ProxyDeployment
}

// withoutProxy returns the finding of a check of cluster-proxy if there is nothing to check, or
// the reader may not see it.
func (f HubFacts) withoutProxy(name string) (finding decide.Finding, absent bool) {
	switch {
	case !f.Manager.Settings.ClusterProxy:
		return notConfigured(name,
			"this addon publishes no access through cluster-proxy (access.clusterProxy.enabled=false)"), true
	case f.Proxy.Hidden:
		return notVisible(name, "Deployment "+f.proxyDeployment()), true
	case f.Proxy.Object == nil:
		return notConfigured(name, "there is no Deployment "+f.proxyDeployment()), true
	default:
		return decide.Finding{}, false
	}
}

func (f HubFacts) checkImpersonation() decide.Finding {
	const name = "cluster-proxy's impersonation"
	where := f.proxyDeployment()
	if finding, absent := f.withoutProxy(name); absent {
		return finding
	}
	found, i := versionOf(f.Proxy.Object), f.Impersonation
	switch {
	case found == nil:
		return ok(name, "cannot tell whether clients can choose their groups: the image of Deployment "+where+
			" has no version in its tag; "+safeProxy.String()+" and later ones are safe")
	case !ForwardsImpersonation(f.Proxy.Object):
		return ok(name, "version "+found.String()+" does not let clients choose their groups")
	case i.Hidden:
		return notVisible(name, "ManagedClusterAddOns")
	case i.Total == 0:
		return notConfigured(name, "no cluster has the addon cluster-proxy")
	case len(i.On) > 0:
		return problem(name, fmt.Sprintf("version %s lets clients choose their groups on %d of %d clusters (%s)",
			found, len(i.On), i.Total, clusterNames(i.On)), "upgrade it to "+safeProxy.String()+" or later, or switch "+
			"impersonation off: "+docs.URL("docs/consumers.md#cluster-proxys-impersonation"))
	case len(i.Unknown) > 0:
		return notVisible(name, "AddOnDeploymentConfigs, which may switch it off on "+clusterNames(i.Unknown))
	default:
		return ok(name, "it is off on all clusters")
	}
}
