package profiles

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1 "open-cluster-management.io/api/cluster/v1"
	inventoryv1alpha1 "sigs.k8s.io/cluster-inventory-api/apis/v1alpha1"

	"open-cluster-management.io/cluster-inventory-addon/internal/apitest/ocmtest"
	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/access"
	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/selection"
)

var (
	early = metav1.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	later = metav1.Date(2026, 2, 2, 2, 2, 2, 0, time.UTC)
)

// unmanaged ignores the managed fields.
var unmanaged = cmpopts.IgnoreFields(metav1.ObjectMeta{}, "ManagedFields")

// A restored ManagedCluster has no status at first: to create an object drops it.
func TestAProfileKeepsWhatARestoredClusterDoesNotHaveYet(t *testing.T) {
	joined := ocmtest.Condition("ManagedClusterJoined", "True", "ManagedClusterJoined", "in")
	whole := &clusterv1.ManagedCluster{
		ObjectMeta: metav1.ObjectMeta{Name: "c"},
		Status: clusterv1.ManagedClusterStatus{
			Version:       clusterv1.ManagedClusterVersion{Kubernetes: "v1.35.4"},
			Conditions:    []metav1.Condition{joined},
			ClusterClaims: []clusterv1.ManagedClusterClaim{ocmtest.Claim("a", "1")},
		},
	}
	profile, _ := Desired(Observed{Observation: selection.Observation{Cluster: whole}}, []string{"a"}, early)
	bare := &clusterv1.ManagedCluster{ObjectMeta: whole.ObjectMeta}
	reported := bare.DeepCopy()
	reported.Status.Conditions = whole.Status.Conditions
	for name, test := range map[string]struct {
		cluster             *clusterv1.ManagedCluster
		restoring, unserved []string
		keeps               bool
	}{
		"being restored":               {cluster: bare, restoring: []string{"managedclusters"}, keeps: true},
		"not served":                   {cluster: bare, unserved: []string{"managedclusters"}, keeps: true},
		"restored with its status":     {cluster: reported, restoring: []string{"managedclusters"}},
		"nothing is restored any more": {cluster: bare},
	} {
		t.Run(name, func(t *testing.T) {
			o := Observed{Observation: selection.Observation{
				Cluster: test.cluster, Profile: profile, RestoringCRDs: test.restoring, Unserved: test.unserved,
			}}
			got, _ := Desired(o, []string{"a"}, later)
			if kept := cmp.Equal(profile, got); kept != test.keeps {
				t.Errorf("the profile is kept: %t, want %t:\n%s", kept, test.keeps, cmp.Diff(profile, got))
			}
		})
	}
}

func TestDesiredProfile(t *testing.T) {
	cluster := func(changes ...func(*clusterv1.ManagedCluster)) *clusterv1.ManagedCluster {
		c := &clusterv1.ManagedCluster{
			ObjectMeta: metav1.ObjectMeta{Name: "c",
				Labels: map[string]string{"cluster.open-cluster-management.io/clusterset": "s", "env": "prod"}},
			Status: clusterv1.ManagedClusterStatus{
				Version: clusterv1.ManagedClusterVersion{Kubernetes: "v1.35.4"},
				Conditions: []metav1.Condition{
					ocmtest.Condition("ManagedClusterConditionAvailable", "True", "ManagedClusterAvailable", "fine"),
					ocmtest.Condition("ManagedClusterJoined", "True", "ManagedClusterJoined", "in"),
				},
				ClusterClaims: []clusterv1.ManagedClusterClaim{ocmtest.Claim("b", "2"), ocmtest.Claim("a", "1")},
			},
		}
		for _, change := range changes {
			change(c)
		}
		return c
	}
	shown := func(conditionType, reason, message string, generation int64) metav1.Condition {
		c := ocmtest.Condition(conditionType, "True", reason, message)
		c.ObservedGeneration = generation
		return c
	}
	profile := func(changes ...func(*inventoryv1alpha1.ClusterProfile)) *inventoryv1alpha1.ClusterProfile {
		p := &inventoryv1alpha1.ClusterProfile{
			ObjectMeta: metav1.ObjectMeta{
				Namespace: "ns", Name: "c",
				Labels: map[string]string{
					"app.kubernetes.io/managed-by":              "cluster-inventory-addon",
					"x-k8s.io/cluster-manager":                  "open-cluster-management",
					"open-cluster-management.io/cluster-name":   "c",
					"multicluster.x-k8s.io/clusterset":          "s",
					"multicluster.x-k8s.io/inventory-member-id": "c",
				},
			},
			Spec: inventoryv1alpha1.ClusterProfileSpec{DisplayName: "c",
				ClusterManager: inventoryv1alpha1.ClusterManager{Name: "open-cluster-management"}},
			Status: inventoryv1alpha1.ClusterProfileStatus{
				Version: inventoryv1alpha1.ClusterVersion{Kubernetes: "v1.35.4"},
				Conditions: []metav1.Condition{
					shown("ControlPlaneHealthy", "ManagedClusterAvailable", "fine", 0),
					shown("Joined", "ManagedClusterJoined", "in", 0),
				},
				Properties: []inventoryv1alpha1.Property{
					{Name: "a", Value: "1", LastObservedTime: later},
					{Name: "b", Value: "2", LastObservedTime: later},
				},
			},
		}
		for _, change := range changes {
			change(p)
		}
		return p
	}
	label := func(key, value string) func(*inventoryv1alpha1.ClusterProfile) {
		return func(p *inventoryv1alpha1.ClusterProfile) { p.Labels[key] = value }
	}
	annotate := func(key, value string) func(*inventoryv1alpha1.ClusterProfile) {
		return func(p *inventoryv1alpha1.ClusterProfile) {
			if p.Annotations == nil {
				p.Annotations = map[string]string{}
			}
			p.Annotations[key] = value
		}
	}
	const copied = "inventory.open-cluster-management.io/copied-labels"
	clusterLabel := func(key, value string) func(*clusterv1.ManagedCluster) {
		return func(c *clusterv1.ManagedCluster) { c.Labels[key] = value }
	}

	tests := map[string]struct {
		cluster  *clusterv1.ManagedCluster
		ways     access.Decision
		current  *inventoryv1alpha1.ClusterProfile
		allow    []string
		want     *inventoryv1alpha1.ClusterProfile
		problems []string
	}{
		"birth: everything, sorted, seen now": {
			cluster: cluster(), want: profile(),
		},
		"nothing known of the cluster: no version, conditions or properties": {
			cluster: cluster(func(c *clusterv1.ManagedCluster) { c.Status = clusterv1.ManagedClusterStatus{} }),
			want:    profile(func(p *inventoryv1alpha1.ClusterProfile) { p.Status = inventoryv1alpha1.ClusterProfileStatus{} }),
		},
		"nothing changed: as it was, times too": {
			cluster: cluster(),
			current: profile(func(p *inventoryv1alpha1.ClusterProfile) { p.Status.Properties[0].LastObservedTime = early }),
			want:    profile(func(p *inventoryv1alpha1.ClusterProfile) { p.Status.Properties[0].LastObservedTime = early }),
		},
		"one value changed: its time alone is new": {
			cluster: cluster(),
			current: profile(func(p *inventoryv1alpha1.ClusterProfile) {
				p.Status.Properties[0] = inventoryv1alpha1.Property{Name: "a", Value: "0", LastObservedTime: early}
				p.Status.Properties[1].LastObservedTime = early
			}),
			want: profile(func(p *inventoryv1alpha1.ClusterProfile) { p.Status.Properties[1].LastObservedTime = early }),
		},
		"a property without a time, as upstream writes it: the time is set": {
			cluster: cluster(),
			current: profile(func(p *inventoryv1alpha1.ClusterProfile) {
				p.Status.Properties[0].LastObservedTime = metav1.Time{}
			}),
			want: profile(),
		},
		"a property without a claim is removed": {
			cluster: cluster(),
			current: profile(func(p *inventoryv1alpha1.ClusterProfile) {
				p.Status.Properties = append(p.Status.Properties,
					inventoryv1alpha1.Property{Name: "z", Value: "9", LastObservedTime: early})
			}),
			want: profile(),
		},
		"others' labels, annotations, finalizers, conditions and providers stay": {
			cluster: cluster(),
			current: profile(label("team", "x"), annotate("note", "y"), func(p *inventoryv1alpha1.ClusterProfile) {
				p.Finalizers = []string{"example.com/hold"}
				p.Status.Conditions = append([]metav1.Condition{ocmtest.Condition("Theirs", "True", "R", "")},
					p.Status.Conditions...)
				p.Status.AccessProviders = []inventoryv1alpha1.AccessProvider{{Name: "theirs"}}
				p.Status.CredentialProviders = []inventoryv1alpha1.CredentialProvider{{Name: "older"}}
			}),
			want: profile(label("team", "x"), annotate("note", "y"), func(p *inventoryv1alpha1.ClusterProfile) {
				p.Finalizers = []string{"example.com/hold"}
				p.Status.Conditions = append([]metav1.Condition{ocmtest.Condition("Theirs", "True", "R", "")},
					p.Status.Conditions...)
				p.Status.AccessProviders = []inventoryv1alpha1.AccessProvider{{Name: "theirs"}}
				p.Status.CredentialProviders = []inventoryv1alpha1.CredentialProvider{{Name: "older"}}
			}),
		},
		"our labels and name tampered with: repaired": {
			cluster: cluster(),
			current: profile(label("x-k8s.io/cluster-manager", "me"), label("open-cluster-management.io/cluster-name", "d"), label("multicluster.x-k8s.io/clusterset", ""),
				label("multicluster.x-k8s.io/inventory-member-id", ""),
				func(p *inventoryv1alpha1.ClusterProfile) { p.Spec.DisplayName = "other" }),
			want: profile(),
		},
		"the cluster is in no exclusive set: no label, not an empty one": {
			cluster: cluster(clusterLabel("cluster.open-cluster-management.io/clusterset", "")),
			current: profile(),
			want:    profile(func(p *inventoryv1alpha1.ClusterProfile) { delete(p.Labels, "multicluster.x-k8s.io/clusterset") }),
		},

		// Copied labels
		"an allowed label is copied and listed": {
			cluster: cluster(clusterLabel("example.com/zone", "z1")), allow: []string{"env", "example.com/*"},
			want: profile(label("env", "prod"), label("example.com/zone", "z1"), annotate(copied, "env,example.com/zone")),
		},
		"a pattern does not reach into another prefix": {
			cluster: cluster(clusterLabel("example.com/zone", "z1")), allow: []string{"*"},
			want: profile(label("env", "prod"), annotate(copied, "env")),
		},
		"a copied label changes with its source": {
			cluster: cluster(), allow: []string{"env"},
			current: profile(label("env", "test"), annotate(copied, "env")),
			want:    profile(label("env", "prod"), annotate(copied, "env")),
		},
		"another client's label is not taken over": {
			cluster: cluster(), allow: []string{"env"},
			current: profile(label("env", "theirs")),
			want:    profile(label("env", "theirs")),
		},
		"another client's label with the same value stays theirs": {
			cluster: cluster(), allow: []string{"env"},
			current: profile(label("env", "prod")),
			want:    profile(label("env", "prod")),
		},
		"the source is removed: so is the copy, and only the copy": {
			cluster: cluster(func(c *clusterv1.ManagedCluster) { delete(c.Labels, "env") }), allow: []string{"env", "team"},
			current: profile(label("env", "prod"), label("team", "theirs"), annotate(copied, "env"), annotate("note", "y")),
			want: profile(label("team", "theirs"), annotate("note", "y"),
				func(p *inventoryv1alpha1.ClusterProfile) { delete(p.Annotations, copied) }),
		},
		"a label no longer allowed is removed": {
			cluster: cluster(),
			current: profile(label("env", "prod"), annotate(copied, "env")),
			want:    profile(func(p *inventoryv1alpha1.ClusterProfile) { p.Annotations = map[string]string{} }),
		},
		"reserved labels are never copied": {
			cluster: cluster(
				clusterLabel("inventory.open-cluster-management.io/publish", "x"), clusterLabel("x-k8s.io/cluster-manager", "x"),
				clusterLabel("multicluster.x-k8s.io/clusterset", "x"),
				clusterLabel("multicluster.x-k8s.io/inventory-member-id", "x"), clusterLabel("kueue.x-k8s.io/q", "x"),
				clusterLabel("open-cluster-management.io/cluster-name", "x"), clusterLabel("app.kubernetes.io/managed-by", "x"),
				clusterLabel("app.kubernetes.io/instance", "x"), clusterLabel("open-cluster-management.io/other", "x")),
			allow: []string{"*/*"},
			// The member id is no copy: it is refused where another cluster has it.
			want: profile(label("open-cluster-management.io/other", "x"), label("multicluster.x-k8s.io/inventory-member-id", "x"),
				label("cluster.open-cluster-management.io/clusterset", "s"),
				annotate(copied, "cluster.open-cluster-management.io/clusterset,open-cluster-management.io/other")),
		},
		"an annotation that was made to list reserved labels removes none": {
			cluster: cluster(),
			current: profile(label("app.kubernetes.io/instance", "theirs"),
				annotate(copied, "app.kubernetes.io/instance,app.kubernetes.io/managed-by,,")),
			want: profile(label("app.kubernetes.io/instance", "theirs"),
				func(p *inventoryv1alpha1.ClusterProfile) { p.Annotations = map[string]string{} }),
		},

		// Conditions
		"the source condition is removed: so is ours": {
			cluster: cluster(func(c *clusterv1.ManagedCluster) { c.Status.Conditions = c.Status.Conditions[1:] }),
			current: profile(),
			want:    profile(func(p *inventoryv1alpha1.ClusterProfile) { p.Status.Conditions = p.Status.Conditions[1:] }),
		},
		"the profile's generation is what conditions were observed at": {
			cluster: cluster(),
			current: profile(func(p *inventoryv1alpha1.ClusterProfile) { p.Generation = 3 }),
			want: profile(func(p *inventoryv1alpha1.ClusterProfile) {
				p.Generation = 3
				p.Status.Conditions[0].ObservedGeneration, p.Status.Conditions[1].ObservedGeneration = 3, 3
			}),
		},
		"another status: since when the source says": {
			cluster: cluster(func(c *clusterv1.ManagedCluster) {
				c.Status.Conditions[0].Status, c.Status.Conditions[0].LastTransitionTime = "Unknown", later
			}),
			current: profile(),
			want: profile(func(p *inventoryv1alpha1.ClusterProfile) {
				p.Status.Conditions[0].Status, p.Status.Conditions[0].LastTransitionTime = "Unknown", later
			}),
		},
		"the same status, though the source says since later: unchanged": {
			cluster: cluster(func(c *clusterv1.ManagedCluster) { c.Status.Conditions[0].LastTransitionTime = later }),
			current: profile(), want: profile(),
		},
		"a message too long and a reason the API refuses are made to fit": {
			cluster: cluster(func(c *clusterv1.ManagedCluster) {
				c.Status.Conditions[0].Message, c.Status.Conditions[0].Reason = strings.Repeat("m", 5000), "no reason!"
			}),
			want: profile(func(p *inventoryv1alpha1.ClusterProfile) {
				p.Status.Conditions[0].Message = strings.Repeat("m", 1021) + "..."
				p.Status.Conditions[0].Reason = "ManagedClusterConditionAvailable"
			}),
		},

		// Access providers
		"our access provider is first, others' entries follow": {
			cluster: cluster(),
			ways: access.Decision{Proxy: access.ProviderState{Known: true,
				Provider: &inventoryv1alpha1.AccessProvider{Name: "open-cluster-management"}}},
			current: profile(func(p *inventoryv1alpha1.ClusterProfile) {
				p.Status.AccessProviders = []inventoryv1alpha1.AccessProvider{{Name: "theirs"}}
			}),
			want: profile(func(p *inventoryv1alpha1.ClusterProfile) {
				p.Status.AccessProviders = []inventoryv1alpha1.AccessProvider{{Name: "open-cluster-management"}, {Name: "theirs"}}
			}),
		},

		// Claims
		"invalid claims are left out alone": {
			cluster: cluster(func(c *clusterv1.ManagedCluster) {
				c.Status.ClusterClaims = append(c.Status.ClusterClaims,
					ocmtest.Claim("empty", ""), ocmtest.Claim("long", strings.Repeat("x", 1025)), ocmtest.Claim("fits", strings.Repeat("x", 1024)),
					ocmtest.Claim("twice", "1"), ocmtest.Claim("twice", "1"), ocmtest.Claim("", "v"),
					ocmtest.Claim(strings.Repeat("n", 254), "v"), ocmtest.Claim("bytes", "\xff"), ocmtest.Claim("\xfe", "v"))
			}),
			want: profile(func(p *inventoryv1alpha1.ClusterProfile) {
				p.Status.Properties = append(p.Status.Properties,
					inventoryv1alpha1.Property{Name: "fits", Value: strings.Repeat("x", 1024), LastObservedTime: later})
			}),
			problems: []string{
				`"" has no name`,
				`"\xfe" has a name that is not UTF-8`,
				`"bytes" has a value that is not UTF-8`,
				`"empty" has no value`,
				`"long" has a value of 1025 bytes, more than 1024`,
				`"` + strings.Repeat("n", 77) + `..." has a name of 254 bytes, more than 253`,
				`other invalid claims: 1`,
			},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			about := func(profile *inventoryv1alpha1.ClusterProfile) Observed {
				o := situation()
				o.Cluster, o.Profile, o.Access = asCached(test.cluster), profile.DeepCopy(), test.ways
				if profile != nil && profile.ManagedFields == nil {
					o.Profile.ManagedFields = []metav1.ManagedFieldsEntry{{Subresource: "authorship"}} // we wrote all properties
				}
				return o
			}
			before := test.current.DeepCopy()
			got, problems := Desired(about(test.current), test.allow, later)
			if diff := cmp.Diff(test.want, got, cmpopts.EquateEmpty(), unmanaged); diff != "" {
				t.Errorf("profile (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(test.problems, problems, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("claims left out (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(before, test.current); diff != "" {
				t.Errorf("the profile as it was has been changed (-before +after):\n%s", diff)
			}
			again, _ := Desired(about(got), test.allow, metav1.Now())
			if diff := cmp.Diff(got, again, cmpopts.EquateEmpty(), unmanaged); diff != "" {
				t.Errorf("a second look wants something else (-first +second):\n%s", diff)
			}
		})
	}
}

// The cache of Namespaces may lag behind that of ClusterProfiles, or lead it.
func TestAProfileNeedsNoCachedNamespace(t *testing.T) {
	o := situation()
	want, _ := Desired(o, nil, early)
	o.Namespace = nil
	got, _ := Desired(o, nil, early)
	if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("a new profile (-want +got):\n%s", diff)
	}
	o.Profile = want
	if got := NextStep(o, selection.Result{Member: true}); got != Update {
		t.Errorf("the next step is %d, want %d", got, Update)
	}
	got, _ = Desired(o, nil, later)
	if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("a profile that is there (-want +got):\n%s", diff)
	}
}

func TestChanges(t *testing.T) {
	profile := func(change func(*inventoryv1alpha1.ClusterProfile)) *inventoryv1alpha1.ClusterProfile {
		p := &inventoryv1alpha1.ClusterProfile{
			ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"keep": "1", "drop": "2"}},
			Spec:       inventoryv1alpha1.ClusterProfileSpec{DisplayName: "c"},
			Status: inventoryv1alpha1.ClusterProfileStatus{
				Version:    inventoryv1alpha1.ClusterVersion{Kubernetes: "v1"},
				Conditions: []metav1.Condition{ocmtest.Condition("Theirs", "True", "R", "")},
				Properties: []inventoryv1alpha1.Property{{Name: "a", Value: "1", LastObservedTime: early}},
			},
		}
		if change != nil {
			change(p)
		}
		return p
	}
	tests := map[string]struct {
		change           func(*inventoryv1alpha1.ClusterProfile)
		metadata, status string
	}{
		"nothing": {metadata: "null", status: "null"},
		"a label set, one changed, one removed": {
			change:   func(p *inventoryv1alpha1.ClusterProfile) { p.Labels = map[string]string{"keep": "3", "new": "4"} },
			metadata: `{"metadata":{"labels":{"drop":null,"keep":"3","new":"4"}}}`, status: "null",
		},
		"an annotation": {
			change:   func(p *inventoryv1alpha1.ClusterProfile) { p.Annotations = map[string]string{"a": "b"} },
			metadata: `{"metadata":{"annotations":{"a":"b"}}}`, status: "null",
		},
		"the name to show": {
			change:   func(p *inventoryv1alpha1.ClusterProfile) { p.Spec.DisplayName = "d" },
			metadata: `{"spec":{"displayName":"d"}}`, status: "null",
		},
		"the version is removed": {
			change:   func(p *inventoryv1alpha1.ClusterProfile) { p.Status.Version.Kubernetes = "" },
			metadata: "null", status: `{"status":{"version":{"kubernetes":null}}}`,
		},
		"the last property is removed": {
			change:   func(p *inventoryv1alpha1.ClusterProfile) { p.Status.Properties = nil },
			metadata: "null", status: `{"status":{"properties":[]}}`,
		},
		"a condition more: the others come along, as the list is replaced": {
			change: func(p *inventoryv1alpha1.ClusterProfile) {
				p.Status.Conditions = append(p.Status.Conditions, ocmtest.Condition("Joined", "True", "R", ""))
			},
			metadata: "null",
			status: `{"status":{"conditions":[{"type":"Theirs","status":"True","lastTransitionTime":"2026-01-02T03:04:05Z","reason":"R","message":""},` +
				`{"type":"Joined","status":"True","lastTransitionTime":"2026-01-02T03:04:05Z","reason":"R","message":""}]}}`,
		},
		"an access provider more: the whole list, and nothing else": {
			change: func(p *inventoryv1alpha1.ClusterProfile) {
				p.Status.AccessProviders = []inventoryv1alpha1.AccessProvider{{Name: "x"}}
			},
			metadata: "null", status: `{"status":{"accessProviders":[{"name":"x","cluster":{"server":""}}]}}`,
		},
		"what is not ours to write is not written": {
			change: func(p *inventoryv1alpha1.ClusterProfile) {
				p.Status.CredentialProviders = []inventoryv1alpha1.AccessProvider{{Name: "x"}}
				p.Finalizers = []string{"x"}
				p.Spec.ClusterManager.Name = "x"
			},
			metadata: "null", status: "null",
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			encode := func(changes map[string]any) string {
				data, err := json.Marshal(changes)
				if err != nil {
					t.Fatal(err)
				}
				return string(data)
			}
			current, desired := profile(nil), profile(test.change)
			if diff := cmp.Diff(test.metadata, encode(MetadataChanges(current, desired))); diff != "" {
				t.Errorf("metadata (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(test.status, encode(StatusChanges(current, desired))); diff != "" {
				t.Errorf("status (-want +got):\n%s", diff)
			}
		})
	}
}
