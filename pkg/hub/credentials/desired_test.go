package credentials

import (
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	authv1beta1 "open-cluster-management.io/managed-serviceaccount/apis/authentication/v1beta1"
	inventoryv1alpha1 "sigs.k8s.io/cluster-inventory-api/apis/v1alpha1"

	"open-cluster-management.io/cluster-inventory-addon/internal/apitest/ocmtest"
	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/credentials/grants"
	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/credentials/report"
	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/credentials/source"
	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/credentials/target"
	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/selection"
)

func TestDecideTarget(t *testing.T) {
	type situation struct {
		o observed
		t observedTarget
	}
	good := func(change func(*situation)) situation {
		s := situation{
			o: observed{key: types.NamespacedName{Namespace: "c1", Name: "reader"},
				known: true, account: &authv1beta1.ManagedServiceAccount{}},
			t: observedTarget{namespace: "team", wanted: true, selection: selection.Result{Answer: selection.Yes},
				profile: observedProfile{owner: target.Owner{UID: "uid"}}, copy: target.Known{Present: true}},
		}
		if change != nil {
			change(&s)
		}
		return s
	}
	tests := map[string]struct {
		given  situation
		action action
		reason string
		why    string
	}{
		"all is well: there must be a copy": {given: good(nil), action: publish},
		"the manager drains: withdrawn in any case": {
			given: good(func(s *situation) {
				s.o.draining, s.o.known, s.o.paused, s.t.selection.Answer = true, false, true, selection.Unknown
			}),
			action: withdraw,
		},
		"no such account: withdrawn": {given: good(func(s *situation) { s.o.account = nil }), action: withdraw},
		"the account is being deleted: withdrawn": {given: good(func(s *situation) {
			s.o.account.DeletionTimestamp = ptr.To(metav1.Now())
		}), action: withdraw},
		"not named any more: withdrawn": {given: good(func(s *situation) { s.t.wanted = false }), action: withdraw},
		"nothing is known of accounts: stay": {given: good(func(s *situation) {
			s.o.known, s.o.account, s.t.wanted = false, nil, false
		}), action: leave},
		"nothing is known of accounts, but the rule says no: withdrawn": {
			given: good(func(s *situation) {
				s.o.known, s.o.account, s.t.selection = false, nil, selection.Result{Answer: selection.No, Why: "is out"}
			}),
			action: withdraw, reason: "TargetNotEntitled", why: "the cluster is out",
		},
		"the rule says no: withdrawn": {
			given:  good(func(s *situation) { s.t.selection = selection.Result{Answer: selection.No, Why: "is out"} }),
			action: withdraw, reason: "TargetNotEntitled", why: "the cluster is out",
		},
		"the rule says no, in a namespace that is not named: withdrawn, and not reported": {
			given: good(func(s *situation) {
				s.o.silent = true
				s.t.selection = selection.Result{Answer: selection.No, Why: "is out"}
			}),
			action: withdraw,
		},
		"another manager's profile: withdrawn": {
			given:  good(func(s *situation) { s.t.profile = observedProfile{why: "has another's"} }),
			action: withdraw, reason: "TargetNotEntitled", why: "the cluster has another's",
		},
		"the rule says no while upstream's syncer is on: withdrawn": {
			given: good(func(s *situation) {
				s.o.paused = true
				s.t.selection = selection.Result{Answer: selection.No, Why: "is out"}
			}),
			action: withdraw, reason: "TargetNotEntitled", why: "the cluster is out",
		},
		"upstream's syncer is on: nothing is written": {given: good(func(s *situation) { s.o.paused = true }), action: leave},
		"the rule says no while it is unknown whether the syncer is on: withdrawn": {
			given: good(func(s *situation) {
				s.o.unknown = "cannot be read"
				s.t.selection = selection.Result{Answer: selection.No, Why: "is out"}
			}),
			action: withdraw, reason: "TargetNotEntitled", why: "the cluster is out",
		},
		"unknown whether the syncer is on: nothing is written": {
			given: good(func(s *situation) { s.o.unknown = "cannot be read" }), action: leave,
		},
		"the rule knows no answer: what is there stays": {
			given:  good(func(s *situation) { s.t.selection = selection.Result{Why: "is undecided"} }),
			action: maintain, reason: "SelectionUnknown", why: "the cluster is undecided",
		},
		"the namespace could not be observed: what is there stays, and nothing is reported": {
			given: good(func(s *situation) {
				s.t.selection, s.t.profile, s.t.err = selection.Result{}, observedProfile{}, errors.New("no answer")
			}),
			action: maintain,
		},
		"no profile yet: what is there stays": {
			given:  good(func(s *situation) { s.t.profile = observedProfile{} }),
			action: maintain, reason: "TargetNotEntitled", why: "the cluster's ClusterProfile is not there yet",
		},
		"two of one name: neither": {
			given: good(func(s *situation) {
				s.t.rivals, s.t.copy = []types.NamespacedName{{Namespace: "c1-x", Name: "y"}}, target.Known{}
			}),
			action: leave, reason: "NameCollision",
			why: "the Secret c1-reader would also be that of account y of cluster c1-x; rename all but one of these accounts",
		},
		"two of one name, and ours is there: it stays": {
			given:  good(func(s *situation) { s.t.rivals = []types.NamespacedName{{Namespace: "c1-x", Name: "y"}} }),
			action: publish,
		},
		"two of one name, and the other's is there: ours is refused": {
			given: good(func(s *situation) {
				other := types.NamespacedName{Namespace: "c1-x", Name: "y"}
				s.t.rivals, s.t.holder, s.t.copy = []types.NamespacedName{other}, other, target.Known{}
			}),
			action: withdraw, reason: "NameCollision",
			why: "the Secret c1-reader there is the copy of account y of cluster c1-x; rename one of these accounts",
		},
		"two of one name, and of the other nothing is known: neither": {
			given: good(func(s *situation) {
				s.t.copy = target.Known{}
				s.t.rivals, s.t.selection = []types.NamespacedName{{Namespace: "c1-x", Name: "y"}},
					selection.Result{Why: "is undecided"}
			}),
			action: leave, reason: "NameCollision",
			why: "the Secret c1-reader would also be that of account y of cluster c1-x; rename all but one of these accounts",
		},
		"no namespace could be called so": {
			given:  good(func(s *situation) { s.t.namespace = "Team" }),
			action: leave, reason: "TargetNotEntitled", why: "that is not a name a namespace can have",
		},
		"no Secret could be called so": {
			given:  good(func(s *situation) { s.o.key.Name = strings.Repeat("a", 251) }),
			action: withdraw, reason: "NameTooLong",
			why: "the Secret's name would have 254 bytes, and 253 are allowed; give the account a shorter name",
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got := decideTarget(test.given.o, test.given.t)
			if got.action != test.action || got.reason != test.reason || got.why != test.why {
				t.Errorf("got %d %q %q, want %d %q %q", got.action, got.reason, got.why, test.action, test.reason, test.why)
			}
		})
	}
}

func TestProfileState(t *testing.T) {
	profile := func(change func(*inventoryv1alpha1.ClusterProfile)) *inventoryv1alpha1.ClusterProfile {
		p := ocmtest.OurProfile("team", "c1")
		p.UID = "uid"
		if change != nil {
			change(p)
		}
		return p
	}
	tests := map[string]struct {
		profile *inventoryv1alpha1.ClusterProfile
		want    observedProfile
	}{
		"none": {},
		"ours": {profile: profile(nil), want: observedProfile{owner: target.Owner{UID: "uid", Name: "c1"}}},
		"without our labels, as OCM's own controller makes it": {
			profile: profile(func(p *inventoryv1alpha1.ClusterProfile) { p.Labels = nil }),
			want:    observedProfile{owner: target.Owner{UID: "uid", Name: "c1"}},
		},
		"another manager's": {
			profile: profile(func(p *inventoryv1alpha1.ClusterProfile) { p.Spec.ClusterManager.Name = "gke" }),
			want:    observedProfile{why: `has a ClusterProfile of cluster manager "gke" in its place`},
		},
		"going, and held": {
			profile: profile(func(p *inventoryv1alpha1.ClusterProfile) {
				p.DeletionTimestamp, p.Finalizers = ptr.To(metav1.Now()), []string{"a/b", "c/d"}
			}),
			want: observedProfile{why: "has a ClusterProfile there that is being deleted and held by finalizers a/b, c/d"},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := profileState(test.profile); got != test.want {
				t.Errorf("got %+v, want %+v", got, test.want)
			}
		})
	}
}

// TestTokenDecidesLast starts from the observation of one wanted namespace, without a copy so
// far, to the result once the token is known.
func TestTokenDecidesLast(t *testing.T) {
	now := time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC)
	good := source.Finding{Expires: now.Add(time.Hour), Next: now.Add(time.Minute)}
	in := func(namespace string, what action) decision { // as it was observed
		return decision{observedTarget: observedTarget{namespace: namespace}, action: what}
	}
	for name, test := range map[string]struct {
		change func(*observed)
		found  source.Finding
		token  tokenUse
		want   final
	}{
		"nothing is known of the token: it is read and copied": {
			found: good, token: toRead, want: final{write: []decision{in("team", publish)}, again: time.Minute},
		},
		"no copy holds what was found last: it is read again": {
			change: func(o *observed) { o.finding, o.current = good, true },
			found:  good, token: toRead,
			want: final{write: []decision{in("team", publish)}, again: time.Minute},
		},
		"it ends before the next check: that is when to look again": {
			found: source.Finding{Expires: now.Add(time.Second), Next: now.Add(time.Minute)}, token: toRead,
			want: final{write: []decision{in("team", publish)}, again: time.Second},
		},
		"it has expired: withdrawn": {
			found: source.Finding{Expires: now, Next: now.Add(time.Minute)}, token: toRead,
			want: final{
				withdraw: []string{"team"}, again: time.Minute,
				problems: []report.Problem{{Reason: "InvalidSource", Text: "its token has expired at 2026-03-04T12:00:00Z"}},
			},
		},
		"it was bad at the last read, which is recent: withdrawn without a read": {
			change: func(o *observed) {
				o.finding, o.current = source.Finding{Problem: "bad", Next: now.Add(time.Minute)}, true
			},
			found: source.Finding{Problem: "bad", Next: now.Add(time.Minute)}, token: unchanged,
			want: final{withdraw: []string{"team"}, again: time.Minute,
				problems: []report.Problem{{Reason: "InvalidSource", Text: "bad"}}},
		},
		"the status names another Secret: withdrawn without a read": {
			change: func(o *observed) { o.account.Status.TokenSecretRef.Name = "other" },
			found:  source.Finding{Problem: "bad"}, token: refused,
			want: final{withdraw: []string{"team"}, problems: []report.Problem{{Reason: "InvalidSource", Text: "bad"}}},
		},
		"there is no free slot, and nothing is known of the token: it is not read": {
			change: func(o *observed) { o.targets[0].blocked = true },
			token:  postponed, want: final{write: []decision{in("team", publish)}},
		},
		"there is no free slot, and the token is known: it is not read, but its times continue": {
			change: func(o *observed) { o.finding, o.current, o.targets[0].blocked = good, true, true },
			found:  good, token: postponed,
			want: final{write: []decision{in("team", publish)}, again: time.Minute},
		},
		"there is no free slot in one of two namespaces: it is read": {
			change: func(o *observed) {
				o.targets = append(o.targets, o.targets[0])
				o.targets[0].blocked, o.targets[1].namespace = true, "other"
			},
			found: good, token: toRead, want: final{
				write: []decision{in("team", publish), in("other", publish)},
				again: time.Minute,
			},
		},
		"there is no free slot, and a copy rests on a token of which nothing is known: it is read": {
			change: func(o *observed) { o.targets[0].blocked, o.targets[0].copy.Present = true, true },
			found:  source.Finding{Problem: "bad"}, token: toRead,
			want: final{withdraw: []string{"team"}, problems: []report.Problem{{Reason: "InvalidSource", Text: "bad"}}},
		},
		"the namespace could not be observed: no other token is written": {
			change: func(o *observed) { o.targets[0].err, o.targets[0].copy.Present = errors.New("no answer"), true },
			found:  good, token: toRead, want: final{again: time.Minute},
		},
		"the namespace could not be observed: expired copies are withdrawn": {
			change: func(o *observed) { o.targets[0].err, o.targets[0].copy.Present = errors.New("no answer"), true },
			found:  source.Finding{Problem: "bad"}, token: toRead,
			want: final{withdraw: []string{"team"}, problems: []report.Problem{{Reason: "InvalidSource", Text: "bad"}}},
		},
		"the rule's caches cannot be trusted: no other token is written": {
			change: func(o *observed) {
				o.targets[0].selection, o.targets[0].copy.Present = selection.Result{Untrusted: true}, true
			},
			found: good, token: toRead, want: final{again: time.Minute},
		},
		"the rule's caches cannot be trusted: expired copies are withdrawn": {
			change: func(o *observed) {
				o.targets[0].selection, o.targets[0].copy.Present = selection.Result{Untrusted: true}, true
			},
			found: source.Finding{Problem: "bad"}, token: toRead,
			want: final{withdraw: []string{"team"}, problems: []report.Problem{{Reason: "InvalidSource", Text: "bad"}}},
		},
		"the rule's caches cannot be trusted, and the token is known: it is not read": {
			change: func(o *observed) {
				o.finding, o.current = good, true
				o.targets[0].selection, o.targets[0].copy.Present = selection.Result{Untrusted: true}, true
			},
			found: good, token: postponed, want: final{again: time.Minute},
		},
		"absent from decisions, but not for long enough: no other token is written": {
			change: func(o *observed) {
				o.targets[0].selection, o.targets[0].copy.Present = selection.Result{ByPlacement: true}, true
			},
			found: good, token: toRead, want: final{again: time.Minute},
		},
		"a set cannot be read, or a Placement is undecided: the copy is kept up to date": {
			change: func(o *observed) {
				o.targets[0].selection, o.targets[0].copy.Present = selection.Result{}, true
			},
			found: good, token: toRead,
			want: final{
				write: []decision{{
					observedTarget: observedTarget{namespace: "team"}, action: maintain, reason: "SelectionUnknown",
					why: "the cluster ",
				}},
				again: time.Minute,
			},
		},
		"the namespace may have no copy: the token is of no use": {
			change: func(o *observed) { o.targets[0].selection.Answer = selection.No }, found: good, token: unused,
		},
		"nothing is known of the namespace, and there is no copy: the token is of no use": {
			change: func(o *observed) { o.targets[0].selection.Answer = selection.Unknown }, found: good, token: unused,
		},
	} {
		t.Run(name, func(t *testing.T) {
			account := &authv1beta1.ManagedServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "c1", Name: "reader"}}
			account.Status.TokenSecretRef = &authv1beta1.SecretRef{Name: "reader"}
			owner := target.Owner{UID: "uid", Name: "c1"}
			o := observed{
				key: types.NamespacedName{Namespace: "c1", Name: "reader"}, now: now, known: true, account: account,
				targets: []observedTarget{{
					namespace: "team", wanted: true, selection: selection.Result{Answer: selection.Yes},
					profile: observedProfile{owner: owner},
				}},
			}
			if test.change != nil {
				test.change(&o)
			}
			p := decide(o)
			if p.token != test.token {
				t.Errorf("the token is used as %d, want %d", p.token, test.token)
			}
			for i := range test.want.write {
				isIn := func(t observedTarget) bool { return t.namespace == test.want.write[i].namespace }
				test.want.write[i].observedTarget = o.targets[slices.IndexFunc(o.targets, isIn)]
			}
			if got := decideFinally(p, test.found, now); !reflect.DeepEqual(got, test.want) {
				t.Errorf("got %+v, want %+v", got, test.want)
			}
		})
	}
}

func TestTakesAway(t *testing.T) {
	now := time.Unix(1000, 0)
	copied := observedTarget{copy: target.Known{Present: true}}
	for name, test := range map[string]struct {
		p    plan
		want bool
	}{
		"a copy that must go": {p: plan{decisions: []decision{{observedTarget: copied, action: withdraw}}}, want: true},
		"a copy whose withdrawal has failed for long": {p: plan{decisions: []decision{
			{observedTarget: observedTarget{copy: target.Known{Present: true}, stuck: true}, action: withdraw}}}},
		"a copy that never was": {p: plan{decisions: []decision{{action: withdraw}}}},
		"a copy that stays":     {p: plan{token: toRead, decisions: []decision{{observedTarget: copied, action: publish}}}},
		"a copy that is left":   {p: plan{token: refused, decisions: []decision{{observedTarget: copied, action: leave}}}},
		"a refused token": {p: plan{token: refused, decisions: []decision{{observedTarget: copied, action: publish}}},
			want: true},
		"a refused token, no copy": {p: plan{token: refused, decisions: []decision{{action: publish}}}},
		"an expired token": {
			p: plan{
				token: unchanged, found: source.Finding{Expires: now},
				decisions: []decision{{observedTarget: copied, action: maintain}},
			},
			want: true,
		},
		"a token that expired while there is no free slot": {
			p: plan{
				token: postponed, found: source.Finding{Expires: now}, observed: observed{current: true},
				decisions: []decision{{observedTarget: copied, action: publish}},
			},
			want: true,
		},
		"a token of which nothing is known": {
			p: plan{token: postponed, decisions: []decision{{action: publish}}},
		},
		"a valid token": {p: plan{
			token: unchanged, found: source.Finding{Expires: now.Add(time.Second)},
			decisions: []decision{{observedTarget: copied, action: maintain}},
		}},
	} {
		t.Run(name, func(t *testing.T) {
			if got := test.p.takesAway(now); got != test.want {
				t.Errorf("takes away: %t, want %t", got, test.want)
			}
		})
	}
}

// After a start a selection may be unknown, and the copies not seen yet: rights to read the
// token and to create a missing copy must outlast that, or they would be deleted and created
// again.
func TestKeptGrants(t *testing.T) {
	o := observed{key: types.NamespacedName{Namespace: "c1", Name: "reader"}}
	target := grants.Target("team")
	decided := func(what action) []decision {
		return []decision{{observedTarget: observedTarget{namespace: "team"}, action: what}}
	}
	source := grants.Source("c1")
	for name, test := range map[string]struct {
		plan    plan
		present bool // a copy in the namespace
		want    []grants.Grant
	}{
		"the selection is not known, and no copy is": {
			plan{decisions: decided(maintain)}, false, []grants.Grant{target, source},
		},
		"the token is needed anyway":        {plan{decisions: decided(maintain), token: toRead}, true, []grants.Grant{target}},
		"the token is refused":              {plan{decisions: decided(maintain), token: refused}, false, nil},
		"nothing is wanted":                 {plan{decisions: decided(withdraw)}, false, nil},
		"a copy has not been withdrawn yet": {plan{decisions: decided(withdraw)}, true, []grants.Grant{source}},
		"a copy holds a refused token": {
			plan{decisions: decided(maintain), token: refused}, true, []grants.Grant{source},
		},
		"nothing is named": {plan{}, false, nil},
	} {
		t.Run(name, func(t *testing.T) {
			test.plan.observed = o
			_, kept := grantsOf(test.plan, nil, func(string) bool { return test.present })
			if diff := cmp.Diff(test.want, kept, cmp.AllowUnexported(grants.Grant{})); diff != "" {
				t.Errorf("grants (-want +got):\n%s", diff)
			}
		})
	}
}
