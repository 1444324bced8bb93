package meter

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestCPUOfAProcessWhoseNameContainsParentheses(t *testing.T) {
	stat := "7 (a) (b c) S 1 7 7 0 -1 4194304 100 0 0 0 250 50 0 0 20 0 9 0 4242 1 2 3\n"
	got, err := parseStat(stat)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(Usage{Start: 4242, CPU: 3 * time.Second}, got); diff != "" {
		t.Error(diff)
	}
	for _, garbage := range []string{"", "7 (a) S 1", "7 (a) S" + strings.Repeat(" x", 30)} {
		if _, err := parseStat(garbage); err == nil {
			t.Errorf("%q was read", garbage)
		}
	}
}

func TestThisProcessCanBeRead(t *testing.T) {
	got, err := Process(os.Getpid())
	if err != nil || got.RSS == 0 || got.Start == 0 {
		t.Errorf("got %+v, %v", got, err)
	}
}

func TestAProcessThatWasReplacedCountsFromItsBeginning(t *testing.T) {
	before := Usage{PID: 1, Start: 5, CPU: 10 * time.Second}
	tests := map[string]struct {
		now  Usage
		want time.Duration
	}{
		"the same":             {Usage{PID: 1, Start: 5, CPU: 12 * time.Second}, 2 * time.Second},
		"another":              {Usage{PID: 2, Start: 9, CPU: 3 * time.Second}, 3 * time.Second},
		"another, same number": {Usage{PID: 1, Start: 9, CPU: 3 * time.Second}, 3 * time.Second},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := test.now.since(before); got != test.want {
				t.Errorf("got %s, want %s", got, test.want)
			}
		})
	}
}

const before = `
# TYPE apiserver_request_total counter
apiserver_request_total{code="201",resource="clusterprofiles",subresource="",verb="POST"} 10
apiserver_request_total{code="200",resource="leases",subresource="",verb="PUT"} 7
`

const after = `
# TYPE apiserver_request_total counter
apiserver_request_total{code="201",resource="clusterprofiles",subresource="",verb="POST"} 13
apiserver_request_total{code="200",resource="clusterprofiles",subresource="status",verb="PATCH"} 2
apiserver_request_total{code="200",resource="clusterprofiles",subresource="status",verb="PATCH",dry_run="All"} 1
apiserver_request_total{code="403",resource="clusterprofiles",subresource="",verb="POST",dry_run="All"} 1
apiserver_request_total{code="409",resource="clusterprofiles",subresource="status",verb="PATCH"} 1
apiserver_request_total{code="200",resource="",subresource="/readyz",verb="GET"} 5
apiserver_request_total{code="200",resource="leases",subresource="",verb="PUT"} 7
# TYPE apiserver_response_sizes histogram
apiserver_response_sizes_bucket{resource="clusterprofiles",verb="POST",le="+Inf"} 3
apiserver_response_sizes_sum{resource="clusterprofiles",verb="POST"} 900
apiserver_response_sizes_count{resource="clusterprofiles",verb="POST"} 3
apiserver_response_sizes_bucket{resource="leases",verb="PUT",le="+Inf"} 1
apiserver_response_sizes_sum{resource="leases",verb="PUT"} 100
apiserver_response_sizes_count{resource="leases",verb="PUT"} 1
`

func TestRequestsAreTheDifferenceOfTwoReadings(t *testing.T) {
	first, err := parseCounters(strings.NewReader(before))
	if err != nil {
		t.Fatal(err)
	}
	second, err := parseCounters(strings.NewReader(after))
	if err != nil {
		t.Fatal(err)
	}
	want := Counters{
		Requests: map[string]int{
			"POST clusterprofiles": 3, "PATCH clusterprofiles/status": 2, "PATCH clusterprofiles/status 409": 1,
		},
		Bytes: map[string]int64{"responses": 1000},
	}
	if diff := cmp.Diff(want, second.since(first)); diff != "" {
		t.Error(diff)
	}
}

func TestSettledMeansLittleCPUForTheWholeWindow(t *testing.T) {
	type reading struct {
		second int
		whose  string
		used   time.Duration
	}
	tests := map[string]struct {
		readings []reading
		want     bool
		since    int
	}{
		"too early to tell":             {[]reading{{0, "a", 0}, {1, "a", 0}}, false, 0},
		"idle for the length":           {[]reading{{0, "a", 0}, {1, "a", 0}, {2, "a", time.Millisecond}}, true, 0},
		"busy all the time":             {[]reading{{0, "a", 0}, {1, "a", time.Second}, {2, "a", 2 * time.Second}}, false, 0},
		"busy, then idle":               {[]reading{{0, "a", 0}, {5, "a", time.Second}, {7, "a", time.Second}}, true, 5},
		"idle, but another process now": {[]reading{{0, "a", 0}, {1, "a", 0}, {2, "b", 0}}, false, 0},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			w := newWindow(2*time.Second, 0.05)
			var since time.Time
			var settled bool
			for _, r := range test.readings {
				since, settled = w.add(time.Unix(int64(r.second), 0), r.whose, r.used)
			}
			if settled != test.want || settled && since.Unix() != int64(test.since) {
				t.Errorf("got %t since %s", settled, since)
			}
		})
	}
}
