package report

import (
	"fmt"

	"k8s.io/apimachinery/pkg/types"

	"open-cluster-management.io/cluster-inventory-addon/pkg/contract"
	"open-cluster-management.io/cluster-inventory-addon/pkg/spoke/property"
)

// The reasons of the events on ClusterProperties whose claim does not bring their value to the hub. All
// others are in notPublished, and all are in the table of docs/events.md.
const (
	reasonClaimOutdated = "ClaimOutdated"
	reasonClaimLimit    = contract.ReasonClaimLimitExceeded // that of the condition, too
)

// whyOutdated is why the hub has another value than the property.
const whyOutdated = "its ClusterClaim has another value"

// topic is what there is one event about at a time.
type topic struct {
	uid    types.UID // of the property
	reason string
}

// notice is what the owner of a property must know. Its text contains nothing that a spoke's users
// wrote.
type notice struct {
	name string
	why  string // in notPublished, or empty
	topic
}

// desiredNotices returns a notice for each property that is not published, or not with its
// value; outdated are the names of the latter. A property that its owner labelled to stay on the
// spoke is as it must be.
func desiredNotices(seen observed, outdated map[string]bool) []notice {
	claims, beyond := claimsByName(seen.claims), map[string]bool{}
	for _, name := range predictCut(seen.claims, seen.Limit).ours {
		beyond[name] = true
	}
	var notices []notice
	for _, p := range seen.properties {
		why := whyNot(p, seen.Reserved, claims)
		reason := notPublished[why].reason
		switch {
		case reason != "" || p.SpokeOnly:
		case beyond[p.Name]:
			reason = reasonClaimLimit
		case outdated[p.Name]:
			reason = reasonClaimOutdated
		}
		if reason != "" {
			notices = append(notices, notice{p.Name, why, topic{p.UID, reason}})
		}
	}
	return notices
}

// outdatedClaims returns the names of the properties whose claims of ours have another value.
func outdatedClaims(seen observed) map[string]bool {
	claims, outdated := claimsByName(seen.claims), map[string]bool{}
	for _, p := range seen.properties {
		c, made := claims[p.Name]
		if made && c.value != p.Value && whyNot(p, seen.Reserved, claims) == "" {
			outdated[p.Name] = true
		}
	}
	return outdated
}

// notPublished are the events about properties that are not published: by why that is, their reason
// and, as the end of their note, what the owner may do. There is none about a property that its owner
// labelled to stay on the spoke.
var notPublished = map[string]struct{ reason, remedy string }{
	string(property.ObstacleReserved): {
		"NameReserved", " for other components. Create a ClusterProperty with another name.",
	},
	string(property.ObstacleEmpty):   {"ValueEmpty", ". Set spec.value."},
	string(property.ObstacleTooLong): {"ValueTooLong", ". Shorten spec.value."},
	string(property.ObstacleNotText): {"ValueNotText", ". Set spec.value to text."},
	whyTaken:                         {"ClaimTaken", ". Delete that ClusterClaim, or use another name."},
	whyClaimSpokeOnly:                {"ClaimSpokeOnly", ". Remove that label from the ClusterClaim."},
	whyNotWritten:                    {"ClaimNotWritten", "."},
}

// eventNote says why a property is not published, and what its owner may do.
func eventNote(n notice, seen observed) string {
	const prefix = "Not published to the hub: "
	switch n.reason {
	case reasonClaimLimit:
		return fmt.Sprintf("%sthe klusterlet reports %s, the first by name, and this is not among them. "+
			"Use a name that sorts before others, delete ClusterClaims that are not needed, or ask the administrator to set "+
			"the Klusterlet's %s, and this addon's claim limit, to %d or more.", prefix,
			counted(seen.Limit.Custom, "custom claim", "custom claims"), limitSetting,
			predictCut(seen.claims, seen.Limit).custom)
	case reasonClaimOutdated:
		return "Not published with this value: " + whyOutdated + ". " +
			"Stop what changes the ClusterClaim of that name; if nothing does, the agent's log says why."
	default:
		return prefix + n.why + notPublished[n.why].remedy
	}
}
