package credentials

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	authenticationv1 "k8s.io/api/authentication/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/retry"
	"k8s.io/utils/ptr"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	inventoryv1alpha1 "sigs.k8s.io/cluster-inventory-api/apis/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"open-cluster-management.io/cluster-inventory-addon/internal/apitest"
	"open-cluster-management.io/cluster-inventory-addon/test/e2e/guide"
	"open-cluster-management.io/cluster-inventory-addon/test/e2e/journeys"
	"open-cluster-management.io/cluster-inventory-addon/test/fleet"
)

const (
	throughProxy = "open-cluster-management"
	directly     = "direct"
	execConfig   = "client.authentication.k8s.io/exec"
)

// providersOf are the names of a profile's access providers, in their order.
func providersOf(profile *inventoryv1alpha1.ClusterProfile) []string {
	names := []string{}
	for _, provider := range profile.Status.AccessProviders {
		names = append(names, provider.Name)
	}
	return names
}

// offers waits until the profile has just these access providers.
func offers(t *testing.T, namespace, cluster string, want ...string) *inventoryv1alpha1.ClusterProfile {
	t.Helper()
	var profile *inventoryv1alpha1.ClusterProfile
	apitest.Within(t, journeys.Soon, fmt.Sprintf("profile of %s offers %v", cluster, want), func(ctx context.Context) (err error) {
		if profile, err = journeys.ProfileOf(ctx, journeys.Hub(t), namespace, cluster); err != nil {
			return err
		}
		if got := providersOf(profile); !slices.Equal(got, want) {
			return fmt.Errorf("it offers %v", got)
		}
		return nil
	})
	return profile
}

// whoAmI asks the cluster, with the address and the token that a consumer would use.
func whoAmI(ctx context.Context, provider inventoryv1alpha1.AccessProvider, token string) (string, error) {
	config := &rest.Config{Host: provider.Cluster.Server, BearerToken: token}
	config.CAData = provider.Cluster.CertificateAuthorityData
	if provider.Name == throughProxy {
		config.Dial = journeys.Fleet.ServiceDialer(fleet.HubName)
	}
	c, err := kubernetes.NewForConfig(config)
	if err != nil {
		return "", err
	}
	review, err := c.AuthenticationV1().SelfSubjectReviews().Create(ctx,
		&authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{})
	if err != nil {
		return "", err
	}
	return review.Status.UserInfo.Username, nil
}

// leadsIn waits until the access provider leads to the cluster as the account.
func leadsIn(t *testing.T, provider inventoryv1alpha1.AccessProvider, cluster, name string) {
	t.Helper()
	apitest.Within(t, journeys.Eventually, provider.Name+" leads to "+cluster, func(ctx context.Context) error {
		source, err := secretOf(ctx, t, cluster, name)
		if err != nil {
			return err
		}
		user, err := whoAmI(ctx, provider, string(source.Data["token"]))
		if err == nil && user != "system:serviceaccount:"+journeys.AgentNS+":"+name {
			err = fmt.Errorf("it knows the caller as %s", user)
		}
		return err
	})
}

// A profile says how to connect: the server, its CA and, for the exec plugin, the cluster's
// name and nothing else.
func TestProfileSaysHowToConnect(t *testing.T) {
	journeys.WithAccess(t)
	journeys.Installed(t)
	journeys.Enabled(t, journeys.Cluster1)
	ns := journeys.Sandbox(t, "way-in", journeys.Cluster1)
	journeys.HasProfile(t, ns, journeys.Cluster1)
	account(t, journeys.Cluster1, "way-in", ns)
	provider := offers(t, ns, journeys.Cluster1, throughProxy).Status.AccessProviders[0]
	if want := "https://" + fleet.UserServer + "/" + journeys.Cluster1; provider.Cluster.Server != want {
		t.Errorf("server = %q, want %q", provider.Cluster.Server, want)
	}
	extensions := provider.Cluster.Extensions
	if len(extensions) != 1 || extensions[0].Name != execConfig ||
		string(extensions[0].Extension.Raw) != `{"clusterName":"cluster1"}` {
		t.Errorf("extensions = %s, want %s with the cluster's name alone", extensions, execConfig)
	}
	leadsIn(t, provider, journeys.Cluster1, "way-in")
}

// What the chart creates for the manager, and Helm does not create again, the manager does:
// the Lease of the leader election, and the CAs of cluster-proxy that it has published.
func TestTheManagersOwnObjectsComeBack(t *testing.T) {
	journeys.WithAccess(t)
	journeys.Installed(t)
	hub := journeys.Hub(t)
	lease := &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Namespace: journeys.ManagerNS, Name: "cluster-inventory-manager"},
	}
	authorities := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: journeys.ManagerNS, Name: "cluster-inventory-access-ca"},
	}
	var before map[string]string
	apitest.Within(t, journeys.Soon, "the CA is stored", func(ctx context.Context) error {
		err := hub.Get(ctx, client.ObjectKeyFromObject(authorities), authorities)
		if before = authorities.Data; err == nil && len(before) == 0 {
			err = errors.New("there is none")
		}
		return err
	})
	apitest.Must(t, hub.Delete(t.Context(), authorities))
	apitest.Must(t, hub.Delete(t.Context(), lease))
	apitest.Within(t, journeys.Soon, "a manager holds a new Lease", func(ctx context.Context) error {
		err := hub.Get(ctx, client.ObjectKeyFromObject(lease), lease)
		if err == nil && ptr.Deref(lease.Spec.HolderIdentity, "") == "" {
			err = errors.New("nobody holds it")
		}
		return err
	})
	apitest.Within(t, journeys.Soon, "the CA is stored again", func(ctx context.Context) error {
		now := &corev1.ConfigMap{}
		err := hub.Get(ctx, client.ObjectKeyFromObject(authorities), now)
		if diff := cmp.Diff(before, now.Data); err == nil && diff != "" {
			err = errors.New(diff)
		}
		return err
	})
}

// The access provider is removed with its prerequisites, from every profile or from that of
// one cluster, and comes back with them. Each costs one PATCH.
func TestWayInGoesWithItsGround(t *testing.T) {
	journeys.WithAccess(t)
	journeys.Installed(t)
	journeys.Enabled(t, journeys.Cluster1, journeys.Cluster2)
	ns := journeys.Sandbox(t, "ground", journeys.Cluster1, journeys.Cluster2)
	offers(t, ns, journeys.Cluster1, throughProxy)
	offers(t, ns, journeys.Cluster2, throughProxy)
	account(t, journeys.Cluster1, "ground", ns)

	before := journeys.Settled(t, "clusterprofiles")
	service := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: fleet.AccessNamespace,
		Name: "cluster-proxy-addon-user"}}
	apitest.Must(t, journeys.Hub(t).Get(t.Context(), client.ObjectKeyFromObject(service), service))
	again := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: service.Namespace,
		Name: service.Name, Labels: service.Labels}, Spec: service.Spec}
	again.Spec.ClusterIP, again.Spec.ClusterIPs = "", nil
	restored := false
	c := journeys.Hub(t)
	t.Cleanup(func() {
		if !restored {
			if err := c.Create(context.Background(), again); err != nil {
				t.Error(err)
			}
		}
	})
	apitest.Must(t, journeys.Hub(t).Delete(t.Context(), service))
	offers(t, ns, journeys.Cluster1)
	offers(t, ns, journeys.Cluster2)
	journeys.Says(t, journeys.Cluster1, journeys.ProfilesSynced, metav1.ConditionFalse,
		"AccessUnavailable", service.Namespace+"/"+service.Name)
	apitest.Must(t, journeys.Hub(t).Create(t.Context(), again))
	restored = true
	way := offers(t, ns, journeys.Cluster1, throughProxy).Status.AccessProviders[0]
	offers(t, ns, journeys.Cluster2, throughProxy)
	journeys.Says(t, journeys.Cluster1, journeys.ProfilesSynced, metav1.ConditionTrue, "Synced")
	journeys.Wrote(t, before, map[string]int{"hub: PATCH clusterprofiles/status": 4}, "clusterprofiles")
	leadsIn(t, way, journeys.Cluster1, "ground")

	// A finalizer prevents the cluster's Placement from giving it the addon again before
	// the test has seen it being removed.
	untouched := journeys.HasProfile(t, ns, journeys.Cluster1)
	proxy := &addonv1beta1.ManagedClusterAddOn{ObjectMeta: metav1.ObjectMeta{Namespace: journeys.Cluster2,
		Name: "cluster-proxy"}}
	free := finalized(t, proxy)
	apitest.Must(t, journeys.Hub(t).Delete(t.Context(), proxy))
	offers(t, ns, journeys.Cluster2)
	journeys.Says(t, journeys.Cluster2, journeys.ProfilesSynced, metav1.ConditionTrue, "Synced")
	free(t.Context())
	apitest.Within(t, journeys.Eventually, "cluster-proxy comes back to "+journeys.Cluster2, func(ctx context.Context) error {
		back := proxy.DeepCopy()
		if err := journeys.Hub(t).Get(ctx, client.ObjectKeyFromObject(proxy), back); err != nil {
			return err
		}
		if back.DeletionTimestamp != nil {
			return errors.New("the old one is still going")
		}
		return nil
	})
	account(t, journeys.Cluster2, "ground", ns)
	way = offers(t, ns, journeys.Cluster2, throughProxy).Status.AccessProviders[0]
	leadsIn(t, way, journeys.Cluster2, "ground")
	if now := journeys.HasProfile(t, ns, journeys.Cluster1); now.ResourceVersion != untouched.ResourceVersion {
		t.Error("the profile of the other cluster was written")
	}
}

// Up to v0.10, cluster-proxy impersonates users of the hub, and lets them choose groups. The
// consumers' guide says how to switch that off; consumers do not need it.
func TestConsumersNeedNoImpersonation(t *testing.T) {
	journeys.WithAccess(t)
	journeys.Installed(t)
	journeys.Enabled(t, journeys.Cluster1, journeys.Cluster2)
	ns := journeys.Sandbox(t, "impersonation", journeys.Cluster1, journeys.Cluster2)
	account(t, journeys.Cluster1, "impersonation", ns)
	way := offers(t, ns, journeys.Cluster1, throughProxy).Status.AccessProviders[0]
	leadsIn(t, way, journeys.Cluster1, "impersonation")
	ways := []inventoryv1alpha1.AccessProvider{
		way, offers(t, ns, journeys.Cluster2, throughProxy).Status.AccessProviders[0],
	}

	stranger := journeys.Create(t, journeys.Hub(t), &corev1.ServiceAccount{
		ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "stranger"},
	})
	request := &authenticationv1.TokenRequest{}
	apitest.Must(t, journeys.Hub(t).SubResource("token").Create(t.Context(), stranger, request))
	knows := func(ctx context.Context) error {
		for _, way := range ways {
			user, err := whoAmI(ctx, way, request.Status.Token)
			if want := "cluster:hub:system:serviceaccount:" + ns + ":stranger"; err == nil && user != want {
				err = fmt.Errorf("%s knows the caller as %s", way.Cluster.Server, user)
			}
			if err != nil {
				return err
			}
		}
		return nil
	}
	apitest.Within(t, journeys.Eventually, "any token of the hub leads to both clusters", knows)

	steps, err := guide.Read(journeys.Fleet, "consumers.md", "cluster-proxy's impersonation")
	apitest.Must(t, err)
	if len(steps) != 3 || steps[0].YAML == "" || !strings.HasPrefix(steps[1].Command, "kubectl patch clustermanagementaddon ") {
		t.Fatalf("the guide switches impersonation off in other steps: %+v", steps)
	}
	types := func(ctx context.Context, line, input string) {
		t.Helper()
		if _, err := guide.Type(ctx, journeys.Fleet, line, input); err != nil {
			t.Error(err)
		}
	}
	installed := func(cluster string) string {
		addon := &addonv1beta1.ManagedClusterAddOn{}
		apitest.Must(t, journeys.Hub(t).Get(t.Context(), client.ObjectKey{Namespace: cluster, Name: "cluster-proxy"}, addon))
		return addon.Status.Namespace
	}
	before := installed(journeys.Cluster1)
	types(t.Context(), "kubectl apply -f -", steps[0].YAML)
	types(t.Context(), steps[1].Command, "")
	t.Cleanup(func() {
		types(context.Background(), `kubectl patch clustermanagementaddon cluster-proxy --type json `+
			`-p '[{"op":"remove","path":"/spec/installStrategy/placements/0/configs"}]'`, "")
		types(context.Background(), "kubectl delete -f -", steps[0].YAML)
		apitest.Within(t, journeys.Eventually, "any token of the hub leads to both clusters again", knows)
	})
	apitest.Within(t, journeys.Eventually, "a token of the hub leads nowhere", func(ctx context.Context) error {
		for _, way := range ways {
			if user, err := whoAmI(ctx, way, request.Status.Token); !apierrors.IsUnauthorized(err) {
				return fmt.Errorf("%s knows the caller as %s: %w", way.Cluster.Server, user, err)
			}
		}
		return nil
	})
	leadsIn(t, way, journeys.Cluster1, "impersonation")
	if now := installed(journeys.Cluster1); now != before {
		t.Errorf("the guide moves cluster-proxy's agent from namespace %s to %s", before, now)
	}
}

// finalized puts a finalizer on an object; the returned function removes it, at the end of
// the story at the latest.
func finalized(t *testing.T, object client.Object) (free func(context.Context)) {
	t.Helper()
	const finalizer = "story.example/holds"
	c := journeys.Hub(t)
	change := func(ctx context.Context, edit func(client.Object) bool) error {
		now := object.DeepCopyObject().(client.Object)
		if err := c.Get(ctx, client.ObjectKeyFromObject(object), now); err != nil {
			return client.IgnoreNotFound(err)
		}
		before := now.DeepCopyObject().(client.Object)
		if !edit(now) {
			return nil
		}
		return c.Patch(ctx, now, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
	}
	try := func(ctx context.Context, edit func(client.Object) bool) {
		t.Helper()
		if err := retry.RetryOnConflict(retry.DefaultBackoff, func() error { return change(ctx, edit) }); err != nil {
			t.Errorf("finalizer of %T %s: %v", object, client.ObjectKeyFromObject(object), err)
		}
	}
	free = func(ctx context.Context) {
		try(ctx, func(o client.Object) bool { return controllerutil.RemoveFinalizer(o, finalizer) })
	}
	try(t.Context(), func(o client.Object) bool { return controllerutil.AddFinalizer(o, finalizer) })
	t.Cleanup(func() { free(context.Background()) })
	return free
}

// An administrator who can reach a cluster without a proxy says so in a ConfigMap; the
// provider through the proxy stays first.
func TestAdministratorOffersTheDirectWay(t *testing.T) {
	journeys.WithAccess(t)
	journeys.Installed(t)
	journeys.Enabled(t, journeys.Cluster1, journeys.Cluster2)
	ns := journeys.Sandbox(t, "direct", journeys.Cluster1, journeys.Cluster2)
	offers(t, ns, journeys.Cluster2, throughProxy)
	account(t, journeys.Cluster1, "direct", ns)
	spoke, err := journeys.Fleet.Spoke(journeys.Cluster1)
	apitest.Must(t, err)
	text := func(server string) string {
		return fmt.Sprintf(`{"server": %q, "certificateAuthority": %q}`, server, spoke.CAData)
	}
	ways := journeys.Create(t, journeys.Hub(t), &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: journeys.ManagerNS, Name: "direct-ways",
			Labels: map[string]string{"inventory.open-cluster-management.io/direct-access": "true"}},
		Data: map[string]string{journeys.Cluster1: text(spoke.Host)},
	})
	way := offers(t, ns, journeys.Cluster1, throughProxy, directly).Status.AccessProviders[1]
	leadsIn(t, way, journeys.Cluster1, "direct")
	offers(t, ns, journeys.Cluster2, throughProxy)

	ways.Data[journeys.Cluster1] = text("http://insecure.example")
	apitest.Must(t, journeys.Hub(t).Update(t.Context(), ways))
	offers(t, ns, journeys.Cluster1, throughProxy)
	journeys.Says(t, journeys.Cluster1, journeys.ProfilesSynced, metav1.ConditionFalse, "AccessUnavailable", "https")
}
