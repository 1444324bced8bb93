package publish

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1alpha1 "open-cluster-management.io/api/cluster/v1alpha1"

	"open-cluster-management.io/cluster-inventory-addon/pkg/spoke/property"
)

func location(change func(*property.Property)) *property.Property {
	p := &property.Property{Name: "location", UID: "u1", Value: "eu"}
	if change != nil {
		change(p)
	}
	return p
}

// published is the claim of location as it is to be.
func published(change func(*clusterv1alpha1.ClusterClaim)) *clusterv1alpha1.ClusterClaim {
	claim := &clusterv1alpha1.ClusterClaim{
		ObjectMeta: metav1.ObjectMeta{
			Name:   "location",
			Labels: map[string]string{"app.kubernetes.io/managed-by": "cluster-inventory-addon"},
			OwnerReferences: []metav1.OwnerReference{{
				APIVersion: "about.k8s.io/v1beta1", Kind: "ClusterProperty", Name: "location", UID: "u1",
			}},
		},
		Spec: clusterv1alpha1.ClusterClaimSpec{Value: "eu"},
	}
	if change != nil {
		change(claim)
	}
	return claim
}

func TestDesiredClaim(t *testing.T) {
	node := metav1.OwnerReference{APIVersion: "v1", Kind: "Node", Name: "location", UID: "n"}
	for name, tc := range map[string]struct {
		seen observed
		want *clusterv1alpha1.ClusterClaim
	}{
		"a property becomes a marked claim that it owns": {
			seen: observed{property: location(nil)},
			want: published(nil),
		},
		"a claim that is right stays": {
			seen: observed{property: location(nil), claim: published(nil)},
			want: published(nil),
		},
		"an edited value is carried over, what others put there stays": {
			seen: observed{
				property: location(func(p *property.Property) { p.Value = "us" }),
				claim: published(func(c *clusterv1alpha1.ClusterClaim) {
					c.Labels["team"] = "a"
					c.Annotations = map[string]string{"note": "b"}
					c.OwnerReferences = append(c.OwnerReferences, node)
				}),
			},
			want: published(func(c *clusterv1alpha1.ClusterClaim) {
				c.Labels["team"] = "a"
				c.Annotations = map[string]string{"note": "b"}
				c.OwnerReferences = append(c.OwnerReferences, node)
				c.Spec.Value = "us"
			}),
		},
		"an owner of an earlier version and UID is rewritten in its place": {
			seen: observed{property: location(nil), claim: published(func(c *clusterv1alpha1.ClusterClaim) {
				c.OwnerReferences = []metav1.OwnerReference{
					{APIVersion: "about.k8s.io/v1alpha1", Kind: "ClusterProperty", Name: "location", UID: "u0"},
					node,
					{APIVersion: "about.k8s.io/v1beta1", Kind: "ClusterProperty", Name: "location", UID: "u0"},
				}
			})},
			want: published(func(c *clusterv1alpha1.ClusterClaim) { c.OwnerReferences = append(c.OwnerReferences, node) }),
		},
		"a lost owner is put back behind the others": {
			seen: observed{property: location(nil), claim: published(func(c *clusterv1alpha1.ClusterClaim) {
				c.OwnerReferences = []metav1.OwnerReference{node}
			})},
			want: published(func(c *clusterv1alpha1.ClusterClaim) {
				c.OwnerReferences = []metav1.OwnerReference{node, c.OwnerReferences[0]}
			}),
		},
		"no property: no claim": {
			seen: observed{claim: published(nil)},
		},
		"spoke-only: no claim": {
			seen: observed{property: location(func(p *property.Property) { p.SpokeOnly = true }), claim: published(nil)},
		},
		"value too long: no claim": {
			seen: observed{property: location(func(p *property.Property) { p.Value = strings.Repeat("x", 1025) }),
				claim: published(nil)},
		},
		"reserved name: no claim": {
			seen: observed{property: location(nil), claim: published(nil), reserved: property.Reserved{"loc*"}},
		},
		"no value: no claim": {
			seen: observed{property: location(func(p *property.Property) { p.Value = "" }), claim: published(nil)},
		},
	} {
		t.Run(name, func(t *testing.T) {
			before := tc.seen.claim.DeepCopy()
			got := desiredClaim(tc.seen, "v1beta1")
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("claim (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(before, tc.seen.claim); diff != "" {
				t.Errorf("the observed claim was changed:\n%s", diff)
			}
		})
	}
}

func TestForeign(t *testing.T) {
	for name, tc := range map[string]struct {
		claim *clusterv1alpha1.ClusterClaim
		want  bool
	}{
		"no claim":                       {nil, false},
		"a marked claim is ours":         {published(nil), false},
		"without the mark it is foreign": {published(func(c *clusterv1alpha1.ClusterClaim) { c.Labels = nil }), true},
		"another tool's mark is not ours": {published(func(c *clusterv1alpha1.ClusterClaim) {
			c.Labels["app.kubernetes.io/managed-by"] = "Helm"
		}), true},
	} {
		t.Run(name, func(t *testing.T) {
			if got := (observed{claim: tc.claim}).foreign(); got != tc.want {
				t.Errorf("foreign() = %v, want %v", got, tc.want)
			}
		})
	}
}
