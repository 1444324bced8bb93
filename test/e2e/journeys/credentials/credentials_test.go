package credentials

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	eventsv1 "k8s.io/api/events/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	clusterv1beta2 "open-cluster-management.io/api/cluster/v1beta2"
	inventoryv1alpha1 "sigs.k8s.io/cluster-inventory-api/apis/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"open-cluster-management.io/cluster-inventory-addon/internal/apitest"
	"open-cluster-management.io/cluster-inventory-addon/test/e2e/journeys"
	"open-cluster-management.io/cluster-inventory-addon/test/fleet"
)

// A token is copied to the namespace its account names, and to no other that has
// a profile of the cluster; a new token follows in place.
func TestTokenGoesWhereItsAccountSays(t *testing.T) {
	journeys.Installed(t)
	journeys.Enabled(t, journeys.Cluster1)
	s := journeys.Set(t, "tokens")
	journeys.InSet(t, journeys.Cluster1, s)
	named, other := journeys.Namespace(t, "named"), journeys.Namespace(t, "other")
	journeys.Bind(t, named, s)
	journeys.Bind(t, other, s)
	profile := journeys.HasProfile(t, named, journeys.Cluster1)
	journeys.HasProfile(t, other, journeys.Cluster1)

	account(t, journeys.Cluster1, "reader", named)
	first := hasCopy(t, named, journeys.Cluster1, "reader")
	if !slices.ContainsFunc(first.OwnerReferences, func(o metav1.OwnerReference) bool { return o.UID == profile.UID }) {
		t.Errorf("its owners are %v, not the profile", first.OwnerReferences)
	}
	if len(first.Data["ca.crt"]) == 0 {
		t.Error("it holds no ca.crt")
	}
	journeys.Says(t, journeys.Cluster1, conditionCS, metav1.ConditionTrue, "Copied")

	rotated(t, journeys.Cluster1, "reader")
	second := hasCopy(t, named, journeys.Cluster1, "reader")
	if second.UID != first.UID {
		t.Error("the copy was recreated, not changed in place")
	}
	noCopyComes(t, other, journeys.Cluster1, "reader")
}

// An account that names no namespace is copied nowhere, and its cluster's addon says
// how to name one.
func TestAccountWithoutTargetIsNamed(t *testing.T) {
	journeys.Installed(t)
	journeys.Enabled(t, journeys.Cluster1)
	ns := journeys.Sandbox(t, "no-target", journeys.Cluster1)
	journeys.HasProfile(t, ns, journeys.Cluster1)
	untargeted := account(t, journeys.Cluster1, "untargeted")
	journeys.Says(t, journeys.Cluster1, conditionCS, metav1.ConditionFalse, "NoTarget", "untargeted", toNamespace)
	noCopyComes(t, ns, journeys.Cluster1, "untargeted")
	edited(t, untargeted, "annotations", toNamespace, &ns)
	hasCopy(t, ns, journeys.Cluster1, "untargeted")
}

// Whatever ends the right to a token removes the copy.
func TestTokenIsWithdrawn(t *testing.T) {
	journeys.Installed(t)
	journeys.Enabled(t, journeys.Cluster1)
	for name, withdraw := range map[string]func(t *testing.T, account *unstructured.Unstructured, ns, set string){
		// Whether the manager sees the finalizer first or deletes first, and is answered with the
		// whole Secret, no token is in its log.
		"the label goes, and somebody holds the copy": func(
			t *testing.T, account *unstructured.Unstructured, ns, _ string,
		) {
			hold := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":["consumer.example/holds"]}}`))
			apitest.Must(t, journeys.Hub(t).Patch(t.Context(), aCopy(ns, journeys.Cluster1, "withdrawn"), hold))
			edited(t, account, "labels", syncLabel, nil)
		},
		"the annotation is narrowed": func(t *testing.T, account *unstructured.Unstructured, _, _ string) {
			edited(t, account, "annotations", toNamespace, ptr.To("elsewhere"))
		},
		"the account is deleted": func(t *testing.T, account *unstructured.Unstructured, _, _ string) {
			apitest.Must(t, journeys.Hub(t).Delete(t.Context(), account))
		},
		"the namespace is unbound": func(t *testing.T, _ *unstructured.Unstructured, ns, set string) {
			binding := &clusterv1beta2.ManagedClusterSetBinding{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: set}}
			apitest.Must(t, journeys.Hub(t).Delete(t.Context(), binding))
		},
		"the cluster leaves the set": func(t *testing.T, _ *unstructured.Unstructured, _, _ string) {
			journeys.MoveTo(t.Context(), t, journeys.Cluster1, journeys.DefaultSet)
		},
		"the profile is held by a finalizer": func(t *testing.T, _ *unstructured.Unstructured, ns, _ string) {
			profile := journeys.HasProfile(t, ns, journeys.Cluster1)
			hold := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":["consumer.example/holds"]}}`))
			apitest.Must(t, journeys.Hub(t).Patch(t.Context(), profile, hold))
			c := journeys.Hub(t)
			t.Cleanup(func() {
				free := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`))
				if err := client.IgnoreNotFound(c.Patch(context.Background(), profile, free)); err != nil {
					t.Error(err)
				}
			})
			journeys.MoveTo(t.Context(), t, journeys.Cluster1, journeys.DefaultSet)
		},
	} {
		t.Run(name, func(t *testing.T) {
			ns, s := journeys.Namespace(t, "withdrawn"), journeys.Set(t, "withdrawn")
			journeys.InSet(t, journeys.Cluster1, s)
			journeys.Bind(t, ns, s)
			journeys.HasProfile(t, ns, journeys.Cluster1)
			object := account(t, journeys.Cluster1, "withdrawn", ns)
			hasCopy(t, ns, journeys.Cluster1, "withdrawn")
			withdraw(t, object, ns, s)
			hasNoCopy(t, ns, journeys.Cluster1, "withdrawn")
			noCopyComes(t, ns, journeys.Cluster1, "withdrawn")
			apitest.Within(t, journeys.Soon, "no right is left in "+ns, func(ctx context.Context) error { return noRight(ctx, t, ns) })
		})
	}
	isLoggedInFull(t, `verb="DELETE" url="[^"]*/secrets/`+journeys.Cluster1+`-withdrawn"`)
}

// isLoggedInFull checks that the manager logs the bodies of requests, among them one that the
// pattern describes, so that a token in one of those would be found.
func isLoggedInFull(t *testing.T, request string) {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(
		journeys.Fleet.LogDir(), fleet.HubName, "pods", journeys.ManagerNS+"_*_manager.log"))
	apitest.Must(t, err)
	var logged []byte
	for _, path := range paths {
		text, err := os.ReadFile(path)
		apitest.Must(t, err)
		logged = append(logged, text...)
	}
	for _, want := range []string{request, "Response Body"} {
		if !regexp.MustCompile(want).Match(logged) {
			t.Errorf("the manager's log lacks %s, so that it lacks tokens proves nothing", want)
		}
	}
}

// noRight is an error while the manager has a right in the namespace.
func noRight(ctx context.Context, t *testing.T, namespace string) error {
	t.Helper()
	bindings := &rbacv1.RoleBindingList{}
	if err := journeys.Hub(t).List(ctx, bindings, client.InNamespace(namespace)); err != nil {
		return err
	}
	return journeys.NoneOfOurs(bindings)
}

// A withdrawal while no manager runs happens when one is back.
func TestTokenIsWithdrawnAfterTheManagerWasKilled(t *testing.T) {
	journeys.Installed(t)
	journeys.Enabled(t, journeys.Cluster1)
	ns, s := journeys.Namespace(t, "killed"), journeys.Set(t, "killed")
	journeys.InSet(t, journeys.Cluster1, s)
	binding := journeys.Bind(t, ns, s)
	journeys.HasProfile(t, ns, journeys.Cluster1)
	account(t, journeys.Cluster1, "killed", ns)
	hasCopy(t, ns, journeys.Cluster1, "killed")

	dead := journeys.Holder(t.Context(), t)
	journeys.Kill(t, "hub", journeys.ManagerNS, journeys.ManagerPod(t.Context(), t).Name)
	apitest.Must(t, journeys.Hub(t).Delete(t.Context(), binding))
	apitest.Within(t, journeys.Eventually, "a manager leads again", func(ctx context.Context) error {
		if now := journeys.Holder(ctx, t); now == dead || now == "" {
			return fmt.Errorf("the lease is still %q's", now)
		}
		return nil
	})
	back := time.Now()
	hasNoCopy(t, ns, journeys.Cluster1, "killed")
	t.Logf("the copy was gone %s after the manager was back", time.Since(back).Round(time.Millisecond))
	journeys.HasNoProfile(t, ns, journeys.Cluster1)
	apitest.Within(t, journeys.Soon, "no right is left in "+ns, func(ctx context.Context) error { return noRight(ctx, t, ns) })
}

// A copy that another client changes or deletes is repaired.
func TestCopyIsRepaired(t *testing.T) {
	ns, secret := copiedTo(t, "repair")

	alter := client.RawPatch(types.MergePatchType, []byte(`{"stringData":{"token":"altered","another":"key"}}`))
	apitest.Must(t, journeys.Hub(t).Patch(t.Context(), secret, alter))
	if now := hasCopy(t, ns, journeys.Cluster1, "repair"); len(now.Data) != 2 {
		t.Errorf("it holds %d keys, want token and ca.crt alone", len(now.Data))
	}
	apitest.Must(t, journeys.Hub(t).Delete(t.Context(), secret))
	hasCopy(t, ns, journeys.Cluster1, "repair")
}

// A tenant who creates a profile of a cluster, with every label of a genuine one, gets no
// token, however often the profile is created again.
func TestForgedProfileGetsNoToken(t *testing.T) {
	journeys.Installed(t)
	journeys.Enabled(t, journeys.Cluster1)
	ns, tenant := journeys.Sandbox(t, "forged", journeys.Cluster1), journeys.Namespace(t, "tenant")
	genuine := journeys.HasProfile(t, ns, journeys.Cluster1)

	c := journeys.Hub(t)
	forge := func(ctx context.Context) error {
		return client.IgnoreAlreadyExists(c.Create(ctx, &inventoryv1alpha1.ClusterProfile{
			ObjectMeta: metav1.ObjectMeta{Namespace: tenant, Name: journeys.Cluster1, Labels: genuine.Labels, Annotations: genuine.Annotations},
			Spec:       genuine.Spec,
		}))
	}
	account(t, journeys.Cluster1, "wanted", ns, tenant)
	hasCopy(t, ns, journeys.Cluster1, "wanted")
	journeys.Says(t, journeys.Cluster1, conditionCS, metav1.ConditionFalse, "TargetNotEntitled", tenant)
	// The manager deletes the forgery, so the test creates it again and again.
	journeys.Stays(t, journeys.Quiet, "the tenant has no token", func(ctx context.Context) error {
		return errors.Join(forge(ctx), journeys.Gone(ctx, c, aCopy(tenant, journeys.Cluster1, "wanted")))
	})
	rotated(t, journeys.Cluster1, "wanted")
	journeys.Stays(t, journeys.Quiet, "the tenant has no token", func(ctx context.Context) error {
		return errors.Join(forge(ctx), journeys.Gone(ctx, c, aCopy(tenant, journeys.Cluster1, "wanted")))
	})
	apitest.Within(t, journeys.Soon, "the forgery goes", func(ctx context.Context) error {
		return journeys.Gone(ctx, c, &inventoryv1alpha1.ClusterProfile{ObjectMeta: metav1.ObjectMeta{Namespace: tenant, Name: journeys.Cluster1}})
	})
}

// A Secret of the copy's name that another client made is left as it is, and named: to the
// hub admin in a condition, and to the tenant in an event of its own namespace.
func TestForeignSecretIsLeftAlone(t *testing.T) {
	journeys.Installed(t)
	journeys.Enabled(t, journeys.Cluster1)
	ns := journeys.Sandbox(t, "foreign", journeys.Cluster1)
	journeys.HasProfile(t, ns, journeys.Cluster1)
	foreign := aCopy(ns, journeys.Cluster1, "foreign")
	foreign.StringData = map[string]string{"token": "somebody's own"}
	journeys.Create(t, journeys.Hub(t), foreign)
	account(t, journeys.Cluster1, "foreign", ns)
	journeys.Says(t, journeys.Cluster1, conditionCS, metav1.ConditionFalse, "ForeignSecret", ns, foreign.Name)
	tenantIsNotified(t, ns, journeys.Cluster1, "ForeignSecret", foreign.Name)
	journeys.Stays(t, journeys.Quiet, "the foreign Secret", func(ctx context.Context) error {
		now, err := secretOf(ctx, t, ns, foreign.Name)
		if err == nil && (now.ResourceVersion != foreign.ResourceVersion || string(now.Data["token"]) != "somebody's own") {
			err = fmt.Errorf("it was changed: %v", now.ObjectMeta)
		}
		return err
	})
	apitest.Must(t, journeys.Hub(t).Delete(t.Context(), foreign))
	hasCopy(t, ns, journeys.Cluster1, "foreign")
}

// tenantIsNotified waits until a user who may read the events of one namespace, and nothing
// else, finds one on the cluster's profile that says why a token is missing.
func tenantIsNotified(t *testing.T, namespace, cluster, reason, text string) {
	t.Helper()
	const name = "journey-tenant"
	journeys.Create(t, journeys.Hub(t), &rbacv1.Role{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Rules:      []rbacv1.PolicyRule{{APIGroups: []string{"events.k8s.io"}, Resources: []string{"events"}, Verbs: []string{"list"}}},
	})
	journeys.Create(t, journeys.Hub(t), &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: name},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: name}},
	})
	cfg, err := journeys.Fleet.Hub()
	apitest.Must(t, err)
	cfg.Impersonate.UserName = name
	tenant, err := client.New(cfg, client.Options{})
	apitest.Must(t, err)
	apitest.Within(t, journeys.Soon, "the tenant is notified", func(ctx context.Context) error {
		events := &eventsv1.EventList{}
		if err := tenant.List(ctx, events, client.InNamespace(namespace)); err != nil {
			return err
		}
		for _, event := range events.Items {
			if event.Regarding.Kind == "ClusterProfile" && event.Regarding.Name == cluster && event.Reason == reason &&
				strings.Contains(event.Note, text) {
				return nil
			}
		}
		return fmt.Errorf("not among %d events", len(events.Items))
	})
	if err := tenant.List(t.Context(), &eventsv1.EventList{}, client.InNamespace(cluster)); !apierrors.IsForbidden(err) {
		t.Errorf("the tenant lists events of the cluster's namespace: %v", err)
	}
}

// Draining takes every copy and every right away, after which credentials can be
// turned off altogether.
func TestCredentialsAreDrainedAndTurnedOff(t *testing.T) {
	ns, _ := copiedTo(t, "drained")

	journeys.Installed(t, "--set", "credentials.mode=draining")
	hasNoCopy(t, ns, journeys.Cluster1, "drained")
	apitest.Within(t, journeys.Soon, "no right is left in "+ns, func(ctx context.Context) error { return noRight(ctx, t, ns) })
	journeys.Says(t, journeys.Cluster1, conditionCS, metav1.ConditionFalse, "Draining")

	journeys.Installed(t, "--set", "credentials.mode=disabled")
	// The first manager of this mode may have looked for copies with a role that the upgrade deletes.
	journeys.Replaced(t, "hub", journeys.ManagerPod(t.Context(), t))
	apitest.Within(t, journeys.Eventually, "the new manager leads", func(ctx context.Context) error {
		return journeys.Leads(ctx, t)
	})
	journeys.HasProfile(t, ns, journeys.Cluster1)
	noCopyComes(t, ns, journeys.Cluster1, "drained")

	journeys.Installed(t)
	hasCopy(t, ns, journeys.Cluster1, "drained")
}

// A manager that finds everything as it should be writes nothing.
func TestManagerRestartWritesNoCopies(t *testing.T) {
	ns, _ := copiedTo(t, "steady")
	resources := []string{"secrets", "clusterprofiles"}
	before := journeys.Settled(t, resources...)

	journeys.Replaced(t, "hub", journeys.ManagerPod(t.Context(), t))
	apitest.Within(t, journeys.Eventually, "the new manager leads and works", func(ctx context.Context) error {
		return journeys.Leads(ctx, t)
	})
	if diff := journeys.Observed(t, before, resources...); len(diff) > 0 {
		t.Errorf("written by the new manager: %v", diff)
	}
	rotated(t, journeys.Cluster1, "steady")
	hasCopy(t, ns, journeys.Cluster1, "steady")
}

// Whatever makes the manager reconcile everything again, and however often, it writes
// nothing when nothing has changed.
func TestLookingAgainWritesNothing(t *testing.T) {
	journeys.Installed(t)
	journeys.Enabled(t, journeys.Cluster1)
	ns, s := journeys.Namespace(t, "again"), journeys.Set(t, "again")
	journeys.InSet(t, journeys.Cluster1, s)
	binding := journeys.Bind(t, ns, s)
	profile := journeys.HasProfile(t, ns, journeys.Cluster1)
	object := account(t, journeys.Cluster1, "again", ns)
	copied := hasCopy(t, ns, journeys.Cluster1, "again")
	journeys.Says(t, journeys.Cluster1, conditionCS, metav1.ConditionTrue, "Copied")
	resources := []string{"secrets", "clusterprofiles"}
	before := journeys.Settled(t, resources...)

	const rounds = 60
	everything := &addonv1beta1.ClusterManagementAddOn{ObjectMeta: metav1.ObjectMeta{Name: journeys.AddonName}}
	for round := range rounds {
		touch := client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"metadata":{"annotations":{"somebody.example/round":"%d"}}}`, round))
		for _, object := range []client.Object{everything, binding, profile, object, copied, journeys.AddonOf(journeys.Cluster1)} {
			apitest.Must(t, journeys.Hub(t).Patch(t.Context(), object, touch))
		}
	}
	journeys.Wrote(t, before, map[string]int{ // the story's own
		"hub: PATCH secrets":         rounds,
		"hub: PATCH clusterprofiles": rounds,
	}, resources...)
}
