package target

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/credentials/bearer"
)

var noon = time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC)

// TestLedger covers what may happen to one copy, and what the ledger then knows.
func TestLedger(t *testing.T) {
	account := types.NamespacedName{Namespace: "c1", Name: "a"}
	secret := types.NamespacedName{Namespace: "team", Name: "c1-a"}
	now, later := noon, noon.Add(time.Minute)
	shown := func(uid, version string, finalizers ...string) *metav1.PartialObjectMetadata {
		return &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
			Namespace: "team", Name: "c1-a", UID: types.UID(uid), ResourceVersion: version, Finalizers: finalizers,
			Labels: Labels(), Annotations: Want{Account: account, Token: bearer.Token{Expires: noon}}.annotations(),
		}}
	}
	unlabelled := func(uid, version string) *metav1.PartialObjectMetadata {
		meta := shown(uid, version)
		meta.Annotations = nil
		return meta
	}
	other := func(version string) *metav1.PartialObjectMetadata {
		meta := unlabelled("w", version)
		meta.Name = "other"
		return meta
	}
	wrote := func(uid, rv string) func(*Ledger) []types.NamespacedName {
		return func(l *Ledger) []types.NamespacedName {
			l.wrote(account, secret, version{uid: types.UID(uid), resourceVersion: rv}, now)
			return nil
		}
	}
	deleted := func(uid string) func(*Ledger) []types.NamespacedName {
		return func(l *Ledger) []types.NamespacedName { l.deleted(secret, types.UID(uid), now); return nil }
	}
	see := func(meta *metav1.PartialObjectMetadata) func(*Ledger) []types.NamespacedName {
		return func(l *Ledger) []types.NamespacedName { return l.See(meta) }
	}
	vanish := func(meta *metav1.PartialObjectMetadata) func(*Ledger) []types.NamespacedName {
		return func(l *Ledger) []types.NamespacedName { return l.Vanish(meta) }
	}
	unsure := func(l *Ledger) []types.NamespacedName { l.mayHaveWritten(account, secret, now); return nil }
	doubted := func(l *Ledger) []types.NamespacedName { l.doubts(secret); return nil }
	unfollowed := func(l *Ledger) []types.NamespacedName { l.unfollowed("team"); return nil }
	gone := func(l *Ledger) []types.NamespacedName { l.gone(account, secret, now); return nil }
	type steps = []func(*Ledger) []types.NamespacedName
	absent, unread, trusted := Known{}, Known{Present: true}, Known{Present: true, trusted: true}

	tests := map[string]struct {
		steps steps
		at    time.Time
		want  Known
		copy  bool // there is or may be one
		count int  // that keep the rights there
		look  bool // the last step has the account looked at
	}{
		"nothing happened":          {want: absent},
		"written, and not seen yet": {steps: steps{wrote("u", "5")}, want: trusted, copy: true, count: 1},
		"written, and never seen": {steps: steps{wrote("u", "5")},
			at: later, want: unread, copy: true, count: 1},
		"written and seen": {steps: steps{wrote("u", "5"), see(shown("u", "5"))},
			at: later, want: trusted, copy: true, count: 1},
		"written, and an older version seen": {steps: steps{wrote("u", "15"), see(shown("u", "9"))},
			want: trusted, copy: true, count: 1},
		"written, and for long an older version seen": {steps: steps{wrote("u", "15"), see(shown("u", "9"))},
			at: later, want: unread, copy: true, count: 1},
		"written and seen, and the hub restored": {steps: steps{wrote("u", "15"), see(shown("u", "15")),
			see(shown("u", "9"))}, want: unread, copy: true, count: 1, look: true},
		"seen, and never read": {steps: steps{see(shown("u", "5"))},
			want: unread, copy: true, count: 1, look: true},
		"changed by another client": {steps: steps{wrote("u", "5"), see(shown("u", "6"))},
			want: unread, copy: true, count: 1, look: true},
		"another in its place": {steps: steps{wrote("u", "5"), see(shown("v", "6"))},
			want: unread, copy: true, count: 1, look: true},
		"deleted by another client, or its label removed": {steps: steps{wrote("u", "5"), see(shown("u", "5")),
			vanish(shown("u", "5"))}, want: unread, copy: true, count: 1, look: true},
		"its annotations taken off": {steps: steps{wrote("u", "5"), see(shown("u", "5")),
			see(unlabelled("u", "6"))}, want: unread, copy: true, count: 1, look: true},
		"its label removed before the answer comes": {steps: steps{see(shown("u", "5")),
			vanish(shown("u", "6")), wrote("u", "5")}, want: unread, copy: true, count: 1},
		"its annotations taken off before the answer comes": {steps: steps{see(shown("u", "5")),
			see(unlabelled("u", "6")), wrote("u", "5")}, want: unread, copy: true, count: 1},
		"deleted before the answer comes, which only a list tells": {steps: steps{see(shown("u", "5")),
			vanish(shown("u", "5")), wrote("u", "5")}, want: unread, copy: true, count: 1},
		"written anew after its label was removed": {steps: steps{see(shown("u", "5")), vanish(shown("u", "6")),
			wrote("u", "7")}, want: trusted, copy: true, count: 1},
		"written while a list shows others first": {steps: steps{see(other("6")), wrote("u", "5"), see(shown("u", "5"))},
			want: unread, copy: true, count: 1, look: true},
		"then read": {steps: steps{see(other("6")), wrote("u", "5"), see(shown("u", "5")), wrote("u", "5")},
			want: trusted, copy: true, count: 1},
		"written after the namespace was followed no more": {steps: steps{see(other("6")), unfollowed,
			wrote("u", "5")}, want: trusted, copy: true, count: 1},
		"deleted by us, and still shown": {steps: steps{wrote("u", "5"), see(shown("u", "5")), deleted("u")},
			want: absent, count: 1},
		"deleted by us, and shown for too long": {steps: steps{wrote("u", "5"), see(shown("u", "5")), deleted("u")},
			at: later, want: unread, copy: true, count: 1},
		"deleted by us, and no longer shown": {steps: steps{wrote("u", "5"),
			see(shown("u", "5")), deleted("u"), vanish(shown("u", "5"))}, want: absent},
		"deleted by us, and held": {steps: steps{wrote("u", "5"), see(shown("u", "5")), deleted("u"),
			see(shown("u", "6", "hold"))}, want: unread, copy: true, count: 1, look: true},
		"released and deleted by us, and gone": {steps: steps{wrote("u", "5"), see(shown("u", "6", "hold")),
			deleted("u"), vanish(shown("u", "7"))}, want: absent, look: true},
		"released and deleted by us, and still shown": {steps: steps{wrote("u", "5"), see(shown("u", "6", "hold")),
			deleted("u"), see(shown("u", "7"))}, want: absent, count: 1, look: true},
		"deleted by us before it was ever shown": {steps: steps{wrote("u", "5"), deleted("u")}, want: absent},
		"deleted by us, and another client creates one": {steps: steps{wrote("u", "5"), see(shown("u", "5")), deleted("u"),
			see(shown("v", "7"))}, want: unread, copy: true, count: 1, look: true},
		"recreated while the old one is shown": {steps: steps{wrote("u", "5"), see(shown("u", "5")), deleted("u"),
			wrote("v", "7")}, want: trusted, copy: true, count: 1},
		"recreated, and the old one disappears": {steps: steps{wrote("u", "5"), see(shown("u", "5")), deleted("u"),
			wrote("v", "7"), vanish(shown("u", "5"))}, want: trusted, copy: true, count: 1, look: true},
		"a foreign one found in its place": {steps: steps{wrote("u", "5"),
			see(shown("u", "5")), vanish(shown("u", "5")), gone}, want: absent},
		"perhaps made, and the answer lost":   {steps: steps{unsure}, at: later, want: unread, copy: true, count: 1},
		"perhaps made, and a read found none": {steps: steps{unsure, gone}, want: absent},
		"perhaps made, and shown": {steps: steps{unsure, see(shown("u", "5"))},
			want: unread, copy: true, count: 1, look: true},
		"perhaps made, and read": {steps: steps{unsure, wrote("u", "5")},
			want: trusted, copy: true, count: 1},
		"perhaps changed": {steps: steps{wrote("u", "5"), see(shown("u", "5")), doubted},
			want: unread, copy: true, count: 1},
		"a read found none": {steps: steps{wrote("u", "5"), vanish(shown("u", "5")), gone},
			want: absent},
		"a foreign one found, and a copy shown": {steps: steps{gone, see(shown("u", "5"))},
			want: unread, copy: true, count: 1, look: true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			l := NewLedger()
			var accounts []types.NamespacedName
			for _, step := range test.steps {
				accounts = step(l)
			}
			at := test.at
			if at.IsZero() {
				at = now
			}
			if got := l.Known(account, "team", at); got.trusted != test.want.trusted || got.Present != test.want.Present {
				t.Errorf("known %+v, want %+v", got, test.want)
			}
			if got := l.Known(account, "team", at).Present; got != test.copy {
				t.Errorf("there is a copy: %t, want %t", got, test.copy)
			}
			if got := l.Count("team"); got != test.count {
				t.Errorf("%d copies in the namespace, want %d", got, test.count)
			}
			if got := len(accounts) > 0; got != test.look {
				t.Errorf("the account is to be looked at: %t, want %t", got, test.look)
			}
		})
	}
}

func TestLedgerForgetsSettledCopies(t *testing.T) {
	l := NewLedger()
	for _, account := range []types.NamespacedName{{Namespace: "c1", Name: "a"},
		{Namespace: "c1", Name: "b"}, {Namespace: "c2", Name: "a"}} {
		for _, namespace := range []string{"x", "y"} {
			l.wrote(account, Key(account, namespace), version{uid: "u", resourceVersion: "1"}, noon)
		}
	}
	if got := len(l.AccountsOf("c1")); got != 2 {
		t.Errorf("%d accounts of c1 have copies, want 2", got)
	}
	for _, account := range l.Accounts() {
		for _, namespace := range l.NamespacesOf(account) {
			l.deleted(Key(account, namespace), "u", noon)
		}
	}
	if diff := cmp.Diff([]int{0, 0, 0, 0},
		[]int{len(l.states), len(l.byAccount), len(l.byCluster), len(l.byNamespace)}); diff != "" {
		t.Errorf("left in memory (-want +got):\n%s", diff)
	}
}

// Accounts of different clusters may have copies of one name: a of cluster x-y, and
// y-a of cluster x. Neither may touch the other's.
func TestLedgerDistinguishesAccountsWithTheSameCopyName(t *testing.T) {
	ours := types.NamespacedName{Namespace: "x-y", Name: "a"}
	theirs := types.NamespacedName{Namespace: "x", Name: "y-a"}
	secret := Key(ours, "team")
	if secret != Key(theirs, "team") {
		t.Fatalf("the accounts do not share a copy's name")
	}
	l := NewLedger()
	l.wrote(ours, secret, version{uid: "u", resourceVersion: "5"}, noon)
	if l.Known(theirs, "team", noon).Present || l.isOwn(theirs, secret, "u") {
		t.Error("a copy counts as another account's")
	}
	l.gone(theirs, secret, noon)
	if known := l.Known(ours, "team", noon); !known.Present || !known.trusted {
		t.Error("what is read for another account changes what is known of the copy")
	}
}
