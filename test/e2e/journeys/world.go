package journeys

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	batchv1 "k8s.io/api/batch/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	clusterv1alpha1 "open-cluster-management.io/api/cluster/v1alpha1"
	clusterv1beta2 "open-cluster-management.io/api/cluster/v1beta2"
	inventoryv1alpha1 "sigs.k8s.io/cluster-inventory-api/apis/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"open-cluster-management.io/cluster-inventory-addon/internal/apitest"
)

// What stories and the addon call things, as literals, so that a changed name fails.
const (
	AddonName           = "cluster-inventory"
	AgentNS             = "open-cluster-management-agent-addon"
	ManagerNS           = "open-cluster-management"
	setLabel            = "cluster.open-cluster-management.io/clusterset"
	MarkLabel           = "app.kubernetes.io/managed-by"
	MarkValue           = "cluster-inventory-addon"
	Publish             = "inventory.open-cluster-management.io/publish"
	DefaultSet          = "default"
	SpokeOnly           = "open-cluster-management.io/spoke-only"
	AboutGroup          = "about.k8s.io"
	AboutCRD            = "clusterproperties.about.k8s.io"
	PropertiesPublished = "PropertiesPublished"
	ProfilesSynced      = "ProfilesSynced"
)

// How long stories wait.
const (
	// Soon bounds waits for what should happen at once; it is long because the
	// machine may be busy.
	Soon = time.Minute
	// Eventually bounds waits that depend on several components or a Pod.
	Eventually = 2 * time.Minute
	// Quiet is how long something must stay unchanged.
	Quiet = 3 * time.Second
)

// ClientOf returns an administrator's client of the hub ("hub") or of a spoke.
func ClientOf(t *testing.T, cluster string) client.WithWatch {
	t.Helper()
	apitest.Must(t, start())
	c, err := Fleet.Client(cluster)
	apitest.Must(t, err)
	return c
}

// Hub returns an administrator's client of the hub.
func Hub(t *testing.T) client.WithWatch {
	t.Helper()
	return ClientOf(t, "hub")
}

// Allowed waits until an API server allows something to a ServiceAccount: it learns of new rights only a
// moment after they are created.
func Allowed(t *testing.T, cluster, namespace, account string, attributes authorizationv1.ResourceAttributes) {
	t.Helper()
	user := "system:serviceaccount:" + namespace + ":" + account
	what := fmt.Sprintf("%s may %s %s on %s", user, attributes.Verb, attributes.Resource, cluster)
	apitest.Within(t, Eventually, what, func(ctx context.Context) error {
		review := &authorizationv1.SubjectAccessReview{
			Spec: authorizationv1.SubjectAccessReviewSpec{User: user, ResourceAttributes: &attributes},
		}
		if err := ClientOf(t, cluster).Create(ctx, review); err != nil {
			return err
		}
		if !review.Status.Allowed {
			return errors.New("it is not allowed")
		}
		return nil
	})
}

// Stays is apitest.Stays for checks that take a context.
func Stays(t *testing.T, d time.Duration, what string, check func(context.Context) error) {
	t.Helper()
	apitest.Stays(t, d, what, apitest.Succeeds(func() error { return check(t.Context()) }))
}

// installedWith holds the Helm arguments of the installed chart, nil if it is not
// installed.
var installedWith []string

// InstalledOtherwise tells that the chart was installed by other means than Installed,
// which then installs it again.
func InstalledOtherwise() {
	installedWith = nil
}

// Installed installs the chart with exactly these arguments, unless it is installed so.
// Every story begins with it, and ends with a search for tokens where there are any.
func Installed(t *testing.T, helmArgs ...string) {
	t.Helper()
	apitest.Must(t, start())
	helmArgs = append(searchForTokens(t), helmArgs...)
	if installedWith != nil && slices.Equal(installedWith, helmArgs) {
		return
	}
	if err := Fleet.Deploy(t.Context(), os.Stderr, helmArgs...); err != nil {
		t.Fatalf("installing the chart: %v", err)
	}
	installedWith = append([]string{}, helmArgs...)
}

// InstalledAt installs the chart, the manager and the agent as they stood at a commit, on a
// hub without the addon.
func InstalledAt(t *testing.T, commit string) {
	t.Helper()
	apitest.Must(t, start())
	Uninstalled(t)
	if err := Fleet.DeployAt(t.Context(), os.Stderr, commit, searchForTokens(t)...); err != nil {
		t.Fatalf("installing the chart as of %s: %v", commit, err)
	}
}

// RolledBack goes back to the installation before the present one.
func RolledBack(t *testing.T) {
	t.Helper()
	installedWith = nil
	if err := Fleet.Rollback(t.Context(), os.Stderr); err != nil {
		t.Fatalf("rolling back: %v", err)
	}
}

// Tested runs the chart's own test, which passes and leaves nothing behind.
func Tested(t *testing.T) {
	t.Helper()
	if err := Fleet.Test(t.Context(), os.Stderr); err != nil {
		t.Fatalf("testing the chart: %v", err)
	}
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: ManagerNS, Name: AddonName + "-test"}}
	apitest.Within(t, Soon, "the test's Pod is gone", func(ctx context.Context) error { return Gone(ctx, Hub(t), pod) })
}

// Uninstalled removes the chart.
func Uninstalled(t *testing.T) {
	t.Helper()
	if err := Fleet.Undeploy(t.Context(), os.Stderr); err != nil {
		t.Fatalf("removing the chart: %v", err)
	}
	installedWith = nil
}

// Enabled enables the addon where necessary, as "clusteradm addon enable" does, and
// waits until it works.
func Enabled(t *testing.T, clusters ...string) {
	t.Helper()
	for _, cluster := range clusters {
		enable(t, cluster)
	}
	for _, cluster := range clusters {
		Available(t, cluster)
	}
}

// forgetRequests deletes the certificate requests of earlier stories. While OCM's
// registration agent waits for a certificate, it creates another request at every change
// of the addon's status, and gives up while the hub has ten. The hub keeps them for an hour.
func forgetRequests(t *testing.T, cluster string) {
	t.Helper()
	requests := &certificatesv1.CertificateSigningRequestList{}
	apitest.Must(t, Hub(t).List(t.Context(), requests))
	for i := range requests.Items {
		request := &requests.Items[i]
		if strings.HasPrefix(request.Name, "addon-"+cluster+"-"+AddonName+"-") && len(request.Status.Certificate) > 0 {
			apitest.Must(t, client.IgnoreNotFound(Hub(t).Delete(t.Context(), request)))
		}
	}
}

func enable(t *testing.T, cluster string) {
	t.Helper()
	forgetRequests(t, cluster)
	// What clusteradm sends: v1alpha1, with the install namespace, and no owner.
	object := &addonv1alpha1.ManagedClusterAddOn{
		ObjectMeta: metav1.ObjectMeta{Namespace: cluster, Name: AddonName},
		//nolint:staticcheck // deprecated, and what clusteradm sends
		Spec: addonv1alpha1.ManagedClusterAddOnSpec{InstallNamespace: AgentNS},
	}
	apitest.Within(t, Eventually, "enabling the addon on "+cluster, func(ctx context.Context) error {
		err := Hub(t).Create(ctx, object.DeepCopy())
		if !apierrors.IsAlreadyExists(err) {
			return err
		}
		there := AddonOf(cluster)
		if err := Hub(t).Get(ctx, client.ObjectKeyFromObject(there), there); err != nil {
			return err
		}
		if there.DeletionTimestamp != nil {
			return errors.New("the previous one is still being removed")
		}
		return nil
	})
}

// Available waits until the addon works on the cluster.
func Available(t *testing.T, cluster string) {
	t.Helper()
	for _, condition := range []string{"Available", PropertiesPublished, ProfilesSynced} {
		apitest.Within(t, Eventually, cluster+" says "+condition, func(ctx context.Context) error {
			found, err := conditionOf(ctx, Hub(t), cluster, condition)
			if err != nil {
				return err
			}
			if condition == "Available" && found.Status != metav1.ConditionTrue {
				return fmt.Errorf("it is %s: %s: %s", found.Status, found.Reason, found.Message)
			}
			return nil
		})
	}
}

// Disable removes the addon and waits until it is gone.
func Disable(t *testing.T, cluster string) {
	t.Helper()
	object := &addonv1beta1.ManagedClusterAddOn{ObjectMeta: metav1.ObjectMeta{Namespace: cluster, Name: AddonName}}
	apitest.Must(t, client.IgnoreNotFound(Hub(t).Delete(t.Context(), object)))
	apitest.Within(t, Eventually, "the addon of "+cluster+" goes", func(ctx context.Context) error {
		return Gone(ctx, Hub(t), object)
	})
}

// Gone is an error while the object is there.
func Gone(ctx context.Context, c client.Client, object client.Object) error {
	switch err := c.Get(ctx, client.ObjectKeyFromObject(object), object); {
	case apierrors.IsNotFound(err), meta.IsNoMatchError(err):
		return nil
	case err != nil:
		return err
	default:
		return fmt.Errorf("%T %s is still there (finalizers %v)",
			object, client.ObjectKeyFromObject(object), object.GetFinalizers())
	}
}

func conditionOf(ctx context.Context, c client.Client, cluster, conditionType string) (metav1.Condition, error) {
	addon := &addonv1beta1.ManagedClusterAddOn{}
	if err := c.Get(ctx, types.NamespacedName{Namespace: cluster, Name: AddonName}, addon); err != nil {
		return metav1.Condition{}, err
	}
	found := meta.FindStatusCondition(addon.Status.Conditions, conditionType)
	if found == nil {
		return metav1.Condition{}, fmt.Errorf("addon of %s has no condition %s", cluster, conditionType)
	}
	return *found, nil
}

// Says waits until the addon's condition has this status and reason and its
// message contains every text.
func Says(t *testing.T, cluster, conditionType string, status metav1.ConditionStatus, reason string, texts ...string) {
	t.Helper()
	what := fmt.Sprintf("%s says %s=%s %s", cluster, conditionType, status, reason)
	apitest.Within(t, Soon, what, func(ctx context.Context) error {
		found, err := conditionOf(ctx, Hub(t), cluster, conditionType)
		if err != nil {
			return err
		}
		if found.Status != status || found.Reason != reason {
			return fmt.Errorf("it says %s %s: %s", found.Status, found.Reason, found.Message)
		}
		for _, text := range texts {
			if !strings.Contains(found.Message, text) {
				return fmt.Errorf("its message does not contain %q: %s", text, found.Message)
			}
		}
		return nil
	})
}

// Create creates an object and deletes it when the story ends.
func Create[T client.Object](t *testing.T, c client.Client, object T) T {
	t.Helper()
	if err := c.Create(t.Context(), object); err != nil {
		t.Fatalf("creating %T %s: %v", object, client.ObjectKeyFromObject(object), err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), Soon)
		defer cancel()
		if err := client.IgnoreNotFound(c.Delete(ctx, object)); err != nil {
			t.Errorf("cleaning up %T %s: %v", object, client.ObjectKeyFromObject(object), err)
		}
	})
	return object
}

// Namespace creates a namespace on the hub, which is gone when the story has ended.
func Namespace(t *testing.T, prefix string) string {
	t.Helper()
	c := Hub(t)
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: prefix + "-"}}
	// Runs after the deletion: the next story would count what the namespace
	// controller deletes.
	t.Cleanup(func() {
		apitest.Within(t, Eventually, "namespace "+ns.Name+" goes", func(ctx context.Context) error {
			return Gone(ctx, c, ns)
		})
	})
	return Create(t, c, ns).Name
}

// Set creates an exclusive ManagedClusterSet.
func Set(t *testing.T, prefix string) string {
	t.Helper()
	return Create(t, Hub(t), &clusterv1beta2.ManagedClusterSet{
		ObjectMeta: metav1.ObjectMeta{GenerateName: prefix + "-"},
		Spec: clusterv1beta2.ManagedClusterSetSpec{
			ClusterSelector: clusterv1beta2.ManagedClusterSelector{SelectorType: clusterv1beta2.ExclusiveClusterSetLabel},
		},
	}).Name
}

// Bind binds a set to a namespace until the story ends.
func Bind(t *testing.T, namespace, set string) *clusterv1beta2.ManagedClusterSetBinding {
	t.Helper()
	return Create(t, Hub(t), &clusterv1beta2.ManagedClusterSetBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: set},
		Spec:       clusterv1beta2.ManagedClusterSetBindingSpec{ClusterSet: set},
	})
}

// InSet moves a cluster into a set until the story ends.
func InSet(t *testing.T, cluster, set string) {
	t.Helper()
	MoveTo(t.Context(), t, cluster, set)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), Soon)
		defer cancel()
		MoveTo(ctx, t, cluster, DefaultSet)
	})
}

// MoveTo moves a cluster to another set.
func MoveTo(ctx context.Context, t *testing.T, cluster, set string) {
	t.Helper()
	patch := fmt.Appendf(nil, `{"metadata":{"labels":{%q:%q}}}`, setLabel, set)
	object := &clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: cluster}}
	if err := client.IgnoreNotFound(Hub(t).Patch(ctx, object, client.RawPatch(types.MergePatchType, patch))); err != nil {
		t.Errorf("moving %s to set %s: %v", cluster, set, err)
	}
}

// Lease sets how often, in seconds, a cluster must renew its lease.
func Lease(t *testing.T, cluster string, seconds int) {
	t.Helper()
	object := &clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: cluster}}
	patch := fmt.Appendf(nil, `{"spec":{"leaseDurationSeconds":%d}}`, seconds)
	apitest.Must(t, Hub(t).Patch(t.Context(), object, client.RawPatch(types.MergePatchType, patch)))
}

// Sandbox is a namespace bound to a set that contains the clusters.
func Sandbox(t *testing.T, prefix string, clusters ...string) string {
	t.Helper()
	ns, s := Namespace(t, prefix), Set(t, prefix)
	for _, cluster := range clusters {
		InSet(t, cluster, s)
	}
	Bind(t, ns, s)
	return ns
}

// ProfileOf reads the profile of a cluster in a namespace.
func ProfileOf(
	ctx context.Context, c client.Client, namespace, cluster string,
) (*inventoryv1alpha1.ClusterProfile, error) {
	profile := &inventoryv1alpha1.ClusterProfile{}
	return profile, c.Get(ctx, types.NamespacedName{Namespace: namespace, Name: cluster}, profile)
}

// HasProfile waits for the profile, complete with its conditions.
func HasProfile(t *testing.T, namespace, cluster string) *inventoryv1alpha1.ClusterProfile {
	t.Helper()
	var profile *inventoryv1alpha1.ClusterProfile
	apitest.Within(t, Soon, "profile of "+cluster+" in "+namespace, func(ctx context.Context) (err error) {
		if profile, err = ProfileOf(ctx, Hub(t), namespace, cluster); err != nil {
			return err
		}
		if !meta.IsStatusConditionTrue(profile.Status.Conditions, inventoryv1alpha1.ClusterConditionControlPlaneHealthy) {
			return fmt.Errorf("conditions are %v", profile.Status.Conditions)
		}
		return nil
	})
	return profile
}

// HasNoProfile waits until the profile is gone.
func HasNoProfile(t *testing.T, namespace, cluster string) {
	t.Helper()
	apitest.Within(t, Soon, "no profile of "+cluster+" in "+namespace, func(ctx context.Context) error {
		return Gone(ctx, Hub(t), &inventoryv1alpha1.ClusterProfile{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: cluster},
		})
	})
}

// NoProfileComes checks that there is no profile and that none appears.
func NoProfileComes(t *testing.T, namespace, cluster string) {
	t.Helper()
	Stays(t, Quiet, "no profile of "+cluster+" in "+namespace, func(ctx context.Context) error {
		return Gone(ctx, Hub(t), &inventoryv1alpha1.ClusterProfile{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: cluster},
		})
	})
}

// PropertyOf finds a property in a profile.
func PropertyOf(profile *inventoryv1alpha1.ClusterProfile, name string) (inventoryv1alpha1.Property, bool) {
	at := slices.IndexFunc(profile.Status.Properties, func(p inventoryv1alpha1.Property) bool { return p.Name == name })
	if at < 0 {
		return inventoryv1alpha1.Property{}, false
	}
	return profile.Status.Properties[at], true
}

// Shows waits until the profile has the property with the value.
func Shows(t *testing.T, namespace, cluster, name, value string) inventoryv1alpha1.Property {
	t.Helper()
	var property inventoryv1alpha1.Property
	what := fmt.Sprintf("profile of %s shows %s=%s", cluster, name, value)
	apitest.Within(t, Soon, what, func(ctx context.Context) error {
		profile, err := ProfileOf(ctx, Hub(t), namespace, cluster)
		if err != nil {
			return err
		}
		found, ok := PropertyOf(profile, name)
		if !ok || found.Value != value {
			return fmt.Errorf("it shows %+v", profile.Status.Properties)
		}
		property = found
		return nil
	})
	return property
}

// Lacks waits until the profile has no such property.
func Lacks(t *testing.T, namespace, cluster, name string) {
	t.Helper()
	apitest.Within(t, Soon, fmt.Sprintf("profile of %s without %s", cluster, name), func(ctx context.Context) error {
		profile, err := ProfileOf(ctx, Hub(t), namespace, cluster)
		if err != nil {
			return err
		}
		if found, ok := PropertyOf(profile, name); ok {
			return fmt.Errorf("it shows %+v", found)
		}
		return nil
	})
}

// Property is a ClusterProperty of the version that a stock spoke with the addon
// prefers.
func Property(name, value string) *unstructured.Unstructured {
	object := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"value": value}}}
	object.SetAPIVersion(AboutGroup + "/v1beta1")
	object.SetKind("ClusterProperty")
	object.SetName(name)
	return object
}

// Sets creates or changes a property on a spoke, as its owner would.
func Sets(t *testing.T, cluster, name, value string) {
	t.Helper()
	c := ClientOf(t, cluster)
	patch := fmt.Appendf(nil, `{"spec":{"value":%q}}`, value)
	err := c.Patch(t.Context(), Property(name, ""), client.RawPatch(types.MergePatchType, patch))
	if apierrors.IsNotFound(err) {
		Create(t, c, Property(name, value))
		return
	}
	apitest.Must(t, err)
}

// Unsets deletes a property on a spoke, as its owner would.
func Unsets(t *testing.T, cluster, name string) {
	t.Helper()
	apitest.Must(t, ClientOf(t, cluster).Delete(t.Context(), Property(name, "")))
}

// Label labels a ManagedCluster until the story ends.
func Label(t *testing.T, cluster, key, value string) {
	t.Helper()
	object := &clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: cluster}}
	patch := fmt.Appendf(nil, `{"metadata":{"labels":{%q:%q}}}`, key, value)
	apitest.Must(t, Hub(t).Patch(t.Context(), object, client.RawPatch(types.MergePatchType, patch)))
	c := Hub(t)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), Soon)
		defer cancel()
		undo := fmt.Appendf(nil, `{"metadata":{"labels":{%q:null}}}`, key)
		err := c.Patch(ctx, object, client.RawPatch(types.MergePatchType, undo))
		if client.IgnoreNotFound(err) != nil {
			t.Error(err)
		}
	})
}

// Stopped stops a process of the fleet; it is started again when the story ends.
func Stopped(t *testing.T, process string) {
	t.Helper()
	apitest.Must(t, Fleet.Stop(t.Context(), process))
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), Soon)
		defer cancel()
		if err := Fleet.Start(ctx, process); err != nil {
			t.Error(err)
		}
	})
}

// Started starts a process of the fleet that was stopped.
func Started(t *testing.T, process string) {
	t.Helper()
	apitest.Must(t, Fleet.Start(t.Context(), process))
}

// SameProfile checks that the profile is exactly the object it was.
func SameProfile(t *testing.T, want *inventoryv1alpha1.ClusterProfile) func(context.Context) error {
	c := Hub(t)
	return func(ctx context.Context) error {
		got, err := ProfileOf(ctx, c, want.Namespace, want.Name)
		if err != nil {
			return err
		}
		if got.UID != want.UID || got.ResourceVersion != want.ResourceVersion {
			return fmt.Errorf("it was UID %s at version %s, and is UID %s at %s",
				want.UID, want.ResourceVersion, got.UID, got.ResourceVersion)
		}
		return nil
	}
}

// Clean is an error while anything of the addon but the ClusterProperty CRD is on
// a spoke.
func Clean(ctx context.Context, spoke client.Client) error {
	claims := &clusterv1alpha1.ClusterClaimList{}
	if err := spoke.List(ctx, claims, client.MatchingLabels{MarkLabel: MarkValue}); err != nil {
		return err
	}
	if n := len(claims.Items); n > 0 {
		return fmt.Errorf("%d claims are left", n)
	}
	for _, list := range []client.ObjectList{
		&appsv1.DeploymentList{}, &corev1.PodList{}, &batchv1.JobList{}, &corev1.ConfigMapList{},
		&corev1.ServiceAccountList{}, &rbacv1.RoleList{}, &rbacv1.RoleBindingList{}, &corev1.SecretList{},
		&networkingv1.NetworkPolicyList{},
	} {
		if err := spoke.List(ctx, list, client.InNamespace(AgentNS)); err != nil {
			return err
		}
		if err := NoneOfOurs(list); err != nil {
			return err
		}
	}
	for _, list := range []client.ObjectList{&rbacv1.ClusterRoleList{}, &rbacv1.ClusterRoleBindingList{}} {
		if err := spoke.List(ctx, list); err != nil {
			return err
		}
		if err := NoneOfOurs(list); err != nil {
			return err
		}
	}
	return nil
}
