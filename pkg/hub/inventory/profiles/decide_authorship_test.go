package profiles

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1 "open-cluster-management.io/api/cluster/v1"
	inventoryv1alpha1 "sigs.k8s.io/cluster-inventory-api/apis/v1alpha1"

	"open-cluster-management.io/cluster-inventory-addon/internal/apitest/ocmtest"
	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/access"
)

// property returns one with a time.
func property(name, value string) inventoryv1alpha1.Property {
	return inventoryv1alpha1.Property{Name: name, Value: value, LastObservedTime: early}
}

// wroteStatus is an entry of the managed fields about status.properties.
func wroteStatus(manager, properties string) metav1.ManagedFieldsEntry {
	return metav1.ManagedFieldsEntry{
		Manager: manager, Subresource: "status",
		FieldsV1: metav1.NewFieldsV1(`{"f:status":{"f:version":{"f:kubernetes":{}},"f:properties":` + properties + `}}`),
	}
}

// A cached profile shows the same as the one that the API server sends.
func TestPropertyAuthorship(t *testing.T) {
	const (
		entryOfA = `{".":{},"k:{\"name\":\"a\"}":{".":{},"f:name":{},"f:value":{}}}`
		bothKeys = `{"k:{\"name\":\"a\"}":{"f:value":{}},"k:{\"name\":\"b\"}":{"f:value":{}}}`
		atomic   = `{}`
		listsA   = `["a"]`
	)
	tests := map[string]struct {
		properties []string
		record     []metav1.ManagedFieldsEntry
		list       string
		want       authorship
	}{
		"no properties": {},
		"a list map": {
			properties: []string{"b", "a"}, record: []metav1.ManagedFieldsEntry{wroteStatus("hub.inventory", entryOfA)},
			want: authorship{others: []string{"b"}, keyed: true},
		},
		"a list map in which others have properties": {
			properties: []string{"b", "a"}, record: []metav1.ManagedFieldsEntry{wroteStatus("hub.inventory-status", entryOfA)},
			want: authorship{others: []string{"b"}, keyed: true},
		},
		"a list map that OCM wrote": {
			properties: []string{"b", "a"}, record: []metav1.ManagedFieldsEntry{wroteStatus("registration", entryOfA)},
			want: authorship{others: []string{"b"}, keyed: true},
		},
		"a list map that another client wrote": {
			properties: []string{"b", "a"}, record: []metav1.ManagedFieldsEntry{wroteStatus("agent-sandbox", entryOfA)},
			want: authorship{others: []string{"a", "b"}, keyed: true},
		},
		"a list map in which another client was the last to write the value": {
			properties: []string{"a"}, record: []metav1.ManagedFieldsEntry{
				wroteStatus("hub.inventory", `{"k:{\"name\":\"a\"}":{".":{},"f:name":{}}}`), wroteStatus("agent-sandbox", entryOfA),
			},
			want: authorship{others: []string{"a"}, keyed: true},
		},
		"a list map that was empty until another client wrote": {
			properties: []string{"a"},
			record:     []metav1.ManagedFieldsEntry{wroteStatus("hub.inventory", atomic), wroteStatus("agent-sandbox", entryOfA)},
			want:       authorship{others: []string{"a"}, keyed: true},
		},
		"a list map that was atomic when we were the last to write it": {
			properties: []string{"b", "a"}, record: []metav1.ManagedFieldsEntry{wroteStatus("hub.inventory-status", bothKeys)},
			list: listsA, want: authorship{others: []string{"b"}, keyed: true, unrecorded: true},
		},
		"a list map that was atomic when another client was the last to write it": {
			properties: []string{"b", "a"}, record: []metav1.ManagedFieldsEntry{wroteStatus("theirs", bothKeys)},
			list: listsA, want: authorship{others: []string{"b"}, keyed: true, unrecorded: true},
		},
		"an atomic list without others": {
			properties: []string{"a", "b"}, record: []metav1.ManagedFieldsEntry{wroteStatus("hub.inventory", atomic)},
		},
		"an atomic list without others any more": {
			properties: []string{"a", "b"}, record: []metav1.ManagedFieldsEntry{wroteStatus("hub.inventory", atomic)}, list: listsA,
		},
		"an atomic list with others": {
			properties: []string{"a", "b"}, record: []metav1.ManagedFieldsEntry{wroteStatus("hub.inventory-status", atomic)},
			list: listsA, want: authorship{others: []string{"b"}, unrecorded: true},
		},
		"an atomic list that another client was the last to write": {
			properties: []string{"a", "b"}, record: []metav1.ManagedFieldsEntry{wroteStatus("kubectl", atomic)},
			list: listsA, want: authorship{others: []string{"b"}, unrecorded: true},
		},
		"an atomic list that we wrote, too, while it was a list map": {
			properties: []string{"a", "b"},
			record:     []metav1.ManagedFieldsEntry{wroteStatus("hub.inventory", atomic), wroteStatus("kubectl", atomic)},
			want:       authorship{others: []string{"a", "b"}},
		},
		"an atomic list with others, without a record": {
			properties: []string{"a", "b"}, record: []metav1.ManagedFieldsEntry{wroteStatus("hub.inventory-status", atomic)},
			want: authorship{others: []string{"a", "b"}},
		},
		"an atomic list that OCM was the last to write": {
			properties: []string{"a", "b"}, record: []metav1.ManagedFieldsEntry{wroteStatus("registration", atomic)},
			want: authorship{others: []string{"a", "b"}},
		},
		"an atomic list with others, of which we have none": {
			properties: []string{"a", "b"}, record: []metav1.ManagedFieldsEntry{wroteStatus("hub.inventory-status", bothKeys)},
			list: `[]`, want: authorship{others: []string{"a", "b"}, keyed: true, unrecorded: true},
		},
		"managed fields stripped": {
			properties: []string{"a", "b"}, want: authorship{others: []string{"a", "b"}},
		},
		"managed fields stripped, with a record": {
			properties: []string{"a", "b"}, list: `["b"]`, want: authorship{others: []string{"a"}, unrecorded: true},
		},
		"managed fields that are not JSON, and a list that is not": {
			properties: []string{"a"}, list: "a,b", record: []metav1.ManagedFieldsEntry{{
				Manager: "hub.inventory", Subresource: "status", FieldsV1: metav1.NewFieldsV1(`{"f:status`),
			}},
			want: authorship{others: []string{"a"}},
		},
		"another subresource": {
			properties: []string{"a"}, record: []metav1.ManagedFieldsEntry{{
				Manager: "hub.inventory", FieldsV1: wroteStatus("", entryOfA).FieldsV1,
			}},
			want: authorship{others: []string{"a"}},
		},
		"a name with a quote and a comma": {
			properties: []string{`a","b`, "b"}, list: `["a\",\"b"]`,
			want: authorship{others: []string{"b"}, unrecorded: true},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			profile := ocmtest.OurProfile("ns", "c")
			profile.ManagedFields = test.record
			for _, name := range test.properties {
				profile.Status.Properties = append(profile.Status.Properties, property(name, "1"))
			}
			if test.list != "" {
				profile.Annotations = map[string]string{"inventory.open-cluster-management.io/properties": test.list}
			}
			for what, seen := range map[string]*inventoryv1alpha1.ClusterProfile{
				"sent": profile, "cached": Trim(Trim(profile)),
			} {
				if diff := cmp.Diff(test.want, authorshipOf(seen), cmp.AllowUnexported(authorship{}),
					cmpopts.EquateEmpty()); diff != "" {
					t.Errorf("of the profile as it is %s (-want +got):\n%s", what, diff)
				}
			}
		})
	}
}

func TestDesiredRecord(t *testing.T) {
	claims := []clusterv1.ManagedClusterClaim{ocmtest.Claim("a", "1"), ocmtest.Claim("b", "2")}
	tests := map[string]struct {
		claims  []clusterv1.ManagedClusterClaim
		current []string // all with the value 1
		authors authorship
		want    string

		adopting bool
	}{
		"a new profile":          {claims: claims},
		"no other client's":      {claims: claims, current: []string{"a", "b", "gone"}},
		"the managed fields say": {claims: claims, current: []string{"a", "x"}, authors: authorship{others: []string{"x"}, keyed: true}},
		"only the record says": {
			claims: claims, current: []string{"a"}, authors: authorship{unrecorded: true}, want: `["a","b"]`,
		},
		"an atomic list that another client was the first to write": {
			claims: claims, current: []string{"x"}, authors: authorship{others: []string{"x"}}, want: `["a","b"]`,
		},
		"the same without claims": {current: []string{"x"}, authors: authorship{others: []string{"x"}}},
		"an atomic list without a record": {
			claims: claims, current: []string{"a", "b", "x"}, authors: authorship{others: []string{"a", "b", "x"}}, want: `["a","b"]`,
		},
		"another client wrote what a claim says": {
			claims: claims, current: []string{"a"}, authors: authorship{others: []string{"a"}}, want: `["a","b"]`,
		},
		"the same where the managed fields name authors: it stays theirs": {
			claims: claims, current: []string{"a"}, authors: authorship{others: []string{"a"}, keyed: true},
		},
		"the same when the profile is adopted": {
			claims: claims, current: []string{"a"}, authors: authorship{others: []string{"a"}, keyed: true}, adopting: true,
			want: `["a","b"]`,
		},
		"another client wrote a different value than the claim's, so it is written": {
			claims: claims, current: []string{"b"}, authors: authorship{others: []string{"b"}, keyed: true},
		},
		"a claim is gone: until the property is, too": {
			claims: claims[1:], current: []string{"a", "b"}, authors: authorship{unrecorded: true}, want: `["a","b"]`,
		},
		"the properties of others are not listed": {
			claims: claims, current: []string{"a", "x"}, authors: authorship{others: []string{"x"}, unrecorded: true},
			want: `["a","b"]`,
		},
		"the managed fields say that others' are ours, and we have none": {
			current: []string{"x"}, authors: authorship{others: []string{"x"}, keyed: true, unrecorded: true}, want: `[]`,
		},
		"a name that JSON quotes": {
			claims: []clusterv1.ManagedClusterClaim{ocmtest.Claim(`a","b`, "1")}, authors: authorship{unrecorded: true}, want: `["a\",\"b"]`,
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			var current []inventoryv1alpha1.Property
			for _, name := range test.current {
				current = append(current, property(name, "1"))
			}
			if diff := cmp.Diff(test.want, desiredRecord(test.claims, current, test.authors, test.adopting)); diff != "" {
				t.Errorf("record (-want +got):\n%s", diff)
			}
		})
	}
	t.Run("every claim that is published fits", func(t *testing.T) {
		for _, letter := range []string{"<", `"`, "x"} {
			var many []clusterv1.ManagedClusterClaim
			var current []inventoryv1alpha1.Property
			for i := range 2000 {
				name := strings.Repeat(letter, 200) + string(rune(0x4e00+i))
				if many = append(many, ocmtest.Claim(name, "1")); i%2 == 0 && i < 400 {
					current = append(current, property("gone"+name, "1"))
				}
			}
			fit, beyond := recordable(many, current, authorship{})
			if beyond == 0 || len(fit)+beyond != len(many) {
				t.Fatalf("%d of %d fit", len(fit), len(many))
			}
			got := desiredRecord(fit, current, authorship{unrecorded: true}, false)
			names, _ := recordedProperties(map[string]string{"inventory.open-cluster-management.io/properties": got})
			if len(got) > 128<<10 || len(names) != len(fit)+len(current) {
				t.Errorf("%d of %d names in %d bytes", len(names), len(fit)+len(current), len(got))
			}
		}
	})
}

func TestDesiredProperties(t *testing.T) {
	claims := []clusterv1.ManagedClusterClaim{ocmtest.Claim("a", "1"), ocmtest.Claim("b", "2")}
	tests := map[string]struct {
		current []inventoryv1alpha1.Property
		others  []string
		want    []inventoryv1alpha1.Property
	}{
		"others' follow ours": {
			current: []inventoryv1alpha1.Property{property("x", "9"), property("a", "1"), property("b", "0")},
			others:  []string{"x"},
			want: []inventoryv1alpha1.Property{
				property("a", "1"), {Name: "b", Value: "2", LastObservedTime: later}, property("x", "9"),
			},
		},
		"only the order differs": {
			current: []inventoryv1alpha1.Property{property("x", "9"), property("b", "2"), property("a", "1")},
			others:  []string{"x"},
			want:    []inventoryv1alpha1.Property{property("x", "9"), property("b", "2"), property("a", "1")},
		},
		"ours without a claim is removed, others' stays": {
			current: []inventoryv1alpha1.Property{property("a", "1"), property("b", "2"), property("gone", "1"), property("x", "9")},
			others:  []string{"x"},
			want:    []inventoryv1alpha1.Property{property("a", "1"), property("b", "2"), property("x", "9")},
		},
		"a claim wins": {
			current: []inventoryv1alpha1.Property{property("a", "theirs"), property("b", "2")}, others: []string{"a"},
			want: []inventoryv1alpha1.Property{{Name: "a", Value: "1", LastObservedTime: later}, property("b", "2")},
		},
		"an atomic list in which another client repeats a name": {
			current: []inventoryv1alpha1.Property{property("a", "1"), property("a", "theirs"), property("b", "2")},
			want: []inventoryv1alpha1.Property{
				{Name: "a", Value: "1", LastObservedTime: later}, property("b", "2"),
			},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			authors := authorship{others: test.others}
			got := desiredProperties(claims, test.current, authors, later)
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("properties (-want +got):\n%s", diff)
			}
			if again := desiredProperties(claims, got, authors, metav1.Now()); !cmp.Equal(got, again) {
				t.Errorf("a second look wants %+v", again)
			}
		})
	}
}

// Consumers of v1alpha2 cannot write to a profile with more than 64 access providers.
func TestOthersAccessProvidersComeFirstWhereThereIsNoRoom(t *testing.T) {
	provider := func(name string) *inventoryv1alpha1.AccessProvider {
		return &inventoryv1alpha1.AccessProvider{Name: name}
	}
	for name, test := range map[string]struct {
		theirs  int
		present bool // ours
		leftOut []string
	}{
		"room for both":          {theirs: 62},
		"room for one":           {theirs: 63, leftOut: []string{"open-cluster-management"}},
		"no room":                {theirs: 64, leftOut: []string{"open-cluster-management", "direct"}},
		"too many without ours":  {theirs: 70, leftOut: []string{"open-cluster-management", "direct"}},
		"ours were there before": {theirs: 63, present: true, leftOut: []string{"open-cluster-management"}},
	} {
		t.Run(name, func(t *testing.T) {
			o := situation()
			o.Access = access.Decision{
				Proxy:  access.ProviderState{Known: true, Provider: provider("open-cluster-management")},
				Direct: access.ProviderState{Known: true, Provider: provider("direct")},
			}
			o.Profile = ocmtest.OurProfile("ns", "c")
			if test.present {
				o.Profile.Status.AccessProviders = []inventoryv1alpha1.AccessProvider{
					*provider("open-cluster-management"), *provider("direct"),
				}
			}
			for i := range test.theirs {
				o.Profile.Status.AccessProviders = append(o.Profile.Status.AccessProviders, *provider(string(rune('A' + i))))
			}
			got, leftOut := DesiredAccess(o)
			if diff := cmp.Diff(test.leftOut, leftOut, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("left out (-want +got):\n%s", diff)
			}
			if want := test.theirs + 2 - len(test.leftOut); len(got) != want {
				t.Errorf("%d access providers, want %d", len(got), want)
			}
			o.Profile.Status.AccessProviders = got
			if again, _ := DesiredAccess(o); !cmp.Equal(got, again) {
				t.Errorf("a second look wants %d", len(again))
			}
		})
	}
}
