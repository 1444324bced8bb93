package report

import (
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"open-cluster-management.io/cluster-inventory-addon/pkg/contract"
	"open-cluster-management.io/cluster-inventory-addon/pkg/spoke/property"
)

// The lists in the condition's message share its 1024 bytes; entries that do not
// fit are counted.
const (
	leftOutBytes   = 350
	cutOffBytes    = 270
	othersBytes    = 40 // and what cutOffBytes leaves
	spokeOnlyBytes = 60
)

// limitSetting is the field of the Klusterlet that sets the limit.
const limitSetting = "spec.registrationConfiguration.clusterClaimConfiguration.maxCustomClusterClaims"

// The reasons in the claim of a property that it is not published.
const (
	whyNotWritten     = "its ClusterClaim could not be written yet; the agent's log says why"
	whyTaken          = "a ClusterClaim of that name was created by another client"
	whyClaimSpokeOnly = "its ClusterClaim is labeled " + contract.LabelSpokeOnly
)

// Situation is what the condition and the events depend on, apart from properties and claims.
type Situation struct {
	API      property.API
	Reserved property.Reserved
	Limit    Limit

	// Stopped says that publishing has ended.
	Stopped bool

	// Problem is reported before anything else, unless it is empty.
	Problem string
}

// observed is what the condition and the events depend on.
type observed struct {
	Situation
	properties []property.Property
	claims     []claim
}

// outcome is the result of comparing properties with claims.
type outcome struct {
	total     int
	published int
	cutOff    int // of the published ones
	spokeOnly []string
	leftOut   []string // "name (reason)"
	cut       cut
}

// desiredCondition returns the condition without its transition time. The message
// does not depend on the order of properties and claims.
func desiredCondition(seen observed) metav1.Condition {
	condition := metav1.Condition{Type: contract.ConditionPropertiesPublished, Status: metav1.ConditionFalse}
	switch {
	case seen.Stopped:
		condition.Reason = contract.ReasonPublishingStopped
		condition.Message = "The addon is being removed; its ClusterClaims are deleted."
	case seen.Problem != "":
		condition.Reason = contract.ReasonHubKubeconfigInvalid
		condition.Message = seen.Problem
	case seen.API.Absent:
		condition.Reason = contract.ReasonPropertyAPIMissing
		condition.Message = "The cluster has no CustomResourceDefinition " + property.CRDName +
			"; publishing starts once it is installed."
	case !seen.API.Served():
		condition.Reason = contract.ReasonPropertyAPIMissing
		condition.Message = fmt.Sprintf("CustomResourceDefinition %s serves none of the versions %s; "+
			"published claims stay as they are until it does.",
			property.CRDName, strings.Join(property.Versions(), ", "))
	default:
		result := compare(seen)
		condition.Reason = result.reason()
		condition.Message = result.message(seen.Limit)
		if condition.Reason == contract.ReasonPublished {
			condition.Status = metav1.ConditionTrue
		}
	}
	return condition
}

// compare compares properties with claims.
func compare(seen observed) outcome {
	claims := claimsByName(seen.claims)
	result := outcome{total: len(seen.properties), cut: predictCut(seen.claims, seen.Limit)}
	for _, p := range seen.properties {
		switch reason := whyNot(p, seen.Reserved, claims); reason {
		case "":
			result.published++
			if _, isCut := slices.BinarySearch(result.cut.ours, p.Name); isCut {
				result.cutOff++
			}
		case string(property.ObstacleSpokeOnly):
			result.spokeOnly = append(result.spokeOnly, p.Name)
		default:
			result.leftOut = append(result.leftOut, p.Name+" ("+reason+")")
		}
	}
	slices.Sort(result.spokeOnly)
	slices.Sort(result.leftOut)
	return result
}

func claimsByName(list []claim) map[string]claim {
	claims := make(map[string]claim, len(list))
	for _, c := range list {
		claims[c.name] = c
	}
	return claims
}

// whyNot returns why a property is not published, or "" if it is. A claim with an
// older value counts as published: it is about to be updated, and the message must
// not change when a value does.
func whyNot(p property.Property, reserved property.Reserved, claims map[string]claim) string {
	if obstacle := p.Obstacle(reserved); obstacle != property.ObstacleNone {
		return string(obstacle)
	}
	c, made := claims[p.Name]
	switch {
	case !made:
		return whyNotWritten
	case !c.ours:
		return whyTaken
	case c.spokeOnly:
		return whyClaimSpokeOnly
	default:
		return ""
	}
}

func (o outcome) reason() string {
	switch {
	case len(o.leftOut) > 0:
		return contract.ReasonPartiallyPublished
	case o.cut.matters():
		return contract.ReasonClaimLimitExceeded
	default:
		return contract.ReasonPublished
	}
}

func (o outcome) message(limit Limit) string {
	sentences := []string{o.count()}
	if len(o.leftOut) > 0 {
		sentences = append(sentences, "Left out: "+list(o.leftOut, leftOutBytes)+".")
	}
	if o.cut.matters() {
		sentences = append(sentences, o.aboutLimit(limit))
	}
	if len(o.spokeOnly) > 0 {
		sentences = append(sentences, "Kept on the spoke by label: "+list(o.spokeOnly, spokeOnlyBytes)+".")
	}
	return strings.Join(sentences, " ")
}

func (o outcome) count() string {
	switch {
	case o.total == 0:
		return "There are no properties."
	case o.published == o.total:
		return fmt.Sprintf("%s published.", properties(o.total))
	default:
		return fmt.Sprintf("%d of %s published.", o.published, properties(o.total))
	}
}

func properties(n int) string { return counted(n, "property", "properties") }

func counted(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}

// matters reports whether the limit concerns this addon: it cuts off a claim of ours, or one
// of others in favor of ours.
func (c cut) matters() bool { return len(c.ours) > 0 || c.crowding }

func (o outcome) aboutLimit(limit Limit) string {
	var names []string
	left := cutOffBytes + othersBytes
	if len(o.cut.ours) > 0 {
		ours := list(o.cut.ours, cutOffBytes)
		left -= len(ours)
		names = append(names, ours)
	}
	if len(o.cut.others) > 0 {
		names = append(names, "the claims "+list(o.cut.others, left)+" of others")
	}
	return fmt.Sprintf("The klusterlet reports %s, which cuts off %s: "+
		"set the Klusterlet's %s, and this addon's claim limit, to %d or more.",
		counted(limit.Custom, "custom claim", "custom claims"), strings.Join(names, ", and "), limitSetting, o.cut.custom)
}

// list joins the entries that fit into maxBytes and counts the others.
func list(entries []string, maxBytes int) string {
	const separator = ", "
	var text string
	for i, entry := range entries {
		next := entry
		if i > 0 {
			next = text + separator + entry
		}
		rest := fmt.Sprintf("%sand %d more", separator, len(entries)-i)
		if len(next)+len(rest) > maxBytes {
			if i == 0 {
				return fmt.Sprintf("%d", len(entries))
			}
			return text + rest
		}
		text = next
	}
	return text
}
