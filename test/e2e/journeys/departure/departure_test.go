package departure

import (
	"context"
	"fmt"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	workv1 "open-cluster-management.io/api/work/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"open-cluster-management.io/cluster-inventory-addon/internal/apitest"
	"open-cluster-management.io/cluster-inventory-addon/test/e2e/journeys"
)

// A ClusterProperty CRD that existed before the addon, and the properties of that kind,
// exist after it, and the CRD belongs only to its owner.
func TestForeignPropertyCRDSurvives(t *testing.T) {
	journeys.Installed(t)
	spoke := journeys.ClientOf(t, journeys.Cluster1)
	if err := journeys.Gone(t.Context(), spoke,
		&apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: journeys.AboutCRD}}); err != nil {
		t.Fatalf("this story needs a spoke that never had the CRD: %v", err)
	}
	crd := foreignPropertyCRD()
	apitest.Must(t, spoke.Create(t.Context(), crd))
	apitest.Within(t, journeys.Soon, "a property from before the addon", func(ctx context.Context) error {
		return client.IgnoreAlreadyExists(spoke.Create(ctx, oldProperty("before.example", "old")))
	})
	apitest.Must(t, spoke.Get(t.Context(), client.ObjectKeyFromObject(crd), crd))

	journeys.Enabled(t, journeys.Cluster1)
	ns := journeys.Sandbox(t, "foreigncrd", journeys.Cluster1)
	journeys.HasProfile(t, ns, journeys.Cluster1)
	journeys.Shows(t, ns, journeys.Cluster1, "before.example", "old")
	journeys.Disable(t, journeys.Cluster1)
	apitest.Within(t, journeys.Eventually, "the spoke is clean",
		func(ctx context.Context) error { return journeys.Clean(ctx, spoke) })

	journeys.Stays(t, journeys.Quiet, "the CRD and its property", func(ctx context.Context) error {
		now := &apiextensionsv1.CustomResourceDefinition{}
		if err := spoke.Get(ctx, client.ObjectKeyFromObject(crd), now); err != nil {
			return err
		}
		if now.UID != crd.UID || now.Generation != crd.Generation ||
			len(now.OwnerReferences) > 0 || now.DeletionTimestamp != nil {
			return fmt.Errorf("it changed: UID %s, generation %d, owners %v, deleted %v",
				now.UID, now.Generation, now.OwnerReferences, now.DeletionTimestamp)
		}
		return spoke.Get(ctx, types.NamespacedName{Name: "before.example"}, oldProperty("before.example", ""))
	})
}

// The spoke's property API changes while the agent runs, which follows without losing a
// claim or restarting.
func TestAgentFollowsThePropertyAPI(t *testing.T) {
	journeys.Installed(t)
	spoke := journeys.ClientOf(t, journeys.Cluster1)
	// The story of the foreign CRD, if it ran before, has left it there.
	apitest.Must(t, client.IgnoreAlreadyExists(spoke.Create(t.Context(), foreignPropertyCRD())))
	journeys.Enabled(t, journeys.Cluster1)
	ns := journeys.Sandbox(t, "versions", journeys.Cluster1)
	journeys.HasProfile(t, ns, journeys.Cluster1)
	apitest.Must(t, spoke.Create(t.Context(), oldProperty("version.example", "one")))
	journeys.Shows(t, ns, journeys.Cluster1, "version.example", "one")
	claim := claimOf(t, journeys.Cluster1, "version.example")
	restarts := agentRestarts(t, journeys.Cluster1)

	// Only the old version was served; now the new one is, too.
	crd := &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: journeys.AboutCRD}}
	apitest.Must(t, spoke.Get(t.Context(), client.ObjectKeyFromObject(crd), crd))
	served := crd.DeepCopy()
	next := *served.Spec.Versions[0].DeepCopy()
	next.Name, next.Storage = "v1beta1", false
	served.Spec.Versions = append(served.Spec.Versions, next)
	apitest.Must(t, spoke.Patch(t.Context(), served, client.MergeFrom(crd)))
	apitest.Within(t, journeys.Soon, "the claim follows the version", func(context.Context) error {
		now := claimOf(t, journeys.Cluster1, "version.example")
		if now.UID != claim.UID {
			t.Fatal("the claim was deleted and recreated")
		}
		if got := now.OwnerReferences[0].APIVersion; got != journeys.AboutGroup+"/v1beta1" {
			return fmt.Errorf("its owner is at %s", got)
		}
		return nil
	})
	journeys.Sets(t, journeys.Cluster1, "version.example", "two")
	journeys.Shows(t, ns, journeys.Cluster1, "version.example", "two")
	if now := agentRestarts(t, journeys.Cluster1); now != restarts {
		t.Errorf("the agent restarted: %d times before, %d now", restarts, now)
	}
}

// A spoke goes offline: its profile stays and says so. Its cluster is detached: the profile
// is deleted, and nothing waits for the spoke forever.
func TestSpokeGoesOfflineAndIsDetached(t *testing.T) {
	journeys.Installed(t, "--set", "cleanupTimeout=5s")
	journeys.Enabled(t, journeys.Cluster1)
	ns := journeys.Sandbox(t, "offline", journeys.Cluster1)
	before := journeys.HasProfile(t, ns, journeys.Cluster1)

	journeys.Lease(t, journeys.Cluster1, 5)
	for _, process := range []string{"registration-agent", "work-agent", "node"} {
		apitest.Must(t, journeys.Fleet.Stop(t.Context(), journeys.Cluster1+"/"+process))
	}
	apitest.Within(t, journeys.Eventually, "the profile says that the cluster is not reached", func(ctx context.Context) error {
		now, err := journeys.ProfileOf(ctx, journeys.Hub(t), ns, journeys.Cluster1)
		if err != nil {
			return err
		}
		for _, condition := range now.Status.Conditions {
			if condition.Type == "ControlPlaneHealthy" && condition.Status == metav1.ConditionUnknown && now.UID == before.UID {
				return nil
			}
		}
		return fmt.Errorf("conditions are %+v", now.Status.Conditions)
	})

	detach(t, journeys.Cluster1)
	journeys.HasNoProfile(t, ns, journeys.Cluster1)
	apitest.Within(t, journeys.Eventually, "the addon of the detached cluster goes", func(ctx context.Context) error {
		return journeys.Gone(ctx, journeys.Hub(t), journeys.AddonOf(journeys.Cluster1))
	})
	apitest.Within(t, journeys.Soon, "an event names what stays", func(ctx context.Context) error {
		return letGoEvent(ctx, journeys.Hub(t), journeys.Cluster1)
	})
	apitest.Within(t, journeys.Eventually, "the detached cluster goes", func(ctx context.Context) error {
		letOthersGo(ctx, t, journeys.Cluster1)
		return journeys.Gone(ctx, journeys.Hub(t),
			&clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: journeys.Cluster1}})
	})
}

// letOthersGo removes the finalizers with which upstream's addons wait for a lost spoke, as
// its administrator must; this addon's objects must go by themselves.
func letOthersGo(ctx context.Context, t *testing.T, cluster string) {
	t.Helper()
	for _, list := range []client.ObjectList{&workv1.ManifestWorkList{}, &addonv1beta1.ManagedClusterAddOnList{}} {
		apitest.Must(t, journeys.Hub(t).List(ctx, list, client.InNamespace(cluster)))
		err := meta.EachListItem(list, func(object runtime.Object) error {
			other := object.(client.Object)
			if strings.Contains(other.GetName(), journeys.AddonName) || len(other.GetFinalizers()) == 0 {
				return nil
			}
			free := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`))
			return client.IgnoreNotFound(journeys.Hub(t).Patch(ctx, other, free))
		})
		apitest.Must(t, err)
	}
}
