package addon

import (
	"maps"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"
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

// Regardless of what a spoke writes into the status of its addon, only one of its own two
// users gets the agent's rights, and no group.
func TestSpokeGainsNothingByForgingItsStatus(t *testing.T) {
	const (
		byCertificate = "system:open-cluster-management:cluster:c1:addon:cluster-inventory:agent:cluster-inventory"
		byToken       = "system:serviceaccount:c1:cluster-inventory-agent"
	)
	tests := map[string]struct {
		status []addonv1beta1.RegistrationConfig
		want   string
	}{
		"nothing yet": {want: byCertificate},
		"no driver yet": {status: []addonv1beta1.RegistrationConfig{claimed("", byCertificate)},
			want: byCertificate},
		"by certificate": {status: []addonv1beta1.RegistrationConfig{claimed("csr", byCertificate)},
			want: byCertificate},
		"by token": {status: []addonv1beta1.RegistrationConfig{claimed("token", byToken)},
			want: byToken},
		"by token, subject not yet set": {status: []addonv1beta1.RegistrationConfig{claimed("token", "")}, want: byToken},
		"registers nothing for the API": {status: []addonv1beta1.RegistrationConfig{{Type: addonv1beta1.CustomSigner}},
			want: byCertificate},
		"another driver": {status: []addonv1beta1.RegistrationConfig{claimed("magic", "system:admin")},
			want: byCertificate},
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
			status: []addonv1beta1.RegistrationConfig{claimed("csr", "system:admin"), claimed("token", "system:admin")},
			want:   byToken,
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

// grantOf is the RoleBinding of a cluster's agent, not yet read.
func grantOf(addon *addonv1beta1.ManagedClusterAddOn) *rbacv1.RoleBinding {
	return &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{
		Namespace: addon.Namespace, Name: "open-cluster-management:cluster-inventory:agent-on-hub",
	}}
}

func TestGrants(t *testing.T) {
	w := newWorld(t)
	addon := w.Addon()
	// What the spoke can patch must not matter.
	addon.Status.Registrations = []addonv1beta1.RegistrationConfig{claimed("csr", "system:admin", "system:masters")}
	g := &grants{reader: w, live: w, writer: w}
	grant := func() {
		t.Helper()
		apitest.Must(t, g.apply(t.Context(), clusterOf(addon), addon))
	}
	w.Wire.Reset()
	grant()
	if writes := w.Wire.Writes(); len(writes) != 1 {
		t.Errorf("%d writes at first, want one RoleBinding: %v", len(writes), writes)
	}

	binding := grantOf(addon)
	wantSubjects := []rbacv1.Subject{
		{
			APIGroup: "rbac.authorization.k8s.io",
			Kind:     "User",
			Name: "system:open-cluster-management:cluster:" + addon.Namespace +
				":addon:cluster-inventory:agent:cluster-inventory",
		},
	}
	wantRole := rbacv1.RoleRef{APIGroup: "rbac.authorization.k8s.io", Kind: "ClusterRole", Name: binding.Name}
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
		w.MustGet(binding)
		for what, diff := range map[string]string{
			"subjects": cmp.Diff(wantSubjects, binding.Subjects),
			"role":     cmp.Diff(wantRole, binding.RoleRef),
			"owners":   cmp.Diff(wantOwners, binding.OwnerReferences),
		} {
			if diff != "" {
				t.Errorf("%s (-want +got):\n%s", what, diff)
			}
		}
	}
	check()

	w.Wire.Reset()
	grant()
	if writes := w.Wire.Writes(); len(writes) != 0 {
		t.Errorf("writes although nothing changed: %v", writes)
	}

	binding.Subjects = append(
		binding.Subjects, rbacv1.Subject{APIGroup: "rbac.authorization.k8s.io", Kind: "User", Name: "mallory"},
	)
	binding.Labels["example.com/theirs"] = "stays"
	apitest.Must(t, w.Update(t.Context(), binding))
	w.Wire.Reset()
	grant()
	check()
	if writes := w.Wire.Writes(); len(writes) != 1 || writes[0].Method != http.MethodPatch {
		t.Errorf("writes to repair it: %v", writes)
	}
	if binding.Labels["example.com/theirs"] != "stays" {
		t.Error("another client's label was removed")
	}

	addon.UID = "another-installation"
	wantOwners[0].UID = addon.UID
	grant()
	check()

	addon.Status.Registrations = []addonv1beta1.RegistrationConfig{claimed("token", "")}
	wantSubjects[0].Name = "system:serviceaccount:" + addon.Namespace + ":cluster-inventory-agent"
	w.Wire.Reset()
	grant()
	check()
	if writes := w.Wire.Writes(); len(writes) != 1 {
		t.Errorf("writes when the driver changes: %v, want one of the RoleBinding", writes)
	}
}

func TestGrantsTrustTheAPIServerWhereTheCacheIsBehind(t *testing.T) {
	w := newWorld(t)
	addon := w.Addon()
	g := &grants{reader: apitest.EmptyCache, live: w, writer: w}
	for range 2 {
		apitest.Must(t, g.apply(t.Context(), clusterOf(addon), addon))
	}
	for _, call := range w.Wire.Writes("rolebindings") {
		if call.Method != http.MethodPost {
			t.Errorf("%s although nothing changed", call.Method)
		}
	}
}

// The framework may ask again before the cache has seen our last patch.
func TestGrantsAreRetriedWhereTheCacheHasAnOlderState(t *testing.T) {
	w := newWorld(t)
	addon := w.Addon()
	if err := (&grants{reader: w, live: w, writer: w}).apply(t.Context(), clusterOf(addon), addon); err != nil {
		t.Fatal(err)
	}
	older := grantOf(addon)
	w.MustGet(older)
	addon.UID = "another-installation"
	before := apitest.Getter(func(_ client.ObjectKey, object client.Object) error {
		older.DeepCopyInto(object.(*rbacv1.RoleBinding))
		return nil
	})
	g := &grants{reader: before, live: w, writer: w}
	for n := range 2 { // the second time, it is refused
		w.Wire.Reset()
		if err := g.apply(t.Context(), clusterOf(addon), addon); err != nil {
			t.Errorf("grant %d: %v", n+1, err)
		}
		if writes := w.Wire.Writes(); len(writes) != 1 {
			t.Errorf("grant %d: writes %v, want 1", n+1, writes)
		}
	}
}

func TestGrantsOfOthersAreLeftAlone(t *testing.T) {
	tests := map[string]struct {
		existing *rbacv1.RoleBinding
		problem  string
	}{
		"another client's binding": {
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
			addon := w.Addon()
			test.existing.Namespace, test.existing.Name = addon.Namespace, grantOf(addon).Name
			w.MustCreate(test.existing)
			w.Wire.Reset()
			err := (&grants{reader: w, live: w, writer: w}).apply(t.Context(), clusterOf(addon), addon)
			if err == nil || !strings.Contains(err.Error(), test.problem) {
				t.Errorf("got %v, want %q in it", err, test.problem)
			}
			for _, call := range w.Wire.Writes() {
				if call.Method != http.MethodPost {
					t.Errorf("%s %s", call.Method, call.Path)
				}
			}
		})
	}
}

func TestGrantsReturnErrorsAndConverge(t *testing.T) {
	w := newWorld(t)
	addon := w.Addon()
	g := &grants{reader: w, live: w, writer: w}
	w.Wire.FailNthWrite(1, apitest.Fault{Status: 500, Reason: "InternalError"})
	if err := g.apply(t.Context(), clusterOf(addon), addon); err == nil {
		t.Error("a write failed unnoticed")
	}
	w.Wire.Fail(nil)
	if err := g.apply(t.Context(), clusterOf(addon), addon); err != nil {
		t.Errorf("after a write failed: %v", err)
	}
}

func TestTrimGrantSharesWhatAllClustersHave(t *testing.T) {
	trimmed := func(change func(*rbacv1.RoleBinding)) *rbacv1.RoleBinding {
		binding := desiredBinding("c1", &addonv1beta1.ManagedClusterAddOn{ObjectMeta: metav1.ObjectMeta{Namespace: "c1"}})
		change(binding)
		want := binding.DeepCopy()
		maps.DeleteFunc(want.Labels, func(key, _ string) bool { return strings.HasPrefix(key, "example.com/") })
		binding.Annotations = map[string]string{"example.com/theirs": "x"}
		binding.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "m"}}
		got := trimGrant(binding)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
		return got
	}
	one, another := trimmed(func(*rbacv1.RoleBinding) {}), trimmed(func(*rbacv1.RoleBinding) {})
	one.Labels["shared"] = "yes"
	if another.Labels["shared"] != "yes" {
		t.Error("the labels of two clusters are two copies")
	}
	delete(one.Labels, "shared")
	trimmed(func(b *rbacv1.RoleBinding) { b.Labels["example.com/theirs"] = "x" })
}
