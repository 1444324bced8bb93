package decide

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1beta2 "open-cluster-management.io/api/cluster/v1beta2"

	"open-cluster-management.io/cluster-inventory-addon/internal/facttest"
	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/selection/rule"
)

func TestExplainPair(t *testing.T) {
	bound := func(p *PairFacts) *clusterv1beta2.ManagedClusterSetBinding { return p.Facts.Bindings[0].Binding }
	otherSet := func(p *PairFacts) { p.Facts.Cluster.Labels = nil }
	tenant := func(p *PairFacts) {
		p.Facts.Hidden = rule.Hidden{Clusters: true, Addons: true, Sets: true, Namespaces: true}
		p.Facts.Cluster, p.Facts.Addon, p.Facts.Namespace, p.Facts.Bindings[0].Set = nil, nil, nil, nil
		p.HiddenAccounts, p.Accounts = true, nil
		p.Proxy.Hidden, p.Installation.Hidden = true, true
		p.Proxy.Object, p.Installation.Object = nil, nil
	}
	tests := map[string]struct {
		p PairFacts

		// steps: d done, m missing, v not visible, c not configured; of addon, accepted,
		// binding, set, placement, profile, access provider, token
		steps string
		wrong string // the first step that is missing
		text  string // part of its text
		fix   string
	}{
		"all is well": {p: published(), steps: "ddddcddd"},
		"all is well, by a Placement": {
			p: published(func(p *PairFacts) { p.Facts.Placements = placement("c") }), steps: "dddddddd",
		},
		"all is well, without cluster-proxy and accounts": {
			p: published(func(p *PairFacts) {
				p.Proxy.Object, p.Accounts, p.Facts.Profile.Status.AccessProviders = nil, nil, nil
			}),
			steps: "ddddcdcc",
		},
		"the addon is not on the cluster": {
			p: published(without, func(p *PairFacts) { p.Facts.Addon = nil }), steps: "mdddcmmm",
			wrong: "addon", text: "the cluster does not have the addon cluster-inventory",
			fix: "clusteradm addon enable --names cluster-inventory --clusters c",
		},
		"the addon is not on the hub": {
			p: published(without, func(p *PairFacts) { p.Facts.Addon, p.Installation.Object = nil, nil }), steps: "mdddcmmm",
			wrong: "addon", text: "does not have the addon",
			fix: InstallChart(),
		},
		"the cluster is not accepted": {
			p: published(without, func(p *PairFacts) { p.Facts.Cluster.Spec.HubAcceptsClient = false }), steps: "dmddcmmm",
			wrong: "accepted", text: "is not accepted by the hub", fix: "clusteradm accept --clusters c",
		},
		"nothing is bound": {
			p: published(without, func(p *PairFacts) { p.Facts.Bindings = nil }), steps: "ddmmcmmm",
			wrong: "binding", text: "no ManagedClusterSet is bound to the namespace",
			fix: "clusteradm clusterset bind s --namespace ns",
		},
		"nothing is bound, and the cluster is in no set": {
			p: published(without, otherSet, func(p *PairFacts) { p.Facts.Bindings = nil }), steps: "ddmmcmmm",
			wrong: "binding", fix: "clusteradm clusterset bind NAME --namespace ns",
		},
		"the binding must not publish": {
			p: published(without, func(p *PairFacts) {
				bound(p).Labels = map[string]string{"inventory.open-cluster-management.io/publish": "false"}
			}),
			steps: "ddmdcmmm", wrong: "binding", text: "is labeled inventory.open-cluster-management.io/publish=false",
			fix: "kubectl label managedclustersetbinding s -n ns inventory.open-cluster-management.io/publish-",
		},
		"the binding is not bound": {
			p: published(without, func(p *PairFacts) {
				bound(p).Status.Conditions[0].Status, bound(p).Status.Conditions[0].Message = metav1.ConditionFalse, "No such set."
			}),
			steps: "ddmdcmmm", wrong: "binding", text: `ManagedClusterSetBinding "s" is not bound: No such set.`,
			fix: "kubectl describe managedclustersetbinding s -n ns",
		},
		"the set does not select the cluster": {
			p: published(without, otherSet), steps: "dddmcmmm",
			wrong: "set", text: `the cluster is not selected by ManagedClusterSet "s"`,
			fix: "clusteradm clusterset set s --clusters c",
		},
		"the set's own selector does not select the cluster": {
			p: published(without, func(p *PairFacts) {
				p.Facts.Bindings[0].Set.Spec.ClusterSelector = clusterv1beta2.ManagedClusterSelector{
					SelectorType:  clusterv1beta2.LabelSelector,
					LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"env": "prod"}},
				}
			}),
			steps: "dddmcmmm", wrong: "set", fix: "kubectl get managedclusterset s -o yaml",
		},
		"a set's name that a shell would run is not part of a command": {
			p: published(without, func(p *PairFacts) {
				bound(p).Spec.ClusterSet, p.Facts.Bindings[0].Set = "$(reboot)", nil
			}),
			steps: "dddmcmmm", wrong: "set", text: `ManagedClusterSet "$(reboot)" does not exist`,
			fix: "kubectl get managedclusterset NAME -o yaml",
		},
		"the set is not exclusive, and only exclusive ones publish": {
			p: published(without, func(p *PairFacts) {
				p.Facts.ExclusiveSetsOnly = true
				p.Facts.Bindings[0].Set.Spec.ClusterSelector = clusterv1beta2.ManagedClusterSelector{
					SelectorType: "LabelSelector", LabelSelector: &metav1.LabelSelector{},
				}
			}),
			steps: "dddmcmmm", wrong: "set", text: `ManagedClusterSet "s" is not exclusive`,
			fix: "kubectl get managedclusterset s -o yaml",
		},
		"no Placement chooses the cluster": {
			p:     published(without, func(p *PairFacts) { p.Facts.Placements = placement("other") }),
			steps: "ddddmmmm", wrong: "placement", text: "the cluster is not chosen by a Placement",
			fix: "kubectl describe placements -n ns -l inventory.open-cluster-management.io/publish=true",
		},
		"the namespace requires a Placement": {
			p: published(without, func(p *PairFacts) {
				p.Facts.Namespace.Annotations = map[string]string{"inventory.open-cluster-management.io/require-placement": "true"}
			}),
			steps: "ddddmmmm", wrong: "placement", text: "requires a Placement",
			fix: "kubectl label placement PLACEMENT -n ns inventory.open-cluster-management.io/publish=true",
		},
		"the manager says why there is no profile": {
			p:     published(without, says("ProfilesSynced", "False", "UpstreamGateOn", "OCM's gate is on.")),
			steps: "ddddcmmm", wrong: "profile", text: "OCM's gate is on. (UpstreamGateOn)",
			fix: "kubectl describe managedclusteraddon cluster-inventory -n c",
		},
		"another cluster manager's profile is in its place": {
			p:     published(func(p *PairFacts) { p.Facts.Profile.Spec.ClusterManager.Name = "x\x1b[2J" }),
			steps: "ddddcmdm", wrong: "profile", text: `the cluster has a ClusterProfile of cluster manager "x\x1b[2J" in its place`,
			fix: "kubectl get clusterprofile c -n ns -o yaml",
		},
		"no ClusterProfile API": {
			p:     published(without, func(p *PairFacts) { p.NoProfileAPI = true }),
			steps: "ddddcmmm", wrong: "profile", text: "the hub serves no ClusterProfiles",
			fix: InstallChart(),
		},
		"no access provider, and the manager says why": {
			p: published(says("ProfilesSynced", "False", "AccessUnavailable", "No user server."), func(p *PairFacts) {
				p.Facts.Profile.Status.AccessProviders = nil
			}),
			steps: "ddddcdmd", wrong: "access provider", text: "no access provider: No user server.",
			fix: "kubectl describe managedclusteraddon cluster-inventory -n c",
		},
		"the account's token has expired": {
			p: published(func(p *PairFacts) {
				ends := metav1.NewTime(now)
				p.Accounts[0].Status.ExpirationTimestamp = &ends
			}),
			steps: "ddddcddm", wrong: "token", text: "account a is not copied: its token has expired at 2026-03-03T03:03:03Z",
			fix: "kubectl describe managedserviceaccount a -n c",
		},
		"the addon says that the account's Secret is another client's": {
			p: published(says("CredentialsSynced", "False", "ForeignSecret",
				"Account a is not copied in ns: a Secret c-a is there that is not ours.")),
			steps: "ddddcddm", wrong: "token", text: "a Secret c-a is there",
			fix: "kubectl describe managedclusteraddon cluster-inventory -n c",
		},
		"what the addon says of another account, or of another namespace, does not matter": {
			p: published(says("CredentialsSynced", "False", "ForeignSecret",
				"Account b is not copied in ns: x. Account a is not copied in elsewhere: y.")),
			steps: "ddddcddd",
		},
		"the account names another namespace": {
			p: published(func(p *PairFacts) { p.Accounts[0] = facttest.Account("a", "elsewhere") }), steps: "ddddcddc",
		},
		"the account names no namespace": {
			p: published(func(p *PairFacts) { p.Accounts[0] = facttest.Account("a", "") }), steps: "ddddcddc",
		},
		"events may not be read": {
			p: published(func(p *PairFacts) { p.HiddenEvents = true }), steps: "ddddcdddv",
		},
		"a tenant sees its profile": {p: published(tenant), steps: "vvdvvddv"},
		"a tenant sees no profile, and nothing of why": {
			p: published(tenant, without), steps: "vvdvvmvv", wrong: "profile", text: "there is no ClusterProfile",
			fix: "kubectl inventory explain c -n ns # as the hub's administrator, who sees more",
		},
		"a tenant's own Placement does not choose the cluster": {
			p:     published(tenant, without, func(p *PairFacts) { p.Facts.Placements = placement("other") }),
			steps: "vvdvmmvv", wrong: "placement", text: "is not chosen by a Placement",
			fix: "kubectl describe placements -n ns -l inventory.open-cluster-management.io/publish=true",
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			e := ExplainPair(test.p, now)
			var steps strings.Builder
			for _, step := range e.Steps {
				steps.WriteString(map[State]string{Done: "d", Missing: "m", NotVisible: "v", NotConfigured: "c"}[step.State])
			}
			if steps.String() != test.steps {
				t.Errorf("steps %s, want %s:\n%+v", steps.String(), test.steps, e.Steps)
			}
			wrong := Finding{}
			if first := FirstWrong(e.Steps); first != nil {
				wrong = *first
			}
			if wrong.Name != test.wrong || !strings.Contains(wrong.Text, test.text) || wrong.Fix != test.fix {
				t.Errorf("first missing %+v, want %s: ...%s...: %s", wrong, test.wrong, test.text, test.fix)
			}
		})
	}
}
