package connect

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	clientcmdv1 "k8s.io/client-go/tools/clientcmd/api/v1"
	inventoryv1alpha1 "sigs.k8s.io/cluster-inventory-api/apis/v1alpha1"
	"sigs.k8s.io/cluster-inventory-api/pkg/access"

	"open-cluster-management.io/cluster-inventory-addon/internal/apitest"
)

var providers = Providers{{
	Name: "open-cluster-management",
	ExecConfig: &clientcmdapi.ExecConfig{APIVersion: "client.authentication.k8s.io/v1",
		Command: "cp-creds", ProvideClusterInfo: true},
	ProfileSourcedCLIArgsPolicy: access.ProfileSourcedCLIArgsPolicyAppend,
}}

func profile(change func(*clientcmdv1.Cluster)) *inventoryv1alpha1.ClusterProfile {
	cluster := clientcmdv1.Cluster{
		Server: "https://proxy:9092/cluster1", CertificateAuthorityData: []byte("ca"),
		Extensions: []clientcmdv1.NamedExtension{{Name: "client.authentication.k8s.io/exec",
			Extension: runtime.RawExtension{Raw: []byte(`{"clusterName":"cluster1"}`)}}},
	}
	change(&cluster)
	return &inventoryv1alpha1.ClusterProfile{
		ObjectMeta: metav1.ObjectMeta{Name: "cluster1"},
		Status:     inventoryv1alpha1.ClusterProfileStatus{AccessProviders: []inventoryv1alpha1.AccessProvider{{Name: "open-cluster-management", Cluster: cluster}}},
	}
}

func fingerprint(t *testing.T, change func(*clientcmdv1.Cluster)) string {
	t.Helper()
	config, err := providers.Config(profile(change))
	apitest.Must(t, err)
	found, err := Fingerprint(config)
	apitest.Must(t, err)
	return found
}

func TestFingerprintTellsConnectionsApart(t *testing.T) {
	unchanged := func(*clientcmdv1.Cluster) {}
	first := fingerprint(t, unchanged)
	if again := fingerprint(t, unchanged); again != first {
		t.Errorf("the same profile gives %s and then %s", first, again)
	}
	for name, change := range map[string]func(*clientcmdv1.Cluster){
		"server":       func(c *clientcmdv1.Cluster) { c.Server += "x" },
		"CA":           func(c *clientcmdv1.Cluster) { c.CertificateAuthorityData = []byte("other") },
		"proxy":        func(c *clientcmdv1.Cluster) { c.ProxyURL = "http://proxy" },
		"cluster name": func(c *clientcmdv1.Cluster) { c.Extensions[0].Extension.Raw = []byte(`{"clusterName":"cluster2"}`) },
	} {
		if fingerprint(t, change) == first {
			t.Errorf("another %s is not noticed", name)
		}
	}
}

// What one profile adds to the plugin's arguments stays with that profile.
func TestConfigsShareNothing(t *testing.T) {
	adds := func(c *clientcmdv1.Cluster) {
		c.Extensions = append(c.Extensions, clientcmdv1.NamedExtension{
			Name:      "clusterprofiles.multicluster.x-k8s.io/exec/additional-args",
			Extension: runtime.RawExtension{Raw: []byte(`["--mine"]`)},
		})
	}
	fingerprint(t, adds)
	config, err := providers.Config(profile(func(*clientcmdv1.Cluster) {}))
	apitest.Must(t, err)
	if len(config.ExecProvider.Args) != 0 {
		t.Errorf("arguments = %v, want none", config.ExecProvider.Args)
	}
}

func TestReady(t *testing.T) {
	healthy := func(status metav1.ConditionStatus) []metav1.Condition {
		return []metav1.Condition{{Type: "ControlPlaneHealthy", Status: status}}
	}
	for name, test := range map[string]struct {
		profile inventoryv1alpha1.ClusterProfile
		want    bool
	}{
		"healthy": {inventoryv1alpha1.ClusterProfile{Status: inventoryv1alpha1.ClusterProfileStatus{Conditions: healthy(
			metav1.ConditionTrue)}}, true},
		"unhealthy": {inventoryv1alpha1.ClusterProfile{Status: inventoryv1alpha1.ClusterProfileStatus{Conditions: healthy(
			metav1.ConditionFalse)}}, false},
		"nothing known": {inventoryv1alpha1.ClusterProfile{}, false},
		"being withdrawn": {inventoryv1alpha1.ClusterProfile{ObjectMeta: metav1.ObjectMeta{DeletionTimestamp: &metav1.Time{}},
			Status: inventoryv1alpha1.ClusterProfileStatus{Conditions: healthy(metav1.ConditionTrue)}}, false},
	} {
		if got := Ready(&test.profile); got != test.want {
			t.Errorf("%s: ready = %t, want %t", name, got, test.want)
		}
	}
}
