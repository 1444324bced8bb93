package kube

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestTrimRoleBindingKeepsComparedFields(t *testing.T) {
	ours := func() *rbacv1.RoleBinding {
		return &rbacv1.RoleBinding{
			ObjectMeta: metav1.ObjectMeta{
				Namespace: "n", Name: "b", UID: "u", ResourceVersion: "1", Labels: map[string]string{"a": "1", "b": "2"},
				OwnerReferences: []metav1.OwnerReference{{APIVersion: "v1", Kind: "K", Name: "o", UID: "o"}},
			},
			RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "r"},
			Subjects: []rbacv1.Subject{{
				Kind: "ServiceAccount", Namespace: strings.Repeat("n", 63), Name: strings.Repeat("s", 253),
			}},
		}
	}
	full := ours()
	full.Labels["other"] = "x"
	full.Annotations = map[string]string{"other": "x"}
	full.Finalizers = []string{"other"}
	full.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "other"}}
	if diff := cmp.Diff(ours(), TrimRoleBinding(full, "a", "b", "missing")); diff != "" {
		t.Errorf("our own (-want +got):\n%s", diff)
	}
	if got := TrimRoleBinding(full); got.Labels != nil {
		t.Errorf("without keys there are labels: %v", got.Labels)
	}
}

// Large fields are not kept, and a RoleBinding that grants another right still differs.
func TestTrimRoleBindingBoundsOthers(t *testing.T) {
	long := strings.Repeat("x", 1<<20)
	for name, fill := range map[string]func(*rbacv1.RoleBinding){
		"subjects": func(b *rbacv1.RoleBinding) { b.Subjects = make([]rbacv1.Subject, 10_000) },
		"a subject": func(b *rbacv1.RoleBinding) {
			b.Subjects = []rbacv1.Subject{{APIGroup: long, Kind: long, Namespace: long, Name: long}}
		},
		"the role": func(b *rbacv1.RoleBinding) { b.RoleRef = rbacv1.RoleRef{APIGroup: long, Kind: long, Name: long} },
		"owners":   func(b *rbacv1.RoleBinding) { b.OwnerReferences = make([]metav1.OwnerReference, 10_000) },
		"an owner": func(b *rbacv1.RoleBinding) {
			b.OwnerReferences = []metav1.OwnerReference{{APIVersion: long, Kind: long, Name: long}}
		},
	} {
		t.Run(name, func(t *testing.T) {
			full := &rbacv1.RoleBinding{
				Subjects:   []rbacv1.Subject{{Name: "s"}},
				ObjectMeta: metav1.ObjectMeta{OwnerReferences: []metav1.OwnerReference{{Name: "o"}}},
			}
			before := TrimRoleBinding(full)
			fill(full)
			after := TrimRoleBinding(full)
			if after.Size() > 4<<10 {
				t.Errorf("%d bytes are kept", after.Size())
			}
			if cmp.Equal(before, after) {
				t.Error("the difference does not show")
			}
			if diff := cmp.Diff(after, TrimRoleBinding(after)); diff != "" {
				t.Errorf("trimmed twice (-once +twice):\n%s", diff)
			}
		})
	}
}

func TestOnlyLabels(t *testing.T) {
	labels := map[string]string{"a": "1", "b": "", "c": "3"}
	if got := OnlyLabels(labels, "a", "b", "d"); !maps.Equal(got, map[string]string{"a": "1", "b": ""}) {
		t.Errorf("got %v", got)
	}
	if got := OnlyLabels(labels, "d"); got != nil {
		t.Errorf("got %v, want nil", slices.Collect(maps.Keys(got)))
	}
}
