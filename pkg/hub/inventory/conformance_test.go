package inventory

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"open-cluster-management.io/cluster-inventory-addon/internal/apitest"
	"open-cluster-management.io/cluster-inventory-addon/internal/apitest/ocmtest"
	"open-cluster-management.io/cluster-inventory-addon/internal/conformance"
)

// TestProfilesConform checks what the manager publishes on a hub that serves v1alpha2, too,
// and has consumers of v1alpha2 write there.
func TestProfilesConform(t *testing.T) {
	w := newReachedWorld(t)
	long := strings.Repeat("v", 1024)
	for _, c := range []*clusterv1.ManagedCluster{w.c1, w.c2, w.marked} {
		apitest.EditStatus(w, c, func(c *clusterv1.ManagedCluster) {
			c.Status.Version.Kubernetes = "v1.36.0"
			c.Status.ClusterClaims = []clusterv1.ManagedClusterClaim{ocmtest.Claim("long.example", long)}
		})
	}
	w.Eventually("the profiles conform", func() string {
		hub, err := conformance.Observe(t.Context(), wiredHub.Config(t), w.ns)
		if err != nil {
			return err.Error()
		}
		report := &strings.Builder{}
		checked := conformance.Check(hub, "open-cluster-management")
		checked.Print(report)
		if checked.Profiles != 3 || strings.Contains(report.String(), "FAIL") {
			return report.String()
		}
		return ""
	})
	for _, c := range []*clusterv1.ManagedCluster{w.c1, w.c2} {
		profile := &unstructured.Unstructured{}
		profile.SetGroupVersionKind(schema.GroupVersionKind{
			Group: "multicluster.x-k8s.io", Version: "v1alpha2", Kind: "ClusterProfile",
		})
		profile.SetNamespace(w.ns)
		profile.SetName(c.Name)
		mark := []byte(`{"metadata":{"labels":{"consumer.example/seen":"true"},"finalizers":["consumer.example/hold"]}}`)
		apitest.Must(t, w.Patch(t.Context(), profile, client.RawPatch(types.MergePatchType, mark)))
		status := []byte(`{"status":{"conditions":[{"type":"Seen","status":"True","reason":"R","message":"",` +
			`"lastTransitionTime":"2026-01-01T00:00:00Z"}]}}`)
		apitest.Must(t, w.Status().Patch(t.Context(), profile, client.RawPatch(types.MergePatchType, status)))
		apitest.Must(t, w.Patch(t.Context(), profile,
			client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`))))
	}
}
