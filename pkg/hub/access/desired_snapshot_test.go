package access

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestChangedClusters(t *testing.T) {
	before := snapshot{
		endpoint: endpoint{known: true, server: "https://u", ca: []byte("CA")},
		sharedFacts: sharedFacts{entries: map[string]directEntry{
			"c1": {server: "https://c1"}, "c2": {server: "https://c2"},
		}},
	}
	tests := map[string]struct {
		next func(*snapshot)
		want []string
	}{
		"nothing changed": {next: func(*snapshot) {}},
		"another CA":      {next: func(s *snapshot) { s.endpoint.ca = []byte("CA2") }, want: []string{""}},
		"a problem on the hub": {
			next: func(s *snapshot) { s.endpoint.problem.text = "it is missing" },
			want: []string{""},
		},
		"the addons are unknown": {next: func(s *snapshot) { s.addonsUnknown = "?" }, want: []string{""}},
		"the entries are unknown": {
			next: func(s *snapshot) { s.entries, s.entriesUnknown = nil, "?" },
			want: []string{""},
		},
		"the ManagedClusters are unknown": {next: func(s *snapshot) { s.clustersUnknown = "?" }, want: []string{""}},
		"an entry changed, one was added, one removed": {
			next: func(s *snapshot) {
				s.entries = map[string]directEntry{"c1": {server: "https://other"}, "c3": {problem: "it is wrong"}}
			},
			want: []string{"c1", "c2", "c3"},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			next := before
			test.next(&next)
			got := changedClusters(&before, &next)
			slices.Sort(got)
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("clusters (-want +got):\n%s", diff)
			}
		})
	}
}

func TestRequeueAfter(t *testing.T) {
	now := time.Unix(1000, 0)
	tests := map[string]struct {
		unseen time.Duration
		expiry time.Time
		want   time.Duration
	}{
		"nothing to wait for":                           {},
		"our write has not been seen":                   {unseen: 3 * time.Second, want: 3 * time.Second},
		"a certificate is good through its last second": {expiry: now.Add(time.Hour), want: time.Hour + time.Second},
		"it has expired already":                        {expiry: now.Add(-time.Hour), want: time.Second},
		"it expires in centuries":                       {expiry: now.AddDate(8000, 0, 0), want: 24*time.Hour + time.Second},
		"the earlier one":                               {unseen: 3 * time.Second, expiry: now, want: time.Second},
		"the earlier one, the write": {
			unseen: 3 * time.Second,
			expiry: now.Add(time.Hour),
			want:   3 * time.Second,
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := requeueAfter(test.unseen, test.expiry, now); got != test.want {
				t.Errorf("got %s, want %s", got, test.want)
			}
		})
	}
}
