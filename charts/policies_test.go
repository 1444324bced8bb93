package charts

import (
	"fmt"
	"strings"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	clusterv1beta2 "open-cluster-management.io/api/cluster/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"open-cluster-management.io/cluster-inventory-addon/internal/apitest"
	"open-cluster-management.io/cluster-inventory-addon/internal/apitest/hubtest"
	"open-cluster-management.io/cluster-inventory-addon/internal/apitest/ocmtest"
)

func own(role string) *rbacv1.RoleBinding {
	return &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: role},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
		Subjects:   []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: hubtest.Namespace, Name: hubtest.Account}},
	}
}

// eventuallyRefused waits until the manager may not create an object, with this message:
// policies reach the API server's admission through watches.
func (h *installed) eventuallyRefused(object client.Object, words string) {
	h.T.Helper()
	what := fmt.Sprintf("creating %T %s/%s is refused by %q", object, object.GetNamespace(), object.GetName(), words)
	h.Eventually(what, func() string {
		err := h.manager.Create(h.T.Context(), object.DeepCopyObject().(client.Object), client.DryRunAll)
		if isRefused(err, words) {
			return ""
		}
		return fmt.Sprint("the answer: ", err)
	})
}

// bindAsManager returns the API server's response to the manager.
func (h *installed) bindAsManager(in string, binding *rbacv1.RoleBinding) error {
	binding = binding.DeepCopy()
	binding.Namespace = in
	return h.manager.Create(h.T.Context(), binding)
}

// eventuallyBinds waits until the manager may create a RoleBinding: parameters of
// policies arrive through watches, too.
func (h *installed) eventuallyBinds(in string, binding *rbacv1.RoleBinding) {
	h.T.Helper()
	h.Eventually("the manager creates RoleBinding "+binding.Name+" in "+in, apitest.Succeeds(func() error {
		return h.bindAsManager(in, binding)
	}))
	made := binding.DeepCopy()
	made.Namespace = in
	h.CleanUp(made)
}

// isRefused reports whether an error is a refusal with this message. A policy whose
// parameter is missing responds with Invalid instead of Forbidden.
func isRefused(err error, words string) bool {
	return (apierrors.IsForbidden(err) || apierrors.IsInvalid(err)) &&
		strings.Contains(err.Error(), "forbidden") && strings.Contains(err.Error(), words)
}

func binding() client.Object {
	return &clusterv1beta2.ManagedClusterSetBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "s"}, Spec: clusterv1beta2.ManagedClusterSetBindingSpec{ClusterSet: "s"},
	}
}

// testTheManagerMayBindNothingElse tries, as the manager's service account, everything for
// which a stolen token of it could use RoleBindings.
func testTheManagerMayBindNothingElse(t *testing.T) {
	p := install(t)
	silent := binding()
	silent.SetLabels(map[string]string{"inventory.open-cluster-management.io/publish": "false"})
	cluster := p.namespace("cluster1", ocmtest.Addon(""))
	team := p.namespace("team", binding())
	unpublished := p.namespace("unpublished", silent)
	another := ocmtest.Addon("")
	another.SetName("another")
	foreign := p.namespace("foreign", another)
	plain := p.namespace("plain")
	kubernetes := p.namespace("kube-team", binding())
	prefixed := p.namespace("kube-cluster", ocmtest.Addon(""))
	p.MustCreate(&rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Namespace: team, Name: "empty"}})

	changed := func(b *rbacv1.RoleBinding, change func(*rbacv1.RoleBinding)) *rbacv1.RoleBinding {
		b = b.DeepCopy()
		change(b)
		return b
	}
	rename := func(name string) func(*rbacv1.RoleBinding) {
		return func(b *rbacv1.RoleBinding) { b.Name = name }
	}
	const (
		policy = "may bind only its agents"
		source = "cluster-inventory-token-source"
		target = "cluster-inventory-token-target"
		either = "cluster-inventory" // several policies refuse it, and all have it in their names
	)
	for by, binding := range map[string]*rbacv1.RoleBinding{
		policy: changed(own(tokenTarget), rename("other")), source: own(tokenSource), target: own(tokenTarget),
	} {
		binding.Namespace = plain
		p.eventuallyRefused(binding, by)
	}

	// What the manager needs. Once these work, the policies have their parameters.
	p.eventuallyBinds(cluster, own(tokenSource))
	p.eventuallyBinds(prefixed, own(tokenSource))
	p.eventuallyBinds(team, own(tokenTarget))
	agents := &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: agentRole},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: agentRole},
		Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "User",
			Name: "system:open-cluster-management:cluster:" + cluster + ":addon:cluster-inventory:agent:cluster-inventory"}},
	}
	p.eventuallyBinds(cluster, agents)
	byToken := changed(agents, func(b *rbacv1.RoleBinding) {
		b.Subjects[0].Name = "system:serviceaccount:" + cluster + ":cluster-inventory-agent"
	})
	made := agents.DeepCopy()
	made.Namespace = cluster
	p.MustDelete(made)
	p.eventuallyBinds(cluster, byToken)
	p.EventuallyAllowed(server.User(t, hubtest.User), true, authorizationv1.ResourceAttributes{
		Namespace: team, Verb: "get", Resource: "secrets", Name: "x",
	})

	subject := func(kind, in, name string) func(*rbacv1.RoleBinding) {
		return func(b *rbacv1.RoleBinding) {
			b.Subjects = []rbacv1.Subject{{Kind: kind, Namespace: in, Name: name}}
			if kind != "ServiceAccount" {
				b.Subjects[0].APIGroup = rbacv1.GroupName
			}
		}
	}
	refused := map[string]struct {
		in      string
		binding *rbacv1.RoleBinding
		by      string
	}{
		"copies where no set is bound":              {plain, own(tokenTarget), target},
		"copies in kube-system":                     {"kube-system", own(tokenTarget), either},
		"copies in another namespace of Kubernetes": {kubernetes, own(tokenTarget), "in a namespace of Kubernetes"},
		"a grant that is held": {team, changed(own(tokenTarget), func(b *rbacv1.RoleBinding) {
			b.Finalizers = []string{"example.com/hold"}
		}), either},
		"copies in a cluster's namespace":             {cluster, own(tokenTarget), target},
		"copies in its own namespace":                 {hubtest.Namespace, own(tokenTarget), either},
		"copies where the bound set is not published": {unpublished, own(tokenTarget), target},
		"tokens where there is no cluster":            {plain, own(tokenSource), source},
		"tokens in kube-system":                       {"kube-system", own(tokenSource), either},
		"tokens in a consumer's namespace":            {team, own(tokenSource), source},
		"tokens where there is another addon":         {foreign, own(tokenSource), source},
		"another name":                                {team, changed(own(tokenTarget), rename("other")), policy},
		// The other policy finds its parameter there, so it refuses the content.
		"copies under the name for tokens": {cluster, changed(own(tokenTarget), rename(tokenSource)), either},
		"tokens under the name for copies": {team, changed(own(tokenSource), rename(tokenTarget)), either},
		"another client": {
			team,
			changed(own(tokenTarget), subject("ServiceAccount", team, "cluster-inventory-manager")),
			either,
		},
		"another account of its namespace": {
			team,
			changed(own(tokenTarget), subject("ServiceAccount", hubtest.Namespace, "default")),
			either,
		},
		"all users": {
			team,
			changed(own(tokenTarget), subject("Group", "", "system:authenticated")),
			either,
		},
		"another client beside itself": {team, changed(own(tokenTarget), func(b *rbacv1.RoleBinding) {
			b.Subjects = append(b.Subjects, rbacv1.Subject{Kind: "ServiceAccount", Namespace: team, Name: "a"})
		}), either},
		"a Role that gives nothing": {
			team,
			changed(own(tokenTarget), func(b *rbacv1.RoleBinding) { b.RoleRef.Kind, b.RoleRef.Name = "Role", "empty" }),
			either,
		},
		"an agent of another cluster": {cluster, changed(agents, func(b *rbacv1.RoleBinding) {
			b.Subjects[0].Name = strings.ReplaceAll(b.Subjects[0].Name, cluster, "cluster2")
		}), policy},
		"the account of an agent of another cluster": {cluster, changed(byToken, func(b *rbacv1.RoleBinding) {
			b.Subjects[0].Name = strings.ReplaceAll(b.Subjects[0].Name, cluster, "cluster2")
		}), policy},
		"another account of the cluster": {cluster, changed(byToken, func(b *rbacv1.RoleBinding) {
			b.Subjects[0].Name = "system:serviceaccount:" + cluster + ":default"
		}), policy},
		"an agent's user, to read tokens": {
			cluster,
			changed(own(tokenSource), func(b *rbacv1.RoleBinding) { b.Subjects = agents.Subjects }),
			either,
		},
		"the agent's name, for the role that copies": {
			team,
			changed(own(tokenTarget), rename(agentRole)),
			policy,
		},
		"the ClusterRole admin": {
			team,
			changed(own(tokenTarget), func(b *rbacv1.RoleBinding) { b.RoleRef.Name = "admin" }),
			"",
		},
	}
	for name, attempt := range refused {
		t.Run(name, func(t *testing.T) {
			err := p.bindAsManager(attempt.in, attempt.binding)
			if !isRefused(err, attempt.by) {
				t.Errorf("the manager gets %v, want a refusal by %q", err, attempt.by)
			}
		})
	}
	t.Run("changing one it made", func(t *testing.T) {
		made := own(tokenTarget)
		made.Namespace = team
		patch := client.RawPatch(
			types.MergePatchType, []byte(`{"subjects":[{"kind":"ServiceAccount","namespace":"team","name":"a"}]}`),
		)
		err := p.manager.Patch(t.Context(), made, patch)
		if !isRefused(err, either) {
			t.Errorf("the manager gets %v", err)
		}
	})
	t.Run("everywhere at once", func(t *testing.T) {
		err := p.manager.Create(t.Context(), &rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: "all"},
			RoleRef:    own(tokenTarget).RoleRef, Subjects: own(tokenTarget).Subjects,
		})
		if !apierrors.IsForbidden(err) {
			t.Errorf("the manager gets %v", err)
		}
	})
	t.Run("other clients are not restricted", func(*testing.T) {
		theirs := own("view")
		theirs.Namespace, theirs.Name = plain, "theirs"
		p.MustCreate(theirs)
	})
}

// TestPoliciesWaitForTheirParameters: before the hub serves the kinds that policies
// take as parameters they refuse, and afterwards they work.
func TestPoliciesWaitForTheirParameters(t *testing.T) {
	t.Parallel()
	server := apitest.Start(t)
	p := newHub(t, server)
	held := own(tokenTarget)
	held.Namespace, held.Finalizers = p.namespace("held"), []string{"foregroundDeletion"}
	p.MustCreate(held)
	hubtest.Install(p.World, "", hubtest.Rights)
	plain := p.namespace("plain")
	p.Eventually("the policy refuses", func() string {
		err := p.bindAsManager(plain, own(tokenTarget))
		if err != nil && strings.Contains(err.Error(), "cluster-inventory-token-target") {
			return ""
		}
		return fmt.Sprint("the answer: ", err)
	})
	// Kubernetes' garbage collector ends what was deleted after its dependants.
	p.MustMerge(held, `{"metadata":{"finalizers":null}}`)
	server.Install(t, apitest.Hub(), apitest.ClusterProfile())
	p.eventuallyBinds(p.namespace("team", binding()), own(tokenTarget))
	if err := p.bindAsManager(p.namespace("other"), own(tokenTarget)); !isRefused(err, "cluster-inventory-token-target") {
		t.Errorf("a namespace without binding: %v", err)
	}

	// Hubs serve addons in an older version as well, with other fields.
	server.Install(t, apitest.ModuleFiles("open-cluster-management.io/api",
		"addon/v1beta1/0000_01_addon.open-cluster-management.io_managedclusteraddons.crd.yaml"))
	cluster := p.namespace("cluster1", ocmtest.Addon(""))
	older := &unstructured.Unstructured{}
	older.SetAPIVersion("addon.open-cluster-management.io/v1alpha1")
	older.SetKind("ManagedClusterAddOn")
	older.SetNamespace(cluster)
	older.SetName(ocmtest.AddonName)
	registration := client.RawPatch(types.MergePatchType, []byte(
		`{"status":{"registrations":[{"signerName":"kubernetes.io/kube-apiserver-client","subject":{"user":"admin"}}]}}`))
	p.Eventually("addons are not written in the older version", func() string {
		err := p.manager.Status().Patch(t.Context(), older.DeepCopy(), registration, client.DryRunAll)
		if isRefused(err, "in version v1beta1") {
			return ""
		}
		return fmt.Sprint("the answer: ", err)
	})
}

// testTheManagerMayWriteNoRole: it could otherwise pass its own rights on, by changing a
// Role that others are bound to.
func testTheManagerMayWriteNoRole(t *testing.T) {
	p := install(t)
	team := p.namespace("team", binding())
	secrets := rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"secrets"}, Verbs: []string{"get"}}
	theirs := &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Namespace: team, Name: "theirs"}}
	p.MustCreate(theirs)
	p.eventuallyBinds(team, own(tokenTarget)) // with this, RBAC would let it give away the right
	another := theirs.DeepCopy()
	another.Name, another.ResourceVersion, another.Rules = "another", "", []rbacv1.PolicyRule{secrets}
	changed := theirs.DeepCopy()
	changed.Rules = another.Rules
	for what, err := range map[string]error{
		"making one":   p.manager.Create(t.Context(), another),
		"changing one": p.manager.Patch(t.Context(), changed, client.MergeFrom(theirs)),
		"deleting one": p.manager.Delete(t.Context(), theirs),
	} {
		if !apierrors.IsForbidden(err) {
			t.Errorf("%s: the manager gets %v", what, err)
		}
	}
}
