package credentials

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/yaml"
	clusterv1alpha1 "open-cluster-management.io/api/cluster/v1alpha1"
	workv1 "open-cluster-management.io/api/work/v1"
	inventoryv1alpha1 "sigs.k8s.io/cluster-inventory-api/apis/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"open-cluster-management.io/cluster-inventory-addon/internal/apitest"
	"open-cluster-management.io/cluster-inventory-addon/test/e2e/journeys"
)

// previous is the commit to upgrade from.
const previous = "b0f65aa911b62cba16660ef19d86946a5b54d6c8"

// The previous chart, manager and agent are installed, with profiles, a copied token and
// agents. Neither the upgrade nor the rollback loses any of them; a manager of either
// version works with agents of both.
func TestUpgradeAndRollback(t *testing.T) {
	journeys.WithAccess(t)
	journeys.InstalledAt(t, previous)
	journeys.Enabled(t, journeys.Cluster1, journeys.Cluster2)
	ns := journeys.Sandbox(t, "upgrade", journeys.Cluster1, journeys.Cluster2)
	edits := 0
	arrives := func() {
		t.Helper()
		edits++
		for _, cluster := range []string{journeys.Cluster1, journeys.Cluster2} {
			journeys.Sets(t, cluster, "upgrade.example", fmt.Sprint(edits))
			journeys.Shows(t, ns, cluster, "upgrade.example", fmt.Sprint(edits))
		}
	}
	arrives()
	account(t, journeys.Cluster1, "upgraded", ns)
	hasCopy(t, ns, journeys.Cluster1, "upgraded")
	before := inPlace(t, ns)
	old, oldProgram := managersImage(t), managersProgram(t)
	agentRuns(t, journeys.Cluster1, old)

	// The agent of the second cluster stays as it is for now.
	workAgent := journeys.Cluster2 + "/work-agent"
	journeys.Stopped(t, workAgent)
	createsMissingCRDs(t)
	journeys.Installed(t)
	current := managersImage(t)
	if current == old {
		t.Fatalf("the manager is still %s", old)
	}
	if os.SameFile(oldProgram, managersProgram(t)) {
		t.Fatalf("%s and %s are the same program", old, current)
	}
	agentRuns(t, journeys.Cluster1, current)
	arrives()
	agentRuns(t, journeys.Cluster2, old)
	journeys.Started(t, workAgent)
	agentRuns(t, journeys.Cluster2, current)
	arrives()
	nothingWasLost(t, ns, before)

	// And back, with the agents the other way round.
	journeys.Stopped(t, workAgent)
	journeys.RolledBack(t)
	if now := managersImage(t); now != old {
		t.Fatalf("the manager is %s after the rollback, not %s", now, old)
	}
	if !os.SameFile(oldProgram, managersProgram(t)) {
		t.Fatalf("the manager is not the program that it was as %s", old)
	}
	agentRuns(t, journeys.Cluster1, old)
	arrives()
	agentRuns(t, journeys.Cluster2, current)
	journeys.Started(t, workAgent)
	agentRuns(t, journeys.Cluster2, old)
	arrives()
	nothingWasLost(t, ns, before)
}

func managersImage(t *testing.T) string {
	t.Helper()
	return journeys.ManagerPod(t.Context(), t).Spec.Containers[0].Image
}

// managersProgram identifies the file that the manager runs.
func managersProgram(t *testing.T) os.FileInfo {
	t.Helper()
	pod := journeys.ManagerPod(t.Context(), t)
	pid, err := journeys.Fleet.ContainerPID(t.Context(), "hub", pod.Namespace, pod.Name)
	apitest.Must(t, err)
	program, err := os.Stat(fmt.Sprintf("/proc/%d/exe", pid))
	apitest.Must(t, err)
	return program
}

// agentRuns waits until the one agent of a cluster that runs is of an image.
func agentRuns(t *testing.T, cluster, image string) {
	t.Helper()
	apitest.Within(t, journeys.Eventually, "the agent of "+cluster+" runs from "+image, func(ctx context.Context) error {
		if now := journeys.AgentPod(ctx, t, cluster).Spec.Containers[0].Image; now != image {
			return fmt.Errorf("it runs from %s", now)
		}
		return nil
	})
}

// createsMissingCRDs is the step of an upgrade that Helm leaves out: CRDs that come with the
// new chart.
func createsMissingCRDs(t *testing.T) {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(journeys.Fleet.Root, "charts", "cluster-inventory", "crds", "*.yaml"))
	apitest.Must(t, err)
	for _, name := range names {
		data, err := os.ReadFile(name)
		apitest.Must(t, err)
		crd := &apiextensionsv1.CustomResourceDefinition{}
		apitest.Must(t, yaml.UnmarshalStrict(data, crd))
		apitest.Must(t, client.IgnoreAlreadyExists(journeys.Hub(t).Create(t.Context(), crd)))
		apitest.Within(t, journeys.Soon, crd.Name+" is served", func(ctx context.Context) error {
			if err := journeys.Hub(t).Get(ctx, client.ObjectKeyFromObject(crd), crd); err != nil {
				return err
			}
			for _, condition := range crd.Status.Conditions {
				if condition.Type == apiextensionsv1.Established && condition.Status == apiextensionsv1.ConditionTrue {
					return nil
				}
			}
			return fmt.Errorf("its conditions are %v", crd.Status.Conditions)
		})
	}
}

// inPlace returns the UIDs of what an upgrade must keep, by cluster and object.
func inPlace(t *testing.T, ns string) map[string]types.UID {
	t.Helper()
	uids := map[string]types.UID{}
	note := func(cluster string, object client.Object) {
		t.Helper()
		key := client.ObjectKeyFromObject(object)
		if err := journeys.ClientOf(t, cluster).Get(t.Context(), key, object); err != nil {
			t.Fatalf("%T %s of %s: %v", object, key, cluster, err)
		}
		uids[fmt.Sprintf("%s: %T %s", cluster, object, key)] = object.GetUID()
	}
	named := func(namespace, name string) metav1.ObjectMeta {
		return metav1.ObjectMeta{Namespace: namespace, Name: name}
	}
	note("hub", &corev1.Secret{ObjectMeta: named(ns, journeys.Cluster1+"-upgraded")})
	note("hub", &rbacv1.RoleBinding{ObjectMeta: named(ns, "open-cluster-management:cluster-inventory:token-target")})
	for _, cluster := range []string{journeys.Cluster1, journeys.Cluster2} {
		note("hub", &inventoryv1alpha1.ClusterProfile{ObjectMeta: named(ns, cluster)})
		note("hub", journeys.AddonOf(cluster))
		note("hub", &workv1.ManifestWork{ObjectMeta: named(cluster, "addon-cluster-inventory-deploy-0")})
		note(cluster, &clusterv1alpha1.ClusterClaim{ObjectMeta: named("", "upgrade.example")})
		note(cluster, &apiextensionsv1.CustomResourceDefinition{ObjectMeta: named("", journeys.AboutCRD)})
		note(cluster, &appsv1.Deployment{ObjectMeta: named(journeys.AgentNS, journeys.AddonName+"-agent")})
	}
	return uids
}

// nothingWasLost checks that everything in inPlace is the same, and that the copy holds the
// present token.
func nothingWasLost(t *testing.T, ns string, before map[string]types.UID) {
	t.Helper()
	if diff := cmp.Diff(before, inPlace(t, ns)); diff != "" {
		t.Errorf("UIDs (-before +now):\n%s", diff)
	}
	hasCopy(t, ns, journeys.Cluster1, "upgraded")
	for _, cluster := range []string{journeys.Cluster1, journeys.Cluster2} {
		journeys.Available(t, cluster)
	}
	apitest.Within(t, journeys.Soon, "the manager leads", func(ctx context.Context) error {
		return journeys.Leads(ctx, t)
	})
}
