package grants

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestTrim(t *testing.T) {
	trimmed := func(b *rbacv1.RoleBinding) *rbacv1.RoleBinding {
		t.Helper()
		got, err := Trim(b)
		if err != nil {
			t.Fatal(err)
		}
		return got.(*rbacv1.RoleBinding)
	}
	for _, grant := range []Grant{Source("c1"), Target("team")} {
		own := desiredBinding(grant, manager)
		full := own.DeepCopy()
		full.Annotations = map[string]string{"other": strings.Repeat("x", 250<<10)}
		full.Labels["other"] = "x"
		full.OwnerReferences = []metav1.OwnerReference{{Name: strings.Repeat("x", 250<<10)}}
		if diff := cmp.Diff(own, trimmed(full)); diff != "" {
			t.Errorf("its own (-want +got):\n%s", diff)
		}
	}
	others := desiredBinding(Grant{"team", "others"}, manager)
	others.UID = "u"
	others.Annotations = map[string]string{"other": strings.Repeat("x", 250<<10)}
	want := &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "others", UID: "u"}}
	if diff := cmp.Diff(want, trimmed(others)); diff != "" {
		t.Errorf("of others, labelled alike (-want +got):\n%s", diff)
	}
}
