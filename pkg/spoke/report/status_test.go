package report

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"open-cluster-management.io/cluster-inventory-addon/pkg/spoke/property"
)

func props(names ...string) []property.Property {
	properties := make([]property.Property, 0, len(names))
	for _, name := range names {
		properties = append(properties, property.Property{Name: name, Value: "v"})
	}
	return properties
}

func TestDesiredCondition(t *testing.T) {
	served := property.API{Version: "v1beta1"}
	many := Limit{Custom: 20}
	for name, tc := range map[string]struct {
		seen                    observed
		status, reason, message string
	}{
		"all published": {
			seen:   observed{Situation: Situation{API: served, Limit: many}, properties: props("a", "b"), claims: ours("a", "b")},
			status: "True", reason: "Published", message: "2 properties published.",
		},
		"one published": {
			seen: observed{
				Situation:  Situation{API: served, Limit: many},
				properties: props("a"),
				claims:     append(ours("a"), theirs("id.k8s.io")...),
			},
			status: "True", reason: "Published", message: "1 property published.",
		},
		"a problem is first": {
			seen: observed{Situation: Situation{API: served, Limit: many, Problem: "The Secret is broken."},
				properties: props("a"), claims: ours("a")},
			status: "False", reason: "HubKubeconfigInvalid", message: "The Secret is broken.",
		},
		"a problem does not matter any more when the addon is removed": {
			seen:   observed{Situation: Situation{Stopped: true, Problem: "The Secret is broken."}},
			status: "False", reason: "PublishingStopped", message: "The addon is being removed; its ClusterClaims are deleted.",
		},
		"no properties is fine": {
			seen:   observed{Situation: Situation{API: served, Limit: many}},
			status: "True", reason: "Published", message: "There are no properties.",
		},
		"kept on the spoke is the owner's wish, not a failure": {
			seen: observed{Situation: Situation{API: served, Limit: many}, claims: ours("a"), properties: append(props("a"),
				property.Property{Name: "c", Value: "v", SpokeOnly: true},
				property.Property{Name: "b", Value: "v", SpokeOnly: true})},
			status: "True", reason: "Published", message: "1 of 3 properties published. Kept on the spoke by label: b, c.",
		},
		"left out with the reason of each, sorted": {
			seen: observed{Situation: Situation{API: served, Limit: many},
				properties: append(props("ok", "taken", "slow"),
					property.Property{Name: "long", Value: strings.Repeat("x", 1025)},
					property.Property{Name: "empty"}),
				claims: append(ours("ok"), theirs("taken")...),
			},
			status: "False", reason: "PartiallyPublished",
			message: "1 of 5 properties published. Left out: empty (its value is empty), long (its value is longer than 1024 bytes), " +
				"slow (its ClusterClaim could not be written yet; the agent's log says why), " +
				"taken (a ClusterClaim of that name was created by another client).",
		},
		"a reserved name is left out": {
			seen: observed{
				Situation: Situation{API: served, Limit: many, Reserved: property.Reserved{"*.example.com"}}, properties: props("a", "b.example.com"),
				claims: ours("a"),
			},
			status: "False", reason: "PartiallyPublished",
			message: "1 of 2 properties published. Left out: b.example.com (its name is reserved).",
		},
		"our claim, labeled to stay": {
			seen: observed{
				Situation:  Situation{API: served, Limit: many},
				properties: props("a"),
				claims:     []claim{{name: "a", ours: true, spokeOnly: true}},
			},
			status: "False", reason: "PartiallyPublished",
			message: "0 of 1 property published. Left out: a (its ClusterClaim is labeled " +
				"open-cluster-management.io/spoke-only).",
		},
		"beyond the limit: names and the setting": {
			seen: observed{
				Situation:  Situation{API: served, Limit: Limit{Custom: 2}},
				properties: props("a", "b", "c"),
				claims:     append(ours("c", "b", "a"), theirs("d")...),
			},
			status: "False", reason: "ClaimLimitExceeded",
			message: "3 properties published. The klusterlet reports 2 custom claims, which cuts off c, and the claims d of others: " +
				"set the Klusterlet's spec.registrationConfiguration.clusterClaimConfiguration.maxCustomClusterClaims, and this " +
				"addon's claim limit, to 4 or more.",
		},
		"only claims of others beyond the limit, in favor of ours": {
			seen: observed{
				Situation:  Situation{API: served, Limit: Limit{Custom: 1}},
				properties: props("a"),
				claims:     append(ours("a"), theirs("b")...),
			},
			status: "False", reason: "ClaimLimitExceeded",
			message: "1 property published. The klusterlet reports 1 custom claim, which cuts off the claims b of others: " +
				"set the Klusterlet's spec.registrationConfiguration.clusterClaimConfiguration.maxCustomClusterClaims, and this " +
				"addon's claim limit, to 2 or more.",
		},
		"only claims of others beyond the limit, in favor of others": {
			seen:   observed{Situation: Situation{API: served, Limit: Limit{Custom: 1}}, claims: theirs("a", "b")},
			status: "True", reason: "Published", message: "There are no properties.",
		},
		"left out weighs more than cut off, both are reported": {
			seen: observed{
				Situation:  Situation{API: served, Limit: Limit{Custom: 1}},
				properties: append(props("a", "b"), property.Property{Name: "c"}),
				claims:     ours("a", "b"),
			},
			status: "False", reason: "PartiallyPublished",
			message: "2 of 3 properties published. Left out: c (its value is empty). The klusterlet reports 1 custom claim, which cuts off b: " +
				"set the Klusterlet's spec.registrationConfiguration.clusterClaimConfiguration.maxCustomClusterClaims, and this " +
				"addon's claim limit, to 2 or more.",
		},
		"no CRD": {
			seen:   observed{Situation: Situation{API: property.API{Absent: true}}},
			status: "False", reason: "ClusterPropertyAPIMissing",
			message: "The cluster has no CustomResourceDefinition clusterproperties.about.k8s.io; publishing " +
				"starts once it is installed.",
		},
		"CRD without a version that can be read": {
			seen:   observed{},
			status: "False", reason: "ClusterPropertyAPIMissing",
			message: "CustomResourceDefinition clusterproperties.about.k8s.io serves none of the versions v1beta1, v1alpha1; " +
				"published claims stay as they are until it does.",
		},
		"stopped": {
			seen:   observed{Situation: Situation{Stopped: true}},
			status: "False", reason: "PublishingStopped", message: "The addon is being removed; its ClusterClaims are deleted.",
		},
	} {
		t.Run(name, func(t *testing.T) {
			want := metav1.Condition{
				Type:    "PropertiesPublished",
				Status:  metav1.ConditionStatus(tc.status),
				Reason:  tc.reason,
				Message: tc.message,
			}
			if diff := cmp.Diff(want, desiredCondition(tc.seen)); diff != "" {
				t.Errorf("condition (-want +got):\n%s", diff)
			}
			slices.Reverse(tc.seen.properties)
			slices.Reverse(tc.seen.claims)
			if diff := cmp.Diff(want, desiredCondition(tc.seen)); diff != "" {
				t.Errorf("condition of the same facts in another order (-want +got):\n%s", diff)
			}
			for i := range tc.seen.properties {
				if p := &tc.seen.properties[i]; len(p.Value) == 1 {
					p.Value = "w"
				}
			}
			if diff := cmp.Diff(want, desiredCondition(tc.seen)); diff != "" {
				t.Errorf("condition after edits (-want +got):\n%s", diff)
			}
		})
	}
}

func TestMessageIsBounded(t *testing.T) {
	for name, tc := range map[string]struct {
		digits int
		left   string
	}{
		"many short names": {
			digits: 6,
			left:   "w000000 (its ClusterClaim could not be written yet; the agent's log says why), w000001 (",
		},
		"long names": {digits: 252, left: "why), and 19999 more."},
	} {
		t.Run(name, func(t *testing.T) {
			seen := observed{Situation: Situation{API: property.API{Version: "v1"}, Limit: Limit{Custom: 10_000}}}
			for i := range 20_000 {
				id := fmt.Sprintf("%0*d", tc.digits, i)
				seen.properties = append(seen.properties,
					property.Property{Name: "p" + id, Value: "v"},
					property.Property{Name: "s" + id, SpokeOnly: true},
					property.Property{Name: "w" + id, Value: "v"})
				seen.claims = append(seen.claims, claim{name: "p" + id, ours: true}, claim{name: "x" + id})
			}
			message := desiredCondition(seen).Message
			if len(message) > 1024 {
				t.Errorf("message has %d bytes, want at most 1024", len(message))
			}
			for _, part := range []string{
				"20000 of 60000 properties published. Left out: w0",
				tc.left,
				"cuts off p" + strings.Repeat("0", tc.digits-5) + "10000, ",
				", and the claims ",
				"spec.registrationConfiguration.clusterClaimConfiguration.maxCustomClusterClaims",
				"to 40000 or more",
				"Kept on the spoke by label: ",
			} {
				if !strings.Contains(message, part) {
					t.Errorf("message does not contain %q:\n%s", part, message)
				}
			}
		})
	}
}

func TestList(t *testing.T) {
	for name, tc := range map[string]struct {
		entries []string
		bytes   int
		want    string
	}{
		"all fit":                            {[]string{"a", "b"}, 30, "a, b"},
		"the rest is counted":                {[]string{"aaaa", "bbbb", "cccc", "dddd"}, 20, "aaaa, and 3 more"},
		"not even one fits: the number only": {[]string{strings.Repeat("a", 30), "b"}, 20, "2"},
	} {
		t.Run(name, func(t *testing.T) {
			got := list(tc.entries, tc.bytes)
			if got != tc.want || len(got) > tc.bytes {
				t.Errorf("list = %q (%d bytes), want %q", got, len(got), tc.want)
			}
		})
	}
}
