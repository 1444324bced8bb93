package credentials

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	clusterv1beta2 "open-cluster-management.io/api/cluster/v1beta2"
	workv1 "open-cluster-management.io/api/work/v1"
	inventoryv1alpha1 "sigs.k8s.io/cluster-inventory-api/apis/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"open-cluster-management.io/cluster-inventory-addon/internal/apitest"
	"open-cluster-management.io/cluster-inventory-addon/test/e2e/journeys"
	"open-cluster-management.io/cluster-inventory-addon/test/fleet"
)

// The published guide to a cluster inventory, with this addon instead of the gates and with
// the guide's own names and values: a set, cluster-proxy and accounts, profiles in a namespace,
// access, and properties. Of cluster-proxy's chart it sets userServer.enabled alone, from which
// no user server comes: the condition names the other value, and once that is set, too, accounts
// log in.
func TestGuideToAClusterInventoryEndsWell(t *testing.T) {
	journeys.WithAccess(t)
	journeys.Installed(t)
	clusters := []string{journeys.Cluster1, journeys.Cluster2}
	journeys.Enabled(t, clusters...)
	ungated(t)
	gated(t, fleet.Gates{NoServiceProxy: true})
	const set, namespace, accountName = "sandbox-fleet", "cluster-inventory", "test"
	clusterSet(t, set, clusterv1beta2.ManagedClusterSelector{SelectorType: clusterv1beta2.ExclusiveClusterSetLabel})
	for _, cluster := range clusters {
		journeys.InSet(t, cluster, set)
	}
	// OCM's own gate, which other stories turn on, publishes in that namespace, too, and
	// leaves its profiles there.
	for _, cluster := range clusters {
		left := &inventoryv1alpha1.ClusterProfile{ObjectMeta: metav1.ObjectMeta{Namespace: fleet.AccessNamespace,
			Name: cluster}}
		apitest.Must(t, client.IgnoreNotFound(journeys.Hub(t).Delete(t.Context(), left)))
	}
	// cluster-proxy's Placement needs the set in its namespace, where no consumer reads profiles.
	journeys.Create(t, journeys.Hub(t), &clusterv1beta2.ManagedClusterSetBinding{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: fleet.AccessNamespace, Name: set, Labels: map[string]string{journeys.Publish: "false"},
		},
		Spec: clusterv1beta2.ManagedClusterSetBindingSpec{ClusterSet: set},
	})
	for _, cluster := range clusters {
		mayListNodes(t, cluster, accountName)
		object := newAccount(cluster, accountName)
		journeys.Create(t, journeys.Hub(t), object)
		token(t, cluster, accountName)
	}
	inNamespace(t, namespace)
	journeys.Bind(t, namespace, set)

	for _, cluster := range clusters {
		journeys.HasProfile(t, namespace, cluster)
		offers(t, namespace, cluster)
		journeys.Says(t, cluster, journeys.ProfilesSynced, metav1.ConditionFalse, "AccessUnavailable", "enableServiceProxy")
	}
	gated(t, fleet.Gates{})
	for _, cluster := range clusters {
		profile := offers(t, namespace, cluster, throughProxy)
		if profile.Labels["x-k8s.io/cluster-manager"] != "open-cluster-management" ||
			profile.Labels["open-cluster-management.io/cluster-name"] != cluster ||
			profile.Status.Version.Kubernetes == "" || len(profile.Status.Conditions) != 2 {
			t.Errorf("the profile of %s is %+v with the labels %v", cluster, profile.Status, profile.Labels)
		}
		way := profile.Status.AccessProviders[0].Cluster
		if want := "https://cluster-proxy-addon-user.open-cluster-management-addon:9092/" + cluster; way.Server != want {
			t.Errorf("the server of %s is %s, want %s", cluster, way.Server, want)
		}
		apitest.Within(t, journeys.Eventually, "the account lists the nodes of "+cluster, func(ctx context.Context) error {
			config := &rest.Config{Host: way.Server, BearerToken: token(t, cluster, accountName)}
			config.CAData, config.Dial = way.CertificateAuthorityData, journeys.Fleet.ServiceDialer(fleet.HubName)
			c, err := kubernetes.NewForConfig(config)
			if err != nil {
				return err
			}
			nodes, err := c.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
			if err == nil && len(nodes.Items) == 0 {
				err = errors.New("there are none")
			}
			return err
		})
		journeys.Sets(t, cluster, "sandbox.example.com", cluster)
		journeys.Shows(t, namespace, cluster, "sandbox.example.com", cluster)
		journeys.NoProfileComes(t, fleet.AccessNamespace, cluster)
	}
}

// OCM's guide to access providers, with this addon instead of the gates: a set of all
// clusters, accounts that name no target, for which the chart has a value, and upstream's
// plugin. MultiKueue, with which that guide continues, is a story of journeys/consumers.
func TestGuideToAccessProvidersEndsWell(t *testing.T) {
	journeys.WithAccess(t)
	journeys.Installed(t, "--set", "credentials.requireTarget=false")
	clusters := []string{journeys.Cluster1, journeys.Cluster2}
	journeys.Enabled(t, clusters...)
	apitest.Must(t, journeys.BuildConsumers())
	const set, namespace, accountName = "my-app-clusters", "my-app", "my-app"
	clusterSet(t, set, clusterv1beta2.ManagedClusterSelector{
		SelectorType: clusterv1beta2.LabelSelector, LabelSelector: &metav1.LabelSelector{},
	})
	inNamespace(t, namespace)
	journeys.Bind(t, namespace, set)
	for _, cluster := range clusters {
		offers(t, namespace, cluster, throughProxy)
		mayWork(t, cluster, accountName)
		object := newAccount(cluster, accountName)
		object.SetLabels(map[string]string{syncLabel: "true"})
		object.Object["spec"] = map[string]any{"rotation": map[string]any{"enabled": true, "validity": "8640h"}}
		journeys.Create(t, journeys.Hub(t), object)
		token(t, cluster, accountName)
		hasCopy(t, namespace, cluster, accountName)
	}
	equip(t, namespace, upstreamPlugin, []string{"--managed-serviceaccount=" + accountName})
	code, said := lists(t, namespace)
	for _, cluster := range clusters {
		want := fmt.Sprintf(`{"profile":"%s/%s","namespaces":[`, namespace, cluster)
		if code != 0 || !strings.Contains(said, want) {
			t.Errorf("the lister ended with %d and said %s, want %s in it", code, said, want)
		}
	}
}

// clusterSet makes a set of the guide's own name.
func clusterSet(t *testing.T, name string, selector clusterv1beta2.ManagedClusterSelector) {
	t.Helper()
	journeys.Create(t, journeys.Hub(t), &clusterv1beta2.ManagedClusterSet{
		ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: clusterv1beta2.ManagedClusterSetSpec{ClusterSelector: selector},
	})
}

// inNamespace makes a namespace of the guide's own name, which is gone when the story has
// ended.
func inNamespace(t *testing.T, name string) {
	t.Helper()
	c, namespace := journeys.Hub(t), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
	t.Cleanup(func() {
		apitest.Within(t, journeys.Eventually, "namespace "+name+" goes", func(ctx context.Context) error {
			return journeys.Gone(ctx, c, namespace)
		})
	})
	journeys.Create(t, c, namespace)
}

// mayListNodes gives an account that right on its cluster, by a ManifestWork.
func mayListNodes(t *testing.T, cluster, accountName string) {
	t.Helper()
	meta := metav1.ObjectMeta{Name: "managed-sa-" + accountName}
	role := &rbacv1.ClusterRole{
		TypeMeta:   metav1.TypeMeta{APIVersion: rbacv1.SchemeGroupVersion.String(), Kind: "ClusterRole"},
		ObjectMeta: meta,
		Rules:      []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"nodes"}, Verbs: []string{"list"}}},
	}
	binding := &rbacv1.ClusterRoleBinding{
		TypeMeta:   metav1.TypeMeta{APIVersion: rbacv1.SchemeGroupVersion.String(), Kind: "ClusterRoleBinding"},
		ObjectMeta: meta, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: meta.Name},
		Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: journeys.AgentNS, Name: accountName}},
	}
	work := &workv1.ManifestWork{ObjectMeta: metav1.ObjectMeta{Namespace: cluster, Name: meta.Name}}
	for _, object := range []runtime.Object{role, binding} {
		work.Spec.Workload.Manifests = append(
			work.Spec.Workload.Manifests, workv1.Manifest{RawExtension: runtime.RawExtension{Object: object}},
		)
	}
	journeys.Create(t, journeys.Hub(t), work)
}
