package charts

import (
	"fmt"
	"strings"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"open-cluster-management.io/cluster-inventory-addon/internal/apitest"
	"open-cluster-management.io/cluster-inventory-addon/internal/apitest/hubtest"
	"open-cluster-management.io/cluster-inventory-addon/internal/apitest/ocmtest"
)

// fenced is a kind; the manager may write only some of its objects.
type fenced struct {
	may         string // an object that the manager may write; CLUSTER stands for its namespace
	path, value string // what it may not write there, as an operation of a JSON patch
	merge       string // the same as a merge patch
	message     string // of the refusal
}

// fencedKinds are the kinds that the manager may create.
var fencedKinds = map[string]fenced{
	"ManifestWork": {
		may:  honestWork,
		path: "/spec/executor", value: `{"subject":{"type":"ServiceAccount","serviceAccount":{"namespace":"a","name":"b"}}}`,
		merge: `{"spec":{"executor":{"subject":{"type":"ServiceAccount",
			"serviceAccount":{"namespace":"a","name":"b"}}}}}`,
		message: "who applies a ManifestWork",
	},
	"ClusterProfile": {
		may: `
apiVersion: multicluster.x-k8s.io/v1alpha1
kind: ClusterProfile
metadata: {name: way}
spec: {clusterManager: {name: open-cluster-management}}`,
		path: "/metadata/finalizers", value: `["example.com/hold"]`,
		merge:   `{"metadata":{"finalizers":["example.com/hold"]}}`,
		message: "may add no finalizers",
	},
	"PlacementDecision": {
		may: `
apiVersion: multicluster.x-k8s.io/v1alpha1
kind: PlacementDecision
metadata: {name: way, labels: {app.kubernetes.io/managed-by: cluster-inventory-addon}}
decisions: [{clusterProfileRef: {name: c}}]
schedulerName: cluster-inventory-addon`,
		path: "/schedulerName", value: `"another"`,
		merge:   `{"schedulerName":"another"}`,
		message: "only under its own scheduler name",
	},
	"Secret": {
		may: `
apiVersion: v1
kind: Secret
metadata:
  name: c1-way
  labels: {app.kubernetes.io/managed-by: cluster-inventory-addon, inventory.open-cluster-management.io/credential: "true"}
  annotations:
    inventory.open-cluster-management.io/source-cluster: c1
    inventory.open-cluster-management.io/source-account: way
type: Opaque
data: {token: dA==}`,
		path: "/data/kubeconfig", value: `"dA=="`,
		merge:   `{"data":{"kubeconfig":"dA=="}}`,
		message: "only a token and a CA",
	},
	"RoleBinding": {
		may: fmt.Sprintf(`
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: %q}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: %[1]q}
subjects: [{kind: ServiceAccount, name: %s, namespace: %s}]`, tokenTarget, hubtest.Account, hubtest.Namespace),
		path: "/subjects/0/name", value: `"default"`,
		merge: fmt.Sprintf(`{"subjects":[{"kind":"ServiceAccount","name":"default","namespace":%q}]}`,
			hubtest.Namespace),
		message: "cluster inventory",
	},
	"Event": {
		may: `
apiVersion: events.k8s.io/v1
kind: Event
metadata: {name: way}
eventTime: "2026-01-01T00:00:00.000000Z"
type: Normal
reason: Reason
action: Action
note: something
reportingController: hub.way
reportingInstance: hub.way
regarding: {kind: ClusterProfile, name: c1, namespace: CLUSTER}`,
		path: "/note", value: `"eyJaaaaaaaaaaaaaaaaaaaaaaa"`,
		merge:   `{"note":"eyJaaaaaaaaaaaaaaaaaaaaaaa"}`,
		message: "no token into an event",
	},
}

// testNoWayAroundThePolicies: what the manager may not write it may not write by any request,
// nor in the name of a user who may.
func testNoWayAroundThePolicies(t *testing.T) {
	p := install(t)
	p.hostAgents() // which lets it write ManifestWorks of more names
	team := p.namespace("ways", binding())
	p.eventuallyBinds(team, own(tokenTarget))
	user := server.User(t, hubtest.User)
	p.EventuallyAllowed(user, true, authorizationv1.ResourceAttributes{Namespace: team, Verb: "patch", Resource: "secrets"})
	admin := rest.CopyConfig(user)
	admin.Impersonate = rest.ImpersonationConfig{UserName: "admin", Groups: []string{"system:masters"}}
	impersonating := apitest.NewClient(t, admin, ocmtest.Scheme())

	for kind, way := range fencedKinds {
		t.Run(kind, func(t *testing.T) {
			decode := func() *unstructured.Unstructured {
				object := &unstructured.Unstructured{}
				apitest.Must(t, yaml.Unmarshal([]byte(strings.ReplaceAll(way.may, "CLUSTER", team)), &object.Object))
				object.SetNamespace(team)
				return object
			}
			merged := func(object *unstructured.Unstructured) *unstructured.Unstructured {
				var patch map[string]any
				apitest.Must(t, yaml.Unmarshal([]byte(way.merge), &patch))
				merge(object.Object, patch)
				return object
			}
			there := decode()
			if kind != "RoleBinding" { // the grant is there
				checkAttempt(t, p.manager.Create(t.Context(), there), "")
				p.CleanUp(there)
			}
			ctx := t.Context()
			elsewhere := func(object *unstructured.Unstructured) *unstructured.Unstructured {
				if kind == "Secret" {
					set(t, object.Object, "way2", "metadata", "annotations", "inventory.open-cluster-management.io/source-account")
				}
				if kind == "RoleBinding" {
					return object // there is only one name
				}
				object.SetName(map[string]string{
					"ManifestWork": "addon-cluster-inventory-pre-delete", "Secret": "c1-way2",
				}[kind])
				if object.GetName() == "" {
					object.SetName("way2")
				}
				return object
			}
			p.eventuallyRefused(merged(elsewhere(decode())), way.message)
			unnamed := merged(decode())
			unnamed.SetGenerateName(unnamed.GetName())
			unnamed.SetName("")
			apply := func(object *unstructured.Unstructured) error {
				return p.manager.Apply(ctx, client.ApplyConfigurationFromUnstructured(object),
					client.FieldOwner("thief"), client.ForceOwnership)
			}
			patch := func(patchType types.PatchType, text string) error {
				return p.manager.Patch(ctx, decode(), client.RawPatch(patchType, []byte(text)))
			}
			jsonPatch := fmt.Sprintf(`[{"op":"add","path":%q,"value":%s}]`, way.path, way.value)
			for name, err := range map[string]error{
				"create":                   p.manager.Create(ctx, merged(elsewhere(decode()))),
				"create, as a dry run":     p.manager.Create(ctx, merged(elsewhere(decode())), client.DryRunAll),
				"create, with a prefix":    p.manager.Create(ctx, unnamed),
				"apply what is not there":  apply(merged(elsewhere(decode()))),
				"apply over what is there": apply(merged(decode())),
				"a merge patch":            patch(types.MergePatchType, way.merge),
				"a JSON patch":             patch(types.JSONPatchType, jsonPatch),
			} {
				refused := isRefused(err, way.message)
				switch {
				case name == "create, with a prefix": // or for the name that it makes
					refused = refused || isRefused(err, "cluster-inventory")
				case kind == "Event" && !strings.HasPrefix(name, "create"): // it has no right to change one
					refused = apierrors.IsForbidden(err)
				}
				if refused {
					continue
				}
				t.Errorf("%s: the manager gets %v", name, err)
			}
			for name, err := range map[string]error{
				"create": impersonating.Create(ctx, merged(elsewhere(decode()))),
				"patch":  impersonating.Patch(ctx, decode(), client.RawPatch(types.MergePatchType, []byte(way.merge))),
			} {
				if !apierrors.IsForbidden(err) {
					t.Errorf("%s as the administrator: the manager gets %v", name, err)
				}
			}
		})
	}
}

// merge applies a merge patch.
func merge(object, patch map[string]any) {
	for key, value := range patch {
		nested, isMap := value.(map[string]any)
		existing, isThere := object[key].(map[string]any)
		if isMap && isThere {
			merge(existing, nested)
			continue
		}
		object[key] = value
	}
}
