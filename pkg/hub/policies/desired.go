package policies

import (
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"open-cluster-management.io/cluster-inventory-addon/pkg/contract"
)

// Policy is one of the chart's ValidatingAdmissionPolicies. Its binding has the same name.
type Policy struct {
	Name string

	// Limits is the right that the policy limits, if the manager has that right only with some
	// of the chart's values. Without the right, the chart installs no policy.
	Limits *authorizationv1.ResourceAttributes

	rule       admissionregistrationv1.RuleWithOperations
	resources  []string                          // by name, if not all
	everyone   bool                              // the policy is not limited to the manager's requests
	conditions []string                          // those of a policy for everyone
	params     *admissionregistrationv1.ParamRef // of the binding
}

const rbacGroup = "rbac.authorization.k8s.io"

// Roles returns the names of the manager's ClusterRoles that show which policies the chart installs.
func Roles() []string {
	return []string{
		"open-cluster-management:cluster-inventory:manager", "open-cluster-management:cluster-inventory:credentials",
	}
}

// All returns the policies of the chart with all of its features.
func All() []Policy {
	const create, update, remove = "CREATE", "UPDATE", "DELETE"
	copying := &authorizationv1.ResourceAttributes{
		Group: rbacGroup, Resource: "clusterroles", Name: contract.TokenTargetRole, Verb: "bind",
	}
	deny := ptr.To(admissionregistrationv1.DenyAction)
	return []Policy{
		{
			Name: "cluster-inventory-addons",
			rule: rule("addon.open-cluster-management.io", []string{
				"managedclusteraddons", "managedclusteraddons/*", "clustermanagementaddons", "clustermanagementaddons/*",
			}),
		},
		{
			Name: "cluster-inventory-certificates",
			rule: rule("certificates.k8s.io", []string{"certificatesigningrequests", "certificatesigningrequests/*"}),
		},
		{
			Name: "cluster-inventory-clusterprofiles",
			rule: rule("multicluster.x-k8s.io", []string{"clusterprofiles", "clusterprofiles/status"}),
		},
		{Name: "cluster-inventory-configmaps", rule: rule("", []string{"configmaps"})},
		{Name: "cluster-inventory-events", rule: rule("events.k8s.io", []string{"events"}, create, update)},
		{Name: "cluster-inventory-leases", rule: rule("coordination.k8s.io", []string{"leases"})},
		{
			Name: "cluster-inventory-manifestworks",
			rule: rule("work.open-cluster-management.io", []string{"manifestworks", "manifestworks/*"}),
		},
		{
			Name: "cluster-inventory-placementdecisions",
			rule: rule("multicluster.x-k8s.io", []string{"placementdecisions"}),
			Limits: &authorizationv1.ResourceAttributes{
				Group: "multicluster.x-k8s.io", Resource: "placementdecisions", Verb: "create",
			},
		},
		{Name: "cluster-inventory-rolebindings", rule: rule(rbacGroup, []string{"rolebindings"}, create, update)},
		{Name: "cluster-inventory-secrets", rule: rule("", []string{"secrets"})},
		{
			Name: "cluster-inventory-token-grants", Limits: copying, everyone: true,
			rule: rule(rbacGroup, []string{"rolebindings"}, create, update, remove),
			conditions: []string{"(request.operation == 'DELETE' ? oldObject : object).metadata.name in ['" +
				contract.TokenSourceRole + "', '" + contract.TokenTargetRole + "']"},
		},
		{
			Name: "cluster-inventory-token-source", Limits: copying, everyone: true,
			rule: rule(rbacGroup, []string{"rolebindings"}, create), resources: []string{contract.TokenSourceRole},
			params: &admissionregistrationv1.ParamRef{Name: contract.AddonName, ParameterNotFoundAction: deny},
		},
		{
			Name: "cluster-inventory-token-target", Limits: copying, everyone: true,
			rule: rule(rbacGroup, []string{"rolebindings"}, create), resources: []string{contract.TokenTargetRole},
			params: &admissionregistrationv1.ParamRef{
				Selector: &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{
					{Key: contract.LabelPublish, Operator: metav1.LabelSelectorOpNotIn, Values: []string{"false"}},
				}},
				ParameterNotFoundAction: deny,
			},
		},
	}
}

// rule matches requests for resources of a group: those of the given operations, or all.
func rule(
	group string, resources []string, operations ...admissionregistrationv1.OperationType,
) admissionregistrationv1.RuleWithOperations {
	if len(operations) == 0 {
		operations = []admissionregistrationv1.OperationType{admissionregistrationv1.OperationAll}
	}
	return admissionregistrationv1.RuleWithOperations{
		Operations: operations,
		Rule: admissionregistrationv1.Rule{
			APIGroups: []string{group}, APIVersions: []string{"*"}, Resources: resources,
		},
	}
}
