package target

import (
	"maps"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestTrimCopy(t *testing.T) {
	const cluster = "inventory.open-cluster-management.io/source-cluster"
	const account = "inventory.open-cluster-management.io/source-account"
	much := strings.Repeat("x", 250<<10)
	for name, test := range map[string]struct {
		annotations map[string]string
		finalizers  []string
		want        *metav1.PartialObjectMetadata
	}{
		"a copy": {
			annotations: map[string]string{cluster: "c1", account: "a", "other": much},
			want: &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
				Annotations: map[string]string{cluster: "c1", account: "a"},
			}},
		},
		"one that is held": {
			annotations: map[string]string{cluster: "c1", account: "a"}, finalizers: []string{"example.com/a", much},
			want: &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
				Annotations: map[string]string{cluster: "c1", account: "a"}, Finalizers: []string{"held"},
			}},
		},
		"labelled as one, for an account without end": {
			annotations: map[string]string{cluster: "c1", account: much},
			want:        &metav1.PartialObjectMetadata{},
		},
		"labelled as one": {want: &metav1.PartialObjectMetadata{}},
	} {
		t.Run(name, func(t *testing.T) {
			in := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
				Namespace: "team", Name: "c1-a", UID: "u", ResourceVersion: "1", Labels: Labels(),
				Annotations: test.annotations, Finalizers: test.finalizers,
				OwnerReferences: []metav1.OwnerReference{{Name: much}},
				ManagedFields:   []metav1.ManagedFieldsEntry{{Manager: much}},
			}}
			maps.Copy(in.Labels, map[string]string{"other": much})
			want := test.want
			want.Namespace, want.Name, want.UID, want.ResourceVersion = "team", "c1-a", "u", "1"
			want.Labels = Labels()
			for range 2 { // an informer may trim an object twice
				if diff := cmp.Diff(want, trimCopy(in)); diff != "" {
					t.Fatalf("(-want +got):\n%s", diff)
				}
			}
		})
	}
}
