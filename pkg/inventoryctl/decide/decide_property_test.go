package decide

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	inventoryv1alpha1 "sigs.k8s.io/cluster-inventory-api/apis/v1alpha1"

	"open-cluster-management.io/cluster-inventory-addon/internal/apitest/ocmtest"
	"open-cluster-management.io/cluster-inventory-addon/pkg/inventoryctl/settings"
)

func TestExplainProperty(t *testing.T) {
	facts := func(changes ...func(*PropertyFacts)) PropertyFacts {
		pair := published()
		p := PropertyFacts{
			Property: "region.example", Cluster: "c", ManagedCluster: pair.Facts.Cluster, Addon: pair.Facts.Addon,
			Profiles: []*inventoryv1alpha1.ClusterProfile{pair.Facts.Profile}, Settings: settings.Default(),
		}
		p.ManagedCluster.Status.ClusterClaims = []clusterv1.ManagedClusterClaim{{Name: "region.example", Value: "north"}}
		p.Profiles[0].Status.Properties = []inventoryv1alpha1.Property{
			{Name: "region.example", Value: "north", LastObservedTime: metav1.NewTime(now)},
		}
		for _, change := range changes {
			change(&p)
		}
		return p
	}
	noClaim := func(p *PropertyFacts) {
		p.ManagedCluster.Status.ClusterClaims, p.Profiles[0].Status.Properties = nil, nil
	}
	agent := func(status, reason, message string) func(*PropertyFacts) {
		return func(p *PropertyFacts) {
			p.Addon.Status.Conditions = []metav1.Condition{ocmtest.Condition("PropertiesPublished", status, reason, message)}
		}
	}
	tests := map[string]struct {
		p     PropertyFacts
		steps string // as in TestExplainPair, of what there is
		wrong string
		text  string
	}{
		"it is everywhere": {p: facts(), steps: "dddd"},
		"it is beyond the limit of the manager that runs": {
			p: facts(func(p *PropertyFacts) {
				p.Settings.Limits.Properties = 1
				p.ManagedCluster.Status.ClusterClaims = append(p.ManagedCluster.Status.ClusterClaims,
					clusterv1.ManagedClusterClaim{Name: "a.example", Value: "first"})
				p.Profiles[0].Status.Properties = nil
			}),
			steps: "ddmm", wrong: "limits", text: "the claim is left out of ClusterProfiles",
		},
		"the agent left it out": {
			p: facts(noClaim, agent("False", "PartiallyPublished",
				"1 of 2 properties published. Left out: region.example (a ClusterClaim of that name was created by another client).")),
			steps: "mmm", wrong: "agent", text: "created by another client",
		},
		"the agent left another out, whose name is longer": {
			p: facts(agent("False", "PartiallyPublished",
				"1 of 2 properties published. Left out: my.region.example (no), region.example.com (no).")), steps: "dddd",
		},
		"it stays on the spoke": {
			p: facts(noClaim,
				agent("True", "Published", "0 of 1 property published. Kept on the spoke by label: region.example.")),
			steps: "mmm", wrong: "agent", text: "Kept on the spoke by label",
		},
		"the spoke has no API for it": {
			p:     facts(noClaim, agent("False", "ClusterPropertyAPIMissing", "No CRD.")),
			steps: "mmm", wrong: "agent", text: "No CRD.",
		},
		"there is no such property": {
			p: facts(noClaim), steps: "dmm", wrong: "claim", text: "is there a ClusterProperty of that name on the spoke?",
		},
		"the claim is there twice": {
			p: facts(func(p *PropertyFacts) {
				claims := &p.ManagedCluster.Status.ClusterClaims
				*claims = append(*claims, (*claims)[0])
				p.Profiles[0].Status.Properties = nil
			}),
			steps: "ddmm", wrong: "limits", text: "occurs 2 times",
		},
		"the profile lags behind": {
			p:     facts(func(p *PropertyFacts) { p.ManagedCluster.Status.ClusterClaims[0].Value = "south" }),
			steps: "dddm", wrong: "profile ns", text: `still has the value "north"`,
		},
		"no namespace sees the cluster": {
			p:     facts(func(p *PropertyFacts) { p.Profiles = nil }),
			steps: "dddm", wrong: "profile", text: "no namespace that was checked",
		},
		"a tenant sees it in the profile, and where other profiles are is not visible": {
			p: facts(func(p *PropertyFacts) {
				p.ManagedCluster, p.Addon, p.HiddenCluster, p.HiddenAddon, p.OnlyIn = nil, nil, true, true, "ns"
			}),
			steps: "vvdv",
		},
		"a value that steers the terminal is escaped": {
			p: facts(func(p *PropertyFacts) {
				p.ManagedCluster.Status.ClusterClaims[0].Value = "\x1b[2J"
			}),
			steps: "dddm", wrong: "profile ns", text: `"north"`,
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			e := ExplainProperty(test.p)
			var steps strings.Builder
			for _, step := range e.Steps {
				steps.WriteString(map[State]string{Done: "d", Missing: "m", NotVisible: "v", NotConfigured: "c"}[step.State])
				if strings.Contains(step.Text, "\x1b") {
					t.Errorf("not escaped: %q", step.Text)
				}
			}
			wrong := Finding{}
			if first := FirstWrong(e.Steps); first != nil {
				wrong = *first
			}
			if steps.String() != test.steps || wrong.Name != test.wrong || !strings.Contains(wrong.Text, test.text) {
				t.Errorf("steps %s, first missing %q, want %s, %q with %q:\n%+v",
					steps.String(), wrong.Name, test.steps, test.wrong, test.text, e.Steps)
			}
		})
	}
}

func TestNamesAreFoundAsAWhole(t *testing.T) {
	for text, want := range map[string]bool{
		"Left out: a.b (no).": true, "Cut off: a.b, c.": true, "Kept: a.b.": true, "a.b": true,
		"x.a.b": false, "a.bc": false, "a.b.c": false, "a-b": false, "": false, "a.b/x and a.b": true,
	} {
		if got := names(text, "a.b"); got != want {
			t.Errorf("names(%q) = %t", text, got)
		}
	}
}
