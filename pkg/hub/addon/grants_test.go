package addon

import (
	"context"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"open-cluster-management.io/cluster-inventory-addon/internal/apitest"
)

func clusterOf(addon *addonv1beta1.ManagedClusterAddOn) *clusterv1.ManagedCluster {
	return &clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: addon.Namespace}}
}

// A registration as a spoke may write it into the status.
func claimed(driver, user string, groups ...string) addonv1beta1.RegistrationConfig {
	return addonv1beta1.RegistrationConfig{Type: addonv1beta1.KubeClient, KubeClient: &addonv1beta1.KubeClientConfig{
		Driver:  driver,
		Subject: addonv1beta1.KubeClientSubject{BaseSubject: addonv1beta1.BaseSubject{User: user, Groups: groups}},
	}}
}

// Whatever a spoke writes into the status of its addon, only one of its own two users gets
// the agent's rights, and no group.
func TestASpokeThatLiesInItsStatusGainsNothing(t *testing.T) {
	const (
		byCertificate = "system:open-cluster-management:cluster:c1:addon:cluster-inventory:agent:cluster-inventory"
		byToken       = "system:serviceaccount:c1:cluster-inventory-agent"
	)
	tests := map[string]struct {
		status []addonv1beta1.RegistrationConfig
		want   string
	}{
		"nothing yet":                   {want: byCertificate},
		"no driver yet":                 {status: []addonv1beta1.RegistrationConfig{claimed("", byCertificate)}, want: byCertificate},
		"by certificate":                {status: []addonv1beta1.RegistrationConfig{claimed("csr", byCertificate)}, want: byCertificate},
		"by token":                      {status: []addonv1beta1.RegistrationConfig{claimed("token", byToken)}, want: byToken},
		"by token, subject not yet set": {status: []addonv1beta1.RegistrationConfig{claimed("token", "")}, want: byToken},
		"registers nothing for the API": {status: []addonv1beta1.RegistrationConfig{{Type: addonv1beta1.CustomSigner}}, want: byCertificate},
		"another driver":                {status: []addonv1beta1.RegistrationConfig{claimed("magic", "system:admin")}, want: byCertificate},
		"the administrator, by certificate": {
			status: []addonv1beta1.RegistrationConfig{claimed("csr", "system:admin", "system:masters")}, want: byCertificate,
		},
		"the administrator, by token": {
			status: []addonv1beta1.RegistrationConfig{claimed("token", "system:admin", "system:masters")}, want: byToken,
		},
		"another cluster's account": {
			status: []addonv1beta1.RegistrationConfig{claimed("token", "system:serviceaccount:c2:cluster-inventory-agent")},
			want:   byToken,
		},
		"another account of the namespace": {
			status: []addonv1beta1.RegistrationConfig{claimed("token", "system:serviceaccount:c1:default")}, want: byToken,
		},
		"several": {
			status: []addonv1beta1.RegistrationConfig{claimed("csr", "system:admin"), claimed("token", "system:admin")}, want: byToken,
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			addon := &addonv1beta1.ManagedClusterAddOn{ObjectMeta: metav1.ObjectMeta{Namespace: "c1", Name: "cluster-inventory"}}
			addon.Status.Registrations = test.status
			want := []rbacv1.Subject{{APIGroup: "rbac.authorization.k8s.io", Kind: "User", Name: test.want}}
			if diff := cmp.Diff(want, desiredBinding("c1", addon).Subjects); diff != "" {
				t.Errorf("subjects (-want +got):\n%s", diff)
			}
		})
	}
}

func TestGrants(t *testing.T) {
	w := newWorld(t)
	addon := w.addon()
	// What the spoke can patch must not matter.
	addon.Status.Registrations = []addonv1beta1.RegistrationConfig{claimed("csr", "system:admin", "system:masters")}
	g := &grants{reader: w, live: w, writer: w}
	grant := func() {
		t.Helper()
		apitest.Must(t, g.apply(t.Context(), clusterOf(addon), addon))
	}
	w.wire.Reset()
	grant()
	if writes := w.wire.Writes(); len(writes) != 2 {
		t.Errorf("%d writes at first, want one Role and one RoleBinding: %v", len(writes), writes)
	}

	role, binding := &rbacv1.Role{}, &rbacv1.RoleBinding{}
	read := func() {
		t.Helper()
		for _, object := range []client.Object{role, binding} {
			object.SetNamespace(addon.Namespace)
			object.SetName("cluster-inventory-agent")
			w.MustGet(object)
		}
	}
	wantRules := []rbacv1.PolicyRule{
		{
			APIGroups:     []string{"addon.open-cluster-management.io"},
			Resources:     []string{"managedclusteraddons"},
			ResourceNames: []string{"cluster-inventory"},
			Verbs:         []string{"get", "list", "watch"},
		},
		{
			APIGroups:     []string{"addon.open-cluster-management.io"},
			Resources:     []string{"managedclusteraddons/status"},
			ResourceNames: []string{"cluster-inventory"},
			Verbs:         []string{"patch"},
		},
	}
	wantSubjects := []rbacv1.Subject{
		{
			APIGroup: "rbac.authorization.k8s.io",
			Kind:     "User",
			Name:     "system:open-cluster-management:cluster:" + addon.Namespace + ":addon:cluster-inventory:agent:cluster-inventory",
		},
	}
	wantRole := rbacv1.RoleRef{APIGroup: "rbac.authorization.k8s.io", Kind: "Role", Name: "cluster-inventory-agent"}
	wantOwners := []metav1.OwnerReference{
		{
			APIVersion: "addon.open-cluster-management.io/v1beta1",
			Kind:       "ManagedClusterAddOn",
			Name:       "cluster-inventory",
			UID:        addon.UID,
		},
	}
	check := func() {
		t.Helper()
		read()
		for what, diff := range map[string]string{
			"rules":             cmp.Diff(wantRules, role.Rules),
			"subjects":          cmp.Diff(wantSubjects, binding.Subjects),
			"role":              cmp.Diff(wantRole, binding.RoleRef),
			"the role's owners": cmp.Diff(wantOwners, role.OwnerReferences),
			"binding's owners":  cmp.Diff(wantOwners, binding.OwnerReferences),
		} {
			if diff != "" {
				t.Errorf("%s (-want +got):\n%s", what, diff)
			}
		}
	}
	check()

	w.wire.Reset()
	grant()
	if writes := w.wire.Writes(); len(writes) != 0 {
		t.Errorf("writes although nothing changed: %v", writes)
	}

	role.Rules = append(
		role.Rules, rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"secrets"}, Verbs: []string{"get"}},
	)
	binding.Subjects = append(
		binding.Subjects, rbacv1.Subject{APIGroup: "rbac.authorization.k8s.io", Kind: "User", Name: "mallory"},
	)
	for _, object := range []client.Object{role, binding} {
		object.GetLabels()["example.com/theirs"] = "stays"
		apitest.Must(t, w.Update(t.Context(), object))
	}
	w.wire.Reset()
	grant()
	check()
	if writes := w.wire.Writes(); len(writes) != 2 || writes[0].Method != http.MethodPatch ||
		writes[1].Method != http.MethodPatch {
		t.Errorf("writes to repair both: %v", writes)
	}
	if role.Labels["example.com/theirs"] != "stays" {
		t.Error("a label of somebody else was removed")
	}

	addon.UID = "another-installation"
	wantOwners[0].UID = addon.UID
	grant()
	check()

	addon.Status.Registrations = []addonv1beta1.RegistrationConfig{claimed("token", "")}
	wantSubjects[0].Name = "system:serviceaccount:" + addon.Namespace + ":cluster-inventory-agent"
	w.wire.Reset()
	grant()
	check()
	if writes := w.wire.Writes(); len(writes) != 1 {
		t.Errorf("writes when the driver changes: %v, want one of the RoleBinding", writes)
	}
}

func TestGrantsTrustTheAPIServerWhereTheCacheIsBehind(t *testing.T) {
	w := newWorld(t)
	addon := w.addon()
	g := &grants{reader: empty{w}, live: w, writer: w}
	for range 2 {
		apitest.Must(t, g.apply(t.Context(), clusterOf(addon), addon))
	}
	for _, call := range w.wire.Writes("roles", "rolebindings") {
		if call.Method != http.MethodPost {
			t.Errorf("%s although nothing changed", call.Method)
		}
	}
}

// The framework may ask again before the cache has seen our last patch.
func TestGrantsAreRetriedWhereTheCacheHasAnOlderState(t *testing.T) {
	w := newWorld(t)
	addon := w.addon()
	if err := (&grants{reader: w, live: w, writer: w}).apply(t.Context(), clusterOf(addon), addon); err != nil {
		t.Fatal(err)
	}
	before := older{Reader: w}
	for _, object := range []client.Object{&before.role, &before.binding} {
		object.SetNamespace(addon.Namespace)
		object.SetName("cluster-inventory-agent")
		w.MustGet(object)
	}
	addon.UID = "another-installation"
	g := &grants{reader: before, live: w, writer: w}
	for n := range 2 { // the second time, both are refused
		w.wire.Reset()
		if err := g.apply(t.Context(), clusterOf(addon), addon); err != nil {
			t.Errorf("grant %d: %v", n+1, err)
		}
		if writes := w.wire.Writes(); len(writes) != 2 {
			t.Errorf("grant %d: writes %v, want 2", n+1, writes)
		}
	}
}

// older is a cache that stays behind.
type older struct {
	client.Reader
	role    rbacv1.Role
	binding rbacv1.RoleBinding
}

func (o older) Get(_ context.Context, _ client.ObjectKey, object client.Object, _ ...client.GetOption) error {
	switch into := object.(type) {
	case *rbacv1.Role:
		o.role.DeepCopyInto(into)
	case *rbacv1.RoleBinding:
		o.binding.DeepCopyInto(into)
	}
	return nil
}

// empty is a cache that has not seen anything yet.
type empty struct{ client.Reader }

func (empty) Get(_ context.Context, key client.ObjectKey, _ client.Object, _ ...client.GetOption) error {
	return apierrors.NewNotFound(rbacv1.Resource("roles"), key.Name)
}

func TestGrantsOfOthersAreLeftAlone(t *testing.T) {
	tests := map[string]struct {
		existing client.Object
		problem  string
	}{
		"a role somebody else made": {
			existing: &rbacv1.Role{}, problem: "is not this addon's",
		},
		"a binding somebody else made": {
			existing: &rbacv1.RoleBinding{
				RoleRef: rbacv1.RoleRef{APIGroup: "rbac.authorization.k8s.io", Kind: "ClusterRole", Name: "view"},
			},
			problem: "is not this addon's",
		},
		"a marked binding to another role": {
			existing: &rbacv1.RoleBinding{
				ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app.kubernetes.io/managed-by": "cluster-inventory-addon"}},
				RoleRef:    rbacv1.RoleRef{APIGroup: "rbac.authorization.k8s.io", Kind: "ClusterRole", Name: "view"},
			},
			problem: `refers to ClusterRole "view"`,
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			addon := w.addon()
			test.existing.SetNamespace(addon.Namespace)
			test.existing.SetName("cluster-inventory-agent")
			w.MustCreate(test.existing)
			w.wire.Reset()
			err := (&grants{reader: w, live: w, writer: w}).apply(t.Context(), clusterOf(addon), addon)
			if err == nil || !strings.Contains(err.Error(), test.problem) {
				t.Errorf("got %v, want %q in it", err, test.problem)
			}
			for _, call := range w.wire.Writes() {
				if call.Method != http.MethodPost {
					t.Errorf("%s %s", call.Method, call.Path)
				}
			}
		})
	}
}

func TestGrantsReturnErrorsAndConverge(t *testing.T) {
	w := newWorld(t)
	addon := w.addon()
	g := &grants{reader: w, live: w, writer: w}
	for n := 1; n <= 2; n++ {
		w.wire.FailNthWrite(n, apitest.Fault{Status: 500, Reason: "InternalError"})
		if err := g.apply(t.Context(), clusterOf(addon), addon); err == nil {
			t.Errorf("write %d failed unnoticed", n)
		}
		w.wire.Fail(nil)
		if n == 1 {
			continue
		}
		if err := g.apply(t.Context(), clusterOf(addon), addon); err != nil {
			t.Errorf("after write %d failed: %v", n, err)
		}
	}
}

func TestTrimGrantsSharesWhatAllClustersHave(t *testing.T) {
	trim := trimGrants()
	role := func(cluster string) *rbacv1.Role {
		role := desiredRole(&addonv1beta1.ManagedClusterAddOn{ObjectMeta: metav1.ObjectMeta{Namespace: cluster}})
		role.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "m"}}
		got, err := trim(role)
		apitest.Must(t, err)
		return got.(*rbacv1.Role)
	}
	one, another := role("c1"), role("c2")
	if &one.Rules[0] != &another.Rules[0] {
		t.Error("the rules of two clusters are two copies")
	}
	if len(one.ManagedFields) > 0 {
		t.Errorf("managed fields %v", one.ManagedFields)
	}
	want := desiredRole(&addonv1beta1.ManagedClusterAddOn{ObjectMeta: metav1.ObjectMeta{Namespace: "c1"}})
	if diff := cmp.Diff(want, one); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	altered := desiredRole(&addonv1beta1.ManagedClusterAddOn{})
	altered.Rules[0].Verbs = []string{"*"}
	altered.Labels["example.com/theirs"] = "stays"
	wantAltered := altered.DeepCopy()
	got, err := trim(altered)
	if diff := cmp.Diff(wantAltered, got); err != nil || diff != "" {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
}
