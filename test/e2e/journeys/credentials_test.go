package journeys

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	clusterv1beta2 "open-cluster-management.io/api/cluster/v1beta2"
	inventoryv1alpha1 "sigs.k8s.io/cluster-inventory-api/apis/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"open-cluster-management.io/cluster-inventory-addon/internal/apitest"
)

// A token is copied to the namespace its account names, and to no other that has
// a profile of the cluster; a new token follows in place.
func TestTokenGoesWhereItsAccountSays(t *testing.T) {
	installed(t)
	enabled(t, cluster1)
	s := set(t, "tokens")
	inSet(t, cluster1, s)
	named, other := namespace(t, "named"), namespace(t, "other")
	bind(t, named, s)
	bind(t, other, s)
	profile := hasProfile(t, named, cluster1)
	hasProfile(t, other, cluster1)

	account(t, cluster1, "reader", named)
	first := hasCopy(t, named, cluster1, "reader")
	if !slices.ContainsFunc(first.OwnerReferences, func(o metav1.OwnerReference) bool { return o.UID == profile.UID }) {
		t.Errorf("its owners are %v, not the profile", first.OwnerReferences)
	}
	if len(first.Data["ca.crt"]) == 0 {
		t.Error("it holds no ca.crt")
	}
	says(t, cluster1, conditionCS, metav1.ConditionTrue, "Copied", named)

	rotated(t, cluster1, "reader")
	second := hasCopy(t, named, cluster1, "reader")
	if second.UID != first.UID {
		t.Error("the copy was made anew, not changed in place")
	}
	noCopyComes(t, other, cluster1, "reader")
}

// An account that names no namespace is copied nowhere, and its cluster's addon says
// how to name one.
func TestAccountWithoutTargetIsNamed(t *testing.T) {
	installed(t)
	enabled(t, cluster1)
	ns := sandbox(t, "no-target", cluster1)
	hasProfile(t, ns, cluster1)
	untargeted := account(t, cluster1, "untargeted")
	says(t, cluster1, conditionCS, metav1.ConditionFalse, "NoTarget", "untargeted", toNamespace)
	noCopyComes(t, ns, cluster1, "untargeted")
	edited(t, untargeted, "annotations", toNamespace, &ns)
	hasCopy(t, ns, cluster1, "untargeted")
}

// Whatever takes the right to a token away takes the copy away.
func TestTokenIsWithdrawn(t *testing.T) {
	installed(t)
	enabled(t, cluster1)
	for name, withdraw := range map[string]func(t *testing.T, account *unstructured.Unstructured, ns, set string){
		"the label goes": func(t *testing.T, account *unstructured.Unstructured, _, _ string) {
			edited(t, account, "labels", syncLabel, nil)
		},
		"the annotation is narrowed": func(t *testing.T, account *unstructured.Unstructured, _, _ string) {
			edited(t, account, "annotations", toNamespace, ptr.To("elsewhere"))
		},
		"the account is deleted": func(t *testing.T, account *unstructured.Unstructured, _, _ string) {
			apitest.Must(t, hub(t).Delete(t.Context(), account))
		},
		"the namespace is unbound": func(t *testing.T, _ *unstructured.Unstructured, ns, set string) {
			binding := &clusterv1beta2.ManagedClusterSetBinding{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: set}}
			apitest.Must(t, hub(t).Delete(t.Context(), binding))
		},
		"the cluster leaves the set": func(t *testing.T, _ *unstructured.Unstructured, _, _ string) {
			moveTo(t.Context(), t, cluster1, defaultSet)
		},
		"the profile is held by a finalizer": func(t *testing.T, _ *unstructured.Unstructured, ns, _ string) {
			profile := hasProfile(t, ns, cluster1)
			hold := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":["consumer.example/holds"]}}`))
			apitest.Must(t, hub(t).Patch(t.Context(), profile, hold))
			c := hub(t)
			t.Cleanup(func() {
				free := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`))
				if err := client.IgnoreNotFound(c.Patch(context.Background(), profile, free)); err != nil {
					t.Error(err)
				}
			})
			moveTo(t.Context(), t, cluster1, defaultSet)
		},
	} {
		t.Run(name, func(t *testing.T) {
			ns, s := namespace(t, "withdrawn"), set(t, "withdrawn")
			inSet(t, cluster1, s)
			bind(t, ns, s)
			hasProfile(t, ns, cluster1)
			object := account(t, cluster1, "withdrawn", ns)
			hasCopy(t, ns, cluster1, "withdrawn")
			withdraw(t, object, ns, s)
			hasNoCopy(t, ns, cluster1, "withdrawn")
			noCopyComes(t, ns, cluster1, "withdrawn")
			apitest.Within(t, soon, "no right is left in "+ns, func(ctx context.Context) error { return noRight(ctx, t, ns) })
		})
	}
}

// noRight is an error while the manager has a right in the namespace.
func noRight(ctx context.Context, t *testing.T, namespace string) error {
	t.Helper()
	bindings := &rbacv1.RoleBindingList{}
	if err := hub(t).List(ctx, bindings, client.InNamespace(namespace)); err != nil {
		return err
	}
	return noneOfOurs(bindings)
}

// What should be withdrawn while no manager runs goes when one is back.
func TestTokenIsWithdrawnAfterTheManagerWasKilled(t *testing.T) {
	installed(t)
	enabled(t, cluster1)
	ns, s := namespace(t, "killed"), set(t, "killed")
	inSet(t, cluster1, s)
	binding := bind(t, ns, s)
	hasProfile(t, ns, cluster1)
	account(t, cluster1, "killed", ns)
	hasCopy(t, ns, cluster1, "killed")

	dead := holder(t.Context(), t)
	kill(t, managerPod(t.Context(), t))
	apitest.Must(t, hub(t).Delete(t.Context(), binding))
	apitest.Within(t, eventually, "a manager leads again", func(ctx context.Context) error {
		if now := holder(ctx, t); now == dead || now == "" {
			return fmt.Errorf("the lease is still %q's", now)
		}
		return nil
	})
	back := time.Now()
	hasNoCopy(t, ns, cluster1, "killed")
	t.Logf("the copy was gone %s after the manager was back", time.Since(back).Round(time.Millisecond))
	hasNoProfile(t, ns, cluster1)
	apitest.Within(t, soon, "no right is left in "+ns, func(ctx context.Context) error { return noRight(ctx, t, ns) })
}

// kill ends the manager's process as an out-of-memory killer would.
func kill(t *testing.T, pod *corev1.Pod) {
	t.Helper()
	pid, err := world.ContainerPID(t.Context(), "hub", pod.Namespace, pod.Name)
	apitest.Must(t, err)
	apitest.Must(t, syscall.Kill(pid, syscall.SIGKILL))
}

// A copy that somebody alters or deletes is what it was.
func TestCopyIsRepaired(t *testing.T) {
	ns, secret := copiedTo(t, "repair")

	alter := client.RawPatch(types.MergePatchType, []byte(`{"stringData":{"token":"altered","another":"key"}}`))
	apitest.Must(t, hub(t).Patch(t.Context(), secret, alter))
	if now := hasCopy(t, ns, cluster1, "repair"); len(now.Data) != 2 {
		t.Errorf("it holds %d keys, want token and ca.crt alone", len(now.Data))
	}
	apitest.Must(t, hub(t).Delete(t.Context(), secret))
	hasCopy(t, ns, cluster1, "repair")
}

// A tenant who makes a profile of a cluster, with every label of a genuine one,
// gets no token, however often the profile is made again.
func TestForgedProfileGetsNoToken(t *testing.T) {
	installed(t)
	enabled(t, cluster1)
	ns, tenant := sandbox(t, "forged", cluster1), namespace(t, "tenant")
	genuine := hasProfile(t, ns, cluster1)

	c := hub(t)
	forge := func(ctx context.Context) error {
		return client.IgnoreAlreadyExists(c.Create(ctx, &inventoryv1alpha1.ClusterProfile{
			ObjectMeta: metav1.ObjectMeta{Namespace: tenant, Name: cluster1, Labels: genuine.Labels, Annotations: genuine.Annotations},
			Spec:       genuine.Spec,
		}))
	}
	account(t, cluster1, "wanted", ns, tenant)
	hasCopy(t, ns, cluster1, "wanted")
	says(t, cluster1, conditionCS, metav1.ConditionFalse, "TargetNotEntitled", tenant)
	// The manager deletes the forgery, so it is made again and again.
	stays(t, quiet, "the tenant has no token", func(ctx context.Context) error {
		return errors.Join(forge(ctx), gone(ctx, c, aCopy(tenant, cluster1, "wanted")))
	})
	rotated(t, cluster1, "wanted")
	stays(t, quiet, "the tenant has no token", func(ctx context.Context) error {
		return errors.Join(forge(ctx), gone(ctx, c, aCopy(tenant, cluster1, "wanted")))
	})
	apitest.Within(t, soon, "the forgery goes", func(ctx context.Context) error {
		return gone(ctx, c, &inventoryv1alpha1.ClusterProfile{ObjectMeta: metav1.ObjectMeta{Namespace: tenant, Name: cluster1}})
	})
}

// A Secret of the copy's name that somebody else made is left as it is, and named.
func TestForeignSecretIsLeftAlone(t *testing.T) {
	installed(t)
	enabled(t, cluster1)
	ns := sandbox(t, "foreign", cluster1)
	hasProfile(t, ns, cluster1)
	foreign := aCopy(ns, cluster1, "foreign")
	foreign.StringData = map[string]string{"token": "somebody's own"}
	create(t, hub(t), foreign)
	account(t, cluster1, "foreign", ns)
	says(t, cluster1, conditionCS, metav1.ConditionFalse, "ForeignSecret", ns, foreign.Name)
	stays(t, quiet, "the foreign Secret", func(ctx context.Context) error {
		now, err := secretOf(ctx, t, ns, foreign.Name)
		if err == nil && (now.ResourceVersion != foreign.ResourceVersion || string(now.Data["token"]) != "somebody's own") {
			err = fmt.Errorf("it was changed: %v", now.ObjectMeta)
		}
		return err
	})
	apitest.Must(t, hub(t).Delete(t.Context(), foreign))
	hasCopy(t, ns, cluster1, "foreign")
}

// Draining takes every copy and every right away, after which credentials can be
// turned off altogether.
func TestCredentialsAreDrainedAndTurnedOff(t *testing.T) {
	ns, _ := copiedTo(t, "drained")

	installed(t, "--set", "credentials.mode=draining")
	hasNoCopy(t, ns, cluster1, "drained")
	apitest.Within(t, soon, "no right is left in "+ns, func(ctx context.Context) error { return noRight(ctx, t, ns) })
	says(t, cluster1, conditionCS, metav1.ConditionFalse, "Draining")

	installed(t, "--set", "credentials.mode=disabled")
	hasProfile(t, ns, cluster1)
	noCopyComes(t, ns, cluster1, "drained")

	installed(t)
	hasCopy(t, ns, cluster1, "drained")
}

// A manager that finds everything as it should be writes nothing.
func TestManagerRestartWritesNoCopies(t *testing.T) {
	ns, _ := copiedTo(t, "steady")
	resources := []string{"secrets", "clusterprofiles"}
	before := settled(t, resources...)

	replaced(t, "hub", managerPod(t.Context(), t))
	apitest.Within(t, eventually, "the new manager leads and works", func(ctx context.Context) error {
		return leads(ctx, t)
	})
	stays(t, restartObservation, "no write by the new manager", func(context.Context) error {
		if diff := since(before, counts(t, resources...)); len(diff) > 0 {
			return fmt.Errorf("written: %v", diff)
		}
		return nil
	})
	rotated(t, cluster1, "steady")
	hasCopy(t, ns, cluster1, "steady")
}

// Whatever makes the manager look at everything again, and however often, it
// writes nothing when nothing has changed.
func TestLookingAgainWritesNothing(t *testing.T) {
	installed(t)
	enabled(t, cluster1)
	ns, s := namespace(t, "again"), set(t, "again")
	inSet(t, cluster1, s)
	binding := bind(t, ns, s)
	profile := hasProfile(t, ns, cluster1)
	object := account(t, cluster1, "again", ns)
	copied := hasCopy(t, ns, cluster1, "again")
	says(t, cluster1, conditionCS, metav1.ConditionTrue, "Copied", ns)
	resources := []string{"secrets", "clusterprofiles"}
	before := settled(t, resources...)

	const rounds = 60
	everything := &addonv1beta1.ClusterManagementAddOn{ObjectMeta: metav1.ObjectMeta{Name: addonName}}
	for round := range rounds {
		touch := client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"metadata":{"annotations":{"somebody.example/round":"%d"}}}`, round))
		for _, object := range []client.Object{everything, binding, profile, object, copied, addonOf(cluster1)} {
			apitest.Must(t, hub(t).Patch(t.Context(), object, touch))
		}
	}
	wrote(t, before, map[string]int{ // the story's own
		"hub: PATCH secrets":         rounds,
		"hub: PATCH clusterprofiles": rounds,
	}, resources...)
}
