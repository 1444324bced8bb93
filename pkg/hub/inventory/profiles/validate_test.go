package profiles

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1 "open-cluster-management.io/api/cluster/v1"
	inventoryv1alpha1 "sigs.k8s.io/cluster-inventory-api/apis/v1alpha1"

	"open-cluster-management.io/cluster-inventory-addon/internal/apitest/ocmtest"
)

// numbered are claims c000, c001 and so on, each of ten bytes.
func numbered(from, to int) []clusterv1.ManagedClusterClaim {
	var claims []clusterv1.ManagedClusterClaim
	for i := from; i < to; i++ {
		claims = append(claims, ocmtest.Claim(fmt.Sprintf("c%03d", i), "sixsix"))
	}
	return claims
}

func TestValidateClaims(t *testing.T) {
	large := ocmtest.Claim("c000a", strings.Repeat("v", 25))
	tests := map[string]struct {
		claims, kept []clusterv1.ManagedClusterClaim
		leftOut      []string
	}{
		"none":                 {},
		"as many as fit":       {claims: numbered(0, 10), kept: numbered(0, 10)},
		"as many bytes as fit": {claims: append(numbered(0, 7), ocmtest.Claim("z", strings.Repeat("v", 29))), kept: append(numbered(0, 7), ocmtest.Claim("z", strings.Repeat("v", 29)))},
		"one too many: the last": {
			claims: numbered(0, 11), kept: numbered(0, 10),
			leftOut: []string{`1 of 11 claims, from "c010" on: a profile has at most 10, with 100 bytes in all`},
		},
		"one byte too many: the last": {
			claims: append(numbered(0, 7), ocmtest.Claim("z", strings.Repeat("v", 30))), kept: numbered(0, 7),
			leftOut: []string{`1 of 8 claims, from "z" on: a profile has at most 10, with 100 bytes in all`},
		},
		"one more large one displaces as many of the last as it needs room, and cuts no value": {
			claims: append(numbered(0, 10), large), kept: slices.Insert(numbered(0, 7), 1, large),
			leftOut: []string{`3 of 11 claims, from "c007" on: a profile has at most 10, with 100 bytes in all`},
		},
		"what is invalid takes no room": {
			claims: append(numbered(0, 10), ocmtest.Claim("a", ""), ocmtest.Claim("b", "1"), ocmtest.Claim("b", "2")), kept: numbered(0, 10),
			leftOut: []string{`"a" has no value`, `"b" occurs 2 times`},
		},
		"a name that does not print, such as one that steers a terminal": {
			claims: []clusterv1.ManagedClusterClaim{ocmtest.Claim("a\x1b[2J", "1"), ocmtest.Claim("b", "line\nline")},
			kept:   []clusterv1.ManagedClusterClaim{ocmtest.Claim("b", "line\nline")}, leftOut: []string{`"a\x1b[2J" has a name with unprintable characters`},
		},
		"many that are invalid: some are named": {
			claims: func() []clusterv1.ManagedClusterClaim {
				claims := numbered(0, 800)
				for i := range claims {
					claims[i].Value = ""
				}
				return claims
			}(),
			leftOut: []string{
				`"c000" has no value`, `"c001" has no value`, `"c002" has no value`, `"c003" has no value`, `"c004" has no value`,
				`"c005" has no value`, "other invalid claims: 794",
			},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			limits := Limits{Properties: 10, PropertyBytes: 100}
			for range 3 {
				rand.Shuffle(len(test.claims), func(i, j int) { test.claims[i], test.claims[j] = test.claims[j], test.claims[i] })
				before := slices.Clone(test.claims)
				kept, leftOut, counts := limits.validateClaims(test.claims)
				if diff := cmp.Diff(test.kept, kept, cmpopts.EquateEmpty()); diff != "" {
					t.Errorf("kept (-want +got):\n%s", diff)
				}
				if diff := cmp.Diff(test.leftOut, leftOut, cmpopts.EquateEmpty()); diff != "" {
					t.Errorf("left out (-want +got):\n%s", diff)
				}
				rejected := 0
				for _, count := range counts {
					rejected += count
				}
				if want := len(test.claims) - len(kept); rejected != want {
					t.Errorf("%d claims are counted as rejected, want %d", rejected, want)
				}
				if diff := cmp.Diff(before, test.claims); diff != "" {
					t.Errorf("the given claims were changed (-before +after):\n%s", diff)
				}
				again, none, zero := limits.validateClaims(kept)
				if diff := cmp.Diff(kept, again, cmpopts.EquateEmpty()); diff != "" || len(none)+len(zero) > 0 {
					t.Errorf("validated again (-first +second), left out %v:\n%s", none, diff)
				}
			}
		})
	}
}

// Whatever a spoke sends, its profile is bounded, and so are the messages about it.
func FuzzWhatASpokeSends(f *testing.F) {
	f.Add("a", "1", "a", "2", "v1.35.4", "left out before")
	f.Add("", "\xff", strings.Repeat("x", 300), strings.Repeat("y", 2000), strings.Repeat("v", 70), "\n\n")
	f.Fuzz(func(t *testing.T, name1, value1, name2, value2, version, annotation string) {
		cluster := &clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{annotationLeftOut: annotation}}}
		cluster.Status.ClusterClaims = []clusterv1.ManagedClusterClaim{ocmtest.Claim(name1, value1), ocmtest.Claim(name2, value2)}
		cluster.Status.Version.Kubernetes = version
		once := asCached(cluster)
		for _, c := range once.Status.ClusterClaims {
			if c.Name == "" || len(c.Name) > 253 || c.Value == "" || len(c.Value) > 1024 {
				t.Errorf("property %q=%q would be refused", c.Name, c.Value)
			}
		}
		if len(once.Status.ClusterClaims) < 2 && len(leftOutOf(once)) == 0 {
			t.Errorf("%d properties of 2 claims, and nothing is left out", len(once.Status.ClusterClaims))
		}
		if len(once.Status.Version.Kubernetes) > 64 || len(once.Annotations[annotationLeftOut]) > 5000 {
			t.Errorf("version %q, left out: %q", once.Status.Version.Kubernetes, leftOutOf(once))
		}
		if diff := cmp.Diff(once, asCached(once)); diff != "" {
			t.Errorf("cached twice (-once +twice):\n%s", diff)
		}
	})
}

// No matter what another client writes to a profile's annotation and its record, no label is
// taken for a copy that this addon reserves for itself.
func FuzzCopiedLabels(f *testing.F) {
	f.Add("region,example.com/env", []byte(`{"f:metadata":{"f:labels":{"f:region":{}}}}`))
	f.Add("x-k8s.io/cluster-manager,,app.kubernetes.io/managed-by", []byte(`{"f:metadata":{"f:labels":{"f:app.kubernetes.io/managed-by":{}}}}`))
	f.Add(",\x00", []byte(`{"f:metadata":[`))
	f.Fuzz(func(t *testing.T, annotation string, record []byte) {
		profile := &inventoryv1alpha1.ClusterProfile{ObjectMeta: metav1.ObjectMeta{
			Annotations: map[string]string{"inventory.open-cluster-management.io/copied-labels": annotation},
			ManagedFields: []metav1.ManagedFieldsEntry{{
				Manager: FieldOwner, Operation: metav1.ManagedFieldsOperationUpdate, FieldsV1: metav1.NewFieldsV1(string(record)),
			}},
		}}
		for _, key := range copiedBefore(profile) {
			if key == "" || key == "app.kubernetes.io/managed-by" || strings.HasPrefix(key, "x-k8s.io/") {
				t.Errorf("%q counts as copied", key)
			}
		}
	})
}

func TestRejectedClaimsByReason(t *testing.T) {
	claims := []clusterv1.ManagedClusterClaim{
		ocmtest.Claim("", "1"), ocmtest.Claim(strings.Repeat("n", 300), "1"), ocmtest.Claim("a\x1b", "1"), ocmtest.Claim("twice", "1"), ocmtest.Claim("twice", "2"),
		ocmtest.Claim("empty", ""), ocmtest.Claim("long", strings.Repeat("v", 2000)), ocmtest.Claim("binary", "\xff"),
		ocmtest.Claim("a", "1"), ocmtest.Claim("b", "2"), ocmtest.Claim("c", "3"), ocmtest.Claim("d", "4"),
	}
	limits := Limits{Properties: 2, PropertyBytes: 100}
	_, _, rejected := limits.validateClaims(claims)
	want := map[string]int{"Name": 3, "Duplicate": 2, "Empty": 1, "TooLong": 1, "NotText": 1, "Limit": 2}
	if diff := cmp.Diff(want, rejected); diff != "" {
		t.Errorf("rejected (-want +got):\n%s", diff)
	}
	cached := &clusterv1.ManagedCluster{}
	rememberRejected(cached, want)
	if diff := cmp.Diff(want, Rejected(asCached(cached))); diff != "" {
		t.Errorf("remembered (-want +got):\n%s", diff)
	}
	const wild = "Limit=999999999,Empty=-3,x=7,Name=,=,Duplicate=2"
	cached.Annotations[annotationRejected] = wild
	again := &clusterv1.ManagedCluster{}
	rememberRejected(again, Rejected(cached))
	if got := again.Annotations[annotationRejected]; got != "Duplicate=2,Limit=100000" {
		t.Errorf("what a spoke wrote becomes %q", got)
	}
}
