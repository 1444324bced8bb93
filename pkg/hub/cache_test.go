package hub

import (
	"reflect"
	"testing"
	"unsafe"

	"github.com/google/go-cmp/cmp"
	clientcmdv1 "k8s.io/client-go/tools/clientcmd/api/v1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	inventoryv1alpha1 "sigs.k8s.io/cluster-inventory-api/apis/v1alpha1"

	"open-cluster-management.io/cluster-inventory-addon/internal/apitest/ocmtest"
	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/inventory/profiles"
)

// TestCacheSharesWhatObjectsRepeat also checks that sharing changes no content.
func TestCacheSharesWhatObjectsRepeat(t *testing.T) {
	ca := make([]byte, 1000)
	profile := func(namespace string) *inventoryv1alpha1.ClusterProfile {
		p := ocmtest.OurProfile(namespace, string([]byte("cluster")))
		p.Status.Properties = []inventoryv1alpha1.Property{{Name: string([]byte("name")), Value: string([]byte("value"))}}
		p.Status.AccessProviders = []inventoryv1alpha1.AccessProvider{{
			Name:    "open-cluster-management",
			Cluster: clientcmdv1.Cluster{Server: "https://p", CertificateAuthorityData: append([]byte{}, ca...)},
		}}
		return p
	}
	options := cacheOptions(newOptions())
	transformed := func(in any) any {
		t.Helper()
		transform := options.DefaultTransform
		for kind, byObject := range options.ByObject {
			if reflect.TypeOf(kind) == reflect.TypeOf(in) {
				transform = byObject.Transform
			}
		}
		out, err := transform(in)
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	a := transformed(profile("a")).(*inventoryv1alpha1.ClusterProfile)
	b := transformed(profile("b")).(*inventoryv1alpha1.ClusterProfile)
	if diff := cmp.Diff(profiles.Trim(profile("a")), a); diff != "" {
		t.Errorf("cached (-want +got):\n%s", diff)
	}
	cluster := &clusterv1.ManagedCluster{}
	cluster.Name = string([]byte("cluster"))
	cluster.Status.ClusterClaims = []clusterv1.ManagedClusterClaim{{Name: string([]byte("name")),
		Value: string([]byte("value"))}}
	c := transformed(cluster).(*clusterv1.ManagedCluster)
	if diff := cmp.Diff(clusterv1.ManagedClusterClaim{Name: "name", Value: "value"},
		c.Status.ClusterClaims[0]); diff != "" {
		t.Errorf("claim (-want +got):\n%s", diff)
	}
	for what, pair := range map[string][2]string{
		"the cluster's name in two profiles": {a.Name, b.Name},
		"the cluster's name in its label":    {a.Name, b.Labels["open-cluster-management.io/cluster-name"]},
		"the cluster's own name":             {a.Name, c.Name},
		"a property's name":                  {a.Status.Properties[0].Name, c.Status.ClusterClaims[0].Name},
		"a property's value":                 {a.Status.Properties[0].Value, c.Status.ClusterClaims[0].Value},
	} {
		if unsafe.StringData(pair[0]) != unsafe.StringData(pair[1]) {
			t.Errorf("%s is held twice", what)
		}
	}
	caOf := func(p *inventoryv1alpha1.ClusterProfile) *byte {
		return &p.Status.AccessProviders[0].Cluster.CertificateAuthorityData[0]
	}
	if caOf(a) != caOf(b) {
		t.Error("a CA is held twice")
	}
}
