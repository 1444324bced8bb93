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

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	clusterv1beta2 "open-cluster-management.io/api/cluster/v1beta2"
	inventoryv1alpha1 "sigs.k8s.io/cluster-inventory-api/apis/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"open-cluster-management.io/cluster-inventory-addon/internal/apitest"
)

const (
	addonName   = "cluster-inventory"
	agentNS     = "open-cluster-management-agent-addon"
	managerNS   = "open-cluster-management"
	setLabel    = "cluster.open-cluster-management.io/clusterset"
	markLabel   = "app.kubernetes.io/managed-by"
	markValue   = "cluster-inventory-addon"
	publish     = "inventory.open-cluster-management.io/publish"
	defaultSet  = "default"
	spokeOnly   = "open-cluster-management.io/spoke-only"
	aboutGroup  = "about.k8s.io"
	aboutCRD    = "clusterproperties.about.k8s.io"
	conditionPP = "PropertiesPublished"
	conditionPS = "ProfilesSynced"

	// soon bounds waits for what should happen at once; it is long because the
	// machine may be busy.
	soon = time.Minute
	// eventually bounds waits that depend on several components or a Pod.
	eventually = 2 * time.Minute
	// quiet is how long something must stay unchanged.
	quiet = 3 * time.Second
)

func clientOf(t *testing.T, cluster string) client.WithWatch {
	t.Helper()
	c, err := world.Client(cluster)
	apitest.Must(t, err)
	return c
}

func hub(t *testing.T) client.WithWatch {
	t.Helper()
	return clientOf(t, "hub")
}

// stays is apitest.Stays for checks that take a context.
func stays(t *testing.T, d time.Duration, what string, check func(context.Context) error) {
	t.Helper()
	apitest.Stays(t, d, what, apitest.Succeeds(func() error { return check(t.Context()) }))
}

// installedWith holds the Helm arguments of the installed chart, nil if it is not
// installed.
var installedWith []string

// loud makes manager and agents log everything, so that a logged token is found.
var loud = []string{"--set", "logLevel=10", "--set", "agent.logLevel=10"}

// endings holds the stories that will search for tokens when they end.
var endings = map[string]bool{}

// installed installs the chart with exactly these arguments, unless it is installed so.
// Every story begins with it and ends with a search for tokens.
func installed(t *testing.T, helmArgs ...string) {
	t.Helper()
	if story, _, _ := strings.Cut(t.Name(), "/"); !endings[story] {
		endings[story] = true
		t.Cleanup(func() { noTokenAnywhere(t) })
	}
	helmArgs = append(slices.Clone(loud), helmArgs...)
	if installedWith != nil && slices.Equal(installedWith, helmArgs) {
		return
	}
	if err := world.Deploy(t.Context(), os.Stderr, helmArgs...); err != nil {
		t.Fatalf("installing the chart: %v", err)
	}
	installedWith = append([]string{}, helmArgs...)
}

func uninstalled(t *testing.T) {
	t.Helper()
	if err := world.Undeploy(t.Context(), os.Stderr); err != nil {
		t.Fatalf("removing the chart: %v", err)
	}
	installedWith = nil
}

// enabled enables the addon where necessary, as "clusteradm addon enable" does, and
// waits until it works.
func enabled(t *testing.T, clusters ...string) {
	t.Helper()
	for _, cluster := range clusters {
		enable(t, cluster)
	}
	for _, cluster := range clusters {
		available(t, cluster)
	}
}

// forgetRequests deletes the certificate requests of earlier stories. While OCM's
// registration agent waits for a certificate, it creates another request at every change
// of the addon's status, and gives up while the hub has ten. The hub keeps them for an hour.
func forgetRequests(t *testing.T, cluster string) {
	t.Helper()
	requests := &certificatesv1.CertificateSigningRequestList{}
	apitest.Must(t, hub(t).List(t.Context(), requests))
	for i := range requests.Items {
		request := &requests.Items[i]
		if strings.HasPrefix(request.Name, "addon-"+cluster+"-"+addonName+"-") && len(request.Status.Certificate) > 0 {
			apitest.Must(t, client.IgnoreNotFound(hub(t).Delete(t.Context(), request)))
		}
	}
}

func enable(t *testing.T, cluster string) {
	t.Helper()
	forgetRequests(t, cluster)
	// What clusteradm sends: v1alpha1, with the install namespace, and no owner.
	object := &addonv1alpha1.ManagedClusterAddOn{
		ObjectMeta: metav1.ObjectMeta{Namespace: cluster, Name: addonName},
		Spec:       addonv1alpha1.ManagedClusterAddOnSpec{InstallNamespace: agentNS}, //nolint:staticcheck // deprecated, and what clusteradm sends
	}
	apitest.Within(t, eventually, "enabling the addon on "+cluster, func(ctx context.Context) error {
		err := hub(t).Create(ctx, object.DeepCopy())
		if !apierrors.IsAlreadyExists(err) {
			return err
		}
		there := addonOf(cluster)
		if err := hub(t).Get(ctx, client.ObjectKeyFromObject(there), there); err != nil {
			return err
		}
		if there.DeletionTimestamp != nil {
			return errors.New("the previous one is still being removed")
		}
		return nil
	})
}

func available(t *testing.T, cluster string) {
	t.Helper()
	for _, condition := range []string{"Available", conditionPP, conditionPS} {
		apitest.Within(t, eventually, cluster+" says "+condition, func(ctx context.Context) error {
			found, err := conditionOf(ctx, hub(t), cluster, condition)
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

// disable removes the addon and waits until it is gone.
func disable(t *testing.T, cluster string) {
	t.Helper()
	object := &addonv1beta1.ManagedClusterAddOn{ObjectMeta: metav1.ObjectMeta{Namespace: cluster, Name: addonName}}
	apitest.Must(t, client.IgnoreNotFound(hub(t).Delete(t.Context(), object)))
	apitest.Within(t, eventually, "the addon of "+cluster+" goes", func(ctx context.Context) error {
		return gone(ctx, hub(t), object)
	})
}

func gone(ctx context.Context, c client.Client, object client.Object) error {
	switch err := c.Get(ctx, client.ObjectKeyFromObject(object), object); {
	case apierrors.IsNotFound(err), meta.IsNoMatchError(err):
		return nil
	case err != nil:
		return err
	default:
		return fmt.Errorf("%T %s is still there (finalizers %v)", object, client.ObjectKeyFromObject(object), object.GetFinalizers())
	}
}

func conditionOf(ctx context.Context, c client.Client, cluster, conditionType string) (metav1.Condition, error) {
	addon := &addonv1beta1.ManagedClusterAddOn{}
	if err := c.Get(ctx, types.NamespacedName{Namespace: cluster, Name: addonName}, addon); err != nil {
		return metav1.Condition{}, err
	}
	found := meta.FindStatusCondition(addon.Status.Conditions, conditionType)
	if found == nil {
		return metav1.Condition{}, fmt.Errorf("addon of %s has no condition %s", cluster, conditionType)
	}
	return *found, nil
}

// says waits until the addon's condition has this status and reason and its
// message contains every text.
func says(t *testing.T, cluster, conditionType string, status metav1.ConditionStatus, reason string, texts ...string) {
	t.Helper()
	what := fmt.Sprintf("%s says %s=%s %s", cluster, conditionType, status, reason)
	apitest.Within(t, soon, what, func(ctx context.Context) error {
		found, err := conditionOf(ctx, hub(t), cluster, conditionType)
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

// create creates an object and deletes it when the story ends.
func create[T client.Object](t *testing.T, c client.Client, object T) T {
	t.Helper()
	if err := c.Create(t.Context(), object); err != nil {
		t.Fatalf("creating %T %s: %v", object, client.ObjectKeyFromObject(object), err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), soon)
		defer cancel()
		if err := client.IgnoreNotFound(c.Delete(ctx, object)); err != nil {
			t.Errorf("cleaning up %T %s: %v", object, client.ObjectKeyFromObject(object), err)
		}
	})
	return object
}

func namespace(t *testing.T, prefix string) string {
	t.Helper()
	c := hub(t)
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: prefix + "-"}}
	// Runs after the deletion: the next story would count what the namespace
	// controller deletes.
	t.Cleanup(func() {
		apitest.Within(t, eventually, "namespace "+ns.Name+" goes", func(ctx context.Context) error {
			return gone(ctx, c, ns)
		})
	})
	return create(t, c, ns).Name
}

// set creates an exclusive ManagedClusterSet.
func set(t *testing.T, prefix string) string {
	t.Helper()
	return create(t, hub(t), &clusterv1beta2.ManagedClusterSet{
		ObjectMeta: metav1.ObjectMeta{GenerateName: prefix + "-"},
		Spec:       clusterv1beta2.ManagedClusterSetSpec{ClusterSelector: clusterv1beta2.ManagedClusterSelector{SelectorType: clusterv1beta2.ExclusiveClusterSetLabel}},
	}).Name
}

func bind(t *testing.T, namespace, set string) *clusterv1beta2.ManagedClusterSetBinding {
	t.Helper()
	return create(t, hub(t), &clusterv1beta2.ManagedClusterSetBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: set},
		Spec:       clusterv1beta2.ManagedClusterSetBindingSpec{ClusterSet: set},
	})
}

// inSet moves a cluster into a set until the story ends.
func inSet(t *testing.T, cluster, set string) {
	t.Helper()
	moveTo(t.Context(), t, cluster, set)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), soon)
		defer cancel()
		moveTo(ctx, t, cluster, defaultSet)
	})
}

func moveTo(ctx context.Context, t *testing.T, cluster, set string) {
	t.Helper()
	patch := fmt.Appendf(nil, `{"metadata":{"labels":{%q:%q}}}`, setLabel, set)
	object := &clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: cluster}}
	if err := client.IgnoreNotFound(hub(t).Patch(ctx, object, client.RawPatch(types.MergePatchType, patch))); err != nil {
		t.Errorf("moving %s to set %s: %v", cluster, set, err)
	}
}

// sandbox is a namespace bound to a set that contains the clusters.
func sandbox(t *testing.T, prefix string, clusters ...string) string {
	t.Helper()
	ns, s := namespace(t, prefix), set(t, prefix)
	for _, cluster := range clusters {
		inSet(t, cluster, s)
	}
	bind(t, ns, s)
	return ns
}

func profileOf(ctx context.Context, c client.Client, namespace, cluster string) (*inventoryv1alpha1.ClusterProfile, error) {
	profile := &inventoryv1alpha1.ClusterProfile{}
	return profile, c.Get(ctx, types.NamespacedName{Namespace: namespace, Name: cluster}, profile)
}

// hasProfile waits for the profile, complete with its conditions.
func hasProfile(t *testing.T, namespace, cluster string) *inventoryv1alpha1.ClusterProfile {
	t.Helper()
	var profile *inventoryv1alpha1.ClusterProfile
	apitest.Within(t, soon, "profile of "+cluster+" in "+namespace, func(ctx context.Context) (err error) {
		if profile, err = profileOf(ctx, hub(t), namespace, cluster); err != nil {
			return err
		}
		if !meta.IsStatusConditionTrue(profile.Status.Conditions, inventoryv1alpha1.ClusterConditionControlPlaneHealthy) {
			return fmt.Errorf("conditions are %v", profile.Status.Conditions)
		}
		return nil
	})
	return profile
}

func hasNoProfile(t *testing.T, namespace, cluster string) {
	t.Helper()
	apitest.Within(t, soon, "no profile of "+cluster+" in "+namespace, func(ctx context.Context) error {
		return gone(ctx, hub(t), &inventoryv1alpha1.ClusterProfile{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: cluster}})
	})
}

// noProfileComes checks that there is no profile and that none appears.
func noProfileComes(t *testing.T, namespace, cluster string) {
	t.Helper()
	stays(t, quiet, "no profile of "+cluster+" in "+namespace, func(ctx context.Context) error {
		return gone(ctx, hub(t), &inventoryv1alpha1.ClusterProfile{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: cluster}})
	})
}

func propertyOf(profile *inventoryv1alpha1.ClusterProfile, name string) (inventoryv1alpha1.Property, bool) {
	at := slices.IndexFunc(profile.Status.Properties, func(p inventoryv1alpha1.Property) bool { return p.Name == name })
	if at < 0 {
		return inventoryv1alpha1.Property{}, false
	}
	return profile.Status.Properties[at], true
}

// shows waits until the profile has the property with the value.
func shows(t *testing.T, namespace, cluster, name, value string) inventoryv1alpha1.Property {
	t.Helper()
	var property inventoryv1alpha1.Property
	what := fmt.Sprintf("profile of %s shows %s=%s", cluster, name, value)
	apitest.Within(t, soon, what, func(ctx context.Context) error {
		profile, err := profileOf(ctx, hub(t), namespace, cluster)
		if err != nil {
			return err
		}
		found, ok := propertyOf(profile, name)
		if !ok || found.Value != value {
			return fmt.Errorf("it shows %+v", profile.Status.Properties)
		}
		property = found
		return nil
	})
	return property
}

// lacks waits until the profile has no such property.
func lacks(t *testing.T, namespace, cluster, name string) {
	t.Helper()
	apitest.Within(t, soon, fmt.Sprintf("profile of %s without %s", cluster, name), func(ctx context.Context) error {
		profile, err := profileOf(ctx, hub(t), namespace, cluster)
		if err != nil {
			return err
		}
		if found, ok := propertyOf(profile, name); ok {
			return fmt.Errorf("it shows %+v", found)
		}
		return nil
	})
}

// property is a ClusterProperty of the version that a stock spoke with the addon
// prefers.
func property(name, value string) *unstructured.Unstructured {
	object := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"value": value}}}
	object.SetAPIVersion(aboutGroup + "/v1beta1")
	object.SetKind("ClusterProperty")
	object.SetName(name)
	return object
}

// sets creates or changes a property on a spoke, as its owner would.
func sets(t *testing.T, cluster, name, value string) {
	t.Helper()
	c := clientOf(t, cluster)
	patch := fmt.Appendf(nil, `{"spec":{"value":%q}}`, value)
	err := c.Patch(t.Context(), property(name, ""), client.RawPatch(types.MergePatchType, patch))
	if apierrors.IsNotFound(err) {
		create(t, c, property(name, value))
		return
	}
	apitest.Must(t, err)
}

func unsets(t *testing.T, cluster, name string) {
	t.Helper()
	apitest.Must(t, clientOf(t, cluster).Delete(t.Context(), property(name, "")))
}

// label labels a ManagedCluster until the story ends.
func label(t *testing.T, cluster, key, value string) {
	t.Helper()
	object := &clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: cluster}}
	patch := fmt.Appendf(nil, `{"metadata":{"labels":{%q:%q}}}`, key, value)
	apitest.Must(t, hub(t).Patch(t.Context(), object, client.RawPatch(types.MergePatchType, patch)))
	c := hub(t)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), soon)
		defer cancel()
		err := c.Patch(ctx, object, client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"metadata":{"labels":{%q:null}}}`, key)))
		if client.IgnoreNotFound(err) != nil {
			t.Error(err)
		}
	})
}

// stopped stops a process of the fleet; it is started again when the story ends.
func stopped(t *testing.T, process string) {
	t.Helper()
	apitest.Must(t, world.Stop(t.Context(), process))
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), soon)
		defer cancel()
		if err := world.Start(ctx, process); err != nil {
			t.Error(err)
		}
	})
}

func started(t *testing.T, process string) {
	t.Helper()
	apitest.Must(t, world.Start(t.Context(), process))
}
