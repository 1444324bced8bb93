package decide

import (
	"cmp"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	authv1beta1 "open-cluster-management.io/managed-serviceaccount/apis/authentication/v1beta1"

	"open-cluster-management.io/cluster-inventory-addon/pkg/contract"
	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/credentials"
	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/selection/rule"
	"open-cluster-management.io/cluster-inventory-addon/pkg/inventoryctl/settings"
	"open-cluster-management.io/cluster-inventory-addon/pkg/kube"
)

// Copied means that the token of an account is copied to the namespace.
const Copied CellState = "copied"

// TokenRow summarizes the accounts of one name that name one namespace, each of another cluster.
type TokenRow struct {
	Namespace string `json:"namespace"`
	Account   string `json:"account"`
	Copied    int    `json:"copied"`
	Withheld  int    `json:"withheld"`
	Failed    int    `json:"failed"`
	Unknown   int    `json:"unknown"`
}

// Tokens says which namespaces have tokens of which clusters: who can log in there.
type Tokens struct {
	Clusters []string   `json:"clusters"`
	Rows     []TokenRow `json:"accounts"`

	// Cells are by namespace, account and cluster: one for each account and namespace that it names.
	Cells []Cell `json:"cells"`

	// Unnamed is how many accounts name no namespace, so that their tokens are copied to none.
	Unnamed    int      `json:"unnamed"`
	NotVisible []string `json:"notVisible,omitempty"`
}

// TokenSource has the facts of a hub (gather.Snapshot).
type TokenSource struct {
	Source

	Settings       settings.Settings
	HiddenProfiles bool
}

// TokensOf decides about every account of the clusters in every namespace that it names, or that
// is given if it names none and the manager needs no names.
func TokensOf(
	source TokenSource, accounts []*authv1beta1.ManagedServiceAccount, namespaces, clusters []string, scope string,
	now time.Time,
) Tokens {
	t := Tokens{Clusters: clusters, Rows: []TokenRow{}, Cells: []Cell{}}
	for _, account := range accounts {
		if _, ok := slices.BinarySearch(clusters, account.Namespace); !ok {
			continue
		}
		named, does := credentials.Named(account)
		if !does && !source.Settings.RequireTarget {
			named = namespaces
		} else if len(named) == 0 {
			t.Unnamed++
		}
		for _, namespace := range named {
			if scope != "" && namespace != scope {
				continue
			}
			if cell, ok := source.tokenCell(account, namespace, now); ok {
				t.Cells = append(t.Cells, cell)
			}
		}
	}
	slices.SortFunc(t.Cells, func(a, b Cell) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Account, b.Account),
			cmp.Compare(a.Cluster, b.Cluster))
	})
	for _, cell := range t.Cells {
		last := len(t.Rows) - 1
		if last < 0 || t.Rows[last].Namespace != cell.Namespace || t.Rows[last].Account != cell.Account {
			t.Rows = append(t.Rows, TokenRow{Namespace: cell.Namespace, Account: cell.Account})
			last++
		}
		t.Rows[last].count(cell.State)
	}
	return t
}

func (r *TokenRow) count(state CellState) {
	switch state {
	case Copied:
		r.Copied++
	case Withheld:
		r.Withheld++
	case Failed:
		r.Failed++
	default:
		r.Unknown++
	}
}

// tokenCell decides about an account in a namespace. ok is false if it is not to be copied there.
func (s TokenSource) tokenCell(
	account *authv1beta1.ManagedServiceAccount, namespace string, now time.Time,
) (cell Cell, ok bool) {
	pair := types.NamespacedName{Namespace: namespace, Name: account.Namespace}
	facts := s.Facts(pair)
	_, result := rule.Decide(pair.Name, facts)
	preview := credentials.PreviewOf(account, namespace, s.Settings.RequireTarget, result, facts.Profile, now)
	if !preview.Wanted {
		return Cell{}, false
	}
	cell = cellOf(pair, facts, s.HiddenProfiles)
	cell.Account = account.Name
	switch {
	case cell.State == NotSelected:
		cell.State, cell.Why = Withheld, "the cluster "+cell.Why
	case cell.State != Published:
		cell.Why = "the cluster " + cell.Why
	case preview.Reason == contract.ReasonTargetNotEntitled:
		cell.State, cell.Why = Withheld, preview.Why
	case preview.Reason == contract.ReasonSelectionUnknown:
		cell.State, cell.Why = Unknown, preview.Why
	case preview.Reason != "":
		cell.State, cell.Why = Failed, preview.Why+" ("+preview.Reason+")"
	default:
		cell.State, cell.Why = reportedCopy(facts, []string{account.Name}, namespace)
	}
	cell.Why = kube.Shorten(cell.Why, MaxMessageBytes)
	return cell, true
}

// reportedCopy is what the cluster's addon reports about accounts that should be copied.
func reportedCopy(facts rule.Facts, accounts []string, namespace string) (CellState, string) {
	synced := ConditionOf(facts.Addon, contract.ConditionCredentialsSynced)
	switch {
	case facts.Hidden.Addons:
		return Unknown, "you may not read ManagedClusterAddOns, which show whether the token is copied"
	case synced == nil:
		return Unknown, "the manager has not reported that it copies tokens"
	case synced.Status == metav1.ConditionFalse:
		if why := aboutAccounts(synced.Message, accounts, namespace); why != "" {
			return Failed, why
		}
	}
	return Copied, ""
}
