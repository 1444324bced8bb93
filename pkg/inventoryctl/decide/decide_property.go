package decide

import (
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	inventoryv1alpha1 "sigs.k8s.io/cluster-inventory-api/apis/v1alpha1"

	"open-cluster-management.io/cluster-inventory-addon/pkg/contract"
	"open-cluster-management.io/cluster-inventory-addon/pkg/inventoryctl/settings"
	"open-cluster-management.io/cluster-inventory-addon/pkg/kube"
)

// PropertyFacts is what a reader may know about one property of a cluster.
type PropertyFacts struct {
	Property, Cluster string
	Settings          settings.Settings

	ManagedCluster *clusterv1.ManagedCluster
	HiddenCluster  bool
	Addon          *addonv1beta1.ManagedClusterAddOn
	HiddenAddon    bool

	// Profiles are those of the cluster that may be read. OnlyIn is the only namespace that
	// was read because the reader may not list all; empty otherwise.
	Profiles       []*inventoryv1alpha1.ClusterProfile
	HiddenProfiles bool
	OnlyIn         string
}

// IsVisible reports whether anything may be read.
func (p PropertyFacts) IsVisible() bool {
	return !p.HiddenCluster || !p.HiddenAddon || !p.HiddenProfiles
}

// Steps of a property, from the spoke to the profiles.
const (
	stepAgent = "agent"
	stepClaim = "claim"
	stepValid = "limits"
)

// maxValueBytes is how much of a property's value is shown.
const maxValueBytes = 120

// ExplainProperty explains, step by step, where a property of a cluster is present: in the
// agent's report, the ManagedCluster's claims, and the profiles.
func ExplainProperty(p PropertyFacts) Explanation {
	e := Explanation{Cluster: p.Cluster, Property: p.Property}
	claim, hasClaim := claimOf(p.ManagedCluster, p.Property)
	e.Steps = append(e.Steps, p.agentStep(hasClaim), p.claimStep(claim, hasClaim))
	if hasClaim {
		e.Steps = append(e.Steps, p.limitsStep())
	}
	e.Steps = append(e.Steps, p.profileSteps(claim, hasClaim)...)
	return e
}

func claimOf(cluster *clusterv1.ManagedCluster, name string) (value string, found bool) {
	if cluster == nil {
		return "", false
	}
	for _, claim := range cluster.Status.ClusterClaims {
		if claim.Name == name {
			return claim.Value, true
		}
	}
	return "", false
}

// agentStep returns what the agent reports about its properties. The report names only
// those with a problem.
func (p PropertyFacts) agentStep(hasClaim bool) Finding {
	describe := describeAddon(p.Cluster)
	published := ConditionOf(p.Addon, contract.ConditionPropertiesPublished)
	switch {
	case p.HiddenAddon:
		return notVisible(stepAgent, "ManagedClusterAddOns")
	case p.Addon == nil:
		return missing(stepAgent, "the cluster does not have the addon "+contract.AddonName, EnableAddon(p.Cluster))
	case published == nil:
		return missing(stepAgent, "the agent has not reported yet", describe)
	case published.Status != metav1.ConditionTrue && (names(published.Message, p.Property) || isGeneral(published.Reason)),
		!hasClaim && names(published.Message, p.Property):
		return missing(stepAgent, fmt.Sprintf("the agent reports %s: %s", kube.Shorten(published.Reason, MaxMessageBytes),
			kube.Shorten(published.Message, contract.MaxPropertyValueBytes)), describe)
	default:
		return done(stepAgent, "the agent reports no problem with it")
	}
}

// isGeneral reports whether a reason prevents every property from being published.
func isGeneral(reason string) bool {
	return slices.Contains([]string{
		contract.ReasonPropertyAPIMissing, contract.ReasonManagedKubeconfigInvalid, contract.ReasonPublishingStopped,
	}, reason)
}

// names reports whether a text contains a name, not just as a part of a longer one. The agent
// names the properties that it does not publish only in the message of its condition.
func names(text, name string) bool {
	isBetween := func(c rune) bool {
		return !strings.ContainsRune(".-/_", c) &&
			(c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9')
	}
	// A sentence ends with a dot.
	isName := func(word string) bool { return strings.TrimSuffix(word, ".") == name }
	return slices.ContainsFunc(strings.FieldsFunc(text, isBetween), isName)
}

func (p PropertyFacts) claimStep(value string, found bool) Finding {
	switch {
	case p.HiddenCluster:
		return notVisible(stepClaim, "ManagedClusters")
	case found:
		return done(stepClaim, "the ManagedCluster has the claim, with the value "+quote(value))
	default:
		return missing(stepClaim,
			"the ManagedCluster has no such claim: is there a ClusterProperty of that name on the spoke?",
			fmt.Sprintf("kubectl get clusterproperty %s # on the spoke", argument(p.Property)))
	}
}

// limitsStep reports whether the claim can be a property.
func (p PropertyFacts) limitsStep() Finding {
	trimmed, leftOut := p.Settings.Limits.Trim(p.ManagedCluster)
	if _, isKept := claimOf(trimmed, p.Property); isKept {
		text := "the claim can be a property of a ClusterProfile"
		if !p.Settings.Known {
			text += ", if the manager's limits are the defaults: you may not read its Deployment"
		}
		return done(stepValid, text)
	}
	return missing(stepValid, "the claim is left out of ClusterProfiles: "+
		kube.Shorten(strings.Join(leftOut, "; "), MaxMessageBytes),
		"kubectl get managedcluster "+p.Cluster+" -o yaml")
}

func (p PropertyFacts) profileSteps(claim string, hasClaim bool) []Finding {
	var steps []Finding
	for _, profile := range p.Profiles {
		steps = append(steps, p.profileStep(profile, claim, hasClaim))
	}
	if p.OnlyIn != "" || p.HiddenProfiles {
		steps = append(steps, notVisible(stepProfile, "the ClusterProfiles of other namespaces"))
	} else if len(p.Profiles) == 0 {
		steps = append(steps, missing(stepProfile, "no namespace that was checked has a ClusterProfile of the cluster",
			"kubectl inventory matrix "+p.Cluster))
	}
	return steps
}

func (p PropertyFacts) profileStep(profile *inventoryv1alpha1.ClusterProfile, claim string, hasClaim bool) Finding {
	name := stepProfile + " " + profile.Namespace
	describe := describeAddon(p.Cluster)
	if p.HiddenAddon {
		describe = fmt.Sprintf("kubectl inventory explain %s %s # as the hub's administrator, who sees more",
			p.Cluster, argument(p.Property))
	}
	for _, property := range profile.Status.Properties {
		if property.Name != p.Property {
			continue
		}
		if hasClaim && property.Value != claim {
			return missing(name, "the ClusterProfile still has the value "+quote(property.Value), describe)
		}
		return done(name, fmt.Sprintf("the ClusterProfile has the value %s, first seen at %s",
			quote(property.Value), property.LastObservedTime.UTC().Format("2006-01-02T15:04:05Z")))
	}
	return missing(name, "the ClusterProfile does not have the property", describe)
}

func quote(value string) string { return `"` + kube.Shorten(value, maxValueBytes) + `"` }
