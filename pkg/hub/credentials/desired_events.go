package credentials

import (
	"open-cluster-management.io/cluster-inventory-addon/pkg/contract"
	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/credentials/report"
	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/notices"
	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/selection"
)

// refusedIn returns what to tell the consumers of each namespace that sees the cluster about an
// account's problems. Other namespaces must not even learn that there is such a cluster.
func refusedIn(o observed, problems []report.Problem) map[string][]notices.Problem {
	refused := map[string][]notices.Problem{}
	for _, t := range o.targets {
		if !t.wanted || t.selection.Answer != selection.Yes {
			continue
		}
		for _, p := range problems {
			if why := explanation(o.key.Name, p, t); why != "" {
				refused[t.namespace] = append(refused[t.namespace], notices.Problem{
					Cluster: o.key.Namespace, Reason: p.Reason, Why: why,
					HasProfile: t.profile.owner.UID != "", Bindings: t.selection.Bindings,
				})
			}
		}
	}
	return refused
}

// explanation returns what to tell the consumers of a namespace about a problem, or "" for
// nothing. Of objects outside their namespace, they learn only about the account and its token.
func explanation(account string, p report.Problem, t observedTarget) string {
	isEverywhere := p.Namespace == ""
	if !isEverywhere && p.Namespace != t.namespace {
		return ""
	}
	reason, text := p.Reason, p.Text
	switch reason {
	case contract.ReasonUpstreamSyncerOn:
		if text == "" {
			return "" // upstream's syncer makes the copies
		}
	case contract.ReasonNoTarget, contract.ReasonSelectionUnknown:
		return "" // the namespace is not named, or package inventory tells it
	case contract.ReasonTargetNotEntitled:
		if t.profile.why == "" {
			return "" // package inventory tells why there is no profile
		}
	case contract.ReasonNameCollision:
		text = "another account's copy has the same name, or would have it; the hub's administrator has to rename " +
			"one of the two accounts"
	case contract.ReasonCopyFailed, contract.ReasonContested:
		if isEverywhere {
			reason, text = contract.ReasonCopyFailed, "the manager cannot read the token on the hub; it keeps trying"
		}
	}
	return report.Sentence(reason, account, nil, text)
}
