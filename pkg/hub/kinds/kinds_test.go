package kinds

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"open-cluster-management.io/cluster-inventory-addon/internal/apitest"
	"open-cluster-management.io/cluster-inventory-addon/internal/apitest/hubtest"
)

func TestMain(m *testing.M) { apitest.Main(m) }

func newMapper(t *testing.T) meta.RESTMapper {
	t.Helper()
	mapper, err := NewMapper(nil, nil)
	apitest.Must(t, err)
	return mapper
}

// TestKindsAreMappedAsAHubServesThem compares the mapping with what discovery says.
func TestKindsAreMappedAsAHubServesThem(t *testing.T) {
	server := apitest.Start(t, apitest.Hub(), apitest.ClusterProfile(), apitest.PlacementDecision(),
		apitest.ManagedServiceAccount(), apitest.ManagedProxyConfiguration())
	mgr := apitest.NewManager(t, server.Config(t), NewScheme(), nil) // it discovers
	static, untyped := newMapper(t), map[string]bool{"CustomResourceDefinition": true, "ManagedProxyConfiguration": true}
	for _, kinds := range []map[schema.GroupVersion][]string{namespaced, clusterScoped} {
		for version, names := range kinds {
			for _, name := range names {
				kind := version.WithKind(name)
				want, err := mgr.GetRESTMapper().RESTMapping(kind.GroupKind(), kind.Version)
				apitest.Must(t, err)
				got, err := static.RESTMapping(kind.GroupKind(), kind.Version)
				apitest.Must(t, err)
				if diff := cmp.Diff([]any{want.Resource, want.Scope.Name()}, []any{got.Resource, got.Scope.Name()}); diff != "" {
					t.Errorf("%s (-want +got):\n%s", kind, diff)
				}
				if NewScheme().Recognizes(kind) == untyped[name] {
					t.Errorf("%s: its Go type is known: %t", kind, untyped[name])
				}
			}
		}
	}
}

// TestEveryRightHasAKind finds kinds that were forgotten by the rights that the chart grants.
func TestEveryRightHasAKind(t *testing.T) {
	elsewhere := map[string]bool{ // read or written by clients that need no mapping
		"agentrevisions": true,                               // addon-framework
		"tokenreviews":   true, "subjectaccessreviews": true, // the server of the metrics
		"signers": true, // no objects
	}
	mapper, known := newMapper(t), map[schema.GroupKind]bool{}
	for _, object := range hubtest.MustRender(t, "") {
		isRole := object.GetKind() == "Role" || object.GetKind() == "ClusterRole"
		if !isRole || !hubtest.AllButProgram(object) || hubtest.AgentImageRights(object) {
			continue
		}
		role := &rbacv1.ClusterRole{} // a Role has the same rules
		apitest.Must(t, runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, role))
		for _, rule := range role.Rules {
			for _, name := range rule.Resources {
				resource, _, _ := strings.Cut(name, "/")
				kind, err := mapper.KindFor(schema.GroupVersionResource{Group: rule.APIGroups[0], Resource: resource})
				if (err != nil) != elsewhere[resource] {
					t.Errorf("the manager may %v %s: %v", rule.Verbs, resource, err)
				}
				known[kind.GroupKind()] = true
			}
		}
	}
	// Every user may create these.
	known[schema.GroupKind{Group: "authorization.k8s.io", Kind: "SelfSubjectAccessReview"}] = true
	for _, kinds := range []map[schema.GroupVersion][]string{namespaced, clusterScoped} {
		for version, names := range kinds {
			for _, name := range names {
				if !known[schema.GroupKind{Group: version.Group, Kind: name}] {
					t.Errorf("the manager has no right on %s of %s", name, version)
				}
			}
		}
	}
}
