package report

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1alpha1 "open-cluster-management.io/api/cluster/v1alpha1"
)

func ours(names ...string) []claim {
	claims := make([]claim, 0, len(names))
	for _, name := range names {
		claims = append(claims, claim{name: name, ours: true})
	}
	return claims
}

func theirs(names ...string) []claim {
	claims := make([]claim, 0, len(names))
	for _, name := range names {
		claims = append(claims, claim{name: name})
	}
	return claims
}

func TestPredictCut(t *testing.T) {
	for name, tc := range map[string]struct {
		claims []claim
		limit  Limit
		want   cut
	}{
		"as many as the limit: nothing is cut": {
			claims: ours("b", "a"), limit: Limit{Custom: 2},
			want: cut{custom: 2},
		},
		"one more: the last by name is cut off, also another client's": {
			claims: append(ours("c", "a"), theirs("b")...), limit: Limit{Custom: 2},
			want: cut{custom: 3, ours: []string{"c"}},
		},
		"a claim of others that sorts first pushes ours out": {
			claims: append(ours("b", "c"), theirs("a", "d")...), limit: Limit{Custom: 2},
			want: cut{custom: 4, ours: []string{"c"}, others: []string{"d"}, crowding: true},
		},
		"a claim of ours that sorts first pushes others out": {
			claims: append(ours("a"), theirs("b", "c")...), limit: Limit{Custom: 2},
			want: cut{custom: 3, others: []string{"c"}, crowding: true},
		},
		"others push each other out": {
			claims: append(ours("z.id"), theirs("b", "c")...), limit: Limit{Custom: 1, ReservedSuffixes: []string{".id"}},
			want: cut{custom: 2, others: []string{"c"}},
		},
		"reserved names always pass and do not count": {
			claims: append(theirs("id.k8s.io", "kubeversion.open-cluster-management.io", "platform.open-cluster-management.io",
				"product.open-cluster-management.io"), ours("z")...),
			limit: Limit{Custom: 1},
			want:  cut{custom: 1},
		},
		"a name that only ends like a reserved one counts": {
			claims: ours("a", "x.id.k8s.io"), limit: Limit{Custom: 1},
			want: cut{custom: 2, ours: []string{"x.id.k8s.io"}},
		},
		"reserved suffixes always pass and do not count": {
			claims: ours("a", "b", "z.example.com"), limit: Limit{Custom: 2, ReservedSuffixes: []string{".example.com"}},
			want: cut{custom: 2},
		},
		"claims labelled to stay do not count": {
			claims: append(ours("b"), claim{name: "a", spokeOnly: true}), limit: Limit{Custom: 1},
			want: cut{custom: 1},
		},
		"limit zero cuts every custom claim": {
			claims: ours("a"), limit: Limit{},
			want: cut{custom: 1, ours: []string{"a"}},
		},
		"order is by bytes, upper limit dots and dashes as the klusterlet's": {
			claims: ours("a.b", "a-b", "ab"), limit: Limit{Custom: 1},
			want: cut{custom: 3, ours: []string{"a.b", "ab"}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, predictCut(tc.claims, tc.limit), cmp.AllowUnexported(cut{})); diff != "" {
				t.Errorf("cut (-want +got):\n%s", diff)
			}
		})
	}
}

func TestReadClaim(t *testing.T) {
	got := readClaim(&clusterv1alpha1.ClusterClaim{ObjectMeta: metav1.ObjectMeta{Name: "a", Labels: map[string]string{
		"app.kubernetes.io/managed-by":          "cluster-inventory-addon",
		"open-cluster-management.io/spoke-only": "",
	}}})
	want := claim{name: "a", ours: true, spokeOnly: true}
	if got != want {
		t.Errorf("readClaim = %+v, want %+v", got, want)
	}
}
