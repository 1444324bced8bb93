package conformance

import (
	"fmt"
	"net/url"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	inventoryv1alpha1 "sigs.k8s.io/cluster-inventory-api/apis/v1alpha1"

	"open-cluster-management.io/cluster-inventory-addon/pkg/contract"
)

// Hub is the state of a namespace on a hub.
type Hub struct {
	// Served are the versions of ClusterProfile that the hub serves, by whether they are
	// namespaced.
	Served map[string]bool

	// Profiles are all ClusterProfiles of the namespace, including other writers'.
	Profiles []inventoryv1alpha1.ClusterProfile
}

// Limits of ClusterProfile v1alpha2 (cluster-inventory-api, after v0.1.3).
const (
	maxAccessProviders  = 64
	maxAccessNameBytes  = 253
	maxServerURLBytes   = 2048
	maxTLSServerName    = 253
	maxManagerNameBytes = 63
	strictVersion       = "v1alpha2"
)

// check is one requirement.
type check struct {
	name     string
	required bool

	// profile returns the problems of one profile of the cluster manager.
	profile func(*inventoryv1alpha1.ClusterProfile) []string

	// all returns the problems of the hub, or of all profiles of the cluster manager.
	all func(Hub, []inventoryv1alpha1.ClusterProfile) []string
}

// checks are in the order in which they are reported.
var checks = []check{
	{name: "ClusterProfile v1alpha2 is served, and namespaced", required: true, all: isServed},
	{name: "there are profiles of the cluster manager", required: true, all: exist},
	{name: "the label x-k8s.io/cluster-manager is the cluster manager's name", required: true, profile: namesItsManager},
	{
		name:     "the label multicluster.x-k8s.io/inventory-member-id is not empty",
		required: true, profile: memberIDIsNotEmpty,
	},
	{name: "the cluster manager's name keeps the limits of v1alpha2", required: true, profile: managerNameIsLegal},
	{name: "the access providers keep the limits of v1alpha2", required: true, profile: accessIsLegal},
	{name: "the label multicluster.x-k8s.io/inventory-member-id is set", profile: hasMemberID},
	{name: "no two profiles have the same member id", all: memberIDsAreUnique},
	{name: "the condition ControlPlaneHealthy is set",
		profile: hasCondition(inventoryv1alpha1.ClusterConditionControlPlaneHealthy)},
	{name: "the condition Joined is set", profile: hasCondition(contract.ProfileConditionJoined)},
	{name: "the version of Kubernetes is set", profile: hasVersion},
}

// Check checks the profiles of the named cluster manager. A check of profiles fails if
// there are none, so that an empty namespace cannot produce a good report.
func Check(hub Hub, manager string) Report {
	var profiles []inventoryv1alpha1.ClusterProfile
	for _, profile := range hub.Profiles {
		if profile.Spec.ClusterManager.Name == manager {
			profiles = append(profiles, profile)
		}
	}
	report := Report{ClusterManager: manager, Profiles: len(profiles)}
	for _, check := range checks {
		result := Result{Check: check.name, Required: check.required}
		switch {
		case check.all != nil:
			result.Problems = check.all(hub, profiles)
		case len(profiles) == 0:
			result.Problems = []string{"there is no profile to check"}
		}
		if check.profile != nil {
			for i := range profiles {
				for _, problem := range check.profile(&profiles[i]) {
					result.Problems = append(result.Problems, profiles[i].Name+": "+problem)
				}
			}
		}
		report.Results = append(report.Results, result)
	}
	return report
}

func isServed(hub Hub, _ []inventoryv1alpha1.ClusterProfile) []string {
	switch namespaced, served := hub.Served[strictVersion]; {
	case !served:
		return []string{"it is not served"}
	case !namespaced:
		return []string{"it is not namespaced"}
	}
	return nil
}

func exist(hub Hub, profiles []inventoryv1alpha1.ClusterProfile) []string {
	if len(profiles) == 0 {
		return []string{fmt.Sprintf("none of %d", len(hub.Profiles))}
	}
	return nil
}

func namesItsManager(p *inventoryv1alpha1.ClusterProfile) []string {
	if got := p.Labels[contract.LabelClusterManager]; got != p.Spec.ClusterManager.Name {
		return []string{fmt.Sprintf("it is %q", got)}
	}
	return nil
}

func memberIDIsNotEmpty(p *inventoryv1alpha1.ClusterProfile) []string {
	if id, set := p.Labels[contract.LabelInventoryMemberID]; set && id == "" {
		return []string{"it is empty"}
	}
	return nil
}

func hasMemberID(p *inventoryv1alpha1.ClusterProfile) []string {
	if _, set := p.Labels[contract.LabelInventoryMemberID]; !set {
		return []string{"it is not set"}
	}
	return nil
}

func memberIDsAreUnique(_ Hub, profiles []inventoryv1alpha1.ClusterProfile) []string {
	first, problems := map[string]string{}, []string(nil)
	for _, p := range profiles {
		id := p.Labels[contract.LabelInventoryMemberID]
		if id == "" {
			continue
		}
		if other, taken := first[id]; taken {
			problems = append(problems, fmt.Sprintf("%s and %s: %s", other, p.Name, id))
		} else {
			first[id] = p.Name
		}
	}
	return problems
}

func managerNameIsLegal(p *inventoryv1alpha1.ClusterProfile) []string {
	name := p.Spec.ClusterManager.Name
	if name == "" || len(name) > maxManagerNameBytes {
		return []string{fmt.Sprintf("it has %d bytes", len(name))}
	}
	return validation.IsValidLabelValue(name)
}

func accessIsLegal(p *inventoryv1alpha1.ClusterProfile) []string {
	providers := p.Status.AccessProviders
	var problems []string
	if len(providers) > maxAccessProviders {
		problems = append(problems, fmt.Sprintf("there are %d", len(providers)))
	}
	for _, provider := range providers {
		for _, problem := range checkAccess(provider) {
			problems = append(problems, fmt.Sprintf("%q: %s", provider.Name, problem))
		}
	}
	return problems
}

func checkAccess(provider inventoryv1alpha1.AccessProvider) []string {
	var problems []string
	if provider.Name == "" || len(provider.Name) > maxAccessNameBytes {
		problems = append(problems, fmt.Sprintf("its name has %d bytes", len(provider.Name)))
	}
	cluster := provider.Cluster
	if len(cluster.Server) > maxServerURLBytes {
		problems = append(problems, fmt.Sprintf("its server has %d bytes", len(cluster.Server)))
	}
	if server, err := url.Parse(cluster.Server); err != nil || server.Host == "" {
		problems = append(problems, "its server is not a URL with a host")
	}
	if cluster.ProxyURL != "" {
		proxy, err := url.Parse(cluster.ProxyURL)
		if err != nil || !slices.Contains([]string{"http", "https", "socks5"}, proxy.Scheme) {
			problems = append(problems, "its proxy is not an http, https or socks5 URL")
		}
	}
	if len(cluster.TLSServerName) > maxTLSServerName {
		problems = append(problems, fmt.Sprintf("its TLS server name has %d bytes", len(cluster.TLSServerName)))
	}
	names := map[string]bool{}
	for _, extension := range cluster.Extensions {
		if names[extension.Name] {
			problems = append(problems, fmt.Sprintf("it has two extensions %q", extension.Name))
		}
		names[extension.Name] = true
	}
	return problems
}

func hasCondition(conditionType string) func(*inventoryv1alpha1.ClusterProfile) []string {
	return func(p *inventoryv1alpha1.ClusterProfile) []string {
		condition := meta.FindStatusCondition(p.Status.Conditions, conditionType)
		known := []metav1.ConditionStatus{metav1.ConditionTrue, metav1.ConditionFalse, metav1.ConditionUnknown}
		switch {
		case condition == nil:
			return []string{"it is not set"}
		case !slices.Contains(known, condition.Status):
			return []string{fmt.Sprintf("its status is %q", condition.Status)}
		}
		return nil
	}
}

func hasVersion(p *inventoryv1alpha1.ClusterProfile) []string {
	if p.Status.Version.Kubernetes == "" {
		return []string{"it is not set"}
	}
	return nil
}
