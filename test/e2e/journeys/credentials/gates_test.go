package credentials

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/yaml"
	inventoryv1alpha1 "sigs.k8s.io/cluster-inventory-api/apis/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"open-cluster-management.io/cluster-inventory-addon/internal/apitest"
	"open-cluster-management.io/cluster-inventory-addon/test/e2e/journeys"
	"open-cluster-management.io/cluster-inventory-addon/test/fleet"
)

const upstreamLabel = "authentication.open-cluster-management.io/synced-from"

// written are the resources that both this addon and upstream's components write.
var written = []string{"clusterprofiles", "secrets"}

// gated sets upstream's gates, which are off again when the story ends.
func gated(t *testing.T, gates fleet.Gates) {
	t.Helper()
	apitest.Must(t, journeys.Fleet.SetGates(t.Context(), gates, os.Stderr))
}

// ungated turns upstream's gates off when the story ends.
func ungated(t *testing.T) {
	t.Helper()
	t.Cleanup(func() {
		if err := journeys.Fleet.SetGates(context.Background(), fleet.Gates{}, os.Stderr); err != nil {
			t.Error(err)
		}
		// OCM's controller leaves its profiles in the addons' namespace, as docs/migration.md says.
		selector, err := labels.Parse("x-k8s.io/cluster-manager=open-cluster-management," +
			"app.kubernetes.io/managed-by!=cluster-inventory-addon")
		apitest.Must(t, err)
		apitest.Must(t, journeys.Hub(t).DeleteAllOf(context.Background(), &inventoryv1alpha1.ClusterProfile{},
			client.InNamespace("open-cluster-management-addon"), client.MatchingLabelsSelector{Selector: selector}))
	})
}

// eventually waits until a profile of the cluster is as said.
func eventually(
	t *testing.T, what, namespace, cluster string, check func(*inventoryv1alpha1.ClusterProfile) error,
) *inventoryv1alpha1.ClusterProfile {
	t.Helper()
	var profile *inventoryv1alpha1.ClusterProfile
	apitest.Within(t, journeys.Soon, "profile of "+cluster+" "+what, func(ctx context.Context) (err error) {
		if profile, err = journeys.ProfileOf(ctx, journeys.Hub(t), namespace, cluster); err != nil {
			return err
		}
		return check(profile)
	})
	return profile
}

// dated is an error unless the first property says since when it has been so, which of the
// two writers only this addon does.
func dated(want bool) func(*inventoryv1alpha1.ClusterProfile) error {
	return func(profile *inventoryv1alpha1.ClusterProfile) error {
		if len(profile.Status.Properties) == 0 || profile.Status.Properties[0].LastObservedTime.IsZero() == want {
			return fmt.Errorf("its properties are %+v", profile.Status.Properties)
		}
		return nil
	}
}

// trusts is an error unless the access provider through the proxy has this CA.
func trusts(ca []byte) func(*inventoryv1alpha1.ClusterProfile) error {
	return func(profile *inventoryv1alpha1.ClusterProfile) error {
		for _, provider := range profile.Status.AccessProviders {
			if provider.Name == throughProxy && bytes.Equal(provider.Cluster.CertificateAuthorityData, ca) {
				return nil
			}
		}
		return fmt.Errorf("its access providers are %v", providersOf(profile))
	}
}

// owned is an error unless a copy of an account is this addon's, or upstream's, and still the
// Secret of the UID.
func owned(t *testing.T, byUpstream bool, namespace, cluster, name string, uid types.UID) func(context.Context) error {
	return func(ctx context.Context) error {
		secret, err := secretOf(ctx, t, namespace, cluster+"-"+name)
		switch {
		case err != nil:
			return err
		case secret.UID != uid:
			return fmt.Errorf("the Secret was recreated: its UID was %s and is %s", uid, secret.UID)
		case (secret.Labels[upstreamLabel] != "") != byUpstream, (secret.Labels[journeys.MarkLabel] != "") == byUpstream:
			return fmt.Errorf("its labels are %v", secret.Labels)
		}
		return nil
	}
}

// Each of upstream's three gates is turned on and off while the manager runs. A gate's
// objects are left to it, and taken back in place; the rest continues without contention:
// every state settles until nothing is written.
func TestUpstreamsGatesComeAndGo(t *testing.T) {
	journeys.WithAccess(t)
	journeys.Installed(t)
	journeys.Enabled(t, journeys.Cluster1)
	ungated(t)
	bringsProfileCRD(t)
	ns := journeys.Sandbox(t, "gates", journeys.Cluster1)
	offers(t, ns, journeys.Cluster1, throughProxy)
	edits := 0
	arrives := func() *inventoryv1alpha1.ClusterProfile {
		t.Helper()
		edits++
		journeys.Sets(t, journeys.Cluster1, "gates.example", fmt.Sprint(edits))
		journeys.Shows(t, ns, journeys.Cluster1, "gates.example", fmt.Sprint(edits))
		return eventually(t, "is there", ns, journeys.Cluster1, func(*inventoryv1alpha1.ClusterProfile) error { return nil })
	}
	account(t, journeys.Cluster1, "gated", ns)
	secret := hasCopy(t, ns, journeys.Cluster1, "gated").UID
	profile := arrives()
	ourCA := profile.Status.AccessProviders[0].Cluster.CertificateAuthorityData
	stays := func() {
		t.Helper()
		if now := journeys.HasProfile(t, ns, journeys.Cluster1); now.UID != profile.UID {
			t.Fatalf("the profile was recreated: its UID was %s and is %s", profile.UID, now.UID)
		}
		journeys.Settled(t, written...)
	}

	t.Log("OCM's registration controller")
	gated(t, fleet.Gates{Profiles: true})
	if !isProfileCRD(t, atomicLists) {
		t.Error("the gate has not brought OCM's own CRD")
	}
	journeys.Says(t, journeys.Cluster1, journeys.ProfilesSynced, metav1.ConditionFalse, "UpstreamGateOn")
	arrives()
	eventually(t, "is OCM's", ns, journeys.Cluster1, dated(false))
	// Access providers and tokens are still this addon's.
	broken := client.RawPatch(types.MergePatchType, []byte(`{"status":{"accessProviders":[]}}`))
	apitest.Must(t, journeys.Hub(t).Status().Patch(t.Context(), profile.DeepCopy(), broken))
	eventually(t, "has the way in", ns, journeys.Cluster1, trusts(ourCA))
	rotated(t, journeys.Cluster1, "gated")
	hasCopy(t, ns, journeys.Cluster1, "gated")
	stays()
	gated(t, fleet.Gates{})
	eventually(t, "is this addon's", ns, journeys.Cluster1, dated(true))
	journeys.Says(t, journeys.Cluster1, journeys.ProfilesSynced, metav1.ConditionTrue, "Synced")
	arrives()
	stays()

	t.Log("cluster-proxy")
	certificate, err := secretOf(t.Context(), t, fleet.AccessNamespace, "cluster-proxy-user-serving-cert")
	apitest.Must(t, err)
	gated(t, fleet.Gates{AccessProviders: true})
	eventually(t, "has the way in by cluster-proxy", ns, journeys.Cluster1, trusts(certificate.Data["tls.crt"]))
	journeys.Says(t, journeys.Cluster1, journeys.ProfilesSynced, metav1.ConditionFalse,
		"AccessUnavailable", "cluster-proxy writes it itself")
	eventually(t, "is this addon's but for that", ns, journeys.Cluster1, dated(true))
	arrives()
	rotated(t, journeys.Cluster1, "gated")
	hasCopy(t, ns, journeys.Cluster1, "gated")
	stays()
	gated(t, fleet.Gates{})
	eventually(t, "has the way in by this addon", ns, journeys.Cluster1, trusts(ourCA))
	journeys.Says(t, journeys.Cluster1, journeys.ProfilesSynced, metav1.ConditionTrue, "Synced")
	stays()

	t.Log("managed-serviceaccount")
	gated(t, fleet.Gates{Tokens: true})
	apitest.Within(t, journeys.Soon, "the copy is upstream's", owned(t, true, ns, journeys.Cluster1, "gated", secret))
	journeys.Says(t, journeys.Cluster1, conditionCS, metav1.ConditionFalse, "UpstreamSyncerOn")
	arrives()
	rotated(t, journeys.Cluster1, "gated")
	hasCopy(t, ns, journeys.Cluster1, "gated")
	stays()
	gated(t, fleet.Gates{})
	apitest.Within(t, journeys.Soon, "the copy is this addon's", owned(t, false, ns, journeys.Cluster1, "gated", secret))
	journeys.Says(t, journeys.Cluster1, conditionCS, metav1.ConditionTrue, "Copied")
	rotated(t, journeys.Cluster1, "gated")
	hasCopy(t, ns, journeys.Cluster1, "gated")
	stays()

	t.Log("all of them, flapping")
	for range 2 {
		gated(t, fleet.Gates{Profiles: true, AccessProviders: true, Tokens: true})
		gated(t, fleet.Gates{})
	}
	apitest.Within(t, journeys.Soon, "the copy is this addon's", owned(t, false, ns, journeys.Cluster1, "gated", secret))
	eventually(t, "has the way in by this addon", ns, journeys.Cluster1, trusts(ourCA))
	arrives()
	eventually(t, "is this addon's", ns, journeys.Cluster1, dated(true))
	stays()
}

const (
	listMaps    = "map"
	atomicLists = ""
)

// bringsProfileCRD replaces the ClusterProfile CRD by SIG-Multicluster's, as an
// administrator may, no matter which component installed the existing one.
func bringsProfileCRD(t *testing.T) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(journeys.Fleet.Root, "charts", "cluster-inventory", "crds",
		"multicluster.x-k8s.io_clusterprofiles.yaml"))
	apitest.Must(t, err)
	wanted := &apiextensionsv1.CustomResourceDefinition{}
	apitest.Must(t, yaml.Unmarshal(text, wanted))
	current := wanted.DeepCopy()
	apitest.Must(t, journeys.Hub(t).Get(t.Context(), client.ObjectKeyFromObject(current), current))
	current.Spec = wanted.Spec
	apitest.Must(t, journeys.Hub(t).Update(t.Context(), current))
	if !isProfileCRD(t, listMaps) {
		t.Fatal("the hub does not have SIG-Multicluster's CRD")
	}
}

// isProfileCRD reports whether the conditions of ClusterProfiles are a list of this type.
func isProfileCRD(t *testing.T, listType string) bool {
	t.Helper()
	crd := &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: "clusterprofiles.multicluster.x-k8s.io"}}
	apitest.Must(t, journeys.Hub(t).Get(t.Context(), client.ObjectKeyFromObject(crd), crd))
	status := crd.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["status"]
	got := status.Properties["conditions"].XListType
	return got == nil && listType == atomicLists || got != nil && *got == listType
}

// forged is a Secret with every sign of a copy by upstream's syncer but a token of the account.
func forged(namespace, cluster, name string, profile *inventoryv1alpha1.ClusterProfile) *corev1.Secret {
	secret := aCopy(namespace, cluster, name)
	secret.Labels = map[string]string{upstreamLabel: secret.Name}
	secret.OwnerReferences = []metav1.OwnerReference{{
		APIVersion: "multicluster.x-k8s.io/v1alpha1", Kind: "ClusterProfile", Name: profile.Name, UID: profile.UID,
	}}
	secret.StringData = map[string]string{"token": "forged", "ca.crt": "forged"}
	return secret
}

// A tenant who labels a Secret as upstream's keeps it, and its account's owner learns why
// there is no copy.
func TestForgedUpstreamSecretIsLeftAlone(t *testing.T) {
	journeys.WithAccess(t)
	journeys.Installed(t)
	journeys.Enabled(t, journeys.Cluster1)
	ns := journeys.Sandbox(t, "forged-secret", journeys.Cluster1)
	secret := journeys.Create(t, journeys.Hub(t),
		forged(ns, journeys.Cluster1, "tricked", journeys.HasProfile(t, ns, journeys.Cluster1)))
	account(t, journeys.Cluster1, "tricked", ns)
	journeys.Says(t, journeys.Cluster1, conditionCS, metav1.ConditionFalse,
		"ForeignSecret", ns, secret.Name, "its token is not of this account")
	journeys.Stays(t, journeys.Quiet, "the forged Secret", func(ctx context.Context) error {
		now, err := secretOf(ctx, t, ns, secret.Name)
		if err == nil && now.ResourceVersion != secret.ResourceVersion {
			err = errors.New("it was changed")
		}
		return err
	})
	apitest.Must(t, journeys.Hub(t).Delete(t.Context(), secret))
	hasCopy(t, ns, journeys.Cluster1, "tricked")
}
