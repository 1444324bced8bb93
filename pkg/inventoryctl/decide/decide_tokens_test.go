package decide

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	authv1beta1 "open-cluster-management.io/managed-serviceaccount/apis/authentication/v1beta1"

	"open-cluster-management.io/cluster-inventory-addon/internal/facttest"
	"open-cluster-management.io/cluster-inventory-addon/pkg/inventoryctl/settings"
)

// TestTokens has one account in namespace "ns" for each case.
func TestTokens(t *testing.T) {
	expired := func(a *authv1beta1.ManagedServiceAccount) { *a.Status.ExpirationTimestamp = metav1.NewTime(now) }
	for name, test := range map[string]struct {
		facts         PairFacts
		account       func(*authv1beta1.ManagedServiceAccount)
		hidden, needs bool // profiles are hidden; accounts must name namespaces
		state         CellState
		why           string
		unnamed       int
	}{
		"all is well": {facts: published(), state: Copied},
		"the cluster is not published there": {
			facts: published(without, func(p *PairFacts) { p.Facts.Addon = nil }), state: Withheld,
			why: "the cluster does not have the addon cluster-inventory",
		},
		"no set selects the cluster": {
			facts: published(without, func(p *PairFacts) { p.Facts.Bindings = nil }), state: Withheld,
			why: "the cluster is in no ManagedClusterSet that is bound and published here",
		},
		"the profile is left over": {
			facts: published(func(p *PairFacts) { p.Facts.Addon = nil }), state: Withheld,
			why: "the cluster does not have the addon cluster-inventory",
		},
		"the profile cannot be written": {
			facts: published(without, says("ProfilesSynced", "False", "WriteFailed", "Quota.")), state: Failed,
			why: "the cluster is selected, but has no ClusterProfile: Quota. (WriteFailed)",
		},
		"the token has expired": {
			facts: published(), account: expired, state: Failed,
			why: "its token has expired at 2026-03-03T03:03:03Z; see why the agent of managed-serviceaccount does not refresh it " +
				"(InvalidSource)",
		},
		"the copy cannot be written": {
			facts: published(says("CredentialsSynced", "False", "CopyFailed",
				"Account a could not be copied in ns: quota. Account b is not copied in ns: secret.")),
			state: Failed, why: "Account a could not be copied: quota.",
		},
		"another account's copy cannot be written": {
			facts: published(says("CredentialsSynced", "False", "CopyFailed", "Account b could not be copied in ns: quota.")),
			state: Copied,
		},
		"addons are hidden": {
			facts: published(func(p *PairFacts) { p.Facts.Hidden.Addons, p.Facts.Addon = true, nil }), state: Unknown,
			why: "the cluster is not known to you: you may not read ManagedClusterAddOns",
		},
		"profiles are hidden": {
			facts: published(without), hidden: true, state: Unknown,
			why: "the cluster is not known to you: you may not read ClusterProfiles",
		},
		"the manager has said nothing": {
			facts: published(func(p *PairFacts) {
				p.Facts.Addon.Status.Conditions = p.Facts.Addon.Status.Conditions[:2]
			}),
			state: Unknown, why: "the manager has not reported that it copies tokens",
		},
		"the account names another namespace": {
			facts:   published(),
			account: func(a *authv1beta1.ManagedServiceAccount) { *a = *facttest.Account("a", "elsewhere") },
			state:   "elsewhere",
		},
		"the account names none": {
			facts:   published(),
			account: func(a *authv1beta1.ManagedServiceAccount) { a.Annotations = nil }, state: Copied,
		},
		"the account names none, and must": {
			facts: published(), needs: true, unnamed: 1,
			account: func(a *authv1beta1.ManagedServiceAccount) { a.Annotations = nil },
		},
		"the account is of a cluster that is not wanted": {
			facts:   published(),
			account: func(a *authv1beta1.ManagedServiceAccount) { a.Namespace = "d" },
		},
	} {
		t.Run(name, func(t *testing.T) {
			a := facttest.Account("a", "ns")
			if test.account != nil {
				test.account(a)
			}
			of := settings.Default()
			of.RequireTarget = test.needs
			source := TokenSource{
				Source: pairs{types.NamespacedName{Namespace: "ns", Name: "c"}: test.facts.Facts}, Settings: of,
				HiddenProfiles: test.hidden,
			}
			got := TokensOf(source, []*authv1beta1.ManagedServiceAccount{a}, []string{"ns"}, []string{"c"}, "", now)
			want := []Cell{{"ns", "a", "c", test.state, test.why}}
			switch test.state {
			case "":
				want = []Cell{}
			case "elsewhere": // of which this test knows nothing
				want = []Cell{{"elsewhere", "a", "c", Withheld, "the cluster is not a ManagedCluster"}}
			}
			if diff := cmp.Diff(want, got.Cells); diff != "" || got.Unnamed != test.unnamed {
				t.Errorf("%d unnamed, cells (-want +got):\n%s", got.Unnamed, diff)
			}
			if len(got.Cells) == 1 && len(got.Rows) != 1 {
				t.Errorf("rows %+v", got.Rows)
			}
		})
	}
}

func TestTokensAreCountedByNamespaceAndAccount(t *testing.T) {
	other := facttest.Account("a", "ns,other")
	other.Namespace = "d"
	accounts := []*authv1beta1.ManagedServiceAccount{other, facttest.Account("b", "ns"), facttest.Account("a", "ns")}
	source := TokenSource{Source: pairs{{Namespace: "ns", Name: "c"}: published().Facts}, Settings: settings.Default()}
	got := TokensOf(source, accounts, nil, []string{"c", "d"}, "", now)
	want := []TokenRow{
		{Namespace: "ns", Account: "a", Copied: 1, Withheld: 1}, {Namespace: "ns", Account: "b", Copied: 1},
		{Namespace: "other", Account: "a", Withheld: 1},
	}
	if diff := cmp.Diff(want, got.Rows); diff != "" {
		t.Errorf("rows (-want +got):\n%s", diff)
	}
	if got := TokensOf(source, accounts, nil, []string{"c", "d"}, "other", now); len(got.Rows) != 1 {
		t.Errorf("of one namespace: %+v", got.Rows)
	}
}
