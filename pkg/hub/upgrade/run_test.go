package upgrade

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"os"
	"strings"
	"testing"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"

	"open-cluster-management.io/cluster-inventory-addon/internal/apitest"
)

const file = "../../../charts/cluster-inventory/crds/inventory.open-cluster-management.io_agentrevisions.yaml"

var hub = apitest.New(apitest.AgentRevision())

func TestMain(m *testing.M) { apitest.Main(m, hub) }

func scheme(t *testing.T) *runtime.Scheme {
	t.Helper()
	scheme := runtime.NewScheme()
	apitest.Must(t, apiextensionsv1.AddToScheme(scheme))
	apitest.Must(t, rbacv1.AddToScheme(scheme))
	return scheme
}

// TestTheDefinitionHasANumberOfItsOwn: a changed definition reaches installed hubs only with a
// greater number.
func TestTheDefinitionHasANumberOfItsOwn(t *testing.T) {
	definition, err := read(file)
	apitest.Must(t, err)
	spec, err := json.Marshal(definition.Object["spec"])
	apitest.Must(t, err)
	sum := sha256.Sum256(spec)
	const number, digest = 2, "da0c386eccfb"
	if got := hex.EncodeToString(sum[:6]); numberOf(definition) != number || got != digest {
		t.Errorf("definition %d has the digest %s, want %d and %s: a changed spec needs the next number, here and in %s",
			numberOf(definition), got, number, digest, file)
	}
}

// withNewField returns the chart's definition as a later chart may have it: with another number,
// another field of the spec and one less.
func withNewField(t *testing.T, number string) *unstructured.Unstructured {
	t.Helper()
	definition, err := read(file)
	apitest.Must(t, err)
	definition.SetAnnotations(map[string]string{annotationNumber: number})
	versions, _, err := unstructured.NestedSlice(definition.Object, "spec", "versions")
	apitest.Must(t, err)
	at := []string{"schema", "openAPIV3Schema", "properties", "spec", "properties"}
	version, _ := versions[0].(map[string]any)
	properties, _, err := unstructured.NestedMap(version, at...)
	apitest.Must(t, err)
	properties["later"] = map[string]any{"type": "string"}
	delete(properties, "reservedProperties")
	apitest.Must(t, unstructured.SetNestedMap(version, properties, at...))
	apitest.Must(t, unstructured.SetNestedSlice(definition.Object, versions, "spec", "versions"))
	return definition
}

func fieldsOf(t *testing.T, w *apitest.World) map[string]apiextensionsv1.JSONSchemaProps {
	t.Helper()
	live := &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: definitionName}}
	w.MustGet(live)
	return live.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["spec"].Properties
}

// upgradeAs runs the upgrade with a definition in a file.
func upgradeAs(t *testing.T, cfg *rest.Config, definition *unstructured.Unstructured) error {
	t.Helper()
	content, err := yaml.Marshal(definition.Object)
	apitest.Must(t, err)
	wanted, err := read(apitest.File(t, "definition.yaml", content))
	apitest.Must(t, err)
	return run(t.Context(), apitest.NewClient(t, cfg, scheme(t)), wanted, 10*time.Second, 10*time.Millisecond, 0)
}

// TestUpgrade: an older definition is replaced as a whole with the rights that the chart gives,
// a newer one stays, and an equal one is not written.
func TestUpgrade(t *testing.T) {
	w := hub.World(t, scheme(t))
	const user = "upgrader"
	w.MustCreate(
		&rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: user}, Rules: []rbacv1.PolicyRule{{
			APIGroups: []string{"apiextensions.k8s.io"}, Resources: []string{"customresourcedefinitions"},
			ResourceNames: []string{definitionName}, Verbs: []string{"get", "patch"},
		}}},
		&rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: user},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: user},
			Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "User", Name: user}},
		},
	)
	cfg := hub.User(t, user)
	w.Eventually("the upgrade has its rights", func() string {
		if err := upgradeAs(t, cfg, withNewField(t, "7")); err != nil {
			return err.Error()
		}
		return ""
	})
	fields := fieldsOf(t, w)
	if fields["later"].Type != "string" || fields["image"].Type != "string" {
		t.Errorf("fields %v", fields)
	}
	if _, stays := fields["reservedProperties"]; stays {
		t.Error("a field that the later definition has not is still there")
	}
	before := &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: definitionName}}
	w.MustGet(before)
	for name, definition := range map[string]*unstructured.Unstructured{
		"the same": withNewField(t, "7"), "an older one": withNewField(t, "6"), "one without a number": withNewField(t, ""),
	} {
		apitest.Must(t, upgradeAs(t, cfg, definition))
		after := before.DeepCopy()
		w.MustGet(after)
		if after.ResourceVersion != before.ResourceVersion {
			t.Errorf("%s was written", name)
		}
	}
}

func TestUpgradeFailsAtOnceWithoutRights(t *testing.T) {
	err := upgradeAs(t, hub.User(t, "nobody"), withNewField(t, "99"))
	if !apierrors.IsForbidden(err) {
		t.Errorf("got %v, want forbidden", err)
	}
}

// Another write in between, or a busy server, is no reason to fail.
func TestUpgradeContinuesAfterErrors(t *testing.T) {
	wire := &apitest.Wire{}
	failed := map[string]bool{}
	wire.Fail(func(call apitest.Call) apitest.Fault {
		if failed[call.Method] || !strings.HasSuffix(call.Path, definitionName) {
			return apitest.Fault{}
		}
		failed[call.Method] = true
		if call.IsWrite() {
			return apitest.Fault{Status: 409, Reason: "Conflict"}
		}
		return apitest.Fault{Status: 503, Reason: "ServiceUnavailable"}
	})
	apitest.Must(t, upgradeAs(t, wire.Tap(hub.Config(t)), withNewField(t, "100")))
	if len(failed) != 2 {
		t.Errorf("failed %v, want a read and a write", failed)
	}
}

func TestOnlyItsOwnDefinitionIsRead(t *testing.T) {
	for content, want := range map[string]string{
		"kind: CustomResourceDefinition\nmetadata: {name: clusterprofiles.multicluster.x-k8s.io}": "instead of " + definitionName,
		"kind: Secret\nmetadata: {name: " + definitionName + "}":                                  `defines Secret`,
		"{": "error",
	} {
		if _, err := read(apitest.File(t, "file.yaml", []byte(content))); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %v, want %q in it", content, err, want)
		}
	}
	if _, err := read("none.yaml"); !os.IsNotExist(err) {
		t.Errorf("got %v", err)
	}
}
