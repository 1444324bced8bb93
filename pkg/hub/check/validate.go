package check

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	authorizationv1 "k8s.io/api/authorization/v1"
	coordinationv1 "k8s.io/api/coordination/v1"

	"open-cluster-management.io/cluster-inventory-addon/pkg/contract"
)

// api is a resource that the manager cannot work without.
type api struct{ groupVersion, resource string }

func requiredAPIs() []api {
	const (
		clusters = "cluster.open-cluster-management.io/"
		addons   = "addon.open-cluster-management.io/v1beta1"
	)
	return []api{
		{clusters + "v1", "managedclusters"},
		{clusters + "v1beta2", "managedclustersets"},
		{clusters + "v1beta2", "managedclustersetbindings"},
		{clusters + "v1beta1", "placements"},
		{clusters + "v1beta1", "placementdecisions"},
		{addons, "clustermanagementaddons"},
		{addons, "managedclusteraddons"},
		{"work.open-cluster-management.io/v1", "manifestworks"},
		{contract.AgentRevisionGroup + "/" + contract.AgentRevisionVersion, contract.AgentRevisionResource},
		{"multicluster.x-k8s.io/v1alpha1", "clusterprofiles"},
	}
}

// requiredRights are rights that the manager needs in every mode, at least one of each Role
// of the chart.
func requiredRights(namespace string) []authorizationv1.ResourceAttributes {
	const (
		clusters = "cluster.open-cluster-management.io"
		addons   = "addon.open-cluster-management.io"
		profiles = "multicluster.x-k8s.io"
	)
	return []authorizationv1.ResourceAttributes{
		{Group: clusters, Resource: "managedclusters", Verb: "watch"},
		{Group: clusters, Resource: "managedclustersets", Verb: "watch"},
		{Group: clusters, Resource: "managedclustersetbindings", Verb: "watch"},
		{Group: clusters, Resource: "placements", Verb: "watch"},
		{Group: clusters, Resource: "placementdecisions", Verb: "watch"},
		{Group: profiles, Resource: "clusterprofiles", Verb: "create"},
		{Group: profiles, Resource: "clusterprofiles", Verb: "delete"},
		{Group: profiles, Resource: "clusterprofiles", Subresource: "status", Verb: "patch"},
		{Group: contract.AgentRevisionGroup, Resource: contract.AgentRevisionResource, Verb: "watch"},
		{Group: addons, Resource: "managedclusteraddons", Name: contract.AddonName, Verb: "patch"},
		{Group: addons, Resource: "managedclusteraddons", Name: contract.AddonName, Subresource: "status", Verb: "patch"},
		{Group: "work.open-cluster-management.io", Resource: "manifestworks", Verb: "create"},
		{Group: "certificates.k8s.io", Resource: "certificatesigningrequests", Subresource: "approval", Verb: "update"},
		{Group: "coordination.k8s.io", Resource: "leases", Namespace: namespace, Name: contract.LeaseName, Verb: "update"},
		{Resource: "configmaps", Namespace: namespace, Verb: "list"},
	}
}

// seen is what one look at the hub shows.
type seen struct {
	served  []api
	refused []authorizationv1.ResourceAttributes
	defined bool // the ClusterManagementAddOn exists

	// policies has, by the name of each admission policy, why it is not enforced, or "".
	policies map[string]string

	// lease is that of the leader election, nil if there is none. before is the first one that
	// a manager held.
	lease, before *coordinationv1.Lease
}

// validate says what is missing, one line each.
func validate(s seen) []string {
	var missing []string
	for _, required := range requiredAPIs() {
		if !slices.Contains(s.served, required) {
			missing = append(missing, fmt.Sprintf("the hub does not serve %s of %s", required.resource, required.groupVersion))
		}
	}
	for _, right := range s.refused {
		missing = append(missing, "the manager may not "+describe(right))
	}
	if !s.defined {
		missing = append(missing, "there is no ClusterManagementAddOn "+contract.AddonName)
	}
	for _, policy := range slices.Sorted(maps.Keys(s.policies)) {
		if problem := s.policies[policy]; problem != "" {
			missing = append(missing, fmt.Sprintf("the hub does not enforce ValidatingAdmissionPolicy %s: %s", policy, problem))
		}
	}
	if why := validateLease(s.lease, s.before); why != "" {
		missing = append(missing, why)
	}
	return missing
}

// validateLease says why the Lease does not show that a manager works. It is compared with an
// earlier look, and not with this machine's clock, which may differ from the manager's.
func validateLease(lease, before *coordinationv1.Lease) string {
	switch {
	case lease == nil:
		return "there is no Lease " + contract.LeaseName
	case lease.Spec.HolderIdentity == nil || *lease.Spec.HolderIdentity == "" || lease.Spec.RenewTime == nil:
		return "no manager leads: no one holds Lease " + contract.LeaseName
	case before == nil || before.Spec.RenewTime.Equal(lease.Spec.RenewTime):
		return fmt.Sprintf("the manager %s has not renewed Lease %s since this check began",
			*lease.Spec.HolderIdentity, contract.LeaseName)
	}
	return ""
}

func describe(right authorizationv1.ResourceAttributes) string {
	what := []string{right.Verb, right.Resource}
	if right.Subresource != "" {
		what[1] += "/" + right.Subresource
	}
	if right.Name != "" {
		what = append(what, right.Name)
	}
	if right.Group != "" {
		what = append(what, "of", right.Group)
	}
	if right.Namespace != "" {
		what = append(what, "in", right.Namespace)
	}
	return strings.Join(what, " ")
}
