package policies

import (
	"context"
	"maps"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"open-cluster-management.io/cluster-inventory-addon/pkg/contract"
)

// attemptName is the name of what the manager tries to create, and may not.
const attemptName = "cluster-inventory-policy-check"

// attempt sends a request that a policy must refuse, as a dry run.
type attempt func(ctx context.Context, c client.Client, namespace string) error

// attempts, by the name of the policy. Each is refused by that policy alone. For the others, the
// manager has no right that it could use without another client's object, or in any namespace
// that is sure to exist.
var attempts = map[string]attempt{
	"cluster-inventory-addons": chooseConfiguration,
	"cluster-inventory-clusterprofiles": create("multicluster.x-k8s.io/v1alpha1", "ClusterProfile", map[string]any{
		"spec": map[string]any{"clusterManager": map[string]any{"name": attemptName}},
	}),
	"cluster-inventory-configmaps": create("v1", "ConfigMap", nil),
	"cluster-inventory-events": create("events.k8s.io/v1", "Event", map[string]any{
		"eventTime": "2026-01-01T00:00:00.000000Z", "type": "Normal", "reason": "PolicyCheck", "action": "PolicyCheck",
		"reportingController": attemptName, "reportingInstance": attemptName,
	}),
	"cluster-inventory-leases": create("coordination.k8s.io/v1", "Lease", nil),
	"cluster-inventory-manifestworks": create("work.open-cluster-management.io/v1", "ManifestWork", map[string]any{
		"spec": map[string]any{},
	}),
	"cluster-inventory-placementdecisions": create("multicluster.x-k8s.io/v1alpha1", "PlacementDecision", map[string]any{
		"decisions":     []any{map[string]any{"clusterProfileRef": map[string]any{"name": attemptName}}},
		"schedulerName": attemptName,
	}),
	"cluster-inventory-rolebindings": create("rbac.authorization.k8s.io/v1", "RoleBinding", map[string]any{
		"roleRef": map[string]any{
			"apiGroup": rbacGroup, "kind": "ClusterRole", "name": contract.AgentRole,
		},
	}),
}

// create returns the attempt to create an object of a kind in the manager's namespace.
func create(apiVersion, kind string, content map[string]any) attempt {
	return func(ctx context.Context, c client.Client, namespace string) error {
		object := &unstructured.Unstructured{Object: map[string]any{}}
		maps.Copy(object.Object, content)
		object.SetAPIVersion(apiVersion)
		object.SetKind(kind)
		object.SetNamespace(namespace)
		object.SetName(attemptName)
		if kind == "Event" { // the API demands that both namespaces are the same
			object.Object["regarding"] = map[string]any{"kind": "Namespace", "name": namespace, "namespace": namespace}
		}
		return c.Create(ctx, object, client.DryRunAll)
	}
}

// chooseConfiguration tries to choose a configuration for all clusters.
func chooseConfiguration(ctx context.Context, c client.Client, _ string) error {
	definition := &unstructured.Unstructured{}
	definition.SetAPIVersion("addon.open-cluster-management.io/v1beta1")
	definition.SetKind("ClusterManagementAddOn")
	definition.SetName(contract.AddonName)
	return c.Status().Patch(ctx, definition, client.RawPatch(types.MergePatchType, []byte(`{"status":{
		"defaultConfigReferences":[{"group":"`+contract.AgentRevisionGroup+`","resource":"`+attemptName+`",
			"desiredConfig":{"name":"`+attemptName+`","specHash":""}}]}}`)), client.DryRunAll)
}
