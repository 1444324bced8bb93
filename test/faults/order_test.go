package faults

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestOrderOfChanges(t *testing.T) {
	began := time.Now()
	profile := func(what, uid string, version uint64, provider string) change {
		return change{
			what: what, resource: profiles, key: "team-a/c1", version: version, at: began.Add(time.Second),
			content: fmt.Sprintf(`{"metadata":{"uid":%q},"status":{"accessProviders":[{"name":%q}]}}`, uid, provider),
		}
	}
	refers := func(what string, version uint64, clusters ...string) change {
		var decisions []string
		for _, cluster := range clusters {
			decisions = append(decisions, fmt.Sprintf(`{"clusterProfileRef":{"name":%q}}`, cluster))
		}
		return change{
			what: what, resource: references, key: "team-a/view-0", version: version, at: began.Add(time.Second),
			content: fmt.Sprintf(`{"decisions":[%s]}`, strings.Join(decisions, ",")),
		}
	}
	lostAt := func(c change) change {
		c.lost = true
		return c
	}
	copied := func(uid string, version uint64) change {
		return change{
			what: created, resource: secrets, key: "team-a/c1-reader", version: version,
			content: fmt.Sprintf(`{"metadata":{"ownerReferences":[{"kind":"ClusterProfile","name":"c1","uid":%q}]},`+
				`"data":{"token":"dC0x"}}`, uid), // t-1
		}
	}
	tests := map[string]struct {
		leaves  bool // the profile is not always chosen
		changes []change
		want    string // part of the only finding
	}{
		"the watcher sees kinds in another order": {changes: []change{
			refers(created, 3, "c1"), copied("one", 2), profile(created, "one", 1, "proxy"),
		}},
		"a reference before its profile": {
			changes: []change{refers(created, 1, "c1"), profile(created, "one", 2, "proxy")},
			want:    "view-0 began to refer to the profile team-a/c1, which did not exist",
		},
		"a profile goes before its reference": {
			leaves: true,
			changes: []change{
				profile(created, "one", 1, "proxy"), refers(created, 2, "c1"), profile(deleted, "one", 3, "proxy"), refers(changed, 4),
			},
			want: "team-a/c1 was deleted at once",
		},
		"a profile goes with its kind, before its reference, and both come again": {changes: []change{
			profile(created, "one", 1, "proxy"), refers(created, 2, "c1"), lostAt(profile(deleted, "one", 3, "proxy")),
			refers(changed, 4), profile(created, "two", 5, "proxy"), refers(changed, 6, "c1"),
		}},
		"a profile goes with its kind, and its reference once more": {
			changes: []change{
				profile(created, "one", 1, "proxy"), refers(created, 2, "c1"), lostAt(profile(deleted, "one", 3, "proxy")),
				refers(changed, 4), profile(created, "two", 5, "proxy"), refers(changed, 6, "c1"), refers(changed, 7),
			},
			want: "nothing refers any more to the profile team-a/c1",
		},
		"a profile goes after its reference": {leaves: true, changes: []change{
			profile(created, "one", 1, "proxy"), refers(created, 2, "c1"), refers(changed, 3), profile(deleted, "one", 4, "proxy"),
		}},
		"a reference goes that is chosen all along": {
			changes: []change{
				profile(created, "one", 1, "proxy"), refers(created, 2, "c1"), refers(changed, 3), refers(changed, 4, "c1"),
			},
			want: "nothing refers any more to the profile team-a/c1",
		},
		"an access provider goes": {
			changes: []change{
				profile(created, "one", 1, "proxy"), profile(changed, "one", 2, "other"),
			},
			want: "lost the access provider proxy",
		},
		"a copy before its profile": {
			changes: []change{copied("one", 1), profile(created, "one", 2, "proxy")},
			want:    "copy team-a/c1-reader was created without a profile",
		},
		"a copy of the profile before": {
			leaves: true,
			changes: []change{
				profile(created, "one", 1, "proxy"), copied("one", 2), profile(deleted, "one", 3, "proxy"),
				profile(created, "two", 4, "proxy"),
			},
			want: "copy team-a/c1-reader is not owned",
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			s := story{before: []string{"team-a/c1"}, after: []string{"team-a/c1"}}
			if test.leaves {
				s.meanwhile = s.before
			}
			got := checkOrder(s, result{
				causes: []time.Time{began}, converged: true, tokens: map[string]string{"t-1": "c1/reader#1"}, changes: test.changes,
			})
			if test.want == "" && len(got) > 0 || test.want != "" &&
				(len(got) != 1 || !slices.ContainsFunc(got, func(f string) bool { return strings.Contains(f, test.want) })) {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}
