package report

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"

	"open-cluster-management.io/cluster-inventory-addon/internal/apitest"
	"open-cluster-management.io/cluster-inventory-addon/pkg/kube"
	"open-cluster-management.io/cluster-inventory-addon/pkg/spoke/property"
)

func TestDesiredNotices(t *testing.T) {
	reserved := property.Reserved{"*.open-cluster-management.io"}
	claimed := func(c claim) observed {
		return observed{properties: props("a"), claims: []claim{c}, Situation: Situation{Limit: Limit{Custom: 20}}}
	}
	valued := func(name, value string) observed {
		return observed{properties: []property.Property{{Name: name, Value: value}}, Situation: Situation{Reserved: reserved, Limit: Limit{Custom: 20}},
			claims: ours(name)}
	}
	for name, tc := range map[string]struct {
		seen     observed
		outdated string
		want     string
	}{
		"published: no event": {seen: claimed(claim{name: "a", ours: true})},
		"a reserved name":     {seen: valued("x.open-cluster-management.io", "v"), want: "NameReserved"},
		"no value":            {seen: valued("a", ""), want: "ValueEmpty"},
		"a long value":        {seen: valued("a", strings.Repeat("v", 1025)), want: "ValueTooLong"},
		"not text":            {seen: valued("a", "\xff"), want: "ValueNotText"},
		"a claim of another client": {
			seen: claimed(claim{name: "a"}), want: "ClaimTaken",
		},
		"another client labelled ours": {
			seen: claimed(claim{name: "a", ours: true, spokeOnly: true}), want: "ClaimSpokeOnly",
		},
		"no claim": {seen: claimed(claim{name: "b", ours: true}), want: "ClaimNotWritten"},
		"another value": {
			seen: claimed(claim{name: "a", ours: true}), outdated: "a", want: "ClaimOutdated",
		},
		"its owner labelled it: no event": {
			seen: observed{properties: []property.Property{{Name: "a", SpokeOnly: true}}},
		},
		"a claim beyond the limit": {
			seen: observed{properties: props("a"), claims: ours("a")}, want: "ClaimLimitExceeded",
		},
		"beyond the limit and outdated": {
			seen: observed{properties: props("a"), claims: ours("a")}, outdated: "a", want: "ClaimLimitExceeded",
		},
		"claims of others beyond: no event": {seen: observed{properties: props("a"),
			claims: append(ours("a"), theirs("b")...), Situation: Situation{Limit: Limit{Custom: 1}}}},
	} {
		t.Run(name, func(t *testing.T) {
			notices := desiredNotices(tc.seen, map[string]bool{tc.outdated: true})
			var got string
			for _, n := range notices {
				got += n.reason
			}
			if got != tc.want {
				t.Errorf("notices %q, want %q", got, tc.want)
			}
		})
	}
}

// An owner who finds an event reads what to do in it, and in the table of docs/events.md.
func TestEveryReasonHasANoteAndIsDocumented(t *testing.T) {
	text, err := os.ReadFile("../../../docs/events.md")
	apitest.Must(t, err)
	_, table, _ := strings.Cut(string(text), "\n## Events on ClusterProperties\n")
	table, _, _ = strings.Cut(table, "\n## ")
	seen, notes := observed{Situation: Situation{Limit: Limit{Custom: 20}}, claims: ours("a", "b")}, map[string]string{}
	all := append(noticesOf(reasonClaimOutdated, "a"), noticesOf(reasonClaimLimit, "a")...)
	for why, event := range notPublished {
		all = append(all, notice{"a", why, topic{"uid of a", event.reason}})
	}
	for _, n := range all {
		note, reason := eventNote(n, seen), n.reason
		if other, isKnown := notes[note]; isKnown || len(note) > kube.MaxEventNoteBytes {
			t.Errorf("the note of %s is also that of %q, or too long: %s", reason, other, note)
		}
		notes[note] = reason
		if !strings.Contains(table, "`"+reason+"`") {
			t.Errorf("docs/events.md lacks the reason %s", reason)
		}
	}
}

func noticesOf(reason string, names ...string) []notice {
	notices := make([]notice, 0, len(names))
	for _, name := range names {
		notices = append(notices, notice{name, "", topic{types.UID("uid of " + name), reason}})
	}
	return notices
}

func TestEventsTakeTurnsAndAreRepeatedLater(t *testing.T) {
	now := time.Unix(1_700_000_000, 0)
	current := append(noticesOf(reasonClaimLimit, "a", "b"), noticesOf("ValueEmpty", "z", "y", "x")...)
	names := func(due []notice) string {
		var all []string
		for _, n := range due {
			all = append(all, n.name)
		}
		return strings.Join(all, " ")
	}
	history := NewEventHistory()
	due, next := history.due(current, now)
	if got := names(due); got != "x y z a b" || next != 0 {
		t.Errorf("due %q, the next in %s; want claims beyond the limit last", got, next)
	}
	history.created(due[1], now.Add(time.Hour))
	due, next = history.due(current, now)
	if got := names(due); got != "z x a b" || next != time.Hour {
		t.Errorf("after y, due %q, the next in %s; want z first", got, next)
	}
	if due, _ = history.due(noticesOf("ValueTooLong", "y"), now); names(due) != "y" {
		t.Errorf("another reason is not due: %v", due)
	}
	if due, _ = history.due(current, now.Add(time.Hour)); names(due) != "z x y a b" {
		t.Errorf("after an hour, due %q", names(due))
	}
}

// Ten thousand properties that are all wrong: the events are limited, and so is the memory.
func TestEventsAndTheirHistoryAreBounded(t *testing.T) {
	names := make([]string, 10_000)
	for i := range names {
		names[i] = fmt.Sprintf("p%05d", i)
	}
	current := noticesOf(reasonClaimLimit, names...)
	begin, history := time.Unix(1_700_000_000, 0), NewEventHistory()
	var created []time.Duration
	seen := map[string]int{}
	for passed := time.Duration(0); passed < 2*time.Hour; passed += eventsAtOnce * eventInterval {
		now := begin.Add(passed)
		due, _ := history.due(current, now)
		for _, n := range due {
			if allowed, _ := history.allow(now); !allowed {
				break
			}
			history.created(n, now.Add(kube.EventPeriod))
			created, seen[n.name] = append(created, passed), seen[n.name]+1
		}
		if len(history.repeat) > 1000 {
			t.Fatalf("after %s, %d events are remembered", passed, len(history.repeat))
		}
	}
	for i := 20; i < len(created); i++ {
		if created[i]-created[i-20] < time.Minute {
			t.Fatalf("21 events within a minute, from %s to %s", created[i-20], created[i])
		}
	}
	if len(seen) != len(created) || len(seen) < 1500 {
		t.Errorf("%d events about %d properties, although others had their turn", len(created), len(seen))
	}
}

func TestClaimsWithAnotherValueAreOutdated(t *testing.T) {
	seen := observed{properties: props("same", "other", "taken", "missing"), claims: []claim{
		{name: "same", value: "v", ours: true}, {name: "other", value: "w", ours: true}, {name: "taken", value: "w"},
	}}
	if diff := cmp.Diff(map[string]bool{"other": true}, outdatedClaims(seen)); diff != "" {
		t.Errorf("outdated (-want +got):\n%s", diff)
	}
}
