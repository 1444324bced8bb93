package apitest

import (
	"net/http"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/utils/ptr"
)

var hub = New(Hub(), Spoke(), ClusterProfile())

func TestMain(m *testing.M) { Main(m, hub) }

func TestResourceOf(t *testing.T) {
	for path, want := range map[string]string{
		"/api/v1/namespaces":                 "namespaces",
		"/api/v1/namespaces/a":               "namespaces",
		"/api/v1/namespaces/a/pods":          "pods",
		"/api/v1/namespaces/a/pods/p/status": "pods/status",
		"/apis/cluster.open-cluster-management.io/v1/managedclusters/c/status": "managedclusters/status",
		"/apis/multicluster.x-k8s.io/v1alpha1/namespaces/n/clusterprofiles/c":  "clusterprofiles",
		"/apis/multicluster.x-k8s.io/v1alpha1/clusterprofiles":                 "clusterprofiles",
		"/healthz": "/healthz",
	} {
		if got := resourceOf(path); got != want {
			t.Errorf("resourceOf(%s) = %q, want %q", path, got, want)
		}
	}
}

func TestAtomicVariantHasNoListMaps(t *testing.T) {
	sig, err := ClusterProfile()()
	if err != nil {
		t.Fatal(err)
	}
	atomic, err := AtomicClusterProfile()()
	if err != nil {
		t.Fatal(err)
	}
	listType := func(crds []*apiextensionsv1.CustomResourceDefinition) string {
		schema := crds[0].Spec.Versions[0].Schema.OpenAPIV3Schema
		return ptr.Deref(schema.Properties["status"].Properties["properties"].XListType, "atomic")
	}
	if diff := cmp.Diff([]string{"map", "atomic"}, []string{listType(sig), listType(atomic)}); diff != "" {
		t.Errorf("list types of properties (-want +got):\n%s", diff)
	}
}

func TestServerServesAndWireRecordsAndFails(t *testing.T) {
	wire := &Wire{}
	cfg := wire.Tap(hub.Config(t))

	c := NewClient(t, cfg, scheme.Scheme)
	found, err := discovery.NewDiscoveryClientForConfigOrDie(cfg).
		ServerResourcesForGroupVersion("addon.open-cluster-management.io/v1beta1")
	if err != nil || len(found.APIResources) == 0 {
		t.Fatalf("addon v1beta1 is not served: %v", err)
	}

	cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: hub.Namespace(t, nil), Name: "x"}}
	wire.Reset()
	wire.FailNthWrite(1, Fault{Status: http.StatusConflict, Reason: "Conflict"})
	if err := c.Create(t.Context(), cm.DeepCopy()); !apierrors.IsConflict(err) {
		t.Errorf("first create = %v, want a conflict", err)
	}
	if err := c.Create(t.Context(), cm.DeepCopy()); err != nil {
		t.Errorf("second create = %v, want none", err)
	}
	if diff := cmp.Diff([]string{"POST configmaps", "POST configmaps"}, wire.Sent("configmaps")); diff != "" {
		t.Errorf("writes (-want +got):\n%s", diff)
	}
}
