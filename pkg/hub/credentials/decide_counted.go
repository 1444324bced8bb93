package credentials

import (
	"slices"
	"time"

	"open-cluster-management.io/cluster-inventory-addon/pkg/contract"
	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/credentials/bearer"
	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/credentials/source"
)

// countedAs returns the state under which an account with these problems is counted: the
// first reason, as in the condition, or that its token is copied wherever it belongs. known
// is false for an account about which nothing is known.
func countedAs(problems []problem, known bool) string {
	if !known {
		return ""
	}
	for _, reason := range order {
		if slices.ContainsFunc(problems, func(p problem) bool { return p.reason == reason }) {
			return reason
		}
	}
	return contract.ReasonCopied
}

// countedEnd returns when a copied token expires; zero if there is none, or if its expiry
// is unknown.
func countedEnd(found source.Finding, now time.Time) time.Time {
	if found = found.At(now); found.Problem != "" || found.Digest == (bearer.Digest{}) {
		return time.Time{}
	}
	return found.Expires
}
