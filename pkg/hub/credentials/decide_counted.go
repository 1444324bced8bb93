package credentials

import (
	"slices"
	"time"

	"open-cluster-management.io/cluster-inventory-addon/pkg/contract"
	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/credentials/source"
)

// countedAs is what an account with these problems counts as: the first reason, as in the
// condition, or that its token is copied wherever it belongs. known is false for one of
// which nothing is known.
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

// countedEnd is when a token that is copied ends; zero is that there is none, or that its
// end is not known.
func countedEnd(found source.Finding, now time.Time) time.Time {
	if found = found.At(now); found.Problem != "" || found.Digest == (source.Digest{}) {
		return time.Time{}
	}
	return found.Expires
}
